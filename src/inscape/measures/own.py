"""Measures of your own and of other packages: functions of a model and its data.

A measure is a function of a wrapped model and points (n, ...). What else it takes by name is given to it:
`y`, the classes or None; `random_state`, a seed; `progress`; all other arguments are its settings. It returns
a number, one number per point, whose mean is then the value, or an `inscape.measures.Measurement`; where the
model cannot have it, it raises `inscape.errors.NotApplicableError`. A package makes one known by name, also
on the command line, with an entry point in its pyproject.toml:

    [project.entry-points."inscape.measures"]
    sparsity = "my_package.measures:sparsity"
"""

import math
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any

import numpy as np

from inscape.errors import InscapeError, MeasureError, NotApplicableError
from inscape.measures.measurement import Measurement, mean_with_error
from inscape.models import Model
from inscape.probes.source import PointSource
from inscape.progress import Meter
from inscape.provenance import Provenance

GROUP = "inscape.measures"
"""The entry points of packages that have measures."""
NO_SETTINGS = {"model", "x", "y", "probes", "random_state", "progress", "budget", "n_jobs"}
"""Arguments of a measure that are not settings of it."""
COLLECTING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def installed() -> dict[str, EntryPoint]:
    """Name -> entry point of each measure that an installed package has."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load(name: str) -> Callable[..., Any]:
    """The function of an installed measure."""
    point = installed()[name]
    try:
        function = point.load()
    except Exception as error:  # the code of a package may raise anything
        raise MeasureError(
            f"the measure {name} cannot be loaded from {point.value}: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise MeasureError(f"the measure {name}, {point.value}, is {function!r}: expected a function")
    return function  # type: ignore[no-any-return]


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called; an error if it has no name of its own."""
    name = str(getattr(function, "__name__", ""))
    if not name.isidentifier():
        raise MeasureError(
            f'{function!r} has no name: name it, as in measures={{"region_count": {{}}, "my_name": function}}'
        )
    return name


def settings_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The settings of a measure's function and their defaults, `Parameter.empty` where there is none."""
    try:
        every = [p for p in signature(function).parameters.values() if p.kind not in COLLECTING]
    except (TypeError, ValueError) as error:  # some functions of C do not say
        raise MeasureError(
            f"{function!r} does not say what it takes: expected a function of a model and points"
        ) from error
    named = [p for i, p in enumerate(every) if i >= 2 or p.kind is Parameter.KEYWORD_ONLY]
    return {p.name: p.default for p in named if p.name not in NO_SETTINGS}


def lacking(function: Callable[..., Any], given: Collection[str]) -> str | None:
    """The first setting that a measure's function requires and that is not given; None if there is none."""
    required = (name for name, default in settings_of(function).items() if default is Parameter.empty)
    return next((name for name in required if name not in given), None)


def apply(
    name: str,
    function: Callable[..., Any],
    model: Model,
    source: PointSource,
    seed: int,
    progress: bool | Meter | None,
    **settings: Any,
) -> Measurement:
    """What a function measures, as a result.

    Args:
        name: what the measure is called.
        function: the measure.
        model: the wrapped model.
        source: the data.
        seed: given as `random_state` to a function that takes one.
        progress: likewise.
        settings: those of the function that are not left to their defaults.
    """
    x, y = source.everything()
    taken = signature(function).parameters
    if "y" in taken and y is None and taken["y"].default is Parameter.empty:
        raise NotApplicableError("needs y, the true classes")
    common = {"y": y, "random_state": seed, "progress": progress}
    try:
        returned = function(model, x, **{k: v for k, v in common.items() if k in taken}, **settings)
    except InscapeError:
        raise
    except Exception as fault:  # the code of others may raise anything
        raise MeasureError(f"the measure {name} raised {type(fault).__name__}: {fault}") from fault
    if isinstance(returned, Measurement):
        return returned
    used = {k: v for k, v in settings_of(function).items() if v is not Parameter.empty} | settings
    value, error, interval, n, method = _numbers(returned, name, len(x))
    return Measurement(
        value=value,
        std_error=error,
        interval=interval,
        n=n,
        method=method,
        settings=_plain(used),
        provenance=Provenance.of(model, seed if "random_state" in taken else None),
    )


def _numbers(returned: Any, name: str, n: int) -> tuple[float, float, tuple[float, float], int, str]:
    """Value, error, interval, number of points and method of what the function of a measure returned."""
    expected = "expected a number, one per point, or an inscape.measures.Measurement"
    try:
        array = np.asarray(
            returned.detach().cpu() if hasattr(returned, "detach") else returned, dtype=np.float64
        )
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if returned is None or array.ndim > 1:
        raise MeasureError(f"the measure {name} returned {type(returned).__name__}: {expected}")
    if array.ndim == 1 and len(array) != n:
        raise MeasureError(f"the measure {name} returned {len(array)} numbers for {n} points: {expected}")
    if bad := int((~np.isfinite(array)).sum()):
        where = f" at {bad} of {n} points" if array.ndim else ""
        raise NotApplicableError(f"{name} is not a finite number{where}")
    if array.ndim == 0:
        return float(array), math.nan, (math.nan, math.nan), n, "own function"
    return *mean_with_error(array), n, "mean of own function"


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON can have them; what it cannot is described."""
    return {k: v if isinstance(v, str | int | float | None) else repr(v) for k, v in settings.items()}
