"""A real Dask scheduler with two workers on loopback, one of which is killed midway."""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import sweep_cells

import inscape
from inscape.errors import MissingExtraError, StudyError
from inscape.studies import Store
from inscape.sweeps import executors

pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
PATHS = os.pathsep.join([str(Path(sweep_cells.__file__).parent), str(Path(inscape.__file__).parents[1])])


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start processes that end with the test."""
    monkeypatch.setenv("SWEEP_LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    monkeypatch.setenv("SWEEP_MEETING", str(tmp_path / "meeting"))
    (tmp_path / "meeting").mkdir()
    monkeypatch.setenv("SWEEP_GO", str(tmp_path / "go"))
    processes = []

    def run(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": PATHS},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def lines(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def cluster(start, folder, n_workers):
    """The address of a new scheduler, its process, and those of its workers."""
    folder.mkdir()
    file = folder / "scheduler.json"
    flags = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file)
    scheduler = start("distributed.cli.dask_scheduler", *flags, "--port", 0)
    until(lambda: file.is_file() and file.read_text().endswith("}"))
    address = json.loads(file.read_text())["address"]
    assert address.startswith("tcp://127.0.0.1:")
    flags = (*flags, "--nthreads", 1, "--no-nanny")
    workers = [
        start("distributed.cli.dask_worker", *flags, "--local-directory", folder / str(i))
        for i in range(n_workers)
    ]
    return address, scheduler, workers


def check_rows(store):
    """That every row of the study is there, once, and right."""
    with Store(store) as opened:
        records = opened.records()
    assert sorted((r["configuration"]["i"], r["configuration"]["replicate"]) for r in records) == [
        (i, r) for i in range(sweep_cells.N // 2) for r in range(2)
    ]
    assert all(r["row"] == sweep_cells.row(r["configuration"]) for r in records)


@pytest.mark.slow
def test_a_killed_worker_does_not_stop_the_study(start, tmp_path):
    address, _, workers = cluster(start, tmp_path / "cluster", 2)
    study = start(
        "inscape", "study", "run", "sweep_cells:MEETING", "-o", tmp_path / "o", "--scheduler", address
    )
    log = tmp_path / "log"
    until(lambda: {w.pid for w in workers} <= {pid for *_, pid in lines(log)})  # both work
    workers[0].kill()
    workers[0].wait()
    done = len(lines(log))
    (tmp_path / "go").touch()
    _, err = study.communicate(timeout=120)
    assert study.returncode == 0, err
    assert done <= 10  # it was killed midway, with work in its hands
    check_rows(tmp_path / "o" / "meeting.sqlite")
    assert {pid for *_, pid in lines(log)} == {w.pid for w in workers}


@pytest.mark.slow
def test_neither_a_killed_client_nor_a_lost_scheduler_loses_or_doubles_a_row(start, tmp_path):
    log, store = tmp_path / "log", tmp_path / "o" / "squares.sqlite"
    command = ("inscape", "study", "run", "sweep_cells:STUDY", "-o", tmp_path / "o", "--scheduler")

    address, scheduler, _ = cluster(start, tmp_path / "first", 1)
    client = start(*command, address)
    until(lambda: len(lines(log)) > 4)
    client.kill()
    client.wait()
    client = start(*command, address)
    before = len(lines(log))
    until(lambda: len(lines(log)) > before + 4)
    scheduler.kill()
    _, err = client.communicate(timeout=120)
    assert client.returncode == 2, err
    assert "Traceback" not in err
    assert "run again" in err
    with Store(store) as opened:
        assert 0 < len(opened.finished()) < sweep_cells.N  # it was lost midway
    address, _, _ = cluster(start, tmp_path / "second", 1)
    _, err = start(*command, address).communicate(timeout=120)
    check_rows(store)
    assert len(lines(log)) < 2 * sweep_cells.N  # what was stored was not done again


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT", 0.5)
    with (
        pytest.raises(StudyError, match=r"cannot reach the Dask scheduler tcp://127\.0\.0\.1:9"),
        executors.dask_executor("tcp://127.0.0.1:9"),
    ):
        pass


class Client:
    """What is asked of a Dask client."""

    def __init__(self):
        self.scheduler = SimpleNamespace(address="tcp://10.0.0.1:8786")
        self.threads = {}

    def nthreads(self):
        return self.threads


def test_that_there_are_no_workers_is_said_ever_less_often(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(executors.time, "monotonic", lambda: now[0])
    client = Client()
    width = executors.width(SimpleNamespace(_client=client))
    said = {}
    for second in range(200):
        now[0] = 100.0 + second
        client.threads = {"tcp://10.0.0.2:1": 3} if 150 <= second < 155 else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert width() == (6 if client.threads else 2)
        if caught:
            said[second] = str(caught[0].message)
    assert list(said) == [30, 60, 120, 184]
    assert said[30].startswith("waiting for workers: none connected to tcp://10.0.0.1:8786 for 30 s")


def test_without_distributed_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'inscape\[dask\]'"),
        executors.dask_executor("tcp://a:1"),
    ):
        pass
