"""The worker: the latest wins, the urgent come first, and what nobody waits for stops."""

import threading

from inscape.explorer.worker import Worker


class Gate:
    """Work that waits to be let through, and tells what ran."""

    def __init__(self):
        self.begun, self.open, self.ran = threading.Event(), threading.Event(), []

    def __call__(self, job):
        self.begun.set()
        assert self.open.wait(10)
        job.check()
        self.ran.append("gate")


def test_of_equal_requests_the_latest_wins_and_the_urgent_come_first():
    worker, gate, done = Worker(), Gate(), threading.Event()
    worker.submit("page", "plane", gate, urgency=3)
    assert gate.begun.wait(10)
    for k in range(100):
        worker.submit("page", "readout", lambda job, k=k: gate.ran.append(k), urgency=2)
    worker.submit("page", "hello", lambda job: gate.ran.append("hello"), urgency=0)
    worker.submit("page", "last", lambda job: done.set(), urgency=9)
    gate.open.set()
    assert done.wait(10)
    assert gate.ran == ["gate", "hello", 99]
    worker.close()


def test_a_job_that_is_superseded_stops_where_it_reports():
    worker, gate, done = Worker(), Gate(), threading.Event()
    worker.submit("page", "plane", gate, urgency=3)
    assert gate.begun.wait(10)
    worker.submit("page", "plane", lambda job: done.set(), urgency=3)
    gate.open.set()
    assert done.wait(10)
    assert gate.ran == []
    worker.close()


def test_a_page_that_goes_takes_its_jobs_along_and_no_others():
    worker, gate, done = Worker(), Gate(), threading.Event()
    worker.submit("first", "plane", gate, urgency=3)
    assert gate.begun.wait(10)
    worker.submit("first", "readout", lambda job: gate.ran.append("first"), urgency=1)
    worker.submit("second", "readout", lambda job: gate.ran.append("second"), urgency=1)
    worker.submit("second", "end", lambda job: done.set(), urgency=9)
    worker.cancel("first")
    gate.open.set()
    assert done.wait(10)
    assert gate.ran == ["second"]
    worker.close()
