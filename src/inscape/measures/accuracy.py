"""Accuracy: the fraction of points that the model labels right, the yardstick beside every measure."""

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError, InscapeWarning
from inscape.measures.points import as_source
from inscape.models import Model

ENOUGH_POINTS = 50
"""Labelled points from which on an accuracy near chance means something."""
_POINTS_LOOKED_AT = 1000
_FAR_FROM_CHANCE = 0.1
"""The part of the way from chance to perfection beyond which a model is merely weak, whatever n is."""


def correct(model: Model, x: Any, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether the model labels each point right, (n,).

    Args:
        model: a wrapped model.
        x: the points (n, ...).
        y: their classes: names where the model has names, else labels.
    """
    predicted = model.labels(x)
    truth = np.asarray(y)
    if truth.shape != predicted.shape:
        raise DataError(
            f"y has shape {truth.shape} for {len(predicted)} points: expected ({len(predicted)},)"
        )
    if model.classes is not None:
        names = _names(truth)
        if not np.isin(names, model.classes).any():
            raise DataError(
                f"y holds {', '.join(np.unique(names)[:3])}, ..., but {model.name} knows only "
                f"{', '.join(model.classes[:3])}, ...: they name no class in common"
            )
        return np.asarray(np.array(model.classes)[predicted] == names)
    if truth.dtype.kind not in "iubf":
        raise DataError(f"y holds {truth.dtype} but {model.name} has no class names: give integer labels")
    return np.asarray(predicted == truth)


def chance_note(model: Model, right: npt.NDArray[np.bool_], x: Any, y: npt.ArrayLike) -> str:
    """A sentence if a model does no better than chance at labelled points, else "".

    The mean over classes of the part that is right is 1 / c for predictions that do not depend on the point,
    however unequal the classes are. The sentence is written if, on at least `ENOUGH_POINTS` points, that mean
    exceeds 1 / c by less than two of its standard errors and by less than a tenth of what there is to gain.

    Args:
        model: a wrapped model.
        right: whether it labels each point right, (n,).
        x: the points (n, ...).
        y: their classes (n,).
    """
    classes, which, sizes = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    if len(right) < ENOUGH_POINTS or len(classes) < 2:
        return ""
    n_classes = max(len(classes), _n_classes(model, x))
    recall = np.bincount(which, weights=right) / sizes
    error = math.sqrt(float((recall * (1 - recall) / sizes).sum())) / len(classes)
    allowed = min(2 * error, _FAR_FROM_CHANCE * (1 - 1 / n_classes))
    if recall.mean() > 1 / n_classes + allowed + 1e-12:
        return ""
    return (
        f"{model.name} labels {right.mean():.0%} of {len(right)} points right, no better than chance among "
        f"{n_classes} classes: the data may be laid out, scaled or labelled otherwise than in training (see "
        "layout and preprocess of inscape.wrap; --layout, --mean, --std, --scale)"
    )


def _n_classes(model: Model, x: Any) -> int:
    if model.classes is not None:
        return len(model.classes)
    return model.scores(x[:1]).shape[1] if model.has_scores else 2


def warn_at_chance(model: Model, x: Any, y: npt.ArrayLike | None) -> None:
    """Warn if a model does no better than chance at up to 1,000 of the points, if their classes are known."""
    if y is None:
        return
    source = as_source(x, y)
    rows = np.linspace(0, len(source) - 1, min(len(source), _POINTS_LOOKED_AT)).astype(np.int64)
    points, places = source.take(rows)
    points, truth = points[places], np.asarray(y)[rows]
    try:
        note = chance_note(model, correct(model, points, truth), points, truth)
    except DataError:  # classes of another kind than the model's, which only serve to draw points
        return
    if note:
        warnings.warn(note, InscapeWarning, stacklevel=3)


def class_columns(model: Model, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The column of each true class in the model's scores, (n,); an error if the model does not know one."""
    truth = np.asarray(y)
    if model.classes is not None:
        names, known = _names(truth), list(model.classes)
        unknown = sorted(set(names.tolist()) - set(known))
        if unknown:
            raise DataError(f"y holds {unknown[0]!r}, which is no class of {model.name}")
        return np.array([known.index(n) for n in names.tolist()], dtype=np.int64)
    if truth.ndim != 1 or truth.dtype.kind not in "iubf" or not (truth == np.rint(truth)).all():
        raise DataError(f"y of shape {truth.shape} and {truth.dtype}: give one whole-number label per point")
    if (truth < 0).any():
        raise DataError(f"y holds {truth.min()}: labels are columns of the scores, 0 or more")
    return truth.astype(np.int64)


def check_columns(columns: npt.NDArray[np.int64], n_scores: int, name: str) -> None:
    """Raise an error if a true class has no score; one score is that of a binary model."""
    n_classes = max(2, n_scores)
    if int(columns.max()) >= n_classes:
        raise DataError(f"y holds class {columns.max()}, but {name} has scores for {n_classes} classes only")


def _names(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if y.dtype.kind == "f" and (y == np.rint(y)).all():
        y = y.astype(np.int64)
    return y.astype(str)
