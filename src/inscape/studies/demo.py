"""The demonstration: many models of the digits, their region counts beside their gaps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from inscape.correlation.coefficients import Correlation, correlation
from inscape.errors import InscapeError, StudyError
from inscape.files import replacing
from inscape.measures.accuracy import correct
from inscape.measures.region_count import RegionCount, draw_counter
from inscape.measures.statistics import probability_less
from inscape.models import Model
from inscape.partition import decision_regions
from inscape.probes import Patch
from inscape.progress import Meter, meter
from inscape.seeding import as_seed
from inscape.serialising import SCHEMA, LeftOut, check_schema, plain, restored
from inscape.status import Status
from inscape.training.data.splits import Split, split_data
from inscape.training.fitting import fit, fit_many

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

    @cached_property
    def p_first_before_last(self) -> float:
        """The probability that the first model has fewer regions than the last."""
        return probability_less(self.models[0].count.counts, self.models[-1].count.counts)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the models themselves and their single counts; `from_dict` reads it back."""
        correlations = {
            family: {"pearson": plain(c.value), "interval": plain(c.interval), "n": c.n}
            for family, c in self.correlations.items()
        }
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "models": plain(self.rows()),
            "correlation": correlations,
            "p_first_before_last": plain(self.p_first_before_last),
            "meaning": MEANING,
            "pictures": [str(p) for p in self.pictures],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The demonstration that `to_dict` wrote; what it left out of the models says so when it is used."""
        check_schema(data, what="demonstration", error=StudyError)
        missing = {"seed", "models", "correlation", "p_first_before_last", "pictures"} - data.keys()
        if missing:
            raise StudyError(f"not a whole demonstration: {', '.join(sorted(missing))} missing")
        demo = cls(
            models=tuple(_restored_model(row) for row in data["models"]),
            correlations={
                family: Correlation.from_dict(c | {"value": c["pearson"]})
                for family, c in data["correlation"].items()
            },
            pictures=tuple(Path(p) for p in data["pictures"]),
            seed=data["seed"],
        )
        vars(demo)["p_first_before_last"] = restored(float, data["p_first_before_last"])
        return demo


def _restored_model(row: Mapping[str, Any]) -> DemoModel:
    """A model of which a row of the table is known."""
    known = {
        "value": row["region_count"],
        "std_error": restored(float, row["std_error"]),
        "status": Status.read(row["status"]),
    }
    model: Any = LeftOut("model", StudyError)
    count: Any = {f.name: LeftOut(f.name, StudyError) for f in fields(RegionCount)} | known
    return DemoModel(
        name=row["model"],
        family=row["family"],
        model=model,
        train_accuracy=row["train_accuracy"],
        test_accuracy=row["test_accuracy"],
        count=RegionCount(**count),
    )


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
    split = split_data("digits", n_train=N_TRAIN, random_state=seed)
    counter = draw_counter(split.x_test, n_probes=N_PROBES, method="exact", random_state=seed)
    total = len(LEARNING_RATES) * len(BATCH_SIZES) + 2 * len(DEPTHS)
    models = []
    with meter(progress, "models") as show:
        show(0, total)
        for i, (name, family, model) in enumerate(_fitted(split, seed), 1):
            accuracies = (correct(model, *split.train).mean(), correct(model, *split.test).mean())
            count = counter.count(model)
            models.append(DemoModel(name, family, model, float(accuracies[0]), float(accuracies[1]), count))
            show(i, total)
    models.sort(key=lambda m: m.count.mean)
    correlations = _correlations(models, seed)
    pictures = _draw(out, models, correlations, split)
    return Demo(tuple(models), correlations, pictures, seed)


def _fitted(split: Split, seed: int) -> Iterator[tuple[str, str, Model]]:
    """Name, family and fitted model, one after the other; the networks train together."""
    nets = [
        {"model": "mlp", "learning_rate": rate, "batch_size": size, "epochs": EPOCHS, "normalise": False}
        for rate in LEARNING_RATES
        for size in BATCH_SIZES
    ]
    for settings, net in zip(nets, fit_many(nets, split, seeds=[seed] * len(nets)), strict=True):
        yield f"net lr={settings['learning_rate']} batch={settings['batch_size']}", "network", net.model
    for family in ("tree", "forest"):
        for depth in DEPTHS:
            fitted = fit({"model": family, "max_depth": depth}, split, seed=seed)
            yield f"{family} depth={depth}", family, fitted.model


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
    with replacing(paths[0]) as draft:
        scatter.figure.savefig(draft, dpi=150)
    first = [int(np.flatnonzero(split.y_test == c)[0]) for c in (3, 5, 8)]
    plane = Patch.through(split.x_test[first])
    by_gap = sorted(models, key=lambda m: m.gap)
    for kind, m in (("best", by_gap[0]), ("worst", by_gap[-1])):
        ax = decision_regions(m.model, plane, method="grid", resolution=300).plot()
        ax.set_title(f"{m.name}, gap {m.gap:.1%}: {ax.get_title()}")
        paths.append(out / f"plane-{kind}.png")
        with replacing(paths[-1]) as draft:
            ax.figure.savefig(draft, dpi=150)
    return tuple(paths)
