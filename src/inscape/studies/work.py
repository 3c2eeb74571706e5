"""What happens to some cells where they are worked on: in a process of the pool, or on a cluster."""

import json
import platform
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inscape.errors import StudyError
from inscape.studies.study import Configuration, Row


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished cell: its row as JSON, or the error; how long it took, and with what."""

    row: str | None
    error: str | None
    seconds: float
    provenance: str


def work(
    function: Callable[[list[Configuration]], Sequence[Row]], tasks: list[Configuration]
) -> list[Outcome]:
    """The outcome of each task; an exception in the function is one as well.

    If the function fails on several tasks, each is tried alone, so that only those fail that must.
    """
    start = time.perf_counter()
    try:
        rows = function(tasks)
        if len(rows) != len(tasks):
            raise StudyError(f"{len(tasks)} configurations gave {len(rows)} rows: expected one each")
        texts: list[str | None] = [_as_json(row, task) for row, task in zip(rows, tasks, strict=True)]
        error = None
    except Exception:
        if len(tasks) > 1:
            return [work(function, [task])[0] for task in tasks]
        texts, error = [None] * len(tasks), traceback.format_exc().strip()
    seconds = (time.perf_counter() - start) / len(tasks)
    return [Outcome(row=t, error=error, seconds=seconds, provenance=json.dumps(provenance())) for t in texts]


def failed(error: str) -> Outcome:
    """The outcome of a cell of which nothing came back."""
    return Outcome(row=None, error=error, seconds=0.0, provenance=json.dumps(provenance()))


@dataclass(frozen=True)
class OneByOne:
    """The function of single configurations as a function of lists, which can still be pickled."""

    cell: Callable[[Configuration], Row]

    def __call__(self, tasks: list[Configuration]) -> list[Row]:
        """The rows of the tasks."""
        return [self.cell(task) for task in tasks]


def function_name(function: Any) -> str:
    """Where a function is from, the same whether its file is run or imported.

    >>> function_name(provenance)
    'inscape.studies.work:provenance'
    """
    function = getattr(function, "func", function)  # of a partial
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec else Path(getattr(main, "__file__", None) or module).stem
    return f"{module}:{named.__qualname__}"


def provenance() -> dict[str, str]:
    """Versions, machine: what a row was made with."""
    from inscape import __version__

    versions = {"inscape": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "sklearn", "numba"):
        if name in sys.modules:
            versions[name] = str(sys.modules[name].__version__)
    return versions | {"machine": f"{platform.system()} {platform.machine()}", "host": socket.gethostname()}


def _as_json(row: Row, task: Configuration) -> str:
    if not isinstance(row, dict) or not all(isinstance(key, str) for key in row):
        raise StudyError(f"the function of a study must return a dict with names as keys, not {row!r}")
    taken = sorted(set(row) & {*task, "configuration", "seconds"})
    if taken:
        raise StudyError(f"the row repeats {', '.join(taken)} of the configuration: call it otherwise")
    return json.dumps(row, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array or a scalar of numpy or torch
        return value.tolist()
    raise StudyError(f"a row can hold numbers, strings, None and small arrays, not {type(value).__name__}")
