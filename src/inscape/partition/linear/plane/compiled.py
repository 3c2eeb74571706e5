"""How the loops of the plane engine are compiled.

Both ways are for functions that allocate nothing. They do without numba's run-time, which counts references
to
arrays: a call per face that hands on twenty arrays would spend more time counting than the work takes.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop."""
    return njit(**_OPTIONS)(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile what a loop does with one item into the loop itself, since handing on arrays costs time too."""
    return njit(**_OPTIONS, inline="always")(function)


def summing(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums may be taken in any order, so that they fill vector registers."""
    return njit(**_OPTIONS, fastmath={"reassoc", "nsz"})(function)
