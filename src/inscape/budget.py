"""What a call may take of time and of memory, and what its work will cost, foreseen from the first of it.

Seconds are measured on the day and on the machine: nothing here is a constant of some other computer. A call
that is foreseen to take longer than its budget is refused with the estimate, before the user has waited.
"""

import ctypes
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inscape.compiled import BY_PYTHON, loops_compiled
from inscape.errors import BudgetError, PartitionError, warn
from inscape.progress import COMPILING, Meter, duration_text

MEMORY = 2**30
"""Bytes that the arrays of one call may fill at once: the default of every argument `memory`. A gigabyte
holds the walk of most networks in one chunk, and is little on a machine that trains networks."""
BUDGET = 60.0
"""Seconds that a call may be foreseen to take: the default of every argument `budget`."""
TIMED_SECONDS = 1.0
"""Of work, after which the rest of it is foreseen."""
MOST_EVALUATIONS = 10**11
"""Of the model, in one call: a small network takes more than a day."""
ANNOUNCED_ABOVE_EVALUATIONS = 2**22
"""From here on a small network takes seconds or minutes, and a large one hours."""
LOOKED_AT_AGAIN_UP_TO_BUDGETS = 4.0
"""What is foreseen to take no more than this many budgets is estimated again before it is stopped: the first
second of a busy machine may hold little work."""
ESTIMATED_AGAIN_FROM_TIMES = 4.0
"""After this many times `TIMED_SECONDS`."""
BEST_OF_RUNS = 3
"""Of a small job, of which the shortest counts: a busy machine makes work longer, never shorter."""


def as_budget(budget: Any) -> float:
    """A `budget=` argument in seconds; None is no limit.

    >>> as_budget(None), as_budget(5)
    (inf, 5.0)
    """
    try:
        seconds = math.inf if budget is None else float(budget)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds > 0 or isinstance(budget, bool):
        raise BudgetError(f"budget={budget!r} must be a positive number of seconds, or None for no limit")
    return seconds


def check_budget(work: str, seconds: float, budget: float, remedy: str) -> None:
    """Raise an error if the work is foreseen to take longer than the budget.

    >>> check_budget("a plane of 3,000,000 regions", 1200.0, 60.0, "take a smaller patch")
    Traceback (most recent call last):
    inscape.errors.BudgetError: a plane of 3,000,000 regions would take about 20 minutes, over the budget of \
60 s: take a smaller patch, or allow it with budget=None (--budget inf)
    """
    if seconds > budget:
        raise BudgetError(
            f"{work} would take about {duration_text(seconds)}, over the budget of {duration_text(budget)}",
            remedy=f"{remedy}, or allow it with budget=None (--budget inf)",
        )


def check_evaluations(n_probes: int, each: int, remedy: str) -> None:
    """Refuse or warn of `each` evaluations of the model on each of `n_probes` probes; say what to do."""
    total = n_probes * each
    if total <= ANNOUNCED_ABOVE_EVALUATIONS:
        return
    work = f"{n_probes:,} probes of about {each:,} points each are {total:,} evaluations of the model"
    if total > MOST_EVALUATIONS:
        raise PartitionError(f"{work}, over the limit of {MOST_EVALUATIONS:.0e}: {remedy}")
    warn(f"{work}, which takes a large one hours: {remedy} if that is too long")


def within_budget(show: Meter, budget: float, work: str, remedy: str) -> Meter:
    """A meter that shows as another does, and stops work whose first second foresees too much of it.

    What is not far too much by the first second is judged by the first four. The clock runs from the first
    report, and neither while loops are compiled nor while Python runs them as they stand: what happens at
    first only is left out.
    """
    start: tuple[float, int] | None = None
    is_foreseen = False

    def meter(done: int, total: int) -> None:
        nonlocal start, is_foreseen
        show(done, total)
        if is_foreseen or math.isinf(budget):
            return
        if start is None:
            start = _seconds_at_work(), done
            return
        seconds, fraction = _seconds_at_work() - start[0], done - start[1]
        if seconds < TIMED_SECONDS or fraction <= 0:
            return
        foreseen = seconds * total / fraction
        is_foreseen = seconds >= ESTIMATED_AGAIN_FROM_TIMES * TIMED_SECONDS or foreseen <= budget
        if is_foreseen or foreseen > LOOKED_AT_AGAIN_UP_TO_BUDGETS * budget:
            check_budget(work, foreseen, budget, remedy)

    return meter


def until_spent(budget: float) -> Callable[[], bool]:
    """Tells whether the seconds of a budget have passed since now, those of compiling left out.

    For a search whose end nobody can foresee, and which has bounds to show whenever it is stopped.

    >>> until_spent(math.inf)()
    False
    """
    start = _seconds_at_work()
    return lambda: _seconds_at_work() - start > budget


def _seconds_at_work() -> float:
    return time.perf_counter() - COMPILING.seconds - BY_PYTHON.seconds


def timed(job: Callable[[], object], *, once_above: float = math.inf) -> float:
    """The shortest of a few runs of a job in seconds, without the first: that one compiles, and fills caches.

    A job that takes over a second runs once more only, and one that takes over `once_above` seconds, those of
    compiling left out, does not run again.
    """
    with loops_compiled(True):
        start = _seconds_at_work()
        job()
        shortest = _seconds_at_work() - start
        if shortest > once_above:
            return shortest
        shortest = math.inf
        for _ in range(BEST_OF_RUNS):
            start = time.perf_counter()
            job()
            shortest = min(shortest, time.perf_counter() - start)
            if shortest > TIMED_SECONDS:
                break
    return shortest


GIVEN_BACK_FROM = 2**29
"""Bytes by which a process has grown when it gives free memory back: a fiftieth of the time goes into it."""


def given_back(memory: int) -> int:
    """Have this process give free memory back if it has far more than `memory`; what it has then, or that.

    glibc before 2.38 does not use an aligned block that is free for another of its size (bug 14581), and
    torch aligns all: a walk through convolutions that held 0.2 GB grew to 10.
    """
    if resident_memory() <= memory + GIVEN_BACK_FROM:
        return memory
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return max(memory, resident_memory())


def resident_memory() -> int:
    """The bytes of memory that this process has, 0 where that is not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def machine_memory() -> int | None:
    """The bytes of memory that the machine has, None where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def in_bytes(n: float) -> str:
    """A number of bytes for a reader.

    >>> in_bytes(3 * 2**40), in_bytes(512)
    ('3 TiB', '512 bytes')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} TiB" if n < 1000 else f"{n:.0f} TiB"
