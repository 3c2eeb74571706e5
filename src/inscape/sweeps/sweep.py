"""The sweep: work on the tasks that are missing in a store until none is."""

import json
import platform
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inscape.errors import StudyError
from inscape.parallel import working
from inscape.progress import Meter
from inscape.sweeps.checkpoints import checkpoints_in, forget
from inscape.sweeps.executors import POLL, finished, own_executor, terminate, width
from inscape.sweeps.store import LEASE, Outcome, Store
from inscape.sweeps.study import Configuration, Row, Study
from inscape.sweeps.tasks import Task

Group = list[Task]
"""Tasks that are one call of the study's function."""
Bundle = list[Group]
"""Groups that a worker is given at once."""
BUNDLE_SECONDS = 0.03
"""What a call of a worker takes at most, if its groups are shorter than that: so much is lost by a kill."""
MOST_IN_BUNDLE = 256
SHORT_BEFORE_BUNDLES = 16
"""Groups that are worked on one by one before some are sent together."""


def sweep(
    study: Study,
    tasks: Sequence[Task],
    store: Store,
    executor: Executor | None = None,
    *,
    n_workers: int | None = None,
    retry_failed: bool = False,
    show: Meter,
) -> None:
    """Work until every task is in the store, put there by us or by another process on the same store."""
    retry_before = time.time() if retry_failed else 0.0
    stored = store.finished(retry_before)
    missing = [t for t in tasks if t.key not in stored]
    show(len(tasks) - len(missing), len(tasks))
    if not missing:
        return
    groups = _groups(study, missing)
    folder = store.path.with_suffix(".checkpoints")
    with (
        _renewed(store),
        _held(folder),
        _handle_on(study, executor, len(groups), n_workers, folder) as handle,
    ):
        job = _WorkQueue(store, handle, retry_before)
        job.todo.extend(groups)
        try:
            while job.todo or job.running:
                job.submit()
                job.collect()
                show(len(tasks) - job.n_open(), len(tasks))
        finally:
            if not handle.is_ours:  # ours ends as a whole
                for future in job.running:  # stopped, by an error or by Ctrl-C
                    future.cancel()


def _groups(study: Study, tasks: Sequence[Task]) -> list[Group]:
    """The tasks that are worked on in one call."""
    if study.batch is None or study.together is None:
        return [[task] for task in tasks]
    groups: dict[Any, Group] = {}
    for task in tasks:
        groups.setdefault(study.together(task.configuration), []).append(task)
    return list(groups.values())


class _Handle:
    """A handle on the executor, which puts a new pool in its place if it is ours and broke."""

    def __init__(
        self, study: Study, executor: Executor | None, n_groups: int, n_workers: int | None, folder: Path
    ) -> None:
        self._function = study.batch or OneByOne(study.cell)
        self._pool = partial(own_executor, self._function, most=n_groups, n_workers=n_workers)
        self.is_ours, self.folder = executor is None, folder
        self.executor = self._pool() if executor is None else executor
        self.width = width(self.executor)

    def renew(self) -> None:
        if not self.is_ours:
            raise StudyError("the executor broke, as by a killed worker: run again with a new one")
        terminate(self.executor)
        self.executor = self._pool()

    def submit(self, bundle: Bundle) -> "Future[list[list[Outcome]]]":
        groups = [[task.seeded for task in group] for group in bundle]
        try:
            return self.executor.submit(work_on, self._function, groups, str(self.folder))
        except BrokenExecutor as error:
            broken: Future[list[list[Outcome]]] = Future()
            broken.set_exception(error)
            return broken


@contextmanager
def _handle_on(
    study: Study, executor: Executor | None, n_groups: int, n_workers: int | None, folder: Path
) -> Iterator[_Handle]:
    handle = _Handle(study, executor, n_groups, n_workers, folder)
    try:
        yield handle
        if handle.is_ours:
            handle.executor.shutdown()
    except BaseException:
        if handle.is_ours:
            terminate(handle.executor)
        raise


class _WorkQueue:
    """Groups that wait, and bundles of groups that are worked on.

    A bundle is what goes to a worker in one call. It is one group, and more only where groups take a few
    milliseconds, so that sending, claiming and storing them would take longer than the work.
    """

    def __init__(self, store: Store, handle: _Handle, retry_before: float) -> None:
        self._store, self._handle, self._retry_before = store, handle, retry_before
        self.todo: deque[Group] = deque()
        self.running: dict[Future[list[list[Outcome]]], Bundle] = {}
        self._n_told, self._seconds = 0, 0.0  # groups, and how long the last ones took

    def n_open(self) -> int:
        """How many tasks are not finished, as far as we know."""
        bundles = self.running.values()
        return sum(map(len, self.todo)) + sum(len(group) for bundle in bundles for group in bundle)

    def submit(self) -> None:
        """Claim groups until the executor has enough; what others work on goes to the end of the line."""
        enough, n_left = self._handle.width(), len(self.todo)
        while n_left and len(self.running) < enough:
            n = min(n_left, self._bundle_size(enough))
            n_left -= n
            mine, others = self._claimed([self.todo.popleft() for _ in range(n)])
            self.todo.extend(others)
            if mine:
                self.running[self._handle.submit(mine)] = mine

    def _bundle_size(self, n_at_once: int) -> int:
        """How many groups fill a call, and leave some for the other workers."""
        if self._n_told < SHORT_BEFORE_BUNDLES:
            return 1
        filling = BUNDLE_SECONDS / max(self._seconds, BUNDLE_SECONDS / MOST_IN_BUNDLE)
        return max(1, min(int(filling), len(self.todo) // n_at_once))

    def _claimed(self, bundle: Bundle) -> tuple[Bundle, Bundle]:
        """What of each group is ours from now, and what others work on."""
        tasks = [task for group in bundle for task in group]
        mine, others = (
            {task.key for task in tasks} for tasks in self._store.claim(tasks, self._retry_before)
        )
        shares = [[[t for t in group if t.key in keys] for group in bundle] for keys in (mine, others)]
        return [group for group in shares[0] if group], [group for group in shares[1] if group]

    def collect(self) -> None:
        """Store what is finished, after waiting a little for it."""
        if not self.running:
            if self.todo:
                time.sleep(POLL)  # others work on the rest
            return
        broken: Bundle = []
        tasks: Group = []
        outcomes: list[Outcome] = []
        for future in finished(self.running):
            bundle = self.running.pop(future)
            if isinstance(_error_of(future), BrokenExecutor):
                broken += bundle
                continue
            for group, told in zip(bundle, _outcomes(future, bundle), strict=True):
                tasks += group
                outcomes += told
                self._took(sum(outcome.seconds for outcome in told))
        if tasks:
            self._insert(tasks, outcomes)
        if broken:
            self._one_at_a_time(broken)

    def _took(self, seconds: float) -> None:
        """Follow how long a group takes: at once when it is longer than before, slowly when it is shorter."""
        self._n_told += 1
        self._seconds = max(seconds, 0.9 * self._seconds + 0.1 * seconds)

    def _one_at_a_time(self, broken: Bundle) -> None:
        """After a pool broke: each task that was in it alone, to find the one that breaks it."""
        broken += [group for bundle in self.running.values() for group in bundle]
        self.running.clear()
        self._handle.renew()
        for task in [task for group in broken for task in group]:
            future = self._handle.submit([[task]])
            while not finished([future]):
                pass
            if isinstance(_error_of(future), BrokenExecutor):
                self._handle.renew()
            self._insert([task], _outcomes(future, [[task]])[0])

    def _insert(self, tasks: Group, outcomes: list[Outcome]) -> None:
        self._store.insert(tasks, outcomes)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.error is None:
                forget(self._handle.folder, task.seeded)


def _error_of(future: "Future[list[list[Outcome]]]") -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        raise StudyError("the executor gave up its work: run again for the rest") from error


def _outcomes(future: "Future[list[list[Outcome]]]", bundle: Bundle) -> list[list[Outcome]]:
    """The outcomes of each group."""
    error = _error_of(future)
    if error is None:
        return future.result()
    if isinstance(error, BrokenExecutor):
        text = "the process that worked on it was killed: out of memory, or a crash in compiled code"
    else:
        text = f"{type(error).__name__}: {error}"
    return [[failed(text) for _ in group] for group in bundle]


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A folder that is there in the block, and is left only if something is in it."""
    with suppress(OSError):  # without it tasks start anew
        folder.mkdir(exist_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _renewed(store: Store) -> Iterator[None]:
    """Renew our claims from a thread, whatever the main one waits for; give them up in the end."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LEASE / 6):
            try:
                store.renew()
            except StudyError:  # a full disk, say: the main thread will meet it and say so
                continue

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        store.release()


def work_on(
    function: Callable[[list[Configuration]], Sequence[Row]],
    groups: list[list[Configuration]],
    checkpoints: str | None = None,
) -> list[list[Outcome]]:
    """The outcomes of each group of configurations, one group after the other."""
    return [work(function, group, checkpoints) for group in groups]


def work(
    function: Callable[[list[Configuration]], Sequence[Row]],
    configurations: list[Configuration],
    checkpoints: str | None = None,
) -> list[Outcome]:
    """The outcome of each configuration; an exception in the function is one as well.

    If the function fails on several configurations, each is tried alone, so that only those fail that must.
    `checkpoints` is the folder of those that long tasks leave.
    """
    start = time.perf_counter()
    try:
        with checkpoints_in(checkpoints), working(1):  # the other threads are for other tasks
            rows = function(configurations)
        if len(rows) != len(configurations):
            raise StudyError(f"{len(configurations)} configurations gave {len(rows)} rows: expected one each")
        texts: list[str | None] = [
            _as_json(row, configuration) for row, configuration in zip(rows, configurations, strict=True)
        ]
        error = None
    except Exception:
        if len(configurations) > 1:
            return [work(function, [c], checkpoints)[0] for c in configurations]
        texts, error = [None] * len(configurations), traceback.format_exc().strip()
    seconds = (time.perf_counter() - start) / len(configurations)
    return [Outcome(row=t, error=error, seconds=seconds, provenance=json.dumps(provenance())) for t in texts]


def failed(error: str) -> Outcome:
    """The outcome of a task of which nothing came back."""
    return Outcome(row=None, error=error, seconds=0.0, provenance=json.dumps(provenance()))


@dataclass(frozen=True)
class OneByOne:
    """The function of single configurations as a function of lists, which can still be pickled."""

    cell: Callable[[Configuration], Row]

    def __call__(self, configurations: list[Configuration]) -> list[Row]:
        """The rows of the configurations."""
        return [self.cell(configuration) for configuration in configurations]


def provenance() -> dict[str, str]:
    """Versions, machine: what a row was made with."""
    from inscape import __version__

    versions = {"inscape": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "sklearn", "numba"):
        if name in sys.modules:
            versions[name] = str(sys.modules[name].__version__)
    return versions | {"machine": f"{platform.system()} {platform.machine()}", "host": socket.gethostname()}


def _as_json(row: Row, configuration: Configuration) -> str:
    if not isinstance(row, dict) or not all(isinstance(key, str) for key in row):
        raise StudyError(f"the function of a study must return a dict with names as keys, not {row!r}")
    taken = sorted(set(row) & {*configuration, "configuration", "seconds"})
    if taken:
        raise StudyError(f"the row repeats {', '.join(taken)} of the configuration: call it otherwise")
    return json.dumps(row, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array or a scalar of numpy or torch
        return value.tolist()
    raise StudyError(f"a row can hold numbers, strings, None and small arrays, not {type(value).__name__}")
