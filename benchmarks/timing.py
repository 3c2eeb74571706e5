"""Timing two ways of one job side by side."""

import time
from collections.abc import Callable


def best_times(
    *jobs: Callable[[], object], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The shortest time of each job in seconds; the jobs take turns, so that noise hits all of them.

    Jobs of one thread can be timed with `time.process_time`, on a machine that has other work too.
    """
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            start = clock()
            job()
            best[i] = min(best[i], clock() - start)
    return best


def report(what: str, measured: float, bar: str, unit: str = "x") -> None:
    """Print one line: what was measured, the figure, and the bar it is held against."""
    print(f"{what:78s} {measured:9.3f} {unit:2s} (bar: {bar})")
