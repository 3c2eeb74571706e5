"""How many threads work on one call, and how they do: in order, each with one thread for its products.

Work is divided into jobs by rules that know nothing of threads, and each job computes in one thread, the
products of torch and BLAS included. So the numbers are the same to the last bit however many jobs run at a
time. What the caller sees is the same, too: results come in the order of the jobs, and of several errors the
one of the first job; progress is reported and warnings are given in the thread that called.
"""

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import chain, islice, pairwise
from multiprocessing import parent_process
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, overload

import numpy as np

from inscape.budget import machine_memory
from inscape.errors import JobsError, postponed, warn
from inscape.progress import Meter

Result = TypeVar("Result")
Finished = TypeVar("Finished")
Tell = Callable[[Any], None]
"""What a job calls now and then, with anything that says how far it is; it raises where all is to stop."""
Job = Callable[[Tell], Result]

VARIABLE = "INSCAPE_JOBS"
"""Of the environment: the number of threads where a call does not say, as `n_jobs` counts."""
READY_JOBS = 2
"""That wait for a thread: one may be long, and the next ones are at hand when it ends."""
N_STRETCHES = 32
"""Into which items are divided that several threads share; the result is the same as of one stretch."""
SWITCH_SECONDS = 2e-4
"""How long a thread of ours that comes back from a compiled loop waits for one that interprets; Python's own
5 milliseconds are as long as a whole job."""


def n_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """The threads of an argument `n_jobs`, as scikit-learn counts: -1 is every core, -2 all but one.

    None is what the environment says in `INSCAPE_JOBS`, else every core; but one in a worker process, such as
    those of a study, which share the cores already.

    >>> n_threads(1), n_threads(3), n_threads(-10_000)
    (1, 3, 1)
    """
    if n_jobs is None:
        return _threads_by_default()
    count = int(n_jobs) if isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool) else 0
    if count == 0:
        raise JobsError(
            f"n_jobs={n_jobs!r} is no number of threads: expected 1 or more, -1 for every core, "
            "-2 for all but one"
        )
    return count if count > 0 else max(1, n_cores() + 1 + count)


def _threads_by_default() -> int:
    said = os.environ.get(VARIABLE)
    if said:
        try:
            return n_threads(int(said))
        except ValueError as error:
            raise JobsError(
                f"{VARIABLE}={said!r} in the environment is no number of threads: expected 1 or more, "
                "-1 for every core"
            ) from error
    return n_cores() if parent_process() is None else 1


_threads: ContextVar["_Threads | None"] = ContextVar("_threads", default=None)
"""Those that may be used here; None for none but the own."""
_is_settled: ContextVar[bool] = ContextVar("_is_settled", default=False)
"""Whether it was said how many there are."""


@contextmanager
def working(n_jobs: int | None) -> Iterator[None]:
    """Have what is done meanwhile use that many threads.

    Work that is part of other work uses what that does: a call in a job has the thread of the job.
    """
    n = n_threads(n_jobs)
    if _is_settled.get():
        yield
        return
    threads = None if n == 1 else _Threads(n)
    tokens = _is_settled.set(True), _threads.set(threads)
    try:
        yield
    finally:
        _is_settled.reset(tokens[0])
        _threads.reset(tokens[1])
        if threads is not None:
            threads.stop()


def is_parallel() -> bool:
    """Whether jobs may run at a time here."""
    return _threads.get() is not None


@contextmanager
def single_products() -> Iterator[None]:
    """Have the products of torch and BLAS take one thread each meanwhile; afterwards all is as it was.

    Torch counts threads for each thread of ours, and for those to come; BLAS for the process.
    """
    _LIMITS.enter()
    try:
        yield
    finally:
        _LIMITS.leave()


class _ThreadLimits:
    """The limits in force: for BLAS, the first to come sets them and the last to go takes them away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._depth = 0
        self._blas: list[tuple[Any, int]] = []
        self._torch_threads = 1
        self._libraries: tuple[int, list[Any]] = 0, []

    def enter(self) -> None:
        """Products take one thread in this thread from now on."""
        self._here.depth = getattr(self._here, "depth", 0) + 1
        torch = sys.modules.get("torch")
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._blas = [(own, own.get_num_threads()) for own in self._found_libraries()]
                for own, before in self._blas:
                    if before != 1:
                        own.set_num_threads(1)
                self._torch_threads = 1 if torch is None else torch.get_num_threads()
        if torch is not None and self._here.depth == 1:
            # a thread that began while another one had the limit has it, too, and is to lose it
            before = max(torch.get_num_threads(), self._torch_threads)
            if before > 1:
                self._here.before = before
                torch.set_num_threads(1)

    def leave(self) -> None:
        """Products take as many as before."""
        self._here.depth -= 1
        if self._here.depth == 0 and hasattr(self._here, "before"):
            sys.modules["torch"].set_num_threads(self._here.before)
            del self._here.before
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                for own, before in self._blas:
                    if before != 1:
                        own.set_num_threads(before)

    def _found_libraries(self) -> list[Any]:
        """The libraries of BLAS that are loaded; looking for them takes milliseconds."""
        n_loaded = len(_WITH_BLAS & sys.modules.keys())
        if self._libraries[0] != n_loaded:
            from threadpoolctl import ThreadpoolController

            self._libraries = n_loaded, ThreadpoolController().select(user_api="blas").lib_controllers
        return self._libraries[1]


_WITH_BLAS = {"numpy", "scipy.linalg", "sklearn"}
"""Modules that load a library of BLAS."""
_LIMITS = _ThreadLimits()


def in_order(
    jobs: Iterable[Job[Result]],
    hear: Callable[[int, Any], None] = lambda number, told: None,
    *,
    ahead: int | None = None,
) -> Iterator[Result]:
    """The results of jobs, in order, of which as many run at a time as there are threads: see `working`.

    A job that is alone, or where there is one thread, runs in the thread that asks. Jobs are taken from the
    iterable by that thread as they are needed, a few ahead, so that there may be many of them.

    Args:
        jobs: functions that are given a `Tell`.
        hear: is called, by the thread that asks, with the number of a job and what that told.
        ahead: how many jobs are given to the threads before the result of the first is taken.

    >>> with working(2):
    ...     list(in_order([lambda tell, k=k: k * k for k in range(5)]))
    [0, 1, 4, 9, 16]
    """
    threads = _threads.get()
    waiting = iter(jobs)
    first = [] if threads is None or ahead == 1 else list(islice(waiting, 2))
    if threads is None or len(first) < 2:
        for number, job in enumerate(chain(first, waiting)):
            yield job(partial(hear, number))
        return
    yield from _Queue[Result](threads, hear, ahead).results(chain(first, waiting))


@overload
def spread(
    jobs: Iterable[Callable[[], Result]], heard: Callable[[int], None] = ..., *, at_once: bool = ...
) -> list[Result]: ...
@overload
def spread(
    jobs: Iterable[Callable[[], Result]],
    heard: Callable[[int], None] = ...,
    *,
    finish: Callable[[Result], Finished],
    at_once: bool = ...,
) -> list[Finished]: ...
def spread(
    jobs: Iterable[Callable[[], Any]],
    heard: Callable[[int], None] = lambda n_done: None,
    *,
    finish: Callable[[Any], Any] = lambda result: result,
    at_once: bool = False,
) -> list[Any]:
    """The results of jobs that have nothing to tell; the thread that asks takes some of them itself.

    What takes products is to be asked for within `single_products`: the thread that asks has its own limit.

    Args:
        jobs: all are made before the first one runs.
        heard: is called now and then, by the thread that asks, with how many jobs are done, and once they all
            are.
        finish: what is made of the result of a job, in order, by the thread that asks, while others are at
            work. Two threads that interpret in turn take twice as long for it as one, since each finds in
            the cache of the other core what it needs.
        at_once: whether no two may run at a time.

    >>> with working(2):
    ...     spread(partial(pow, k, 2) for k in range(5))
    [0, 1, 4, 9, 16]
    """
    threads, given = _threads.get(), list(jobs)
    if threads is not None and len(given) > 1 and not at_once:
        return _JobShare(threads, given, heard, finish).results()
    results = []
    for job in given:
        results.append(finish(job()))
        heard(len(results))
    return results


def are_shared(n: int, shared_from: int) -> bool:
    """Whether several threads share n items of work, as they do from `shared_from` items on."""
    return n >= shared_from and is_parallel()


def in_stretches(n: int, shared_from: int, work: Callable[[int, int], Result]) -> list[Result]:
    """The results of work on items 0, ..., n - 1, from one to another: in stretches if threads share them.

    >>> in_stretches(100, 50, lambda begin, stop: stop - begin)
    [100]
    """
    if not are_shared(n, shared_from):
        return [work(0, n)]
    bounds = np.linspace(0, n, N_STRETCHES + 1).astype(int).tolist()
    return spread(partial(work, *stretch) for stretch in pairwise(bounds))


def begun(job: Callable[[], Result], *, at_once: bool = False) -> Callable[[], Result]:
    """Have a job run while the caller goes on, else at once; what is returned asks for its result.

    It runs at once if it must, or where there are no threads.

    >>> with working(2):
    ...     ask = begun(lambda: 6 * 7)
    ...     ask()
    42
    """
    threads = _threads.get()
    if threads is None or at_once:
        result = job()
        return lambda: result
    queue = _Queue[Result](threads, lambda number, told: None, 1)
    queue.give(partial(_untold, job))
    return lambda: next(queue.results(iter([])))


def _untold(job: Callable[[], Result], tell: Tell) -> Result:
    tell(None)
    return job()


def fitting(memory: int) -> int:
    """How many jobs to have ahead if each takes `memory` bytes: all of them at most half of the machine's."""
    threads = _threads.get()
    if threads is None:
        return 1
    most, there = threads.n + READY_JOBS, machine_memory()
    return most if there is None else max(1, min(most, there // 2 // memory))


class Shares:
    """Progress of jobs that tell which fraction of them is done, shown in thousandths of a job."""

    def __init__(self, meter: Meter, total: int, before: int = 0) -> None:
        """`total` jobs there are in all, of which some were done before."""
        self._meter, self._total, self._done = meter, total, float(before)
        self._fractions: dict[int, float] = {}

    def hear(self, number: int, fraction: float) -> None:
        """A fraction of a job is done."""
        self._done += fraction - self._fractions.get(number, 0.0)
        self._fractions[number] = fraction
        self._meter(round(1000 * self._done), 1000 * self._total)


class _StoppedError(BaseException):
    """The caller does not want what a job is about any more."""


class _Turns:
    """How often threads take turns at the interpreter: the first to come sets it, the last resets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._before = 0, 0.0

    def shorten(self) -> None:
        """Threads of ours are at work from now on."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_SECONDS))

    def restore(self) -> None:
        """They are not any more."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                sys.setswitchinterval(self._before)


_TURNS = _Turns()


class _ServingThread:
    """A thread that serves one call after the other: to start one takes as long as a small job."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="inscape", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (call := self.calls.get()) is not None:
            call()

    def end(self) -> None:
        """Have the thread end, and wait for it."""
        self.calls.put(None)
        self._thread.join()


_IDLE: list[_ServingThread] = []
"""Those that serve no call now, the last one first."""


def _end_idle() -> None:
    """End the threads that serve no call: before this process forks, and where it ends."""
    while True:
        try:
            thread = _IDLE.pop()
        except IndexError:
            return
        thread.end()


atexit.register(_end_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_idle, after_in_child=_IDLE.clear)


class _Threads:
    """Threads that run functions, in the order in which they come; taken when they are first needed."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._functions: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        self._n_given = 0
        self._serving: list[_ServingThread] = []

    def run(self, function: Callable[[], Any], answer: Callable[[Any], None], sparing: int = 0) -> None:
        """Have a function run, which must not raise anything, and what it returns be handed to `answer`.

        It is run by fewer threads if the caller works, too.
        """
        self._n_given += 1
        self._functions.put((function, answer))
        if len(self._serving) < self.n - sparing:
            if not self._serving:
                _TURNS.shorten()
            try:
                thread = _IDLE.pop()
            except IndexError:
                thread = _ServingThread()
            self._serving.append(thread)
            thread.calls.put(self._work)

    def stop(self) -> None:
        """Let the threads go, once none is at work any more."""
        for _ in self._serving:
            self._functions.put(None)
        try:
            for _ in range(self._n_given):
                self._done.get()
        finally:
            _IDLE.extend(self._serving)
            if self._serving:
                _TURNS.restore()

    def _work(self) -> None:
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        while (given := self._functions.get()) is not None:
            function, answer = given
            result = function()
            self._done.put(None)  # first, so that who has all answers need not wait
            answer(result)


class _Queue(Generic[Result]):
    """Jobs on their way through threads, and what comes back."""

    def __init__(self, threads: _Threads, hear: Callable[[int, Any], None], ahead: int | None) -> None:
        self._threads, self._hear = threads, hear
        self._ahead = threads.n + READY_JOBS if ahead is None else ahead
        self._answers: SimpleQueue[tuple[int, str, Any]] = SimpleQueue()
        self._finished: dict[int, tuple[str, Any]] = {}
        self._n_given, self._n_answered, self._is_stopped = 0, 0, False

    def results(self, jobs: Iterator[Job[Result]]) -> Iterator[Result]:
        """What the jobs return, in order; where it ends, none is at work any more."""
        n_taken, is_all = 0, False
        try:
            while True:
                while not is_all and self._n_given - n_taken < self._ahead:
                    is_all = not self._give_next(jobs)
                if n_taken == self._n_given:
                    return
                while n_taken not in self._finished:
                    self._listen()
                kind, (result, said) = self._finished.pop(n_taken)
                n_taken += 1
                for message, category in said:
                    warn(message, category)
                if kind == "error":
                    raise result
                yield result
        finally:
            self._is_stopped = True
            while self._n_answered < self._n_given:
                self._n_answered += self._answers.get()[1] != "told"

    def _give_next(self, jobs: Iterator[Job[Result]]) -> bool:
        """Have the next job run, if there is one; an error of their source comes in its turn."""
        try:
            job = next(jobs, None)
        except Exception as error:
            job = partial(_raise, error)
        if job is None:
            return False
        self.give(job)
        return True

    def give(self, job: Job[Result]) -> None:
        """Have a job run."""
        self._threads.run(partial(copy_context().run, self._run, self._n_given, job), self._answers.put)
        self._n_given += 1

    def _listen(self) -> None:
        number, kind, answer = self._answers.get()
        if kind == "told":
            self._hear(number, answer)
        else:
            self._n_answered += 1
            self._finished[number] = kind, answer

    def _run(self, number: int, job: Job[Result]) -> tuple[int, str, Any]:
        said: list[tuple[str, type[Warning]]] = []
        postponed.set(said)
        _threads.set(None)
        _is_settled.set(True)
        try:
            kind, result = "result", job(partial(self._tell, number))
        except BaseException as error:
            kind, result = "error", error  # type: ignore[assignment]
        return number, kind, (result, said)

    def _tell(self, number: int, told: Any) -> None:
        if self._is_stopped:
            raise _StoppedError
        if told is not None:
            self._answers.put((number, "told", told))


class _JobShare(Generic[Result, Finished]):
    """Jobs that are all there: the thread that asks takes one after the other, and so do some of `threads`.

    Jobs are begun in order, so that when one fails all before it were begun and will have an answer.
    """

    def __init__(
        self,
        threads: _Threads,
        jobs: list[Callable[[], Result]],
        heard: Callable[[int], None],
        finish: Callable[[Result], Finished],
    ) -> None:
        self._threads, self._heard, self._finish, self._n = threads, heard, finish, len(jobs)
        self._waiting = deque(enumerate(jobs))
        self._answers: dict[int, tuple[str, Any]] = {}
        self._results: list[Finished] = []
        self._lock, self._left = threading.Lock(), SimpleQueue[bool]()
        self._n_helping, self._is_over = 0, False

    def results(self) -> list[Finished]:
        """What is made of what the jobs return, in order; none is at work any more when it ends."""
        try:
            for _ in range(min(self._threads.n, self._n) - 1):
                self._threads.run(partial(copy_context().run, self._help), self._left.put, sparing=1)
            copy_context().run(self._take_all, self._use)
        finally:
            with self._lock:
                self._is_over = True
            self._waiting.clear()
            n_left = 0
            while n_left < self._n_helping:
                n_left += self._left.get()
        self._finish_next()
        for number in range(self._n):
            kind, (result, said) = self._answers[number]
            for message, category in said:
                warn(message, category)
            if kind == "error":
                raise result
        self._heard(self._n)
        return self._results

    def _help(self) -> bool:
        """Take jobs in another thread, unless it comes too late; whether it did."""
        with self._lock:
            if self._is_over:
                return False
            self._n_helping += 1
        with suppress(BaseException):  # it is among the answers
            self._take_all(lambda: None)
        return True

    def _use(self) -> None:
        """Finish the results that are there, and report how many."""
        self._finish_next()
        if len(self._answers) < self._n:
            self._heard(len(self._answers))

    def _finish_next(self) -> None:
        """Finish the next results, as far as they are there in order."""
        while (answer := self._answers.get(len(self._results), _NO_ANSWER))[0] == "result":
            self._results.append(self._finish(answer[1][0]))

    def _take_all(self, after_each: Callable[[], None]) -> None:
        """Take jobs as long as there are any; none is begun after one has failed."""
        _threads.set(None)
        _is_settled.set(True)
        while True:
            try:
                number, job = self._waiting.popleft()
            except IndexError:
                return
            said: list[tuple[str, type[Warning]]] = []
            postponed.set(said)
            try:
                self._answers[number] = "result", (job(), said)
            except BaseException as error:
                self._answers[number] = "error", (error, said)
                self._waiting.clear()
                if not isinstance(error, Exception):  # an interrupt does not wait for its turn
                    raise
            after_each()


_NO_ANSWER: tuple[str, Any] = ("waiting", None)


def _raise(error: Exception, tell: Tell) -> Any:
    raise error
