"""Progress of long work: silence by default, a bar on stderr when asked for, or the caller's own function."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

Meter = Callable[[int, int], None]
"""Called with (units done, units in all)."""


def _silent(done: int, total: int) -> None:
    pass


class Bar:
    """A rich progress bar on stderr, if that is a terminal, that is a `Meter` and a context manager."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._task: Any = None

    def __enter__(self) -> Self:
        """Start drawing."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=3600,  # a unit may take minutes
            transient=True,
            disable=not console.is_terminal,
        )
        self._progress.start()
        self._task = self._progress.add_task(self._description, total=None, rate="")
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        (task,) = self._progress.tasks
        self._progress.update(self._task, completed=done, total=total, rate=rate_text(task.speed))

    def describe(self, description: str) -> None:
        """Change the words before the bar."""
        self._progress.update(self._task, description=description)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._progress.stop()


def rate_text(per_second: float | None) -> str:
    """Units of work per second, minute or hour, whichever is a number that people read.

    >>> rate_text(12.3), rate_text(0.5), rate_text(0.001), rate_text(None)
    ('12/s', '30/min', '3.6/h', '')
    """
    if not per_second:
        return ""
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        rate = per_second * seconds
        if rate >= 1 or unit == "h":
            break
    return f"{rate:,.0f}/{unit}" if rate >= 10 else f"{rate:.1f}/{unit}"


def duration_text(seconds: float) -> str:
    """A time as people say it.

    >>> [duration_text(s) for s in (0.004, 0.34, 7.2, 300, 5000, 1e5, 1e7)]
    ['10 ms', '0.3 s', '7 s', '5 minutes', '1.4 hours', '28 hours', '116 days']
    """
    if seconds < 0.1:
        return f"{max(1, math.ceil(100 * seconds)) * 10} ms"
    units = (("s", 1, 120), ("minutes", 60, 3600), ("hours", 3600, 172800), ("days", 86400, math.inf))
    unit, length = next((unit, length) for unit, length, below in units if seconds < below)
    amount = seconds / length
    return f"{amount:.1f} {unit}" if amount < 2 else f"{amount:,.0f} {unit}"


@contextmanager
def meter(progress: bool | Meter | None, description: str) -> Iterator[Meter]:
    """The meter for a `progress=` argument: None or False is silent, True a bar, a function itself."""
    if not progress:
        yield _silent
    elif progress is True:
        with Bar(description) as bar:
            yield bar
    else:
        yield progress
