"""Progress of long work: silence by default, a bar on stderr when asked for, or the caller's own function."""

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
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._progress.start()
        self._task = self._progress.add_task(self._description, total=None)
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        self._progress.update(self._task, completed=done, total=total)

    def describe(self, description: str) -> None:
        """Change the words before the bar."""
        self._progress.update(self._task, description=description)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._progress.stop()


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
