"""How loops run: by Python while there is little for them to do, and compiled by numba when there is more.

`compiled` is for every loop. The three others are for functions that allocate nothing: they do without
numba's run-time, which counts references to arrays; a call per face that hands on twenty arrays would spend
more time counting than the work takes. They are compiled sooner, too, so it is best to allocate in Python.

Compiling all loops of a plane takes ten seconds, and finding them on disk half a second; but Python takes
half a second, too, for a plane of a few hundred regions: the same source, item by item. So a process begins
with Python. Once more was done than that is worth, numba is imported and each loop looked for on disk. What
is not there is compiled for a call that has much to do, or, if it is used at all often, when Python has taken
as long as compiling would. Work is reckoned from the sizes of arrays and never from the clock, so that a
program that is run again runs as before, and both ways give the same numbers to the last bit: what numba may
reorder is always compiled, and exponentials and logarithms are those of `math`, since numpy has its own.
"""

# mypy: allow-untyped-calls

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

import numpy as np

_INNER: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a function for loops alone: no entry from Python or C, and not kept, since the loops are."""
_INLINED = {**_INNER, "forceinline": True}

LOOKED_FOR_FROM = 200_000
"""Work in a process from which on loops are looked for on disk. It is counted in entries of the arrays that
loops are given, of which Python takes a microsecond or two each."""
COMPILED_FROM = 8_000_000
"""Work in a process from which on loops are compiled that do more than a little ..."""
LOOP_COMPILED_FROM = 100_000
"""... which is this: a loop that is hardly used does not make an old process wait ..."""
CALL_COMPILED_FROM = 1_000_000
"""... and work in one call that is compiled in any process."""


@dataclass
class ByPython:
    """What Python did in this process in place of compiled loops.

    Attributes:
        work: in entries of arrays.
        seconds: how long that took.
        is_allowed: whether every loop is left to Python, or none; None if it depends on the work.
    """

    work: float = 0
    seconds: float = 0.0
    is_allowed: bool | None = None


BY_PYTHON = ByPython()
_here = threading.local()


def compile_at_once() -> None:
    """Leave nothing to Python from now on: in a process that will need the same loops again and again."""
    BY_PYTHON.is_allowed = False


@contextmanager
def loops_compiled(way: bool) -> Iterator[None]:
    """Have every loop compiled, or none."""
    before, BY_PYTHON.is_allowed = BY_PYTHON.is_allowed, not way
    ready = [(loop, loop._run) for loop in _LOOPS]
    for loop, _ in ready:
        loop._run = loop._first
    try:
        yield
    finally:
        BY_PYTHON.is_allowed = before
        for loop, run in ready:
            loop._run = run


Work = Callable[..., float]
"""What a loop has to do, in entries of arrays, from its arguments."""
_LOOPS: list["Loop"] = []
_REGISTERING = threading.RLock()
"""Held while numba gets to know a loop and the functions in it: a thread finds all of them known, or none."""


class Loop:
    """A loop that is called from Python, and from other loops."""

    def __init__(self, function: Callable[..., Any], work: Work, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._work, self._options = function, work, options
        self._dispatcher: Any = None
        self._is_looked_for = False
        self._work_by_python = 0.0
        self._run: Callable[..., Any] = self._first
        _LOOPS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """What the loop returns."""
        return self._run(*arguments)

    @property
    def dispatcher(self) -> Any:
        """The loop as numba knows it."""
        if self._dispatcher is None:
            from inscape.compiled.kept_loops import kept

            with _REGISTERING:
                if self._dispatcher is None:
                    self._dispatcher = kept(self._function, self._options, _FOR_LOOPS, _CHOICES)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What the loop is to numba, in the source of others."""
        return self.dispatcher._numba_type_

    def _first(self, *arguments: Any) -> Any:
        """Run the loop by Python, or compile it."""
        if getattr(_here, "is_in_loop", False):  # Python runs one that calls this one
            return self._function(*arguments)
        work = self._work(*arguments)
        if self._is_worth_compiling(work, arguments):
            self._run = self.dispatcher
            return self._run(*arguments)
        BY_PYTHON.work += work
        self._work_by_python += work
        _here.is_in_loop, start = True, time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # as numba does: unsigned numbers wrap round
                return self._function(*arguments)
        finally:
            _here.is_in_loop = False
            BY_PYTHON.seconds += time.perf_counter() - start

    def _is_worth_compiling(self, work: float, arguments: tuple[Any, ...]) -> bool:
        if "fastmath" in self._options:  # sums in another order: always the same numbers, and so one way
            return True
        if BY_PYTHON.is_allowed is not None:
            return not BY_PYTHON.is_allowed
        if work > CALL_COMPILED_FROM:
            return True
        is_old = BY_PYTHON.work + work > COMPILED_FROM
        if is_old and self._work_by_python + work > LOOP_COMPILED_FROM:
            return True
        if BY_PYTHON.work + work <= LOOKED_FOR_FROM or self._is_looked_for:
            return False
        self._is_looked_for = True
        from inscape.compiled.kept_loops import is_kept

        return is_kept(self.dispatcher, arguments)


def entries(*arguments: Any) -> float:
    """The number of entries of arrays, also of those in tuples: what most loops look at a few times each.

    >>> entries(np.zeros((3, 4)), 7, (np.zeros(5), 0.5))
    19.0
    """
    total = 0.0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            total += argument.size
        else:
            total += entries(*argument) if isinstance(argument, tuple) else 1
    return total


def unbounded(*arguments: Any) -> float:
    """The work of a loop that takes many steps over the same arrays."""
    return math.inf


def compiled(function: Callable[..., Any] | None = None, *, work: Work = entries, **options: Any) -> Any:
    """A loop: `@compiled`, or `@compiled(work=..., fastmath=...)` with its work and options of numba's."""
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    return (lambda f: Loop(f, work, options)) if function is None else Loop(function, work, options)


def kernel(function: Callable[..., Any]) -> Any:
    """A loop that allocates nothing."""
    return compiled(function, _nrt=False)


_FOR_LOOPS: list[tuple[Callable[..., Any], dict[str, Any]]] = []
"""Functions for loops, with options of numba's, that numba does not know yet."""


def inlined(function: Callable[..., Any]) -> Any:
    """What a loop does with one item: a function in Python, and part of the loop once that is compiled.

    Handing on arrays costs time too, so LLVM puts it there: each function is compiled once, however many
    loops call it. (`inline="always"` of numba's would read its source again for every call.)
    """
    _FOR_LOOPS.append((function, _INLINED))
    return function


def summing(function: Callable[..., Any]) -> Any:
    """Sums for loops that may be taken in any order, so that they fill vector registers."""
    _FOR_LOOPS.append((function, {**_INNER, "fastmath": {"reassoc", "nsz"}}))
    return function


@inlined
def copy(source: Any, target: Any) -> None:
    """Copy a vector, entry by entry: a slice or a row that is set at once takes numba seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled
def grown(vector: Any, n: int) -> Any:
    """A copy of a vector in memory for n entries, of which the others are not written.

    >>> len(grown(np.zeros(3), 5))
    5
    """
    out = np.empty(n, vector.dtype)
    for i in range(len(vector)):
        out[i] = vector[i]
    return out


_CHOICES: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = []
"""Functions that choose by the types of their arguments, and how they do once they are compiled; the same."""


def choosing(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What stands for a function in a compiled loop: `@choosing(function)`, of numba's types."""

    def register(choice: Callable[..., Any]) -> Callable[..., Any]:
        _CHOICES.append((function, choice, _INLINED))
        return choice

    return register
