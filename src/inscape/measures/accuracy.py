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
        return np.asarray(np.array(model.classes)[predicted] == _names(truth))
    if truth.dtype.kind not in "iubf":
        raise DataError(f"y holds {truth.dtype} but {model.name} has no class names: give integer labels")
    return np.asarray(predicted == truth)


def _names(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if y.dtype.kind == "f" and (y == np.rint(y)).all():
        y = y.astype(np.int64)
    return y.astype(str)
