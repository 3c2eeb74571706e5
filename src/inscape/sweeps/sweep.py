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
from inscape.progress import Meter
from inscape.sweeps.checkpoints import checkpoints_in, forget
from inscape.sweeps.executors import POLL, finished, own_executor, terminate, width
from inscape.sweeps.store import LEASE, Outcome, Store
from inscape.sweeps.study import Configuration, Row, Study
from inscape.sweeps.tasks import Task

Group = list[Task]


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
        job = _Job(store, handle, retry_before)
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

    def submit(self, group: Group) -> "Future[list[Outcome]]":
        try:
            seeded = [task.seeded for task in group]
            return self.executor.submit(work, self._function, seeded, str(self.folder))
        except BrokenExecutor as error:
            broken: Future[list[Outcome]] = Future()
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


class _Job:
    """Groups that wait, and groups that are worked on."""

    def __init__(self, store: Store, handle: _Handle, retry_before: float) -> None:
        self._store, self._handle, self._retry_before = store, handle, retry_before
        self.todo: deque[Group] = deque()
        self.running: dict[Future[list[Outcome]], Group] = {}

    def n_open(self) -> int:
        """How many tasks are not finished, as far as we know."""
        return sum(map(len, self.todo)) + sum(map(len, self.running.values()))

    def submit(self) -> None:
        """Claim groups until the executor has enough; what others work on goes to the end of the line."""
        enough = self._handle.width()
        for _ in range(len(self.todo)):
            if len(self.running) >= enough:
                return
            mine, others = self._store.claim(self.todo.popleft(), self._retry_before)
            if others:
                self.todo.append(others)
            if mine:
                self.running[self._handle.submit(mine)] = mine

    def collect(self) -> None:
        """Store what is finished, after waiting a little for it."""
        if not self.running:
            if self.todo:
                time.sleep(POLL)  # others work on the rest
            return
        broken = []
        for future in finished(self.running):
            group = self.running.pop(future)
            if isinstance(_error_of(future), BrokenExecutor):
                broken.append(group)
            else:
                self._insert(group, future)
        if broken:
            self._one_at_a_time(broken)

    def _one_at_a_time(self, broken: list[Group]) -> None:
        """After a pool broke: each task that was in it alone, to find the one that breaks it."""
        broken += self.running.values()
        self.running.clear()
        self._handle.renew()
        for task in [task for group in broken for task in group]:
            future = self._handle.submit([task])
            while not finished([future]):
                pass
            if isinstance(_error_of(future), BrokenExecutor):
                self._handle.renew()
            self._insert([task], future)

    def _insert(self, group: Group, future: "Future[list[Outcome]]") -> None:
        outcomes = _outcomes(future, group)
        self._store.insert(group, outcomes)
        for task, outcome in zip(group, outcomes, strict=True):
            if outcome.error is None:
                forget(self._handle.folder, task.seeded)


def _error_of(future: "Future[list[Outcome]]") -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        raise StudyError("the executor gave up its work: run again for the rest") from error


def _outcomes(future: "Future[list[Outcome]]", group: Group) -> list[Outcome]:
    error = _error_of(future)
    if error is None:
        return future.result()
    if isinstance(error, BrokenExecutor):
        text = "the process that worked on it was killed: out of memory, or a crash in compiled code"
    else:
        text = f"{type(error).__name__}: {error}"
    return [failed(text) for _ in group]


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A folder that is there in the block, and is left only if something is in it."""
    with suppress(OSError):  # without it cells start anew
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


def work(
    function: Callable[[list[Configuration]], Sequence[Row]],
    configurations: list[Configuration],
    checkpoints: str | None = None,
) -> list[Outcome]:
    """The outcome of each configuration; an exception in the function is one as well.

    If the function fails on several configurations, each is tried alone, so that only those fail that must.
    `checkpoints` is the folder of those that long cells leave.
    """
    start = time.perf_counter()
    try:
        with checkpoints_in(checkpoints):
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
