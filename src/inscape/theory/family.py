"""The networks of the survey: trained here, small, of several widths, depths and initial scales.

Each function trains some networks and yields what tells them apart with each check of them.
"""

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.theory import effective_regions, local_complexity, minima_stability, region_counts
from inscape.theory.check import FORMS, Check
from inscape.theory.check_all import check_all
from inscape.theory.layers import Layers
from inscape.theory.local_complexity.moments import moments
from inscape.theory.region_counts.two_layer import TwoLayer
from inscape.theory.region_counts.two_layer_descent import two_layer_descent
from inscape.univariate import ShallowNet, gradient_descent, gradient_flow, labels_of, random_teacher
from inscape.univariate.width import SUPPORT, alternating_teacher

Found = Iterator[tuple[dict[str, Any], Check]]


class Snapshots:
    """Keeps copies of a module at chosen steps of its training."""

    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps
        self.kept: dict[int, Any] = {}

    def step(self, module: Any, step: int) -> None:
        """Look at the module after so many steps."""
        if step in self.steps:
            self.kept[step] = copy.deepcopy(module).double().eval()


def rings(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Points of a square with two classes in rings."""
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, (np.linalg.norm(x, axis=1) % 0.6 > 0.3).astype(np.int64)


def classifiers(
    width: int,
    depth: int,
    scale: float,
    epochs: int,
    sigmas: Sequence[float],
    settings: dict[str, Any],
    seed: int,
) -> Found:
    """An MLP on rings before, early in and after training: whatever applies to it."""
    from inscape.training import Recipe, mlp, train

    rng = np.random.default_rng([seed, width, depth])
    x, y = rings(60, rng)
    x_test, y_test = rings(1000, rng)
    net = mlp(2, (width,) * depth, 2, seed=seed, scale=scale)
    snapshots = Snapshots((0, epochs // 10, epochs))
    train(net, x, y, Recipe(0.01, len(x), epochs, optimiser="adam"), seed=seed, monitor=snapshots)
    start = snapshots.kept[0]
    for step, kept in snapshots.kept.items():
        about = {"family": "classifiers", "width": width, "depth": depth, "scale": scale, "step": step}
        for sigma in sigmas:
            noise = settings | {"sigma": sigma, "random_state": seed}
            for check in check_all(kept, x, y, start=start if step else None, **noise):
                if check.name.startswith("lc_") or sigma == sigmas[0]:
                    yield about | {"sigma": sigma}, check
        for form in FORMS:
            check = region_counts.rc_theorem5(
                kept, x, y, x_test=x_test, y_test=y_test, form=form, random_state=seed
            )
            yield about | {"statement": "rc_theorem5, gap"}, check


def one_input(width: int, depth: int, scale: float, epochs: int, seed: int) -> Found:
    """A classifier of one input, for Proposition 6."""
    from inscape.training import Recipe, mlp, train

    x = np.random.default_rng([seed, width, depth]).uniform(-1, 1, size=(60, 1))
    y = (np.sin(6 * x[:, 0]) > 0).astype(np.int64)
    net = mlp(1, (width,) * depth, 2, seed=seed, scale=scale)
    train(net, x, y, Recipe(0.01, len(x), epochs, optimiser="adam"), seed=seed)
    about = {"family": "one input", "width": width, "depth": depth, "scale": scale}
    yield about, local_complexity.lc_proposition6(net.double(), x, support=(-1.0, 1.0))


def minima(width: int, step_size: float, seed: int) -> Found:
    """A regression net where gradient descent ended, for the statements on stability."""
    x = np.linspace(-1.5, 1.5, 12)
    y = np.sin(2 * x)
    start = ShallowNet.random(width, random_state=seed)
    run = gradient_descent(start, x, y, step_size, 300_000, warm_up=20_000, tol=1e-12, patience=5_000)
    about = {"family": "minima", "width": width, "step_size": step_size, "status": run.status}
    yield about, minima_stability.ms_lemma1(run.net, x, y, step_size)
    yield about, minima_stability.ms_lemma4(run.net, x, y)
    yield about, minima_stability.ms_theorem1(run.net, x, y, step_size)
    for form in FORMS:
        yield about, minima_stability.ms_theorem2(run.net, x, y, step_size, form=form)


def flows(width: int, n_changes: int, scale: float, seed: int) -> Found:
    """The limit of gradient flow, for the number of linear regions and its generalisation."""
    rng = np.random.default_rng([seed, width, n_changes])
    teacher = random_teacher(n_changes, random_state=rng)
    x = rng.uniform(-1, 1, 30)
    y = labels_of(teacher, x)
    start = ShallowNet.random(width, init="gaussian", sigma_hidden=scale, random_state=rng)
    run = gradient_flow(start, x, y, max_steps=1000)
    about = {"family": "flows", "width": width, "n_changes": n_changes, "scale": scale, "status": run.status}
    yield about, effective_regions.el_theorem42(run, x, y)
    yield about, effective_regions.el_corollary51(run, x, y, teacher, support=(-1.0, 1.0))
    sizes: dict[str, Any] = {"sigma_hidden": scale, "sigma_output": float(np.sqrt(2 / width))}
    yield (
        about,
        effective_regions.el_theorem31(start, x, y, shortest=1 / (n_changes + 1), max_steps=50, **sizes),
    )


def narrow(n_changes: int, n_nets: int, seed: int) -> Found:
    """Networks as wide as their teacher after gradient flow, for the width that is needed."""
    rng = np.random.default_rng([seed, n_changes])
    x = rng.uniform(*SUPPORT, 60)
    y = labels_of(alternating_teacher(n_changes), x)
    starts = [ShallowNet.random(n_changes, init="gaussian", random_state=rng) for _ in range(n_nets)]
    nets = [gradient_flow(start, x, y, max_steps=60).net for start in starts]
    yield {"family": "narrow", "width": n_changes}, effective_regions.el_theorem32(nets, n_changes)


def edges(width: int, step_size: float, seed: int) -> Found:
    """The two-layer network of Theorem 6 at the edge of stability."""
    rng = np.random.default_rng([seed, width])
    x = np.hstack([rng.uniform(-1, 1, size=(30, 2)), np.ones((30, 1))])
    y = np.where(np.sin(4 * x[:, 0] + x[:, 1]) > 0, 1.0, -1.0)
    start = TwoLayer(0.3 * rng.normal(size=(width, 3)), rng.choice([-1.0, 1.0], width), np.zeros(width))
    run = two_layer_descent(start, x, y, step_size, 4000, warm_up=1500, n_records=4)
    for step, net in zip(run.steps.tolist(), run.nets, strict=True):
        about = {"family": "edges", "width": width, "step_size": step_size, "step": step}
        yield about, region_counts.rc_lemma7(net, x[:15], x[15:])
        yield about, region_counts.rc_lemma8(net, x)
        yield about, region_counts.rc_theorem6(net, x)
        edge = region_counts.rc_theorem6(net, x, step_size=step_size)
        yield about | {"statement": "rc_theorem6, edge"}, edge


def optima(width: int, depth: int, settings: dict[str, Any], seed: int) -> Found:
    """Least-norm networks with margin 1 at one unit vector: matrices of rank one and norm one."""
    rng = np.random.default_rng([seed, width, depth])
    units = [u / np.linalg.norm(u) for u in np.abs(rng.normal(size=(depth, width)))]
    weights = [np.outer(b, a) for a, b in pairwise(units)] + [units[-1][None]]
    first = np.stack([units[0], np.zeros(width)])
    reference = Layers((first, np.array([[1.0, 0.0]])), (np.zeros(2), np.zeros(1)))
    x = units[0][None]
    m = moments(_module(weights), x, random_state=seed, **settings)
    for form in FORMS:
        found = local_complexity.lc_proposition9(m, x, [1.0], reference, form=form, is_optimum=True)
        yield {"family": "optima", "width": width, "depth": depth}, found


def decays(width: int, epochs: int, settings: dict[str, Any], seed: int) -> Found:
    """Networks with one hidden layer trained under several weight decays, for Corollary 10."""
    from inscape.training import Recipe, mlp, train

    x, y = rings(60, np.random.default_rng([seed, width]))
    rates = 10.0 ** -np.arange(1, 5)
    complexities, norms = [], []
    for rate in rates:
        net = mlp(2, (width,), 2, seed=seed)
        recipe = Recipe(0.01, len(x), 4 * epochs, optimiser="adam", weight_decay=float(rate))
        train(net, x, y, recipe, seed=seed)
        m = moments(net.double(), x, random_state=seed, **settings)
        complexities.append(float(m.draws["complexity"].sum(axis=1).mean()))
        norms.append(m.layers.size)
    found = local_complexity.lc_corollary10(rates, complexities, norms=norms, depth=2)
    yield {"family": "decays", "width": width}, found


def _module(weights: list[Floats]) -> Any:
    """A relu network in float64 without biases."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for w in weights:
        linear = nn.Linear(w.shape[1], w.shape[0], bias=False).double()
        linear.weight.data = torch.from_numpy(w.copy())
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
