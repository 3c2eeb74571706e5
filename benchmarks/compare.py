"""Two models at once against one: comparing on planes and segments, agreement over segments, the joint walk.

Copies of one network are told apart by the order of their units, so that they share no layer; twins have
other weights. Times are seconds of the processor, of one thread.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import inscape
from benchmarks.networks import mlp
from benchmarks.timing import report
from tests.fixtures.twins import permuted

SIZES = (784, 256, 128, 10)
PLANES = ((784, 32, 32, 10), (784, 64, 64, 64, 10), SIZES)
"""Networks with some 1,000, 10,000 and 40,000 linear regions on the plane."""
TWIN = "a twin of other weights"


def models(
    sizes: tuple[int, ...],
) -> tuple[inscape.models.Model, dict[str, inscape.models.Model], np.ndarray]:
    """A perceptron, what it is compared with by name, and points."""
    net = mlp(*sizes)
    others = {
        "itself": inscape.wrap(net),
        "a copy, its units in another order": inscape.wrap(permuted(net)),
        TWIN: inscape.wrap(mlp(*sizes, seed=1)),
    }
    return inscape.wrap(net), others, np.random.default_rng(0).normal(size=(200, sizes[0]))


def seconds(*jobs: Callable[[], object], repeats: int = 5) -> list[np.ndarray]:
    """The processor time of each job in every round, (repeats,) each, after one round that compiles.

    Rounds are taken side by side, and ratios within a round: what slows the machine down for a while slows
    every job of a round.
    """
    rounds = np.empty((repeats + 1, len(jobs)))
    for k in range(repeats + 1):
        for i, job in enumerate(jobs):
            start = time.process_time()
            job()
            rounds[k, i] = time.process_time() - start
    return list(rounds[1:].T)


def times(job: np.ndarray, one: np.ndarray) -> float:
    """How many times longer a job takes than another: the median over rounds."""
    return float(np.median(job / one))


def on_plane(sizes: tuple[int, ...], *, with_difference: bool) -> None:
    """Comparing on a plane, and the largest difference there, against the exact regions of one network."""
    a, others, x = models(sizes)
    patch = inscape.Patch.through(x[:3], margin=0.2)
    twin = others[TWIN]

    def regions(model: inscape.models.Model) -> Callable[[], object]:
        return lambda: inscape.decision_regions(model, patch, method="exact", progress=False)

    def comparison(b: inscape.models.Model) -> Callable[[], Any]:
        return lambda: inscape.compare(a, b, patch, method="exact", progress=False)

    one, other, *two = seconds(regions(a), regions(twin), *map(comparison, others.values()))
    n_regions = inscape.linear_regions(a, patch).n_regions
    print(f"a plane of {n_regions:,} linear regions: {1e3 * np.median(one):.1f} ms for one network")
    for name, both in zip(others, two, strict=True):
        if name == TWIN:
            report(
                f"compare with {name}, over the mean of their own regions",
                times(both, (one + other) / 2),
                "none",
            )
        else:
            report(f"compare with {name}, over decision_regions of one", times(both, one), "at most 2.2")
    if with_difference:
        one, *joint = seconds(
            regions(a), *[lambda b=b: comparison(b)().max_difference for b in others.values()], repeats=2
        )
        for name, both in zip(others, joint, strict=True):
            report(
                f"  and the largest difference, with {name}", times(both, one), "none: four times the faces"
            )


def on_segments(sizes: tuple[int, ...]) -> None:
    """Agreement over 1,000 segments against the region count of one network, on the same segments."""
    a, others, x = models(sizes)
    settings: Any = {"n_probes": 1000, "random_state": 0, "method": "exact", "progress": False}
    one, *two = seconds(
        lambda: inscape.region_count(a, x, **settings),
        *[lambda b=b: inscape.agreement(a, b, x, **settings) for b in others.values()],
        repeats=3,
    )
    print(f"1,000 segments: {np.median(one):.3f} s for region_count of one network")
    for name, both in zip(others, two, strict=True):
        report(f"agreement with {name}, over region_count of one", times(both, one), "at most 2.2")


def main() -> None:
    """Print every figure."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", inscape.InscapeWarning)
    for sizes in PLANES:
        on_plane(sizes, with_difference=sizes == SIZES)
    on_segments(SIZES)
