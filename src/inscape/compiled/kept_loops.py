"""How loops are compiled: by numba, once, and kept on disk beside the source for the next process.

What is on disk is used only if it fits: a loop is compiled again when its file or one that it imports from
changes (numba looks at the loop's own file alone, although it compiles functions and constants of other
files into the loop), and when what lies there cannot be read. Where nothing can be written, each process
compiles its loops anew. Importing this module imports numba.
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
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import overload

from inscape.progress import COMPILING

PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from inscape([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)

_DISPATCHERS: list[Any] = []
"""Of the functions that loops call: their types know them only as long as someone else does."""


def kept(
    function: Callable[..., Any], options: dict[str, Any], functions: list[Any], choices: list[Any]
) -> Any:
    """A loop for numba, which compiles it when it is first called, or finds it on disk.

    Args:
        function: the loop.
        options: of numba's.
        functions: those that loops call, with their options; taken from the list, once numba knows them.
        choices: functions that have another form in compiled loops, that form, and its options; the same.
    """
    while functions:
        called, inner = functions.pop()
        _DISPATCHERS.append(njit(**inner)(called))
        called._numba_type_ = _DISPATCHERS[-1]._numba_type_
    while choices:
        chosen, choice, inner = choices.pop()
        overload(chosen, jit_options=inner)(choice)
    loop = njit(**options)(function)
    try:
        loop._cache = _LoopCache(function)
    except (RuntimeError, OSError):  # numba finds no folder that it may write to
        say_that_nothing_is_kept()
    return loop


def is_kept(loop: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a loop is on disk for arguments like these."""
    with global_compiler_lock:  # numba's generator of code serves one thread at a time
        types = tuple(loop.typeof_pyval(argument) for argument in arguments)
        return isinstance(loop._cache, _LoopCache) and loop._cache.holds(types, loop.targetctx)


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

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether there is a compiled loop for these types."""
        try:
            return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()
        except Exception:  # as below
            return False

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
    """The hash of a file as it was last changed, and those of this package that it imports from."""
    content = path.read_bytes()
    files = []
    for module, names in _IMPORT.findall(content.decode()):
        folder = PACKAGE.joinpath(*module.split("."))
        modules = [folder.with_suffix(".py"), folder / "__init__.py"]
        modules += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
        files += [file for file in modules if file != PACKAGE / "__init__.py" and file.is_file()]
    return hashlib.sha256(content).hexdigest(), files
