"""Rows of one store in another: nothing lost, nothing doubled, nothing taken that is not what it says."""

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sweep_cells import done
from typer.testing import CliRunner

from inscape.cli import app
from inscape.errors import StudyError
from inscape.sweeps.references import function_name
from inscape.sweeps.registry import find
from inscape.sweeps.row_files import export, merge
from inscape.sweeps.run import run
from inscape.sweeps.store import Store
from inscape.sweeps.study import Study
from inscape.sweeps.sweep import failed
from inscape.sweeps.tasks import as_tasks

TASKS = as_tasks([{"a": i // 2, "rate": 0.1, "replicate": i % 2} for i in range(6)], 0)
FUNCTION = "tests.somewhere:cell"
KEPT = ("hash", "seed", "configuration", "row", "error", "finished", "seconds")


@pytest.fixture
def make(tmp_path):
    """Makes a store of some tasks -> rows; the folder, in which it is called test.sqlite."""

    def made(name, outcomes, function=FUNCTION, study="test"):
        with Store(tmp_path / name / f"{study}.sqlite", study, function) as store:
            for i, outcome in outcomes.items():
                store.insert([TASKS[i]], [outcome])
        return tmp_path / name

    return made


def as_text(folder):
    path = folder / "rows.jsonl"
    with Store(folder / "test.sqlite") as store:
        assert export(store, path) == len(store.records())
    return path


def rows_of(folder):
    with Store(folder / "test.sqlite") as store:
        return {(r["hash"], r["seed"]): {k: r[k] for k in KEPT} for r in store.records()}


@pytest.mark.parametrize("form", ["folder", "store", "text"])
def test_all_that_is_known_of_a_row_comes_over(make, form):
    odd = {"x": 1 / 3, "y": "é\n", "z": [1, None, [0.1]], "n": math.inf}
    one = make("one", {0: done(**odd), 1: done(x=2), 2: failed("no memory")})
    two = make("two", {1: done(x=2), 3: done(x=3)})
    source = {"folder": one, "store": one / "test.sqlite", "text": as_text(one)}[form]
    before = rows_of(two)
    with Store(two / "test.sqlite") as store:
        said = merge(store, source)
        again = merge(store, source)
    assert (said.new, said.known, said.different, said.failed) == (1, 1, 0, 1)
    assert (again.new, again.known, again.different, again.failed) == (0, 2, 0, 1)
    assert rows_of(two) == before | {TASKS[0].key: rows_of(one)[TASKS[0].key]}


def test_what_is_there_stays_but_a_failure_gives_way(make):
    one = make("one", {0: done(x=1), 1: done(x=math.nan), 2: done(x=5)})
    two = make("two", {0: done(x=-1), 1: done(x=math.nan), 2: failed("killed")})
    with Store(two / "test.sqlite") as store:
        said = merge(store, as_text(one))
        assert "1 were there with other values, which stay" in str(said)
        assert (said.new, said.known, said.different) == (1, 1, 1)
        values = {r["seed"]: r["row"]["x"] for r in store.records()}
    assert values[TASKS[0].seed] == -1
    assert values[TASKS[2].seed] == 5


def test_text_can_be_kept_under_version_control(make):
    one = make("one", {3: done(x=3), 0: done(x=1)})
    other = make("other", {0: done(x=1), 3: done(x=3)})
    texts = [as_text(folder).read_text().splitlines() for folder in (one, other)]
    assert all("host" not in json.loads(line)["provenance"] for line in texts[0][1:])
    assert [json.loads(t)["seed"] for t in texts[0][1:]] == [json.loads(t)["seed"] for t in texts[1][1:]]
    assert json.loads(texts[0][0]) == {"schema": 1, "study": "test", "function": FUNCTION}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace('"rate":0.1', '"rate":0.2', 1), "the hash .* is not that of"),
        (lambda t: t[: len(t) - 20], "damaged, or not a file"),
        (lambda t: "", "damaged, or not a file"),
        (lambda t: "[]\n" + t, "damaged, or not a file"),
        (lambda t: t.replace('"schema":1', '"schema":2'), "another version"),
        (lambda t: t.replace('"study":"test"', '"study":"else"'), "holds the study 'else', not 'test'"),
        (lambda t: t.replace("somewhere", "elsewhere"), "holds rows of tests.elsewhere:cell, not of"),
        (lambda t: t.replace('"error":null', '"error":"no"', 1), "either values or an error"),
        (lambda t: t.replace('"seed":', '"seed":-', 1), "whole number is expected"),
        (lambda t: t.replace('"finished":', '"begun":', 1), "damaged, or not a file"),
    ],
)
def test_a_source_that_is_not_whole_changes_nothing(make, change, message):
    one, two = make("one", {0: done(x=1), 1: done(x=2)}), make("two", {2: done(x=3)})
    path = as_text(one)
    path.write_text(change(path.read_text()))
    before = rows_of(two)
    with Store(two / "test.sqlite") as store, pytest.raises(StudyError, match=message):
        merge(store, path)
    assert rows_of(two) == before


def test_stores_of_other_studies_and_functions_and_no_store(make, tmp_path):
    two = make("two", {2: done(x=3)})
    with Store(two / "test.sqlite") as store:
        for source, message in (
            (make("a", {0: done(x=1)}, study="else") / "else.sqlite", "holds the study 'else'"),
            (make("b", {0: done(x=1)}, function="other.module:cell"), "holds rows of other.module:cell"),
            (tmp_path / "nowhere.jsonl", "cannot read"),
            (tmp_path / "nowhere", "there is no store"),
        ):
            with pytest.raises(StudyError, match=message):
                merge(store, source)


KILLED = """
import os, sys
from inscape.sweeps import row_files
from inscape.sweeps.store import Store

class Dies(Store):
    def put(self, rows):
        super().put(rows[:2])
        os._exit(9)

with Dies(sys.argv[1]) as store:
    row_files.merge(store, sys.argv[2])
"""


def test_killed_in_the_middle_nothing_is_there_and_the_next_try_has_all(make):
    one = make("one", {i: done(x=i) for i in range(6)})
    two = make("two", {})
    path = as_text(one)
    script = [sys.executable, "-c", KILLED, str(two / "test.sqlite"), str(path)]
    assert subprocess.run(script, check=False).returncode == 9
    assert rows_of(two) == {}
    with Store(two / "test.sqlite") as store:
        assert merge(store, path).new == 6
    assert rows_of(two) == rows_of(one)


def test_a_study_continues_from_the_text_of_another_machine(tmp_path):
    worked = []

    def cell(configuration):
        worked.append(configuration["n"])
        return {"square": configuration["n"] ** 2}

    def study(n):
        return Study(
            name="squares", title="", configurations=lambda s: [{"n": i} for i in range(n)], cell=cell
        )

    with ThreadPoolExecutor(1) as executor:
        first = run(study(3), out=tmp_path / "one", executor=executor)
        with Store(first.store) as store:
            export(store, tmp_path / "rows.jsonl")
        with Store(tmp_path / "two" / "squares.sqlite", "squares") as store:
            merge(store, tmp_path / "rows.jsonl")
        second = run(study(5), out=tmp_path / "two", executor=executor)
    assert worked == [0, 1, 2, 3, 4]
    assert second.frame["square"].tolist() == [0, 1, 4, 9, 16]


TOML = """
name = "depths"
[grid]
model = "tree"
n_train = 60
n_test = 60
n_probes = 3
max_depth = [2, 3]
"""


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "depths.toml").write_text(TOML)

    def study(*arguments, code=0):
        result = CliRunner().invoke(app, ["study", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    study("run", "depths.toml", "--out", "a", "--workers", "1")
    assert study("export", "depths.toml", "--out", "a", "--to", "rows.jsonl") == "2 rows in rows.jsonl\n"
    assert study("merge", "depths.toml", "rows.jsonl", "a", "--out", "b") == (
        "rows.jsonl: 2 rows are new, 0 were there\na: 0 rows are new, 2 were there\n"
    )
    assert "2 configurations, 2 finished, 0 failed, 0 missing" in study("show", "depths.toml", "--out", "b")
    assert "nothing was merged" in study("merge", "digits", "rows.jsonl", "--out", "c", code=2)


PUBLISHED = sorted((Path(__file__).parents[2] / "docs" / "results").glob("*/*.jsonl"))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_rows_that_we_publish_are_those_of_a_study_of_today(tmp_path, path):
    """Their files name a study and its function: whoever goes on from them merges them first."""
    rows = path.read_text(encoding="utf-8").splitlines()[1:]
    name = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["study"]
    with Store(tmp_path / "s.sqlite", name, function_name(find(name).cell)) as store:
        merged = merge(store, path)
        assert (merged.new, merged.failed) == (len(rows), 0)


def test_there_are_published_rows():
    assert {path.parent.name for path in PUBLISHED} >= {"local-complexity", "region-counts"}
