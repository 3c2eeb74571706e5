"""Where the cells of a study are worked on: a pool of processes here, or a Dask cluster."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait

from inscape.errors import InscapeWarning, MissingExtraError, StudyError

TIMEOUT = 20.0
"""Seconds to wait for the scheduler of a cluster."""


def n_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_pool(*, most: int = 61, n_workers: int | None = None) -> ProcessPoolExecutor:
    """A pool of fresh processes with one thread each, which end with this process however it ends.

    There are `n_workers`, by default one per processor, but at most `most`; Windows cannot wait for more
    than 61.
    """
    pool = ProcessPoolExecutor(
        max(1, min(n_workers or n_cores(), most, 61)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare_worker,
    )
    with _interrupts_ignored():  # which the processes that start now inherit
        probe = pool.submit(int)
    try:
        probe.result()
    except BrokenExecutor as error:
        raise StudyError(
            "worker processes cannot start: a script that runs a study must do so under "
            'if __name__ == "__main__":, or pass an executor of its own'
        ) from error
    except BaseException:
        terminate(pool)
        raise
    return pool


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Without Ctrl-C, where that can be said: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the pool
    warnings.simplefilter("ignore", InscapeWarning)  # the rows say as much in their status
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"  # for what is loaded from now on
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for what is loaded already
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()


def _die_with(sentinel: int) -> None:
    """End this process when its parent is gone: a killed parent could not do it."""
    wait([sentinel])
    os._exit(1)


def terminate(executor: Executor) -> None:
    """Stop an executor at once: cancel what waits, and end the processes of a pool."""
    processes = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


@contextmanager
def dask_executor(scheduler: str) -> Iterator[Executor]:
    """An executor that sends the work to the Dask cluster whose scheduler is at `scheduler`."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("distributed", "dask", "working on a Dask cluster") from error
    try:
        client = Client(scheduler, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(f"cannot reach the Dask scheduler {scheduler}: {error}") from error
    try:
        yield client.get_executor()
    finally:
        client.close()


def width(executor: Executor) -> Callable[[], int]:
    """How many tasks to keep in the hands of an executor: enough that no worker waits for the next."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return lambda: 2 * max(1, sum(client.nthreads().values()))
    workers = getattr(executor, "_max_workers", 1)
    return lambda: 1 + int(workers)
