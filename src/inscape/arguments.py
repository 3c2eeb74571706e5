"""Checks of arguments that many functions share; old spellings of arguments and old names of classes."""

import math
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array
from inscape.errors import InscapeError, ModelError, warn

Function = TypeVar("Function", bound=Callable[..., Any])
ArgumentTranslation = Callable[..., dict[str, Any]]


def whole_number(value: Any, name: str, at_least: int, error: type[InscapeError], hint: str = "") -> int:
    """`value` as an int of at least `at_least`; an error says what was given and what is expected.

    >>> whole_number(3.0, "n", 1, InscapeError)
    3
    """
    try:
        number = int(value)
        is_whole = not isinstance(value, str | bytes | bool) and number == value
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


def as_array(value: Any, name: str, error: type[InscapeError]) -> Array:
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


def as_points(x: npt.ArrayLike) -> Array:
    """A float array (n, ...) of n >= 1 finite points."""
    points = as_array(x, "points", ModelError)
    try:
        if points.dtype.kind != "f":
            points = points.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"points must be an array of numbers: {error}") from error
    if points.ndim < 2 or points.size == 0:
        raise ModelError(f"points must be an array (n, ...) that is not empty, got shape {points.shape}")
    check_finite(points, "points")
    return points


def check_finite(x: Array, what: str, error: type[InscapeError] = ModelError) -> None:
    """Raise `error` if a row of `x` holds NaN or infinity, saying how many rows and which is the first."""
    if np.isfinite(x).all():
        return
    rows = bad_rows(x)
    raise error(
        f"{len(rows)} of {len(x)} {what} hold NaN or infinite values, the first at row {rows[0]}: "
        "remove or impute them first"
    )


def bad_rows(x: Array) -> list[int]:
    """The rows of `x` that hold NaN or infinity."""
    return [int(i) for i in np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))]


def renamed(**names: str) -> Callable[[Function], Function]:
    """A decorator: the function still takes each old name, for its new one, with a DeprecationWarning.

    >>> import warnings
    >>> @renamed(tol="tolerance")
    ... def solve(tolerance=1e-6):
    ...     return tolerance
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     solve(tol=0.1), str(seen[0].message)
    (0.1, 'solve: tol= is now tolerance=')
    """

    def decorate(function: Function) -> Function:
        for old, new in names.items():
            function = superseded(old, by=partial(_under, new), spelling=f"{new}=")(function)
        return function

    return decorate


def _under(name: str, **old: Any) -> dict[str, Any]:
    (value,) = old.values()
    return {name: value}


def superseded(*old: str, by: ArgumentTranslation, spelling: str) -> Callable[[Function], Function]:
    """A decorator: the function still takes old arguments, which `by` turns into new ones.

    Args:
        old: the old names.
        by: gets those of them that were given, by name; returns the arguments that say the same today.
        spelling: what to write today, for the DeprecationWarning.
    """

    def decorate(function: Function) -> Function:
        plain = getattr(function, "__wrapped__", function)
        rules = (*getattr(function, "old_spellings", ()), (old, by, spelling))

        @wraps(plain)
        def accepting(*args: Any, **arguments: Any) -> Any:
            return plain(*args, **in_new_spelling(accepting, arguments))

        accepting.__dict__["old_spellings"] = rules
        return cast(Function, accepting)

    return decorate


def in_new_spelling(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function as they are spelt today, with a DeprecationWarning for each old one."""
    for old, by, spelling in getattr(function, "old_spellings", ()):
        given = {name: arguments[name] for name in old if name in arguments}
        if not given:
            continue
        rest = {name: value for name, value in arguments.items() if name not in given}
        new, spelt = by(**given), ", ".join(f"{name}=" for name in given)
        both = [name for name in new if name in rest]
        if both:
            raise InscapeError(f"{spelt} is the old spelling of {both[0]}=: give {both[0]}= alone")
        text = f"{function.__name__}: {spelt} is now {spelling}"
        warn(text, DeprecationWarning)
        arguments = rest | new
    return dict(arguments)


def old_names(module: str, old: Mapping[str, type]) -> Callable[[str], object]:
    """A `__getattr__` for a module: each old name gives the class of today, with a DeprecationWarning.

    >>> import warnings
    >>> lookup = old_names("inscape.partition", {"Whole": int})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     lookup("Whole"), str(caught[0].message)
    (<class 'int'>, 'inscape.partition.Whole is called int today')
    """

    def lookup(name: str) -> object:
        if name not in old:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name} is called {old[name].__name__} today", DeprecationWarning)
        return old[name]

    return lookup
