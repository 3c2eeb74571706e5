"""Where a study is worked on: a pool of processes here, or a Dask cluster; and when Ctrl-C may come."""

import logging
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, TypeVar

from inscape.errors import InscapeWarning, MissingExtraError, StudyError, warn
from inscape.parallel import n_cores, working

T = TypeVar("T")

POLL = 0.5
"""Seconds between checks of what has been finished."""

TIMEOUT = 20.0
"""Seconds to wait for the scheduler of a cluster."""

SAID_AFTER = 30.0
"""Seconds without any worker on a cluster after which that is said; then after twice as many, and so on."""

PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx")
"""In which Dask's schedulers can be spoken to."""


def own_executor(function: Callable[..., Any], *, most: int, n_workers: int | None = None) -> Executor:
    """The pool for a function; this process where no other could find the function, with a warning.

    Workers find the functions of modules by themselves. Only for one of the main script do they have to run
    the script again, which one typed in or piped in does not allow.
    """
    if not _is_of_main(function):
        return process_pool(most=most, n_workers=n_workers)
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is None and not os.path.isfile(getattr(main, "__file__", None) or ""):
        warn(
            "the study's function was typed in, so that worker processes cannot find it: "
            "working in this process alone; put the function into a module to use all processors"
        )
        return _Here()
    return process_pool(most=most, n_workers=n_workers, needs_main=True)


def _is_of_main(function: Callable[..., Any]) -> bool:
    try:
        return b"__main__" in pickle.dumps(function)
    except Exception:  # whatever its own pickling raises: the rows will say so
        return False


class _Here(Executor):
    """Works on the spot."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        with working(None):
            future.set_result(fn(*args, **options))
        return future


_hiding = threading.Lock()


class _WorkerProcess(SpawnProcess):
    """A process that does not run the main script again, so that a script needs no guard."""

    def start(self) -> None:
        main = sys.modules["__main__"]
        with _hiding:
            before: dict[str, Any] = {
                name: vars(main)[name] for name in ("__file__", "__spec__") if name in vars(main)
            }
            try:
                main.__spec__, main.__file__ = None, None
                super().start()
            finally:
                del main.__spec__, main.__file__
                vars(main).update(before)


class _WithoutMain(SpawnContext):
    Process = _WorkerProcess


class _Pool(ProcessPoolExecutor):
    """A pool that Ctrl-C finds whole: no process half started, no lock that nobody gives back."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        with interrupts_held():
            return super().submit(fn, *args, **options)


def process_pool(
    *, most: int = 61, n_workers: int | None = None, needs_main: bool = False
) -> ProcessPoolExecutor:
    """A pool of fresh processes with one thread each, which end with this process however it ends.

    There are `n_workers`, by default one per processor, but at most `most`; Windows cannot wait for more
    than 61. They run the main script again, as spawned processes do, only if the work `needs_main`. Where
    there are GPUs each process sees one of them, in turn.
    """
    with interrupts_held():
        context = multiprocessing.get_context("spawn") if needs_main else _WithoutMain()
        pool = _Pool(
            max(1, min(n_workers or n_cores(), most, 61)),
            mp_context=context,
            initializer=_prepare_worker,
            initargs=(context.Value("i", 0), gpus()),
        )
    processes: list[Any] = []
    try:
        first = pool.submit(int)
        processes += (pool._processes or {}).values()
        while not finished([first]):
            pass
        first.result()
    except BrokenExecutor as error:
        terminate(pool)
        raise StudyError(_why_broken([p.exitcode for p in processes], needs_main)) from error
    except BaseException:
        terminate(pool)
        raise
    return pool


def _why_broken(codes: Collection[int | None], needs_main: bool) -> str:
    """What to say of a pool that broke before any work: a script has no guard, or a process was killed.

    Python's own end of the other processes is SIGTERM. A script that starts a pool again in each of its
    processes ends them with an error, which is a positive code.

    >>> _why_broken([-9, -15], False)
    'a worker process was killed (signal 9) while the pool started: run again, on fewer if memory is short'
    """
    own = [code for code in codes if code not in (None, 0, -signal.SIGTERM)] or [-signal.SIGTERM]
    errors = [code for code in own if code is not None and code > 0]
    if errors and needs_main:
        return (
            "worker processes cannot start: a script that runs a study of its own functions must do so under "
            'if __name__ == "__main__":, or pass an executor of its own'
        )
    if errors:
        return (
            f"a worker process ended with code {errors[0]} while the pool started: run again with --workers 1"
        )
    return (
        f"a worker process was killed (signal {-int(own[0] or 0)}) while the pool started: "
        "run again, on fewer if memory is short"
    )


def gpus(folder: str = "/proc/driver/nvidia/gpus") -> list[str]:
    """The GPUs that CUDA programs started here see, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    return [str(i) for i in range(len(os.listdir(folder)))] if os.path.isdir(folder) else []


def _prepare_worker(n_started: Any, devices: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the pool
    if devices:
        with n_started.get_lock():
            os.environ["CUDA_VISIBLE_DEVICES"] = devices[n_started.value % len(devices)]
            n_started.value += 1
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
    connection.wait([sentinel])
    os._exit(1)


def finished(futures: Collection["Future[T]"]) -> "set[Future[T]]":
    """Those that are finished, after a little wait for the first; Ctrl-C counts when that is over."""
    with interrupts_held():
        return wait(futures, timeout=POLL, return_when=FIRST_COMPLETED).done


def terminate(executor: Executor) -> None:
    """Stop an executor of our own at once, and return when it has: kill the processes of a pool."""
    if isinstance(executor, _Pool):
        for process in list((executor._processes or {}).values()):
            process.kill()
        results: Any = executor._result_queue
        if results is not None:
            results._writer.close()  # else half a result would be waited for as if the rest could come
    executor.shutdown()


@contextmanager
def dask_executor(scheduler: str) -> Iterator[Executor]:
    """An executor that sends the work to the Dask cluster whose scheduler is at `scheduler`."""
    if not re.fullmatch(rf"({'|'.join(PROTOCOLS)})://[^\s/]+:\d+/?", scheduler):
        others = ", ".join(PROTOCOLS[1:])
        raise StudyError(
            f"{scheduler!r} is no address of a Dask scheduler: expected tcp://HOST:PORT (or {others})"
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("distributed", "dask", "working on a Dask cluster") from error
    _hush("distributed", "tornado", "asyncio")
    try:
        client = Client(scheduler, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(f"cannot reach the Dask scheduler {scheduler}: {error}") from error
    try:
        yield client.get_executor()
    except OSError as error:
        raise StudyError(_lost(scheduler)) from error
    finally:
        client.close()


def _lost(scheduler: str) -> str:
    return f"lost the Dask scheduler {scheduler}: finished rows are stored; run again for the rest"


def _hush(*libraries: str) -> None:
    """Keep what libraries log of a lost connection, with tracebacks, off the terminal: our error says it.

    It stays so: an error that nobody has asked a future for is logged when that is collected, long after.
    """
    known = list(logging.root.manager.loggerDict)
    for name in (*libraries, *(n for n in known if n.split(".")[0] in libraries)):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def width(executor: Executor) -> Callable[[], int]:
    """How many tasks an executor is given at a time: enough that no worker waits for the next."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return _Cluster(client).width
    workers = getattr(executor, "_max_workers", 1)
    return lambda: 1 + int(workers)


class _Cluster:
    """The workers of a Dask cluster, which may come and go; that there are none for long is said."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._threads, self._ask_again = 0, 0.0
        self._met()

    def _met(self) -> None:
        self._since, self._say_after = time.monotonic(), SAID_AFTER

    def width(self) -> int:
        """Twice the threads of all workers, at least two; asked for every half second."""
        now = time.monotonic()
        if self._threads and now < self._ask_again:
            return 2 * self._threads
        try:
            self._threads = threads = int(sum(self._client.nthreads().values()))
        except OSError as error:
            raise StudyError(_lost(self._client.scheduler.address)) from error
        self._ask_again = now + POLL
        waited = now - self._since
        if threads:
            self._met()
        elif waited >= self._say_after:
            address = self._client.scheduler.address
            warn(
                f"waiting for workers: none connected to {address} for {waited:.0f} s; start one with "
                f"dask worker {address}, or stop here and run again later"
            )
            self._say_after = 2 * waited
        return 2 * max(1, threads)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; processes that start in it ignore it.

    Python raises KeyboardInterrupt anywhere, also between the taking of a lock and the block that gives it
    back. Another thread may wait for that lock, and the interpreter waits for the thread before it ends.
    """
    with _recorded(), _blocked():
        yield


@contextmanager
def _recorded() -> Iterator[None]:
    """Remember Ctrl-C and raise it in the end: in the main thread, as Python raises it in no other.

    A handler that is not Python's could not be put back, and is left in its place.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked() -> Iterator[None]:
    """Have this thread block Ctrl-C, which new processes inherit. Other threads may still catch it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
