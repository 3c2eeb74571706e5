"""What adaptive counts missed, against what they say they missed: `python -m benchmarks coverage`.

Two hundred models of ten kinds, each a black box to the adaptive method, are counted on 60 segments each.
Truth is exact for trees, neighbours and relu networks, else a grid of 20,000 points whose boundaries are
halved down to 2^-20 of the segment. A model is covered if its true mean lies between the mean and the mean +
the upper end of `missed_interval`. The grid beside it takes as many evaluations; "off" is the mean distance
of our counts from the true ones, "gain" by how much those of the grid are farther, with an interval over
models, "worse" the models on which they are nearer. It takes about ten minutes on one core;
`INSCAPE_FAMILIES` and `INSCAPE_SEEDS`, lists with commas, and `INSCAPE_PROBES` choose a part of it.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from benchmarks.adaptive.cases import trained
from benchmarks.networks import gelu_mlp, mlp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

N_PROBES = int(os.environ.get("INSCAPE_PROBES", "60"))
N_DENSE = 20_000
NARROWEST = 2.0**-20
SEED = 52031


@dataclass(frozen=True)
class Candidate:
    """A model, the data that span its probes, and what the adaptive method is given of it.

    Attributes:
        family: what kind of model it is.
        model: what the truth is computed from.
        black_box: what is counted adaptively.
        x: the data.
        has_exact: whether exact counts are possible.
    """

    family: str
    model: Any
    black_box: Any
    x: Floats
    has_exact: bool


@dataclass(frozen=True)
class Outcome:
    """True and estimated counts of one candidate, and those of a grid of as many evaluations."""

    truth: Ints
    count: inscape.measures.RegionCount
    grid: Ints

    @property
    def missed(self) -> float:
        """The regions that the count truly missed per probe."""
        return float(self.truth.mean() - self.count.mean)

    @property
    def off(self) -> tuple[float, float]:
        """How far our counts are from the truth on average, and those of the grid."""
        ours, theirs = (float(np.abs(self.truth - c).mean()) for c in (self.count.counts, self.grid))
        return ours, theirs

    @property
    def gain(self) -> float:
        """By how much our counts are nearer to the truth than those of the grid."""
        ours, theirs = self.off
        return theirs - ours

    @property
    def is_covered(self) -> bool:
        """Whether the truth lies in what the count states."""
        interval = self.count.missed_interval
        assert interval is not None
        return -1e-9 <= self.missed <= interval[1] + 1e-9


def data_sets() -> list[tuple[Floats, Ints]]:
    """Five sets of data: whole-numbered, measured, and two noisy ones."""
    digits, cancer, wine = (load(return_X_y=True) for load in (load_digits, load_breast_cancer, load_wine))
    noisy = [
        make_classification(
            500, 4 + 4 * k, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.15, random_state=k
        )
        for k in range(2)
    ]
    return [(digits[0][:900], digits[1][:900]), *((scale(x), y) for x, y in (cancer, wine)), *noisy]


SEEDS = tuple(int(s) for s in os.environ.get("INSCAPE_SEEDS", "0,1,2,3").split(","))


def candidates(seeds: Sequence[int] = SEEDS) -> Iterator[Candidate]:
    """Per set of data and seed: ten models, one of each kind."""
    for seed in seeds:
        for x, y in data_sets():
            rng = np.random.default_rng(seed)
            few = rng.choice(len(x), int(0.7 * len(x)), replace=False)
            yield from step_models(x, x[few], y[few].astype(np.int64), seed)
            yield from networks(x, x[few], y[few].astype(np.int64), seed)


def step_models(x: Floats, x_train: Floats, y: Ints, seed: int) -> Iterator[Candidate]:
    """Trees, forests, boosted trees and nearest neighbours, which are piecewise constant."""
    n_trees = (10, 25, 50, 100)[seed % 4]
    for family, estimator in (
        ("decision tree", DecisionTreeClassifier(random_state=seed)),
        ("random forest", RandomForestClassifier(n_trees, random_state=seed)),
        ("extra trees", ExtraTreesClassifier(n_trees, random_state=seed)),
        ("boosted trees", GradientBoostingClassifier(n_estimators=8 * (seed % 4 + 1), random_state=seed)),
        ("nearest neighbours", KNeighborsClassifier((1, 3, 5, 15)[seed % 4], algorithm="brute")),
    ):
        fitted = estimator.fit(x_train, y)
        black_box = partial(probabilities, fitted.predict_proba)
        yield Candidate(family, fitted, black_box, x, has_exact=True)


def probabilities(predict_proba: Callable[[Floats], Floats], x: Floats) -> Floats:
    """What a classifier says, without a trace of its structure."""
    return predict_proba(x)


def networks(x: Floats, x_train: Floats, y: Ints, seed: int) -> Iterator[Candidate]:
    """Relu, tanh and GELU networks, trained or random, and a quantised one."""
    torch.manual_seed(seed)
    d, c = x.shape[1], int(y.max()) + 1
    steps = 200 * (seed % 4 + 1)
    yield network("relu, trained", trained(mlp(d, 50, 50, c), x_train, y, steps), x, has_exact=True)
    yield network("relu, random", sharpened(mlp(d, 50, 50, c)), x, has_exact=True)
    tanh = nn.Sequential(nn.Linear(d, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, c))
    smooth = trained(tanh, x_train, y, steps) if seed % 2 else sharpened(tanh)
    yield network("tanh", smooth, x, has_exact=False)
    yield network("GELU", trained(gelu_mlp(d, 50, 50, c), x_train, y, steps), x, has_exact=False)
    quantised = Quantised(trained(mlp(d, 50, c), x_train, y, steps), n_levels=2 ** (3 + seed % 4))
    yield Candidate("quantised network", quantised, quantised, x, has_exact=False)


def network(family: str, net: nn.Module, x: Floats, *, has_exact: bool) -> Candidate:
    """A network in double precision."""
    return Candidate(family, net.double().eval(), net.double().eval(), x, has_exact)


def sharpened(net: nn.Module) -> nn.Module:
    """The network with weights twice as large as at random, so that it bends more."""
    for p in net.parameters():
        p.data *= 2.0
    return net


class Quantised:
    """A network of one hidden layer whose inputs and activations are rounded to a few levels."""

    def __init__(self, net: nn.Module, n_levels: int) -> None:
        first, last = (m for m in net.modules() if isinstance(m, nn.Linear))
        self._layers = [[p.detach().double().numpy() for p in (m.weight, m.bias)] for m in (first, last)]
        self._n_levels = n_levels

    def __call__(self, x: Floats) -> Floats:
        """The scores, (n, c)."""
        (w, b), (v, c) = self._layers
        hidden = np.round(
            np.maximum(0, np.round(x * self._n_levels) / self._n_levels @ w.T + b) * self._n_levels
        )
        return np.asarray(hidden / self._n_levels @ v.T + c)


def outcome(candidate: Candidate, n_probes: int = N_PROBES, n_dense: int = N_DENSE) -> Outcome:
    """How a candidate is counted, against the truth."""
    common: dict[str, Any] = {"n_probes": n_probes, "random_state": SEED}
    count = inscape.region_count(candidate.black_box, candidate.x, method="adaptive", **common)
    if candidate.has_exact:
        truth = inscape.region_count(candidate.model, candidate.x, method="exact", **common).counts
    else:
        probes = inscape.sample_probes(candidate.x, n=n_probes, random_state=SEED)
        model = inscape.wrap(candidate.model)
        truth = np.array([dense_count(model, p, n_dense) for p in probes])
    resolution = round(count.n_evaluations / n_probes)
    grid = inscape.region_count(
        candidate.black_box, candidate.x, method="grid", resolution=resolution, **common
    )
    return Outcome(truth, count, grid.counts)


def dense_count(model: Any, probe: Any, n: int) -> int:
    """The regions on a dense grid, with those that halving its boundaries down to `NARROWEST` shows."""
    t = np.linspace(0, 1, n)
    labels = model.labels(probe.points(t))
    at = np.flatnonzero(np.diff(labels))
    low, high, left, right, found = t[at], t[at + 1], labels[at], labels[at + 1], 0
    while len(low) and (high - low).max() > NARROWEST:
        middle = (low + high) / 2
        new = model.labels(probe.points(middle))
        is_third = (new != left) & (new != right)
        is_left = (new == left) | is_third
        # a third label has a boundary on either side: the right one goes on here, the left one is added
        more = low[is_third], middle[is_third], left[is_third], new[is_third]
        low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
        left = np.where(is_third, new, left)
        low, high, left, right = (
            np.concatenate(pair) for pair in zip((low, high, left, right), more, strict=True)
        )
        found += int(is_third.sum())
    return len(at) + 1 + found


N_TRIANGLES = 6
N_RESAMPLED = 4000


def interval(gains: Sequence[float]) -> str:
    """The mean gain over a grid of as many evaluations, and its 95 % interval, by resampling models."""
    values = np.array(gains)
    means = values[np.random.default_rng(0).integers(len(values), size=(N_RESAMPLED, len(values)))].mean(
        axis=1
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def on_planes() -> None:
    """How far counts on triangles are from exact ones, beside those of grids of as many points."""
    print("| family | planes | regions | evaluations | missed | estimate | off | gain |")
    print("|---|---|---|---|---|---|---|---|")
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed, (x, y) in product(SEEDS, data_sets()):
        few = np.random.default_rng(seed).choice(len(x), int(0.7 * len(x)), replace=False)
        for candidate in step_models(x, x[few], y[few].astype(np.int64), seed):
            if candidate.family == "nearest neighbours":  # which is exact on segments only
                continue
            found = np.mean(list(plane_outcomes(candidate, seed)), axis=0)
            rows[candidate.family].append(found)
            if "trees" in candidate.family or "forest" in candidate.family:
                rows[f"{candidate.family}, {(10, 25, 50, 100)[seed % 4]}"].append(found)
    for family, models in sorted(rows.items()):
        regions, n_evaluations, missed, estimate, off, _ = np.mean(models, axis=0)
        print(
            f"| {family} | {N_TRIANGLES * len(models)} | {regions:.1f} | {n_evaluations:.0f} | {missed:.2f} "
            f"| {estimate:.2f} | {off:.2f} | {interval([m[5] - m[4] for m in models])} |",
            flush=True,
        )


def plane_outcomes(candidate: Candidate, seed: int) -> Iterator[tuple[float, ...]]:
    """The exact count on each triangle, our evaluations, what we missed and said so, and both errors."""
    triangles = inscape.sample_probes(candidate.x, dim=2, n=N_TRIANGLES, random_state=SEED + seed)
    exact = inscape.decision_regions(candidate.model, triangles, method="exact")
    ours = inscape.decision_regions(candidate.black_box, triangles, method="adaptive")
    for triangle, truth, found in zip(triangles, exact, ours, strict=True):
        n = found.n_evaluations
        resolution = int((np.sqrt(8 * n + 1) - 1) / 2)  # a triangle of r points per side has r (r + 1) / 2
        grid = inscape.decision_regions(
            candidate.black_box, triangle, method="grid", resolution=resolution
        ).n_regions
        k = truth.n_regions
        missed = found.missed or 0.0
        yield (k, n, k - found.n_regions, missed, abs(k - found.n_regions), abs(k - grid))


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    wanted = os.environ.get("INSCAPE_FAMILIES", "").split(",")
    found: dict[str, list[Outcome]] = defaultdict(list)
    for candidate in candidates():
        if wanted == [""] or candidate.family in wanted:
            found[candidate.family].append(outcome(candidate))
    print("| family | models | regions | evaluations | missed | estimate | covered | off | gain | worse |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    found["all"] = [o for some in found.values() for o in some]
    for family, rows in found.items():
        off = np.mean([o.off[0] for o in rows])
        n_worse = sum(o.gain < 0 for o in rows)
        print(
            f"| {family} | {len(rows)} | {np.mean([o.truth.mean() for o in rows]):.2f} "
            f"| {np.mean([o.count.n_evaluations for o in rows]) / N_PROBES:.0f} "
            f"| {np.mean([o.missed for o in rows]):.3f} | {np.mean([o.count.missed or 0 for o in rows]):.3f} "
            f"| {sum(o.is_covered for o in rows)} | {off:.3f} | {interval([o.gain for o in rows])} "
            f"| {n_worse} |",
            flush=True,
        )
    on_planes()
