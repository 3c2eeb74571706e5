"""Checks of arguments that many functions share."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeError


def whole_number(value: Any, name: str, at_least: int, error: type[InscapeError], hint: str = "") -> int:
    """`value` as an int of at least `at_least`; an error says what was given and what is expected.

    >>> whole_number(3.0, "n", 1, InscapeError)
    3
    """
    try:
        number = int(value)
        is_whole = not isinstance(value, str | bytes) and number == value
    except (TypeError, ValueError, OverflowError):
        number, is_whole = at_least, False
    if not is_whole or number < at_least:
        kind = "too small" if is_whole else "not a whole number"
        raise error(f"{name}={value!r} is {kind}: give a whole number of at least {at_least}{hint}")
    return number


def positive_number(
    value: Any, name: str, error: type[InscapeError], hint: str = "", *, zero: bool = False
) -> float:
    """`value`, a number or a scalar of numpy or torch, as a finite float above 0, or at least 0 if `zero`.

    >>> positive_number(2, "sigma", InscapeError)
    2.0
    """
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not (0 <= number < math.inf if zero else 0 < number < math.inf):
        kind = "number of at least 0" if zero else "positive number"
        raise error(f"{name}={value!r} must be a {kind}{hint}")
    return number


def as_array(value: Any, name: str, error: type[InscapeError]) -> npt.NDArray[Any]:
    """`value`, an array, a tensor of any device or a nested list, as a numpy array; nothing of it is masked.

    >>> as_array(np.ma.masked_equal([1, 2, 2], 2), "x", InscapeError)
    Traceback (most recent call last):
    inscape.errors.InscapeError: 2 of the 3 values of x are masked: fill them, or leave out their points
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value).numpy()  # numpy knows no bfloat16
    if isinstance(value, np.ma.MaskedArray):
        n = int(np.ma.getmaskarray(value).sum())
        if n:
            raise error(
                f"{n} of the {value.size} values of {name} are masked: fill them, or leave out their points"
            )
        value = value.data
    try:
        return np.asarray(value)
    except ValueError as reason:
        raise error(f"{name} does not form one array of numbers: {reason}") from reason
