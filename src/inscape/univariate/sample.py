"""The data of the laboratory: n pairs of numbers, checked once."""

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import DataError


def checked_sample(x: npt.ArrayLike, y: npt.ArrayLike, *, classes: bool = False) -> tuple[Floats, Floats]:
    """The points x and values y as float64, (n,) each, in the given order.

    Args:
        x: places, finite; repeated ones are allowed where their values agree.
        y: values.
        classes: whether values must be -1 or +1.
    """
    places, values = _numbers("x", x), _numbers("y", y)
    if len(places) != len(values):
        raise DataError(f"x has {len(places)} entries and y has {len(values)}: give one value per place")
    if len(places) == 0:
        raise DataError("there are no data points: give at least one")
    if classes and not np.isin(values, (-1.0, 1.0)).all():
        odd = values[~np.isin(values, (-1.0, 1.0))][0]
        raise DataError(f"label {odd:g} is neither -1 nor +1: this loss needs labels of these two values")
    order = np.argsort(places, kind="stable")
    same = np.diff(places[order]) == 0
    clash = same & (np.diff(values[order]) != 0)
    if clash.any():
        i = int(np.flatnonzero(clash)[0])
        a, b = values[order][i : i + 2]
        raise DataError(
            f"x={places[order][i]:g} comes twice, with values {a:g} and {b:g}: "
            "no function passes through both; remove one of them"
        )
    return places, values


def _numbers(name: str, values: npt.ArrayLike) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers: {str(values)[:60]}") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} has shape {array.shape}: the laboratory is univariate, give shape (n,)")
    if not np.isfinite(array).all():
        raise DataError(f"{name} has NaN or infinite entries: remove those points")
    return array
