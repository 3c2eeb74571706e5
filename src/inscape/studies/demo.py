"""The demonstration: many models of the digits, their region counts beside their gaps."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeError
from inscape.measures.accuracy import correct
from inscape.measures.region_count import draw_counter
from inscape.measures.region_count_result import RegionCount
from inscape.measures.statistics import probability_less
from inscape.models import Model, wrap
from inscape.partition import decision_regions
from inscape.probes import Patch
from inscape.progress import Meter, meter
from inscape.seeding import as_generator, as_seed
from inscape.studies.correlation import Correlation, correlation
from inscape.training import load_data

LEARNING_RATES = (0.1, 0.03, 0.01)
BATCH_SIZES = (16, 64, 256)
DEPTHS = tuple(range(3, 13))
EPOCHS = 150
N_TRAIN = 600
N_PROBES = 200
FITTED = 0.98
MEANING = (
    "Over these models, on this data set, the correlation says how well the region count orders the gaps. "
    "It does not say that fewer regions cause better generalisation, nor that the order holds within one "
    "family or for one pair of models: see the separate lines, their intervals, and the scatter."
)


@dataclass(frozen=True, eq=False)
class DemoModel:
    """One trained model with its accuracies and its region count; the gap is train minus test accuracy."""

    name: str
    family: str
    model: Model
    train_accuracy: float
    test_accuracy: float
    count: RegionCount

    @property
    def gap(self) -> float:
        """The generalisation gap: accuracy on the training points minus accuracy on the test points."""
        return self.train_accuracy - self.test_accuracy


@dataclass(frozen=True, eq=False)
class Demo:
    """All models, fewest regions first; the correlation of count and gap per family and over all."""

    models: tuple[DemoModel, ...]
    correlations: dict[str, Correlation]
    pictures: tuple[Path, ...]
    seed: int

    def rows(self) -> list[dict[str, Any]]:
        """The table, one plain row per model."""
        return [
            {
                "model": m.name,
                "family": m.family,
                "region_count": m.count.mean,
                "std_error": m.count.std_error,
                "train_accuracy": m.train_accuracy,
                "test_accuracy": m.test_accuracy,
                "gap": m.gap,
                "status": m.count.status,
            }
            for m in self.models
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        correlations = {
            family: {
                "pearson": None if math.isnan(c.value) else c.value,
                "interval": [None if math.isnan(v) else v for v in c.interval],
                "n": c.n,
            }
            for family, c in self.correlations.items()
        }
        return {
            "schema": 1,
            "seed": self.seed,
            "models": self.rows(),
            "correlation": correlations,
            "p_first_before_last": probability_less(
                self.models[0].count.counts, self.models[-1].count.counts
            ),
            "meaning": MEANING,
            "pictures": [str(p) for p in self.pictures],
        }


def run_demo(out: str | Path, *, random_state: int = 0, progress: bool | Meter | None = None) -> Demo:
    """Train the models, count their regions exactly on common probes, and write the pictures into `out`.

    Nine networks (three learning rates by three batch sizes), a family of decision trees and one of random
    forests learn 600 of scikit-learn's digits; the other 1,197 are the test set, whose pairs also span the
    probes, as in the published tables.
    """
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InscapeError(f"cannot write into {out}: {error.strerror or error}") from error
    seed = as_seed(random_state)
    data = load_data("digits")
    assert data.y is not None
    order = as_generator(seed).permutation(len(data))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    split = Split(data.x[train], data.y[train], data.x[test], data.y[test])
    counter = draw_counter(split.x_test, n_probes=N_PROBES, method="exact", random_state=seed)
    total = len(LEARNING_RATES) * len(BATCH_SIZES) + 2 * len(DEPTHS)
    models = []
    with meter(progress, "models") as show:
        show(0, total)
        for i, (name, family, estimator) in enumerate(_fitted(split, seed), 1):
            model = wrap(estimator)
            accuracies = (correct(model, *split.train).mean(), correct(model, *split.test).mean())
            count = counter.count(model)
            models.append(DemoModel(name, family, model, float(accuracies[0]), float(accuracies[1]), count))
            show(i, total)
    models.sort(key=lambda m: m.count.mean)
    correlations = _correlations(models, seed)
    pictures = _draw(out, models, correlations, split)
    return Demo(tuple(models), correlations, pictures, seed)


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test points with their classes."""

    x_train: npt.NDArray[np.float64]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.float64]
    y_test: npt.NDArray[np.int64]

    @property
    def train(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The training points and classes."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The test points and classes."""
        return self.x_test, self.y_test


def _fitted(split: Split, seed: int) -> Iterator[tuple[str, str, Any]]:
    """Name, family and fitted model, one after the other."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    from inscape.training.loop import Recipe, train
    from inscape.training.networks import mlp

    n_features = split.x_train[0].size
    for rate in LEARNING_RATES:
        for size in BATCH_SIZES:
            net = mlp(n_features, (128, 128), 10, seed=seed)
            train(net, *split.train, Recipe(rate, size, EPOCHS), seed=seed)
            yield f"net lr={rate} batch={size}", "network", net
    flat = split.x_train.reshape(len(split.x_train), -1)
    random_state = seed % 2**32  # scikit-learn takes 32 bits
    for depth in DEPTHS:
        yield (
            f"tree depth={depth}",
            "tree",
            DecisionTreeClassifier(max_depth=depth, random_state=random_state).fit(flat, split.y_train),
        )
    for depth in DEPTHS:
        forest = RandomForestClassifier(100, max_depth=depth, random_state=random_state)
        yield f"forest depth={depth}", "forest", forest.fit(flat, split.y_train)


def _correlations(models: list[DemoModel], seed: int) -> dict[str, Correlation]:
    groups = {family: [m for m in models if m.family == family] for family in ("network", "tree", "forest")}
    groups["all"] = models
    groups[f"fitted (train >= {FITTED:.0%})"] = [m for m in models if m.train_accuracy >= FITTED]
    return {
        family: correlation(
            np.array([m.count.mean for m in group]), np.array([m.gap for m in group]), random_state=seed
        )
        for family, group in groups.items()
    }


def _draw(
    out: Path, models: list[DemoModel], correlations: dict[str, Correlation], split: Split
) -> tuple[Path, ...]:
    """The scatter, and one plane through three test images for the smallest and the largest gap."""
    from inscape.drawing.counts import draw_scatter

    groups = {}
    for family in ("network", "tree", "forest"):
        chosen = [m for m in models if m.family == family]
        groups[family] = (np.array([m.count.mean for m in chosen]), np.array([100 * m.gap for m in chosen]))
    r = correlations["all"]
    scatter = draw_scatter(
        groups,
        xlabel="region count (mean over segments)",
        ylabel="generalisation gap (percentage points)",
        title=f"digits: r = {r.value:.2f} [{r.interval[0]:.2f}, {r.interval[1]:.2f}] over {r.n} models",
    )
    paths = [out / "scatter.png"]
    scatter.figure.savefig(paths[0], dpi=150)
    first = [int(np.flatnonzero(split.y_test == c)[0]) for c in (3, 5, 8)]
    plane = Patch.through(split.x_test[first])
    by_gap = sorted(models, key=lambda m: m.gap)
    for kind, m in (("best", by_gap[0]), ("worst", by_gap[-1])):
        ax = decision_regions(m.model, plane, method="grid", resolution=300).plot()
        ax.set_title(f"{m.name}, gap {m.gap:.1%}: {ax.get_title()}")
        paths.append(out / f"plane-{kind}.png")
        ax.figure.savefig(paths[-1], dpi=150)
    return tuple(paths)
