"""How loops are compiled: by numba, once, and kept on disk beside the source for the next process.

`compiled` is for every loop. The three others are for functions that allocate nothing: they do without
numba's run-time, which counts references to arrays; a call per face that hands on twenty arrays would spend
more time counting than the work takes.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a loop: `@compiled`, or `@compiled(fastmath=...)` with options of numba's."""
    decorate = njit(**_OPTIONS, **options)
    return decorate if function is None else decorate(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop that allocates nothing."""
    return compiled(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile what a loop does with one item into the loop itself, since handing on arrays costs time too."""
    return compiled(function, _nrt=False, inline="always")


def summing(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums may be taken in any order, so that they fill vector registers."""
    return compiled(function, _nrt=False, fastmath={"reassoc", "nsz"})
