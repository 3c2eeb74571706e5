"""The store: rows once, claims that end with their owner, and files that cannot be used left as they are."""

import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_cells import done

from inscape.errors import StudyError
from inscape.sweeps import store as store_module
from inscape.sweeps.row_files import export
from inscape.sweeps.store import Store
from inscape.sweeps.sweep import OneByOne, failed, work
from inscape.sweeps.tasks import as_tasks

CELLS = as_tasks([{"a": i // 2, "replicate": i % 2} for i in range(6)], 0)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "sub" / "s.sqlite", "test") as store:
        yield store


def test_rows_come_back(store):
    outcome = done(x=1.5, y="é", z=[1, None])
    store.insert(CELLS[:1], [outcome])
    (record,) = store.records()
    assert record["row"] == {"x": 1.5, "y": "é", "z": [1, None]}
    assert record["configuration"] == {"a": 0, "replicate": 0}
    assert record["provenance"]["numpy"]
    assert record["seconds"] == outcome.seconds
    assert abs(record["finished"] - time.time()) < 60
    frame = store.frame()
    assert list(frame.columns) == ["a", "replicate", "configuration", "seed", "seconds", "x", "y", "z"]
    assert frame["configuration"][0] == CELLS[0].hash == CELLS[1].hash
    assert frame["seed"][0] == CELLS[0].seed != CELLS[1].seed


@pytest.mark.parametrize("name", ["seed", "error", "finished", "provenance"])
def test_a_study_may_call_a_column_as_the_store_does(store, tmp_path, name):
    store.insert(CELLS[:2], [done(**{name: 0.25}), failed("it broke")])
    assert store.frame()[name].tolist() == [0.25]
    export(store, tmp_path / "rows.csv")
    table = pd.read_csv(tmp_path / "rows.csv")
    assert table[name].dropna().tolist() == [0.25]
    of_the_store = [r[name] for r in store.records()]
    written = table[f"store_{name}"].map(json.loads) if name == "provenance" else table[f"store_{name}"]
    assert written.dropna().tolist() == [value for value in of_the_store if value is not None]


@pytest.mark.parametrize("name", ["configuration", "seconds"])
def test_a_row_may_not_call_a_column_as_every_frame_does(name):
    assert f"the row repeats {name} of the configuration" in done(**{name: 0.25}).error


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda k: k not in ("configuration", "seconds")),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.floats()),
    )
)
def test_any_row_survives(row):
    (outcome,) = work(OneByOne(lambda task: row), [{}])
    assert same(json.loads(outcome.row), row)


def same(a, b):
    if isinstance(a, dict | list):
        items = a.items() if isinstance(a, dict) else enumerate(a)
        return type(a) is type(b) and len(a) == len(b) and all(same(v, b[k]) for k, v in items)
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def test_a_finished_row_stays_and_a_failed_one_may_be_replaced(store):
    store.insert(CELLS[:2], [failed("first"), done(x=1)])
    assert store.failures() == {'{"a":0,"replicate":0}': "first"}
    assert store.frame()["x"].tolist() == [1]
    store.insert(CELLS[:2], [done(x=2), done(x=3)])
    assert [r["row"] for r in sorted(store.records(), key=lambda r: r["configuration"]["replicate"])] == [
        {"x": 2},
        {"x": 1},
    ]
    store.insert(CELLS[:1], [failed("late")])
    assert store.failures() == {}


def test_claims_divide_the_work(store):
    with Store(store.path, "test") as other:
        assert store.claim(CELLS[:3]) == (CELLS[:3], [])
        assert other.claim(CELLS[2:4]) == (CELLS[3:4], CELLS[2:3])
        store.insert(CELLS[:1], [done(x=1)])
        assert other.claim(CELLS[:2]) == ([], CELLS[1:2])
        store.release()
        assert other.claim(CELLS[:3]) == (CELLS[1:3], [])
        assert store.claim(CELLS[1:4]) == ([], CELLS[1:4])


def test_failed_rows_are_claimed_again_only_when_asked(store):
    store.insert(CELLS[:1], [failed("no")])
    assert store.claim(CELLS[:1]) == ([], [])
    assert store.finished() == {CELLS[0].key}
    later = time.time() + 1
    assert store.finished(later) == set()
    assert store.claim(CELLS[:1], later) == (CELLS[:1], [])


def test_the_claim_of_a_dead_process_is_void(store):
    code = (
        "import sys, os\n"
        "from inscape.sweeps.store import Store; from inscape.sweeps.tasks import as_tasks\n"
        "s = Store(sys.argv[1]); s.claim(as_tasks([{'a': 0, 'replicate': 0}], 0)); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, store.path]).returncode == -9
    with closing(sqlite3.connect(store.path)) as db, db:  # closed, and committed
        assert db.execute("SELECT count(*) FROM claims").fetchone() == (1,)
    assert store.claim(CELLS[:1]) == (CELLS[:1], [])


def test_a_claim_that_is_not_renewed_runs_out(store, monkeypatch):
    """Also on another machine, whose processes cannot be looked at."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        other = Store(store.path)
    with other:
        other.claim(CELLS[:1])
        assert store.claim(CELLS[:1]) == ([], CELLS[:1])
        monkeypatch.setattr(store_module, "LEASE", -1.0)
        assert store.claim(CELLS[:1]) == (CELLS[:1], [])
        monkeypatch.undo()
        other.renew()
        assert other.claim(CELLS[:1]) == ([], CELLS[:1])  # it is ours by now


def unchanged(path, message, study="test"):
    before = path.read_bytes()
    with pytest.raises(StudyError, match=message):
        Store(path, study)
    with pytest.raises(StudyError, match=message):
        Store(path)
    assert path.read_bytes() == before
    assert not [p for p in path.parent.iterdir() if p != path]


def test_files_that_are_no_store(tmp_path):
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"plain text, much longer than the header of a file of SQLite would be" * 20)
    unchanged(path, "is damaged or no store")


def test_a_damaged_store(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path, "test") as store:
        for _ in range(3):
            store.insert(CELLS, [done(x="y" * 3000)] * len(CELLS))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    unchanged(path, "damaged")
    path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    unchanged(path, "damaged")
    path.write_bytes(whole)
    with Store(path, "test") as store:
        assert len(store.records()) == len(CELLS)


def test_other_databases_other_studies_other_versions(tmp_path):
    path = tmp_path / "s.sqlite"
    with closing(sqlite3.connect(path)) as db, db:  # closed, and committed
        db.execute("CREATE TABLE precious (x)")
    db.close()
    unchanged(path, "is not a store of inscape")
    path.unlink()
    Store(path, "test").close()
    with pytest.raises(StudyError, match="holds the study 'test', not 'other'"):
        Store(path, "other")
    with closing(sqlite3.connect(path)) as db, db:  # closed, and committed
        db.execute("PRAGMA user_version = 99")
    db.close()
    unchanged(path, "another version")
    with pytest.raises(StudyError, match="there is no store"):
        Store(tmp_path / "missing.sqlite")


AS_NOBODY = """
import os, sys
from inscape.sweeps.store import Store
from inscape.sweeps.tasks import as_tasks
from inscape.errors import StudyError
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    with Store(sys.argv[1], "test") as store:
        print(len(store.records()))
        store.claim(as_tasks([{"a": 5}], 0))
except StudyError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_read_only_folder():
    with tempfile.TemporaryDirectory() as root:  # the folders of pytest are closed to others
        there, empty = Path(root) / "there" / "s.sqlite", Path(root) / "empty" / "s.sqlite"
        with Store(there, "test") as store:
            store.insert(CELLS[:2], [done(x=1)] * 2)
        empty.parent.mkdir()
        os.chmod(root, 0o755)
        there.chmod(0o444)
        for path in (there, empty):
            path.parent.chmod(0o555)
        try:
            first, second = as_nobody(there), as_nobody(empty)
        finally:
            for path in (there, empty):
                path.parent.chmod(0o755)
    assert first.startswith("2\ncannot write")  # what is there can still be read
    assert "give a folder in which you may write" in first
    assert second.startswith("cannot write")
    assert len(second.splitlines()) == 1


def as_nobody(path):
    result = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


FILL = """
import sys
from inscape.sweeps.store import Store
from inscape.sweeps.tasks import as_tasks
from inscape.sweeps.sweep import OneByOne, work
from inscape.errors import StudyError
if sys.argv[2] == "quota":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
n = 0
outcome = work(OneByOne(lambda task: {"x": "y" * 2000}), [{}])
try:
    with Store(sys.argv[1], "test") as store:
        for cell in as_tasks([{"a": i} for i in range(2000)], 0):
            store.claim([cell])
            store.insert([cell], outcome)
            n += 1
except StudyError as error:
    print(n, error)
"""


def fill(path, kind):
    command = [sys.executable, "-c", FILL, path, kind]
    if kind == "tmpfs":
        mount = f"mount -t tmpfs -o size=300k tmpfs {path.parent} && "
        script = mount + f'"$0" "$@"; cp {path} {path.parent.parent}/after.sqlite'
        command = ["unshare", "--mount", "sh", "-c", script, *command]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(os.name != "posix", reason="quotas as POSIX has them")
@pytest.mark.parametrize("kind", ["quota", "tmpfs"])
def test_a_full_disk(kind, tmp_path):
    """A limit on the size of files stands in for the disk; a real one as well, where mounting is allowed."""
    path = tmp_path / "disk" / "s.sqlite"
    path.parent.mkdir()
    result = fill(path, kind)
    if kind == "tmpfs":
        if "unshare" in result.stderr or "mount" in result.stderr:
            pytest.skip("no right to mount a small disk here")
        path = tmp_path / "after.sqlite"
    n, message = result.stdout.split(" ", 1)
    assert "make room on the disk and run again; finished rows are safe" in message
    assert 20 < int(n) < 2000
    with Store(path, "test") as store:  # readable, whole, and can be gone on with
        assert len(store.frame()) == int(n)
        store.insert(CELLS[:1], [done(x=1)])
