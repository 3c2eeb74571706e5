"""The demonstration: families of models of the digits, their region counts beside their gaps.

How the families were chosen: by what is varied, and judged by how far their gaps spread, not by their
correlation; correlations had been seen when `SPREAD_ABOVE` was fixed. Six families of
`inscape.training.fitting` were compared: networks by learning rate and batch size, networks by the number
of training images, trees, forests, nearest neighbours and support vector machines. The last two are left
out, since counting their regions takes longer than all the rest. Gaps spread if their standard deviation is
at least `SPREAD_ABOVE` times the sampling error of one gap; where they do not, no correlation is read,
however large it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from inscape.correlation.coefficients import Correlation, correlation
from inscape.drawing.axes import apart_from_pyplot
from inscape.errors import InscapeError, StudyError
from inscape.files import replacing
from inscape.measures.accuracy import correct
from inscape.measures.measurement import probability_less
from inscape.measures.region_count import RegionCount, draw_counter
from inscape.models import Model
from inscape.partition import decision_regions
from inscape.pictures import Shown
from inscape.probes import Patch
from inscape.progress import Meter, meter
from inscape.seeding import as_seed
from inscape.serialising import SCHEMA, LeftOut, check_schema, plain, restored
from inscape.status import Status
from inscape.training.data.datasets import Split, split_data
from inscape.training.fitting import fit, fit_many

LEARNING_RATES = (0.1, 0.03, 0.01)
BATCH_SIZES = (16, 64, 256)
N_TRAIN = 600
N_TEST = 1197
FITTED_FROM = 0.98
FOLLOWS_ABOVE = 0.9
SPREAD_ABOVE = 3.0
"""The gaps of a family tell something if they spread by this many sampling errors of one gap."""


@dataclass(frozen=True)
class Size:
    """How much is trained and counted.

    Attributes:
        depths: of the trees and of the forests.
        images: how many training images the networks of one family see.
        epochs: of networks that see all images.
        n_probes: segments on which every model is counted.
    """

    depths: tuple[int, ...] = tuple(range(3, 13))
    images: tuple[int, ...] = (30, 60, 100, 150, 250, 400, 600)
    epochs: int = 150
    n_probes: int = 200


FULL = Size()
QUICK = Size(depths=(3, 8), images=(30, 200), epochs=3, n_probes=20)
"""Enough to see that everything works; far too little for a lesson."""
FAMILIES = {
    "trees": "decision trees, by depth",
    "forests": "random forests, by depth",
    "networks by images": "networks, by the number of training images",
    "networks by step": "networks, by learning rate and batch size",
}


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


@dataclass(frozen=True)
class Lesson:
    """What the counts of a family tell of its gaps.

    Attributes:
        family: its name.
        kind: "tells", "against" (more regions, smaller gaps), "open", "alike" if the gaps hardly differ, or
            "few" if there are too few models for an interval.
        gaps: the smallest and the largest.
        sampling_error: that of one gap, from the test images.
        correlation: of count and gap.
        with_fit: the correlation of count and training accuracy, None if all models fit.
    """

    family: str
    kind: str
    gaps: tuple[float, float]
    sampling_error: float
    correlation: Correlation
    with_fit: float | None

    @property
    def words(self) -> str:
        """What the counts tell, as the end of a line."""
        if self.kind == "alike":
            return "the gaps are too alike to tell anything"
        if self.kind == "few":
            return "too few models to tell"
        if self.kind == "open":
            return "the count does not tell the gap"
        more = "more regions, larger gap" if self.kind == "tells" else "more regions, smaller gap"
        if self.follows_fit:
            more += f"; but the count follows training accuracy, r = {self.with_fit:+.2f}"
        return more

    @property
    def follows_fit(self) -> bool:
        """Whether the count follows training accuracy so closely that the two cannot be told apart."""
        return self.with_fit is not None and abs(self.with_fit) > FOLLOWS_ABOVE


@dataclass(frozen=True, eq=False, repr=False)
class Demo(Shown):
    """All models, fewest regions first; the correlation of count and gap per family and over all.

    `files` are the data and two networks, for the command line.
    """

    models: tuple[DemoModel, ...]
    correlations: dict[str, Correlation]
    pictures: tuple[Path, ...]
    seed: int
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"<demo of {len(self.models)} models. {self.learnt}>"

    @cached_property
    def lessons(self) -> tuple[Lesson, ...]:
        """What the counts of each family tell of its gaps."""
        groups = {family: [m for m in self.models if m.family == family] for family in self.correlations}
        return tuple(lesson(name, group, self.correlations[name]) for name, group in groups.items() if group)

    @property
    def learnt(self) -> str:
        """One sentence on all families."""
        verbs = {
            "tells": "went with the gaps of",
            "against": "went against the gaps of",
            "open": "did not tell the gaps of",
            "alike": "had nothing to tell of",
            "few": "was seen too seldom in",
        }
        phrases = []
        for kind, verb in verbs.items():
            if names := [_in_a_sentence(x) for x in self.lessons if x.kind == kind]:
                phrases.append(f"{verb} {' and '.join(names)}")
        said = ", and ".join(phrases) or "was not asked"
        return f"Learnt here: the region count {said}; of one model alone it tells nothing."

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
        lessons = {
            x.family: {"kind": x.kind, "gaps": x.gaps, "sampling_error": x.sampling_error}
            for x in self.lessons
        }
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "models": plain(self.rows()),
            "correlation": correlations,
            "p_first_before_last": plain(self.p_first_before_last),
            "lessons": plain(lessons),
            "learnt": self.learnt,
            "pictures": [str(p) for p in self.pictures],
            "files": [str(p) for p in self.files],
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
            files=tuple(Path(p) for p in data.get("files", ())),
        )
        vars(demo)["p_first_before_last"] = restored(float, data["p_first_before_last"])
        return demo


def _in_a_sentence(lesson: Lesson) -> str:
    notes = {"alike": " (gaps too alike)", "tells": " (by telling how far they fit)" * lesson.follows_fit}
    return f"{FAMILIES[lesson.family].replace(',', '')}{notes.get(lesson.kind, '')}"


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


def run_demo(
    out: str | Path, *, size: Size = FULL, random_state: int = 0, progress: bool | Meter | None = None
) -> Demo:
    """Train the models, count their regions exactly on common probes, and write pictures and files.

    Networks, decision trees and random forests (see `FAMILIES`) learn 600 of scikit-learn's digits, or fewer;
    the other 1,197 are the test set, whose pairs also span the probes, as in the published tables.
    """
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InscapeError(f"cannot write into {out}: {error.strerror or error}") from error
    seed = as_seed(random_state)
    split = split_data("digits", n_train=N_TRAIN, random_state=seed)
    counter = draw_counter(split.x_test, n_probes=size.n_probes, method="exact", random_state=seed)
    total = len(LEARNING_RATES) * len(BATCH_SIZES) + 2 * len(size.depths) + len(size.images)
    models = []
    with meter(progress, "models") as show:
        show(0, total)
        for i, (name, family, model, train) in enumerate(_fitted(split, seed, size), 1):
            accuracies = (correct(model, *train).mean(), correct(model, *split.test).mean())
            count = counter.count(model)
            models.append(DemoModel(name, family, model, float(accuracies[0]), float(accuracies[1]), count))
            show(i, total)
    files = _write_files(out, models, split)
    models.sort(key=lambda m: m.count.mean)
    correlations = _correlations(models, seed)
    pictures = _draw(out, models, split)
    return Demo(tuple(models), correlations, pictures, seed, files)


def _fitted(split: Split, seed: int, size: Size) -> Iterator[tuple[str, str, Model, Any]]:
    """Name, family, fitted model and its training data, one after the other; the networks train together."""
    for family, kind in (("trees", "tree"), ("forests", "forest")):
        for depth in size.depths:
            fitted = fit({"model": kind, "max_depth": depth}, split, random_state=seed)
            yield f"{kind} depth={depth}", family, fitted.model, split.train
    for n in size.images:
        fewer = replace(split, x_train=split.x_train[:n], y_train=split.y_train[:n])
        epochs = max(1, size.epochs * 100 // n)  # about as many steps for all
        settings = {"model": "mlp", "learning_rate": 0.03, "batch_size": 16, "epochs": epochs}
        fitted = fit(settings | {"normalise": False}, fewer, random_state=seed)
        yield f"net images={n}", "networks by images", fitted.model, fewer.train
    nets = [
        {
            "model": "mlp",
            "learning_rate": rate,
            "batch_size": batch,
            "epochs": size.epochs,
            "normalise": False,
        }
        for rate in LEARNING_RATES
        for batch in BATCH_SIZES
    ]
    for settings, net in zip(nets, fit_many(nets, split, random_states=[seed] * len(nets)), strict=True):
        name = f"net lr={settings['learning_rate']} batch={settings['batch_size']}"
        yield name, "networks by step", net.model, split.train


def _correlations(models: list[DemoModel], seed: int) -> dict[str, Correlation]:
    groups = {family: [m for m in models if m.family == family] for family in FAMILIES} | {"all": models}
    return {
        family: correlation(
            np.array([m.count.mean for m in group]), np.array([m.gap for m in group]), random_state=seed
        )
        for family, group in groups.items()
    }


def lesson(family: str, group: list[DemoModel], r: Correlation) -> Lesson:
    """What the counts of a family tell, by the spread of its gaps and then by the interval."""
    gaps = np.array([m.gap for m in group])
    wrong = np.array([1 - m.test_accuracy for m in group])
    sampling_error = float(np.sqrt((wrong * (1 - wrong)).mean() / N_TEST))
    fits = np.array([m.train_accuracy for m in group])
    counts = np.array([m.count.mean for m in group])
    kind = "open"
    if gaps.std(ddof=1) < SPREAD_ABOVE * sampling_error:
        kind = "alike"
    elif np.isnan(r.interval).any():
        kind = "few"
    elif r.interval[0] > 0:
        kind = "tells"
    elif r.interval[1] < 0:
        kind = "against"
    return Lesson(
        family=family,
        kind=kind,
        gaps=(float(gaps.min()), float(gaps.max())),
        sampling_error=sampling_error,
        correlation=r,
        with_fit=None if fits.min() >= FITTED_FROM else float(np.corrcoef(counts, fits)[0, 1]),
    )


def _write_files(out: Path, models: list[DemoModel], split: Split) -> tuple[Path, ...]:
    """The data, and the networks of the two opposite corners of learning rates and batch sizes."""
    import torch

    data = out / "digits.npz"
    with replacing(data) as draft, draft.open("wb") as file:
        x_train, x_test = np.asarray(split.x_train), np.asarray(split.x_test)
        np.savez(file, x_train=x_train, y_train=split.y_train, x_test=x_test, y_test=split.y_test)
    nets = [m.model for m in models if m.family == "networks by step"]
    paths = [data]
    for name, model in (("net-a.pt2", nets[0]), ("net-b.pt2", nets[-1])):
        example = torch.zeros(2, *split.x_train.shape[1:])
        module: Any = model.module  # type: ignore[attr-defined]
        program = torch.export.export(module.eval(), (example,), dynamic_shapes=({0: torch.export.Dim("n")},))
        paths.append(out / name)
        with replacing(paths[-1]) as draft, draft.open("wb") as file:
            torch.export.save(program, file)
    return tuple(paths)


@apart_from_pyplot()
def _draw(out: Path, models: list[DemoModel], split: Split) -> tuple[Path, ...]:
    """The scatter, and one plane through three test images for the smallest and the largest gap."""
    from inscape.drawing.measures import draw_scatter

    groups = {}
    for family in FAMILIES:
        chosen = [m for m in models if m.family == family]
        groups[family] = (np.array([m.count.mean for m in chosen]), np.array([100 * m.gap for m in chosen]))
    scatter = draw_scatter(
        groups,
        xlabel="region count (mean over segments)",
        ylabel="generalisation gap (percentage points)",
        title=f"{len(models)} models of the digits, each family apart",
    )
    paths = [out / "scatter.png"]
    with replacing(paths[0]) as draft:
        scatter.figure.savefig(draft, dpi=150)
    first = [int(np.flatnonzero(split.y_test == c)[0]) for c in (3, 5, 8)]
    plane = Patch.through(split.x_test[first])
    by_gap = sorted(models, key=lambda m: m.gap)
    for kind, m in (("best", by_gap[0]), ("worst", by_gap[-1])):
        ax = decision_regions(m.model, plane).plot()
        ax.set_title(f"{m.name}, gap {m.gap:.1%}: {ax.get_title()}")
        paths.append(out / f"plane-{kind}.png")
        with replacing(paths[-1]) as draft:
            ax.figure.savefig(draft, dpi=150)
    return tuple(paths)
