"""How loops are compiled: by numba, once, and kept on disk beside the source for the next process.

`compiled` is for every loop. The three others are for functions that allocate nothing: they do without
numba's run-time, which counts references to arrays; a call per face that hands on twenty arrays would spend
more time counting than the work takes. They are compiled sooner, too, so it is best to allocate in Python.

What is on disk is used only if it fits: a loop is compiled again when its file or one that it imports from
changes (numba looks at the loop's own file alone, although it compiles functions and constants of other
files into the loop), and when what lies there cannot be read. Where nothing can be written, each process
compiles its loops anew.
"""

# mypy: allow-untyped-calls

import hashlib
import logging
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

from inscape.progress import COMPILING

PACKAGE = Path(__file__).parent
INNER: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a function for loops alone: no entry from Python or C, and not kept, since the loops are."""
_IMPORT = re.compile(r"^from inscape([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a loop: `@compiled`, or `@compiled(fastmath=...)` with options of numba's."""
    decorate: Any = njit(**{"nogil": True, "no_cfunc_wrapper": True, **options})

    def kept(function: Callable[..., Any]) -> Any:
        loop = decorate(function)
        try:
            loop._cache = _LoopCache(function)
        except (RuntimeError, OSError):  # numba finds no folder that it may write to
            say_that_nothing_is_kept()
        return loop

    return kept if function is None else kept(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop that allocates nothing."""
    return compiled(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile what a loop does with one item into the loop itself, since handing on arrays costs time too.

    LLVM does that: each function is compiled once, however many loops call it. (`inline="always"` of numba's
    would read its source again for every call.) Only loops can call it; of Python its `py_func` is.
    """
    return njit(**INNER, forceinline=True)(function)


def summing(function: Callable[..., Any]) -> Any:
    """Compile sums for loops that may be taken in any order, so that they fill vector registers."""
    return njit(**INNER, fastmath={"reassoc", "nsz"})(function)


class _Announcer(event.Listener):
    """Tells `COMPILING` of the loops of this package that are not on disk."""

    def on_start(self, happening: Any) -> None:
        """A loop begins to be compiled."""
        if _is_ours(happening):
            COMPILING.begin()

    def on_end(self, happening: Any) -> None:
        """It is compiled, or failed to be."""
        if _is_ours(happening):
            COMPILING.end()


def _is_ours(happening: Any) -> bool:
    return str(happening.data["dispatcher"].py_func.__module__).startswith("inscape")


event.register("numba:compile", _Announcer())


class _LoopCache(FunctionCache):
    """Numba's files for one loop, which never stand in the way of compiling it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._cache_file._source_stamp
        self._cache_file._source_stamp = stamp, source_digest(Path(function.__code__.co_filename))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled loop, or None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # damaged, or of classes that are gone: a pickle can raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled loop if that is possible, in place of an index that cannot be read."""
        try:
            super().save_overload(sig, data)
        except Exception:
            try:
                self.flush()
                super().save_overload(sig, data)
            except OSError:  # the disk is full, or was made read-only meanwhile
                say_that_nothing_is_kept()


@cache
def say_that_nothing_is_kept() -> None:
    """One line, once, for someone who wonders why every start takes so long."""
    logging.getLogger("inscape").warning(
        "compiled loops cannot be kept on disk, so that each process compiles them anew: "
        "set NUMBA_CACHE_DIR to a folder that can be written to"
    )


def source_digest(path: Path) -> str:
    """A hash of a file of this package and of all files that it imports from, at any remove."""
    seen, waiting = {}, [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            status = file.stat()
            seen[file], imported = _source(file, status.st_mtime_ns, status.st_size)
            waiting.extend(imported)
    return hashlib.sha256("".join(seen[file] for file in sorted(seen)).encode()).hexdigest()


@cache
def _source(path: Path, changed: int, size: int) -> tuple[str, list[Path]]:
    """The hash of a file as it was last changed, and the files of this package that its head imports from."""
    content = path.read_bytes()
    files = []
    for module, names in _IMPORT.findall(content.decode()):
        folder = PACKAGE.joinpath(*module.split("."))
        modules = [folder.with_suffix(".py"), folder / "__init__.py"]
        modules += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
        files += [file for file in modules if file != PACKAGE / "__init__.py" and file.is_file()]
    return hashlib.sha256(content).hexdigest(), files
