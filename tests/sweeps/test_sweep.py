"""Sweeps that are stopped, killed, shared, broken: every finished row is there once, none is wrong."""

import multiprocessing.util
import os
import random
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sweep_cells
from sweep_cells import BATCHED, DEADLY, FAILING, STUDY, N

import inscape
from inscape.errors import InscapeWarning, StudyError
from inscape.studies import Finding, Store, Study, Summary
from inscape.sweeps.executors import gpus, process_pool, terminate
from inscape.sweeps.tasks import grid

TESTS = str(Path(sweep_cells.__file__).parent)
pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them"),
    pytest.mark.usefixtures("interruptible"),
]


class Serial(Executor):
    """Works on the spot."""

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The lines that the cells wrote: i, replicate, process."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("SWEEP_LOG", str(path))
    return lambda: [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def process_env():
    paths = os.pathsep.join([TESTS, str(Path(inscape.__file__).parents[1])])
    return {**os.environ, "PYTHONPATH": paths}


def start(*arguments, code=None):
    """A process of its own, which can be killed."""
    command = (
        ["-m", "inscape", "study", "run", *map(str, arguments)] if code is None else ["-c", code, *arguments]
    )
    return subprocess.Popen(
        [sys.executable, *command],
        env=process_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check(path, study, scale, *, complete):
    """Every row belongs to the grid, is there once, and says what it should."""
    cells = {c.key: c for c in grid(study, scale, 0)}
    with Store(path) as store:
        records = store.records()
    keys = [(r["hash"], r["seed"]) for r in records]
    assert len(set(keys)) == len(keys)
    for key, record in zip(keys, records, strict=True):
        assert record["configuration"] == cells[key].configuration
        assert record["row"] == sweep_cells.row(record["configuration"])
    assert not complete or set(keys) == set(cells)
    return len(keys)


def test_a_study_runs_resumes_and_writes_its_page(tmp_path, log):
    result = inscape.studies.run(STUDY, scale="smoke", out=tmp_path / "o", n_workers=2)
    assert repr(result) == "StudyRun('squares', smoke: 6 rows, 0 failed, 1 of 1 claims held)"
    assert result.frame["square"].tolist() == [0, 0, 1, 1, 4, 4]
    assert sorted(line[:2] for line in log()) == [(i, r) for i in range(3) for r in range(2)]
    assert os.getpid() not in {pid for *_, pid in log()}
    page = (tmp_path / "o" / "summary.md").read_text()
    assert page.startswith(
        "# Squares\n\n- **held**: A square is a square. (all)\n\nA note.\n\n![figure](figure.png)"
    )
    assert result.to_dict()["findings"] == {"squares": {"holds": True, "evidence": "all"}}
    seen = []
    again = inscape.studies.run(
        STUDY, scale="smoke", out=tmp_path / "o", progress=lambda *v: seen.append(v), executor=None
    )
    assert again.frame.equals(result.frame)
    assert len(log()) == 6  # nothing was done twice
    assert seen == [(6, 6)]


def test_only_what_is_missing_is_done(tmp_path, log):
    """Another scale of the same study goes into the same store; seeds do not depend on the order."""
    few = Study(
        name="squares", title="", configurations=lambda s: STUDY.configurations(s)[3:5], cell=STUDY.cell
    )
    first = inscape.studies.run(few, scale="smoke", out=tmp_path, executor=Serial())
    assert len(log()) == 2
    result = inscape.studies.run(STUDY, scale="smoke", out=tmp_path, executor=Serial())
    assert sorted(line[:2] for line in log()) == [(i, r) for i in range(3) for r in range(2)]
    assert result.frame["seed"].tolist()[3:5] == first.frame["seed"].tolist()
    other = inscape.studies.run(STUDY, scale="smoke", out=tmp_path, executor=Serial(), random_state=1)
    assert not set(other.frame["seed"]) & set(result.frame["seed"])
    with Store(tmp_path / "squares.sqlite") as store:
        assert len(store.records()) == 12


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, "pool", "threads", "serial"])
def test_any_executor_gives_the_same_rows(executor, tmp_path):
    pools = {
        "pool": lambda: process_pool(n_workers=1),
        "threads": lambda: ThreadPoolExecutor(3),
        "serial": Serial,
    }
    made = None if executor is None else pools[executor]()
    result = inscape.studies.run(STUDY, scale="smoke", out=tmp_path, executor=made)
    if made is not None:
        made.shutdown()
    reference = inscape.studies.run(STUDY, scale="smoke", out=tmp_path / "r", executor=Serial())
    assert result.frame.drop(columns="seconds").equals(reference.frame.drop(columns="seconds"))


@pytest.mark.slow
def test_killed_at_random_moments_while_writing(tmp_path):
    """A process that does little else than to write is killed again and again, then left alone."""
    out, rng = tmp_path / "o", random.Random(0)
    counts = [0]
    for _ in range(6):
        process = start(str(out), code="import sys, sweep_cells; sweep_cells.hurried(sys.argv[1])")
        wait_for_rows(out / "squares.sqlite", counts[-1] + 1, process)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.communicate()
        counts.append(check(out / "squares.sqlite", STUDY, "paper", complete=False))
    assert counts == sorted(counts)
    result = inscape.studies.run(STUDY, scale="paper", out=out, executor=Serial())
    assert check(out / "squares.sqlite", STUDY, "paper", complete=True) == len(result.frame) == 150
    assert result.summary.findings["squares"].holds


def wait_for_rows(path, n, process, seconds=60):
    """Until the store has so many rows, or the process is done."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if path.is_file() and path.stat().st_size:
            try:
                with Store(path) as store:
                    if len(store.finished()) >= n:
                        return
            except StudyError:  # its tables are being made
                pass
        time.sleep(0.01)
    assert process.poll() is not None, "nothing was written"


@pytest.mark.slow
def test_killed_with_a_pool_of_processes(tmp_path, log):
    out, study = tmp_path / "o", sweep_cells.STUDY
    for n in (3, 12):
        process = start("sweep_cells:STUDY", "-o", out, "--workers", "2")
        wait_for_rows(out / "squares.sqlite", n, process)
        process.kill()
        process.communicate()  # returns when the workers, too, have let go of stdout: they are gone
        check(out / "squares.sqlite", study, "small", complete=False)
    workers = {pid for *_, pid in log()}
    assert workers
    assert not any(is_running(pid) for pid in workers)
    process = start("sweep_cells:STUDY", "-o", out, "--workers", "2")
    out_text, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "\n- held: A square is a square." in out_text
    assert check(out / "squares.sqlite", study, "small", complete=True) == N
    assert N <= len(log()) <= N + 2 * 3  # what was in hand when it was killed is done again, no more


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path(f"/proc/{pid}").exists() else False


@pytest.mark.slow
def test_two_processes_share_the_work(tmp_path, log, monkeypatch):
    out = tmp_path / "o"
    (tmp_path / "meeting").mkdir()
    monkeypatch.setenv("SWEEP_MEETING", str(tmp_path / "meeting"))
    monkeypatch.setenv("SWEEP_GO", str(tmp_path))
    both = [start("sweep_cells:MEETING", "-o", out, "--workers", "1") for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert check(out / "meeting.sqlite", sweep_cells.MEETING, "small", complete=True) == N
    assert sorted(line[:2] for line in log()) == [(i, r) for i in range(N // 2) for r in range(2)]
    assert len({pid for *_, pid in log()}) == 2  # both worked


@pytest.mark.slow
def test_ctrl_c_stops_cleanly(tmp_path):
    """At once, whatever the workers are doing; what is finished stays, and nothing is held."""
    out = tmp_path / "o"
    process = start("sweep_cells:STUCK", "-o", out, "--workers", "2")
    wait_for_rows(out / "stuck.sqlite", 4, process)
    process.send_signal(signal.SIGINT)
    check_stopped(process, out)


def check_stopped(process, out):
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert [line for line in err.splitlines() if "running code of sweep_cells:" not in line] == [
        "inscape: stopped"
    ]
    assert check(out / "stuck.sqlite", sweep_cells.STUCK, "small", complete=False) == 4
    with Store(out / "stuck.sqlite") as store:
        mine, others = store.claim(grid(sweep_cells.STUCK, "small", 0))
    assert (len(mine), others) == (N - 4, [])


@pytest.mark.slow
@pytest.mark.parametrize("lock", sweep_cells.LOCKS)
def test_ctrl_c_while_a_lock_is_held(lock, tmp_path):
    """Python raises KeyboardInterrupt anywhere: a lock that is then kept would hold up the end for ever."""
    process = start(
        tmp_path / "o", lock, code="import sys, sweep_cells; sweep_cells.interrupted(*sys.argv[1:])"
    )
    check_stopped(process, tmp_path / "o")


def start_processes():
    pool = process_pool(n_workers=2)
    try:
        for _ in range(3):
            pool.submit(time.sleep, 300)
    finally:
        terminate(pool)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("which", [1, 2])
def test_ctrl_c_while_a_process_starts(which, terminal, monkeypatch, capfd):
    """Before it is told what to do; a terminal sends Ctrl-C to it as well."""
    started = []

    def spawn(path, command, descriptors):
        pid = original(path, command, descriptors)
        if "--multiprocessing-fork" in command:
            started.append(pid)
            if len(started) == which:
                if terminal:
                    os.kill(pid, signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
        return pid

    original = multiprocessing.util.spawnv_passfds
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", spawn)
    with pytest.raises(KeyboardInterrupt):
        start_processes()
    assert len(started) == which
    assert not any(is_running(pid) for pid in started)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("needs_main", [False, True])
def test_a_worker_that_is_killed_while_the_pool_starts(needs_main, monkeypatch):
    def spawn(path, command, descriptors):
        pid = original(path, command, descriptors)
        if "--multiprocessing-fork" in command:
            os.kill(pid, signal.SIGKILL)
        return pid

    original = multiprocessing.util.spawnv_passfds
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", spawn)
    with pytest.raises(
        StudyError, match=r"was killed \(signal 9\) while the pool started: run again"
    ) as caught:
        process_pool(n_workers=2, needs_main=needs_main)
    assert "__main__" not in str(caught.value)


def test_a_pool_ends_that_has_half_a_result():
    """As of a process that is killed while it writes it."""
    pool = process_pool(n_workers=1)
    future = pool.submit(time.sleep, 300)
    os.write(pool._result_queue._writer.fileno(), struct.pack("!i", 1000) + b"half")
    terminate(pool)
    assert isinstance(future.exception(timeout=60), BrokenExecutor)


def test_failed_cells_are_rows_and_can_be_tried_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SWEEP_MENDED", str(tmp_path / "mended"))
    with pytest.warns(
        InscapeWarning, match=r"2 of 6 configurations failed, the first .* with ValueError: one is odd"
    ):
        result = inscape.studies.run(FAILING, scale="smoke", out=tmp_path, executor=Serial())
    assert result.frame["square"].tolist() == [0, 0, 4, 4]
    assert all("sweep_cells.py" in error for error in result.failed.values())  # the traceback is kept
    (tmp_path / "mended").touch()
    with pytest.warns(InscapeWarning, match="2 of 6 configurations failed"):
        inscape.studies.run(FAILING, scale="smoke", out=tmp_path, executor=Serial())
    result = inscape.studies.run(FAILING, scale="smoke", out=tmp_path, executor=Serial(), retry_failed=True)
    assert result.failed == {}
    assert result.frame["square"].tolist() == [0, 0, 1, 1, 4, 4]


def test_a_study_of_which_every_cell_fails(tmp_path):
    broken = Study(name="b", title="", configurations=STUDY.configurations, cell=lambda c: {"i": 1})
    with pytest.raises(
        StudyError, match=r"6 of 6 configurations failed.*the row repeats i of the configuration"
    ):
        inscape.studies.run(broken, scale="smoke", out=tmp_path, executor=Serial())


@pytest.mark.parametrize(
    ("row", "message"),
    [([1], "must return a dict"), ({1: 2}, "with names as keys"), ({"x": object()}, "not object")],
)
def test_rows_that_cannot_be_stored(row, message, tmp_path):
    broken = Study(name="b", title="", configurations=STUDY.configurations, cell=lambda c: row)
    with pytest.raises(StudyError, match=message):
        inscape.studies.run(broken, scale="smoke", out=tmp_path, executor=Serial())


@pytest.mark.slow
def test_a_cell_that_kills_its_process_is_found(tmp_path):
    with pytest.warns(
        InscapeWarning, match="1 of 6 configurations failed, .* the process that worked on it was killed"
    ):
        result = inscape.studies.run(DEADLY, scale="smoke", out=tmp_path, n_workers=2)
    assert result.frame["square"].tolist() == [0, 0, 1, 4, 4]
    assert list(result.failed) == ['{"i":1,"replicate":0,"scale":"smoke"}']


def test_cells_that_are_cheaper_together(tmp_path):
    result = inscape.studies.run(BATCHED, scale="smoke", out=tmp_path, executor=Serial())
    assert result.frame["together"].tolist() == [4, 4, 2, 2, 4, 4]  # i = 0 and 2; i = 1


@pytest.mark.slow
def test_in_a_batch_only_those_fail_that_must(tmp_path):
    with pytest.warns(InscapeWarning, match="2 of 6 configurations failed, .* not with a two"):
        result = inscape.studies.run(sweep_cells.TOUCHY, scale="smoke", out=tmp_path, executor=Serial())
    assert result.frame["together"].tolist() == [1, 1, 2, 2]
    with pytest.warns(InscapeWarning, match="2 of 6 configurations failed, .* was killed"):
        result = inscape.studies.run(sweep_cells.DEADLY_BATCH, scale="smoke", out=tmp_path, n_workers=1)
    assert result.frame["square"].tolist() == [0, 0, 1, 1]


def test_claims_need_findings(tmp_path):
    wrong = Study(
        name="w",
        title="",
        claims={"a": "A."},
        configurations=STUDY.configurations,
        cell=STUDY.cell,
        summarise=lambda frame, out: Summary(findings={"b": Finding(holds=None, evidence="")}),
    )
    with pytest.raises(StudyError, match=r"findings \['b'\] for the claims \['a'\]"):
        inscape.studies.run(wrong, scale="smoke", out=tmp_path, executor=Serial())


def test_names_and_scales_are_checked(tmp_path):
    with pytest.raises(StudyError, match=r"unknown study 'digit'.*did you mean 'digits'"):
        inscape.studies.run("digit", out=tmp_path)
    with pytest.raises(StudyError, match=r"unknown scale 'tiny'"):
        inscape.studies.run("digits", scale="tiny", out=tmp_path)
    with pytest.raises(StudyError, match="cannot find 'sweep_cells:NOTHING'"):
        inscape.studies.run("sweep_cells:NOTHING", out=tmp_path)
    with pytest.raises(StudyError, match=r"is no inscape\.studies\.Study"):
        inscape.studies.run("sweep_cells:cell", out=tmp_path)


OWN = (
    "import inscape, os, sweep_cells\n"
    "from dataclasses import replace\n"
    "def cell(c): return sweep_cells.row(c) | {'pid': os.getpid()}\n"
    "study = replace(sweep_cells.STUDY, cell=cell)\n"
)


def run_script(tmp_path, code, *, piped):
    """Run code that has no guard, from a file or from stdin."""
    (tmp_path / "script.py").write_text(code)
    return subprocess.run(
        [sys.executable, "-" if piped else tmp_path / "script.py", tmp_path],
        input=code if piped else None,
        env=process_env(),
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("piped", [True, False])
def test_a_script_without_a_guard_can_run_the_study_of_a_module(tmp_path, piped, log):
    code = (
        "import inscape, sys, sweep_cells\n"
        "before = __file__, __spec__\n"
        "inscape.studies.run(sweep_cells.STUDY, scale='smoke', out=sys.argv[1], n_workers=2)\n"
        "assert before == (__file__, __spec__)\n"
    )
    result = run_script(tmp_path, code, piped=piped)
    assert (result.returncode, result.stderr) == (0, "")
    assert check(tmp_path / "squares.sqlite", STUDY, "smoke", complete=True) == 6
    assert len(log()) == 6


@pytest.mark.slow
def test_functions_that_were_typed_in_are_worked_on_here(tmp_path):
    code = OWN + (
        "import sys\n"
        "frame = inscape.studies.run(study, scale='smoke', out=sys.argv[1]).frame\n"
        "assert frame['pid'].tolist() == 6 * [os.getpid()]\n"
    )
    result = run_script(tmp_path, code, piped=True)
    assert result.returncode == 0, result.stderr
    assert "working in this process alone" in result.stderr


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    """Workers run the script again to find its functions; without a guard they would run the study again."""
    run = "inscape.studies.run(study, scale='smoke', out=__import__('sys').argv[1])\n"
    result = run_script(tmp_path, OWN + run, piped=False)
    assert result.returncode == 1
    assert 'must do so under if __name__ == "__main__":' in result.stderr
    with Store(tmp_path / "squares.sqlite") as store:
        assert store.records() == []
    guarded = run_script(tmp_path, f"{OWN}if __name__ == '__main__':\n    {run}", piped=False)
    assert guarded.returncode == 0, guarded.stderr


@pytest.mark.slow
def test_the_processes_of_the_pool_have_one_thread_each(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    result = inscape.studies.run(sweep_cells.THREADS, scale="smoke", out=tmp_path, n_workers=1)
    assert set(result.frame["threads"]) == {1}


TOML = """
name = "roots"
function = "sweep_cells:root"
grid = {i = [-1, 0, 1, 4, 9]}
[correlate]
measure = "%s"
by = ["i"]
"""


def test_rows_that_are_not_finite_are_left_out_and_counted(tmp_path):
    (tmp_path / "s.toml").write_text(TOML % "root")
    with ThreadPoolExecutor(1) as executor:
        result = inscape.studies.run(str(tmp_path / "s.toml"), out=tmp_path, executor=executor)
    assert (len(result.frame), len(result.failed)) == (5, 0)
    page = (tmp_path / "summary.md").read_text()
    assert "1 of 5 rows are not finite and left out" in page
    assert "scatter.png" in page


def test_rows_that_cannot_be_summarised_have_a_page(tmp_path):
    (tmp_path / "s.toml").write_text(TOML % "rot")
    with ThreadPoolExecutor(1) as executor, pytest.raises(StudyError, match="no column 'rot'"):
        inscape.studies.run(str(tmp_path / "s.toml"), out=tmp_path, executor=executor)
    page = (tmp_path / "summary.md").read_text()
    assert "could not be summarised: the frame has no column 'rot'" in page
    assert "5 rows, 0 failed" in page


def test_rows_of_another_function_are_not_reused(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        inscape.studies.run(STUDY, scale="smoke", out=tmp_path, executor=executor)
        other = replace(STUDY, cell=sweep_cells.row)
        with pytest.raises(StudyError, match="holds rows of sweep_cells:cell, not of sweep_cells:row"):
            inscape.studies.run(other, scale="smoke", out=tmp_path, executor=executor)
        assert len(inscape.studies.run(STUDY, scale="smoke", out=tmp_path, executor=executor).frame) == 6


class Counting(ThreadPoolExecutor):
    """An executor that keeps how many groups each call has."""

    def __init__(self):
        super().__init__(2)
        self.sizes = []

    def submit(self, function, study_function, groups, *rest):
        self.sizes.append(len(groups))
        return super().submit(function, study_function, groups, *rest)


@pytest.mark.parametrize(("pause", "least", "most"), [(0.0, 10, 256), (0.05, 1, 1)])
def test_short_cells_are_sent_in_bundles(tmp_path, pause, least, most):
    def cell(configuration):
        if pause:
            time.sleep(pause)
        if configuration["n"] == 7:
            raise ValueError("seven")
        return {"square": configuration["n"] ** 2}

    n = 8 if pause else 600
    study = Study(name="s", title="S", configurations=lambda scale: [{"n": i} for i in range(n)], cell=cell)
    with Counting() as executor, pytest.warns(InscapeWarning, match=f"1 of {n} configurations failed"):
        result = inscape.studies.run(study, out=tmp_path, executor=executor, progress=False)
    assert sorted(result.frame["n"]) == [
        i for i in range(n) if i != 7
    ]  # its neighbours in the bundle are not lost
    assert (result.frame["square"] == result.frame["n"] ** 2).all()
    assert least <= max(executor.sizes) <= most


def test_each_process_of_a_pool_sees_one_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    with process_pool(n_workers=2) as pool:
        futures = [pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES") for _ in range(40)]
        seen = {future.result() for future in futures}
    assert "4" in seen
    assert seen <= {"4", "7"}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,7"


def test_gpus_are_those_that_cuda_would_see(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus(str(tmp_path / "none")) == []
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:02:00.0").mkdir()
    assert gpus(str(tmp_path)) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-ab, 3")
    assert gpus(str(tmp_path)) == ["GPU-ab", "3"]
