"""Accuracy: the fraction of points that the model labels right, the yardstick beside every measure.

What high and low mean: 1: every label is right; near 1/c, of c classes of equal size: no better than chance.
When it does not hold: where classes differ in size, a model that always answers with the largest has its
share; at training points it says how well the model fits, not how well it generalises; and of few points
the error is large.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Bools, Ints
from inscape.errors import DataError, warn
from inscape.measures.measurement import as_source
from inscape.models import Model
from inscape.models.class_names import as_labels, fractions, listed, names_of
from inscape.probes.source import for_model
from inscape.progress import Meter

JUDGED_FROM_POINTS = 50
"""Labelled points from which on an accuracy near chance means something."""
_POINTS_TRIED = 1000
"""Of data, before a model is said to be no better than chance."""
_FAR_FROM_CHANCE = 0.1
"""The fraction of the way from chance to perfection beyond which a model is merely weak, whatever n is."""


def correct(model: Model, x: Any, y: npt.ArrayLike, *, progress: bool | Meter | None = None) -> Bools:
    """Whether the model labels each point right, (n,); an error if y holds what is no class of the model.

    A model that returns names without a list of them, or labels without scores, cannot be asked which classes
    it knows: there a class that it does not predict is wrong. If it predicts none of y at all, names are an
    error and numbers a warning.

    Args:
        model: a wrapped model.
        x: the points (n, ...).
        y: their classes: names where the model has names, else labels.
        progress: None for a bar after two seconds, False for none.
    """
    truth, predicted = as_labels(y, DataError), model.labels(x, progress=progress)
    if truth.shape != predicted.shape:
        raise DataError(
            f"y has shape {truth.shape} for {len(predicted)} points: expected ({len(predicted)},)"
        )
    if model.classes is not None and model.reveals_classes:
        names = names_of(truth)
        if not np.isin(names, model.classes).any():
            raise DataError(
                f"y holds {listed(truth)}, but {model.name} predicts only {listed(model.classes)}: "
                "they name no class in common"
            )
        return np.asarray(np.array(model.classes)[predicted] == names)
    n_scores = None if model.classes is not None else _n_scores(model, x)
    if model.classes is None and n_scores is None:
        return _unbounded(model, predicted, truth)
    columns = class_columns(model, truth)
    if n_scores is not None:
        check_columns(columns, n_scores, model.name)
    return np.asarray(predicted == columns)


def chance_note(model: Model, right: Bools, x: Any, y: npt.ArrayLike) -> str:
    """A sentence if a model does no better than chance at labelled points, else "".

    The mean over classes of the fraction that is right is 1 / c for predictions that do not depend on the
    point, however unequal the classes are. The sentence is written if, on at least `JUDGED_FROM_POINTS`
    points, that mean exceeds 1 / c by less than two of its standard errors and by less than a tenth of
    what there is to gain.

    Args:
        model: a wrapped model.
        right: whether it labels each point right, (n,).
        x: the points (n, ...).
        y: their classes (n,).
    """
    classes, which, sizes = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    if len(right) < JUDGED_FROM_POINTS or len(classes) < 2:
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
    return _n_columns(model, x) or 2


def warn_at_chance(model: Model, x: Any, y: npt.ArrayLike | None) -> None:
    """Warn if a model does no better than chance at up to 1,000 of the points, if their classes are known."""
    if y is None:
        return
    source = as_source(for_model(model, x), y)
    chosen = np.linspace(0, len(source) - 1, min(len(source), _POINTS_TRIED)).astype(np.int64)
    points, position = source.take(chosen)
    points, truth = points[position], np.asarray(y)[chosen]
    try:
        note = chance_note(model, correct(model, points, truth), points, truth)
    except DataError:  # classes of another kind than the model's, which only serve to draw points
        return
    if note:
        warn(note)


def class_columns(model: Model, y: npt.ArrayLike) -> Ints:
    """The column of each true class in the model's scores, (n,); an error if the model does not know one."""
    truth = as_labels(y, DataError)
    if model.classes is not None:
        names = names_of(truth).tolist()
        values = getattr(model, "class_values", np.array(model.classes))
        known = {name: i for i, name in enumerate(names_of(values).tolist())}
        known |= {name: i for i, name in enumerate(model.classes)}
        unknown = [v for v, name in zip(truth.tolist(), names, strict=True) if name not in known]
        if unknown:
            are = "are no classes" if len(set(unknown)) > 1 else "is no class"
            raise DataError(
                f"y holds {listed(unknown)}, which {are} of {model.name}: it knows {listed(values)}"
            )
        return np.array([known[name] for name in names], dtype=np.int64)
    labels = _whole(model, truth)
    if labels.ndim != 1:
        raise DataError(f"y of shape {truth.shape}: give one label per point")
    if (labels < 0).any():
        raise DataError(f"y holds {labels.min()}: labels are columns of the scores, 0 or more")
    return labels


def check_columns(columns: Ints, n_scores: int, name: str) -> None:
    """Raise an error if a true class has no score; one score is that of a binary model."""
    n_classes = max(2, n_scores)
    beyond = columns[columns >= n_classes]
    if len(beyond):
        kind = "classes" if len(np.unique(beyond)) > 1 else "class"
        raise DataError(
            f"y holds {kind} {listed(beyond)}, but {name} has scores for {n_classes} classes only"
        )


def _n_scores(model: Model, x: Any) -> int | None:
    """How many scores bound the labels; None if there are none, or labels are numbered otherwise."""
    if not (model.has_scores and model.labels_are_columns):
        return None
    return _n_columns(model, x)


def _n_columns(model: Model, x: Any) -> int | None:
    scores = model.predict(x[:1], with_scores=True, progress=False).scores
    return None if scores is None else scores.shape[1]


def _unbounded(model: Model, predicted: Ints, truth: Array) -> Bools:
    """Whether whole-number labels of which there may be any are right."""
    labels = _whole(model, truth)
    if not np.isin(labels, predicted).any():
        warn(f"y holds {listed(labels)}, and {model.name} predicts only {listed(predicted)}: none is right")
    return np.asarray(predicted == labels)


def _whole(model: Model, truth: Array) -> Ints:
    """Labels of a model without class names."""
    if truth.dtype.kind not in "iubf":
        raise DataError(f"y holds {truth.dtype} but {model.name} has no class names: give integer labels")
    strange = fractions(truth)
    if len(strange):
        raise DataError(f"y holds {listed(strange)}: the classes of {model.name} are whole numbers")
    return truth.astype(np.int64)
