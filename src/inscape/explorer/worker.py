"""One thread that does the work of all pages, the most urgent first; of equal requests the latest wins.

Models are evaluated in this thread alone, so that no two requests meet inside one. Compiled loops and torch
let go of Python's lock, so that the server goes on answering meanwhile. A job that was superseded stops where
it reports its progress next.
"""

import heapq
import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


class Superseded(BaseException):
    """Raised inside a job that nobody waits for any more; no error that a library might handle."""


@dataclass(eq=False)
class PageJob:
    """What a page waits for.

    Attributes:
        owner: the page that waits for it.
        slot: what it is about: a new job in the same slot supersedes it.
        work: the work, which gets the job.
        is_cancelled: whether nobody waits for it any more.
    """

    owner: Hashable
    slot: Hashable
    work: "Callable[[PageJob], None]" = field(repr=False)
    is_cancelled: bool = False

    def check(self) -> None:
        """Stop here if nobody waits for this job any more."""
        if self.is_cancelled:
            raise Superseded


class Worker:
    """The thread and its queue."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, PageJob]] = []
        self._newest: dict[tuple[Hashable, Hashable], PageJob] = {}
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="inscape explorer", daemon=True)
        self._thread.start()

    def submit(
        self, owner: Hashable, slot: Hashable, work: Callable[[PageJob], None], *, urgency: int
    ) -> None:
        """Have some work done: jobs of a smaller `urgency` first, else in the order of their coming."""
        job = PageJob(owner, slot, work)
        with self._changed:
            self._drop(owner, slot)
            self._newest[owner, slot] = job
            heapq.heappush(self._queue, (urgency, next(self._order), job))
            self._changed.notify()

    def cancel(self, owner: Hashable, slot: Hashable | None = None) -> None:
        """Give up one slot of a page, or all that it waits for."""
        with self._changed:
            slots = [s for o, s in self._newest if o == owner] if slot is None else [slot]
            for each in slots:
                self._drop(owner, each)

    def close(self) -> None:
        """Give up everything and end the thread."""
        with self._changed:
            self._is_open = False
            for job in self._newest.values():
                job.is_cancelled = True
            self._changed.notify()
        self._thread.join(timeout=10)

    def _drop(self, owner: Hashable, slot: Hashable) -> None:
        job = self._newest.pop((owner, slot), None)
        if job is not None:
            job.is_cancelled = True
            self._queue = [entry for entry in self._queue if entry[2] is not job]
            heapq.heapify(self._queue)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._is_open and not self._queue:
                    self._changed.wait()
                if not self._is_open:
                    return
                job = heapq.heappop(self._queue)[2]
            try:
                job.work(job)
            except Superseded:
                pass
            finally:
                with self._changed:
                    if self._newest.get((job.owner, job.slot)) is job:
                        del self._newest[job.owner, job.slot]
