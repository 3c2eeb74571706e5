"""Accuracy: the fraction of points that the model labels right, the yardstick beside every measure."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError
from inscape.models import Model


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
