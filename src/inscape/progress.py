"""What a person sees of long work: a bar in a terminal or a notebook, and that loops are being compiled.

Nobody watches a script whose output goes to a file, a worker process, or a thread: there nothing is shown
unless the caller passes a function of its own.
"""

import logging
import math
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Protocol, Self

Meter = Callable[[int, int], None]
"""Called with (units done, units in all)."""
SHOWN_AFTER = 2.0
"""Seconds that work lasts before it is shown without having been asked for."""

_is_shown: ContextVar[bool] = ContextVar("_is_shown", default=False)
"""Whether work that this one is part of has a meter already."""


@contextmanager
def meter(progress: bool | Meter | None, description: str) -> Iterator[Meter]:
    """The meter for a `progress=` argument.

    None is a bar where someone watches, if the work lasts over two seconds; True a bar at once, where someone
    watches; False silence, also about compiling; and a function itself. Work that is part of other work shows
    nothing of its own.
    """
    is_inner = _is_shown.get()
    token = _is_shown.set(True)
    try:
        if callable(progress):
            yield progress
        elif progress is False and not is_inner:
            with COMPILING.unsaid():
                yield _silent
        elif is_inner or watched() is None:
            yield _silent
        else:
            with Bar(description, patience=0.0 if progress else SHOWN_AFTER) as bar:
                yield bar
    finally:
        _is_shown.reset(token)
        if not is_inner:
            COMPILING.report()


def _silent(done: int, total: int) -> None:
    pass


def watched() -> Literal["terminal", "notebook"] | None:
    """Where someone sees what this thread shows; None if nobody does."""
    in_main = threading.current_thread() is threading.main_thread()
    if multiprocessing.parent_process() is not None or not in_main:
        return None
    if sys.stderr is not None and sys.stderr.isatty():
        return "terminal"
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return None if getattr(shell, "kernel", None) is None else "notebook"


class Bar:
    """A bar that appears after `patience` seconds, is a `Meter`, and goes away with the work.

    The clock runs in a thread of its own, so that work which reports nothing yet is seen to run, too.
    """

    def __init__(self, description: str, *, patience: float = 0.0) -> None:
        self._description = description
        self._view: _MeterView | None = None
        self._amount: tuple[int, int | None] = (0, None)
        self._lock, self._is_over, self._start = threading.Lock(), False, time.monotonic()
        self._timer = threading.Timer(patience, self._appear) if patience else None

    def __enter__(self) -> Self:
        """Start drawing, or the clock."""
        if self._timer is None:
            self._appear()
        else:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        with self._lock:
            self._amount = done, total
            if self._view is not None:
                self._view.update(done, total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._view is not None:
                self._view.stop()

    def _appear(self) -> None:
        with self._lock:
            if not self._is_over:
                self._view = _TerminalView() if sys.stderr.isatty() else _NotebookView()
                self._view.start(self._description, self._start)
                self._view.update(*self._amount)


class _MeterView(Protocol):
    def start(self, description: str, since: float) -> None: ...
    def update(self, done: int, total: int | None) -> None: ...
    def stop(self) -> None: ...


class _TerminalView:
    """A bar by rich, on stderr."""

    def start(self, description: str, since: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        class Time(ProgressColumn):
            def render(self, task: Any) -> Text:
                return Text(time_text(task.completed, task.total, task.elapsed or 0.0))

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            Time(),
            console=Console(stderr=True),
            speed_estimate_period=3600,  # a unit may take minutes
            transient=True,
        )
        self._task = self._progress.add_task(description, total=None, amount="")
        self._progress.tasks[0].start_time = since
        self._progress.start()  # which draws at once

    def update(self, done: int, total: int | None) -> None:
        (task,) = self._progress.tasks
        amount = amount_text(done, total)
        if total and total < COUNTED_UP_TO and task.speed:
            amount += f" {rate_text(task.speed)}"
        self._progress.update(self._task, completed=done, total=total, amount=amount)

    def stop(self) -> None:
        self._progress.stop()


class _NotebookView:
    """A line of text with a bar below the cell; rich would need ipywidgets for one."""

    INTERVAL = 0.2
    """Seconds between two drawings."""

    def start(self, description: str, since: float) -> None:
        from IPython import display

        show: Any = display.display
        self._description, self._start, self._last = description, since, -math.inf
        self._handle = show({"text/plain": self._text(0, None)}, raw=True, display_id=True)

    def update(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last > self.INTERVAL:
            self._last = now
            self._handle.update({"text/plain": self._text(done, total)}, raw=True)

    def stop(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)

    def _text(self, done: int, total: int | None) -> str:
        return bar_text(self._description, done, total, time.monotonic() - self._start)


def bar_text(description: str, done: int, total: int | None, seconds: float) -> str:
    """A bar of characters.

    >>> bar_text("regions", 30, 120, 20.0)
    'regions [#####---------------] 30 of 120, 20 s passed, 60 s left'
    >>> bar_text("regions", 0, None, 3.0), bar_text("regions", 5, 5, 3.0)
    ('regions, 3 s passed', 'regions [####################] 5 of 5, 3 s passed')
    """
    if not total:
        return f"{description}, {duration_text(seconds)} passed"
    fraction = min(1.0, done / total)
    bar = f"[{'#' * int(20 * fraction):-<20}]"
    return f"{description} {bar} {amount_text(done, total)}, {time_text(done, total, seconds)}"


def time_text(done: float, total: float | None, seconds: float) -> str:
    """How long work has lasted, and what is left of it once that can be said.

    >>> time_text(30, 120, 20.0), time_text(0, 120, 20.0), time_text(0, None, 20.0)
    ('20 s passed, 60 s left', '20 s passed', '20 s passed')
    """
    passed = f"{duration_text(seconds)} passed"
    return (
        f"{passed}, {duration_text(seconds * (total / done - 1))} left"
        if total and 0 < done < total
        else passed
    )


COUNTED_UP_TO = 1000
"""Up to this many units are shown as a count, more as a percentage."""


def amount_text(done: int, total: int | None) -> str:
    """How far work is, in figures.

    >>> amount_text(3, 42), amount_text(300, 100_000), amount_text(0, None)
    ('3 of 42', '0 %', '')
    """
    if not total:
        return ""
    return f"{done} of {total}" if total < COUNTED_UP_TO else f"{done / total:.0%}".replace("%", " %")


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


class Compiling:
    """What is said of compiling: once that it has begun, if it takes over a second, and how long it took.

    It happens once per machine, and for all engines alike; `compiled` tells of each loop. Lines go to the
    log "inscape", which Python shows on stderr unless told otherwise.
    """

    AFTER = 1.0
    """Seconds of compiling before it is announced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._start, self._seconds = 0, 0.0, 0.0
        self._is_announced = self._is_reported = False
        self._n_silent = 0

    @contextmanager
    def unsaid(self) -> Iterator[None]:
        """Say nothing of compiling meanwhile."""
        with self._lock:
            self._n_silent += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_silent -= 1

    @property
    def seconds(self) -> float:
        """How long compiling took so far in this process."""
        return self._seconds

    def begin(self) -> None:
        """A loop begins to be compiled, perhaps while another one is."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._start = time.perf_counter()
            if not self._is_announced:
                timer = threading.Timer(max(0.0, self.AFTER - self._seconds), self._announce)
                timer.daemon = True
                timer.start()

    def end(self) -> None:
        """A loop is compiled."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.perf_counter() - self._start

    def report(self) -> None:
        """Say how long it took, once, if it was announced."""
        with self._lock:
            if self._depth or not self._is_announced or self._is_reported:
                return
            self._is_reported = True
        _say(f"compiled in {duration_text(self._seconds)}")

    def _announce(self) -> None:
        with self._lock:
            if not self._depth or self._is_announced or self._n_silent:
                return
            self._is_announced = True
        _say("compiling what is used for the first time; it is kept on disk for the next time")


def _say(line: str) -> None:
    if multiprocessing.parent_process() is None:
        logging.getLogger("inscape").warning(line)


COMPILING = Compiling()
