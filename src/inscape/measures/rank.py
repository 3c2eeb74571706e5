"""Ranking models by region count on common probes: how sure that order is, and what it does not say.

What high and low mean: first: the fewest regions between data points; a probability near 1: another sample of
probes would give the same order; near 1/2: it is undecided. When it does not hold: simple is not accurate: a
model that fits nothing comes first, so look at accuracy beside the order.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Ints
from inscape.errors import DataError, MeasureError, ModelError, NotApplicableError, ProbeError, warn
from inscape.measures.accuracy import chance_note, correct
from inscape.measures.measurement import Z, as_source, points_of, probability_less
from inscape.measures.region_count import RegionCount, draw_counter
from inscape.measures.unlabelled import confidence, nuclear_norm
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.pictures import Drawn
from inscape.probes.source import PointSource, for_models
from inscape.progress import Meter, meter
from inscape.seeding import RandomState
from inscape.serialising import Written
from inscape.text_table import Columns, notes_below, paragraph, text_table

if TYPE_CHECKING:
    import pandas as pd

MEANING = (
    "Fewer regions mean a simpler function between data points; among networks that fit their data this "
    "often went with a smaller gap (training minus test accuracy), but it does not say which model is more "
    "accurate."
)
UNLABELLED = ("confidence", "nuclear_norm", "agreement")
FITTED = 0.98
"""The training accuracy below which a model does not fit its data, and its count says little of its gap."""
COLUMNS: Columns = {
    "rank": ("", "d"),
    "model": ("model", ""),
    "region_count": ("regions", ".3f"),
    "std_error": ("+-", ".3f"),
    "missed": ("missed", ".3f"),
    "p_before_next": ("P(< next)", ".1%"),
    "train_accuracy": ("train", ".1%"),
    "accuracy": ("accuracy", ".1%"),
    "gap": ("gap", ".1%"),
    "confidence": ("confidence", ".1%"),
    "nuclear_norm": ("nuclear", ".3f"),
    "agreement": ("agreement", ".1%"),
    "method": ("method", ""),
    "status": ("status", ""),
}
"""The table as text; a column that no row has a value of is left out."""
LEGEND = "P(< next): how likely it has fewer regions than the next model, not how likely it is better."
UNLABELLED_LEGEND = (
    "confidence, nuclear (norm) and agreement (with the other models) need no labels: high where predictions "
    "are sure, sure and spread over all classes, and shared."
)
NOTE_WIDTH = 100
"""The width of the notes below the table, where no terminal says it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking(Written, Drawn):
    """Models in the order of their region count, fewest regions first; `print` shows the table.

    Attributes:
        order: the model names, fewest regions first, what an adaptive count is estimated to have missed
            included; equal ones keep the order in which they were given.
        probabilities: for each neighbouring pair, the probability that the first really has fewer regions,
            (len(order) - 1,): 0.5 is a coin toss.
        results: the region count of each model, all on the same probes, each by its own method.
        accuracy: the accuracy of each model on the data, where their classes are known.
        train_accuracy: the same on the training data, where these were given.
        unlabelled: "confidence", "nuclear_norm" and "agreement" (with the other models) on the data ->
            model -> value, see `inscape.measures.unlabelled`: what orders models without labels
            too, often better.
        notes: what else to know of a model.
        meaning: what the order says, and what it does not.
    """

    measure: ClassVar[str] = "rank"
    _error: ClassVar = MeasureError
    _title: ClassVar[str] = "ranking"

    order: tuple[str, ...]
    probabilities: tuple[float, ...]
    results: dict[str, RegionCount]
    accuracy: dict[str, float] = field(default_factory=dict)
    train_accuracy: dict[str, float] = field(default_factory=dict)
    unlabelled: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    meaning: str = MEANING

    @property
    def gap(self) -> dict[str, float]:
        """Training minus test accuracy of each model, where both are known."""
        both = [name for name in self.order if name in self.accuracy and name in self.train_accuracy]
        return {name: self.train_accuracy[name] - self.accuracy[name] for name in both}

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per model."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain rows: the status is its short kind; the last model has no next one."""
        rows = []
        for number, name in enumerate(self.order, 1):
            result = self.results[name]
            below = number < len(self.order)
            notes = (result.status.detail, self.notes.get(name, ""))
            rows.append(
                {
                    "rank": number,
                    "model": name,
                    "region_count": result.mean,
                    "missed": result.missed,
                    "std_error": result.std_error,
                    "low": result.interval[0],
                    "high": result.interval[1],
                    "p_before_next": self.probabilities[number - 1] if below else None,
                    "train_accuracy": self.train_accuracy.get(name),
                    "accuracy": self.accuracy.get(name),
                    "gap": self.gap.get(name),
                    **{measure: self.unlabelled.get(measure, {}).get(name) for measure in UNLABELLED},
                    "method": result.method,
                    "status": result.status.kind,
                    "note": "; ".join(note for note in notes if note),
                }
            )
        return rows

    def to_text(self, *, width: int | None = None) -> str:
        """The table, the notes on its rows, and what the order means; in lines of `width`, none is cut."""
        rows = self.rows()
        notes = notes_below([(row["model"], row["note"]) for row in rows], width=width or NOTE_WIDTH)
        legend = [LEGEND, *([UNLABELLED_LEGEND] if any(self.unlabelled.values()) else [])]
        below = [paragraph(text, width=width or NOTE_WIDTH) for text in (*legend, self.meaning)]
        paragraphs = [text_table(rows, COLUMNS, width=width), notes, *below]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def _draw(self, ax: Any) -> Any:
        """Each model's mean and interval, in order."""
        from inscape.drawing.measures import draw_ranking

        means = [self.results[name].mean for name in self.order]
        intervals = [self.results[name].interval for name in self.order]
        return draw_ranking(list(self.order), means, intervals, list(self.probabilities), ax=ax)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        first, *others = self.order
        words = [f"{first} {self._number(first)}"]
        for name, p in zip(others, self.probabilities, strict=True):
            words.append(f"({p:.0%}) < {name} {self._number(name)}")
        return f"<ranking by region count: {' '.join(words)}>"

    def _number(self, name: str) -> str:
        result = self.results[name]
        return f"{result.mean:.3g} +- {result.std_error:.2g}"


def rank(
    models: Mapping[str, Any] | Sequence[Any],
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    dim: int = 1,
    n_probes: int = 100,
    method: str = "auto",
    resolution: int | None = None,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    train: Any = None,
    classes: str = "any",
    connectivity: str = "face",
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    n_jobs: int | None = None,
) -> Ranking:
    """The models ordered by region count, with the probability that each neighbouring order is right.

    All models are counted on the *same* probes, so that the difference of two models is a paired one
    and its error is usually far smaller than that of either count. With method "auto" each model is counted
    by the best method that fits it: exactly where that is possible, else adaptively. What an adaptive count
    missed, by its own estimate, is added to it for the order, and the error of that estimate, the length of
    `missed_interval` above it over 1.96, enters the probability. Each probability
    (`inscape.measures.measurement.probability_less`) is that of one neighbouring pair, not
    corrected for having compared many.

    The order is one of simplicity between data points, not of accuracy. Over many networks that fit their
    data, those with fewer regions often had the smaller generalisation gap (Li et al. 2025), so look at
    accuracy and gap beside it: give y, and `train`.

    Args:
        models: name -> anything that `inscape.wrap` takes; or a list, named by type or file; at least two.
        x: the data that span the probes.
        dim: as for `inscape.region_count`, like all that is not said here.
        n_probes: at least 2.
        method: "auto", or one that counts every model.
        resolution: see `inscape.region_count`.
        how: likewise.
        span: likewise.
        length: likewise.
        y: the classes of x, if x does not carry them: for the accuracy, and for `classes`.
        train: the training data with their classes, (x, y) or a data set, for the generalisation gap.
        classes: see `inscape.region_count`.
        connectivity: likewise.
        precision: likewise.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets
            (models done, models in all).
        n_jobs: threads, as for `inscape.region_count`.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> waves = {f"sin {k}x": lambda x, k=k: (np.sin(k * x[:, 0]) > 0).astype(int) for k in (9, 3)}
    >>> r = rank(waves, x, y=waves["sin 3x"](x), random_state=0)
    >>> r.order, round(r.probabilities[0], 3), r.accuracy
    (('sin 3x', 'sin 9x'), 1.0, {'sin 9x': 0.62, 'sin 3x': 1.0})
    """
    wrapped = _named(models)
    n_probes = whole_number(n_probes, "n_probes", 2, ProbeError)
    source = as_source(for_models(wrapped.values(), x), y, ProbeError)
    fitted_to = None if train is None else _training_data(for_models(wrapped.values(), train))
    counter = draw_counter(
        source,
        dim=dim,
        n_probes=n_probes,
        method=method,
        resolution=resolution,
        how=how,
        span=span,
        length=length,
        classes=classes,
        connectivity=connectivity,
        precision=precision,
        random_state=random_state,
    )
    results: dict[str, RegionCount] = {}
    yardstick = _Yardstick(source, fitted_to)
    with meter(progress, "models") as show, working(n_jobs):
        show(0, len(wrapped))
        for i, (name, model) in enumerate(wrapped.items(), 1):
            yardstick.apply(name, model)
            results[name] = counter.count(model, name=name)
            show(i, len(wrapped))
    order = tuple(sorted(results, key=lambda name: results[name].mean + (results[name].missed or 0.0)))
    probabilities = tuple(_probability(results[a], results[b]) for a, b in pairwise(order))
    return Ranking(
        order=order,
        probabilities=probabilities,
        results=results,
        accuracy=yardstick.accuracy,
        train_accuracy=yardstick.train_accuracy,
        unlabelled=yardstick.unlabelled(),
        notes=yardstick.notes,
    )


def _named(models: Any) -> dict[str, Model]:
    """Name -> wrapped model; those of a list by kind or file, with their index where that is shared."""
    if not isinstance(models, Mapping | list | tuple):
        raise ModelError(
            f"expected a dictionary {{name: model, ...}} or a list of models, got {type(models).__name__}"
        )
    if len(models) < 2:
        raise ModelError(f"ranking needs at least two models, got {len(models)}")
    if isinstance(models, Mapping):
        wrapped = {str(name): wrap(model) for name, model in models.items()}
        if len(wrapped) < len(models):
            raise ModelError(f"two models have the same name: {', '.join(map(repr, models))}")
        return wrapped
    listed = [wrap(model) for model in models]
    uses = Counter(model.kind for model in listed)
    return {
        model.kind if uses[model.kind] == 1 else f"{model.kind} [{i}]": model
        for i, model in enumerate(listed)
    }


def _training_data(train: Any) -> PointSource:
    source = as_source(train)
    if not source.has_labels:
        raise DataError("train holds no classes: give the training data as (x, y), or as a data set of both")
    return source


class _Yardstick:
    """The accuracies of models on the data and on the training data, and what to note of them."""

    def __init__(self, data: PointSource, train: PointSource | None) -> None:
        self._data, self._train = data, train
        self.accuracy: dict[str, float] = {}
        self.train_accuracy: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self._scored: dict[str, dict[str, float]] = {"confidence": {}, "nuclear_norm": {}}
        self._labels: dict[str, Ints] = {}
        self._classes: list[Any] = []

    def unlabelled(self) -> dict[str, dict[str, float]]:
        """What the predictions say without labels; agreement where all models have the same classes."""
        by_measure = {measure: values for measure, values in self._scored.items() if values}
        if any(classes != self._classes[0] for classes in self._classes):
            return by_measure
        shares = {
            name: float(np.mean([(labels == other).mean() for n, other in self._labels.items() if n != name]))
            for name, labels in self._labels.items()
        }
        return by_measure | {"agreement": shares}

    def apply(self, name: str, model: Model) -> None:
        """Note how often a model is right; warn if it is so no more often than by chance."""
        self._look(name, model)
        if self._data.has_labels:
            x, y = self._data.everything()
            assert y is not None
            try:
                right = correct(model, x, y)
            except DataError as error:  # classes of another kind than the model's only serve to draw points
                self.notes[name] = f"accuracy not known, since {error}"
                return
            self.accuracy[name] = float(right.mean())
            if note := chance_note(model, right, x, y):
                warn(note)
        if self._train is not None:
            fitted = float(correct(model, *self._train.everything()).mean())  # type: ignore[arg-type]
            self.train_accuracy[name] = fitted
            if fitted < FITTED:
                self.notes[name] = (
                    f"labels only {fitted:.0%} of its training data right: the count of a model that does "
                    "not fit them says little about its gap"
                )

    def _look(self, name: str, model: Model) -> None:
        points = points_of(model, self._data)
        self._labels[name] = model.labels(points)
        self._classes.append(None if model.classes is None else list(model.classes))
        for measure, function in (("confidence", confidence), ("nuclear_norm", nuclear_norm)):
            with suppress(NotApplicableError):  # a model that gives labels only
                self._scored[measure][name] = function(model, points).value


def _probability(a: RegionCount, b: RegionCount) -> float:
    """The probability that a has fewer regions than b, what either count missed included."""
    shift = (b.missed or 0.0) - (a.missed or 0.0)
    return probability_less(
        a.counts, b.counts, shift=shift, shift_error=math.hypot(_missed_error(a), _missed_error(b))
    )


def _missed_error(result: RegionCount) -> float:
    """The standard error of what a count missed, 0 where nothing is estimated."""
    if result.missed is None or result.missed_interval is None:
        return 0.0
    return (result.missed_interval[1] - result.missed) / Z
