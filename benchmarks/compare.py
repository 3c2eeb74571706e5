"""Two models at once against one: comparing on planes and segments, agreement over segments, the joint walk.

Copies of one network are told apart by the order of their units, so that they share no layer; twins have
other weights. Times are seconds of the processor, of one thread.
"""

import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import inscape
from benchmarks.networks import mlp
from benchmarks.timing import report

SIZES = (784, 256, 128, 10)
REPEATS = 3


def reordered(net: nn.Sequential, seed: int = 0) -> nn.Sequential:
    """A copy of a perceptron with the units of every hidden layer in another order: the same function."""
    twin = mlp(*SIZES)
    twin.load_state_dict(net.state_dict())
    generator = torch.Generator().manual_seed(seed)
    layers = [m for m in twin if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for one, after in itertools.pairwise(layers):
            order = torch.randperm(one.out_features, generator=generator)
            one.weight.copy_(one.weight[order])
            one.bias.copy_(one.bias[order])
            after.weight.copy_(after.weight[:, order])
    return twin


def best_seconds(*jobs: Callable[[], object]) -> list[float]:
    """The shortest processor time of each job; the jobs take turns, after one round that compiles."""
    best = [float("inf")] * len(jobs)
    for k in range(REPEATS + 1):
        for i, job in enumerate(jobs):
            start = time.process_time()
            job()
            if k:
                best[i] = min(best[i], time.process_time() - start)
    return best


def on_planes(a: inscape.models.Model, others: dict[str, inscape.models.Model], x: np.ndarray) -> None:
    """Comparing on a plane, and the largest difference there, against the exact regions of one network."""
    patch = inscape.Patch.through(x[:3], margin=0.2)
    names = list(others)
    one, *two = best_seconds(
        lambda: inscape.decision_regions(a, patch, method="exact", progress=False),
        *[lambda b=others[n]: inscape.compare(a, b, patch, method="exact", progress=False) for n in names],
    )
    walk, *joint = best_seconds(
        lambda: inscape.linear_regions(a, patch, progress=False),
        *[
            lambda b=others[n]: inscape.compare(a, b, patch, method="exact", progress=False).max_difference
            for n in names
        ],
    )
    faces = inscape.linear_regions(a, patch).n_regions
    print(f"a plane of {faces:,} linear regions: {one:.3f} s for the decision regions of one network")
    for name, seconds in zip(names, two, strict=True):
        report(f"compare with {name}, over decision_regions of one", seconds / one, "at most 2.2")
    for name, seconds in zip(names, joint, strict=True):
        report(f"  and the largest difference, with {name}", seconds / one, "none: four times the faces")
    print(f"  (linear_regions of one: {walk:.3f} s)")


def on_segments(a: inscape.models.Model, others: dict[str, inscape.models.Model], x: np.ndarray) -> None:
    """Agreement over 1,000 segments against the region count of one network, on the same segments."""
    names = list(others)
    settings: Any = {"n_probes": 1000, "random_state": 0, "method": "exact", "progress": False}
    one, *two = best_seconds(
        lambda: inscape.region_count(a, x, **settings),
        *[lambda b=others[n]: inscape.agreement(a, b, x, **settings) for n in names],
    )
    print(f"1,000 segments: {one:.3f} s for region_count of one network")
    for name, seconds in zip(names, two, strict=True):
        report(f"agreement with {name}, over region_count of one", seconds / one, "at most 2.2")


def main() -> None:
    """Print every figure."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", inscape.InscapeWarning)
    net = mlp(*SIZES)
    others = {
        "itself": inscape.wrap(net),
        "a copy, its units in another order": inscape.wrap(reordered(net)),
        "a twin of other weights": inscape.wrap(mlp(*SIZES, seed=1)),
    }
    x = np.random.default_rng(0).normal(size=(200, SIZES[0]))
    model = inscape.wrap(net)
    on_planes(model, others, x)
    on_segments(model, others, x)
