import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from inscape.cli import app
from inscape.errors import StudyError
from inscape.studies import Store
from inscape.studies.export import export
from inscape.studies.toml_file import read_study

TOML = """
name = "depths"
title = "Depths of trees"
replicates = 2
[grid]
model = "tree"
n_train = 100
n_test = 100
n_probes = 5
max_depth = [2, 4, 6, 8, 10]
[correlate]
by = ["max_depth"]
[smoke]
replicates = 1
max_depth = [2, 3]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "depths.toml").write_text(TOML)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, ["study", *arguments])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return invoke


def test_run_show_export(run, tmp_path):
    assert "10 cells, 0 finished, 0 failed, 10 missing" in run("show", "depths.toml")
    page = run("run", "depths.toml", "--workers", "1")
    assert page.startswith("# Depths of trees")
    assert "granulated Kendall" in page
    state = json.loads(run("show", "depths.toml", "--json"))
    assert (state["finished"], state["missing"], state["errors"]) == (10, 0, {})
    again = json.loads(run("run", "depths.toml", "--json"))
    assert again["n_rows"] == 10
    assert again["figures"] == ["inscape-studies/depths/scatter.png"]
    for name in ("rows.csv", "rows.parquet"):
        assert run("export", "depths.toml", "--to", name) == f"10 rows in {name}\n"
    tables = pd.read_csv("rows.csv"), pd.read_parquet("rows.parquet")
    for table in tables:
        assert sorted(table["max_depth"]) == sorted([2, 4, 6, 8, 10] * 2)
        assert table["error"].isna().all()
        assert "inscape" in json.loads(table["provenance"][0])
    assert tables[0]["gap"].tolist() == pytest.approx(tables[1]["gap"].tolist())
    assert "holds this study already" in run("run", "depths.toml", "--no-resume", code=2)


def test_list(run):
    assert "digits" in run("list")
    assert json.loads(run("list", "--json"))[0]["smoke"] > 0


def test_failed_rows_are_exported_with_their_error(tmp_path):
    from inscape.studies.cells import as_cells
    from inscape.studies.work import OneByOne, failed, work

    with Store(tmp_path / "s.sqlite", "test") as store:
        good = work(OneByOne(lambda task: {"x": [1, 2]}), [{}])
        store.insert(as_cells([{"a": 0}, {"a": 1}], 0), [*good, failed("a reason")])
        for ending in ("csv", "parquet"):
            assert export(store, tmp_path / f"t.{ending}") == 2
        with pytest.raises(StudyError, match=r"must end in \.csv or \.parquet"):
            export(store, tmp_path / "t.txt")
        with pytest.raises(StudyError, match="cannot write"):
            export(store, tmp_path / "missing" / "t.csv")
    for table in (pd.read_csv(tmp_path / "t.csv"), pd.read_parquet(tmp_path / "t.parquet")):
        table = table.sort_values("a")
        assert table["error"].tolist()[1] == "a reason"
        assert json.loads(table["x"].tolist()[0]) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nonsense"], "unknown study 'nonsense'"),
        (["run", "missing.toml"], "cannot read missing.toml: No such file"),
        (["run", "depths.toml", "--scale", "huge"], "unknown scale 'huge'"),
        (["run", "depths.toml", "--workers", "1", "--scheduler", "tcp://a:1"], "not both"),
        (["run", "depths.toml", "--scheduler", "foo"], "'foo' is no address of a Dask scheduler"),
        (["export", "depths.toml", "--to", "a.csv"], "there is no store"),
        (["run", "nomodule:STUDY"], "cannot find 'nomodule:STUDY'"),
    ],
)
def test_errors_are_one_line(run, arguments, message):
    err = run(*arguments, code=2)
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_toml_grids(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        '[[grid]]\nmodel = "mlp"\nhidden = [[8, 8], [16]]\nrate = [0.1, 0.2]\n'
        '[[grid]]\nmodel = ["tree", "knn"]\n'
        "[smoke]\nrate = 0.3\n"
    )
    study = read_study(path)
    assert study.name == "s"
    small = study.configurations("small")
    assert small[:2] == [
        {"model": "mlp", "hidden": [8, 8], "rate": 0.1, "replicate": 0},
        {"model": "mlp", "hidden": [8, 8], "rate": 0.2, "replicate": 0},
    ]
    assert [c["model"] for c in small] == ["mlp"] * 4 + ["tree", "knn"]
    assert [c.get("rate") for c in study.configurations("smoke")] == [0.3, 0.3, None, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid = ", "is not valid TOML"),
        ('title = "x"', r"has no \[grid\]"),
        ("[gird]\na = 1", "unknown key 'gird'.*did you mean 'grid'"),
        ('function = "nowhere:f"\n[grid]\na = 1', "cannot find 'nowhere:f'"),
        ("grid = 3", "grid must be a table"),
        ("grid = []", "grid must be a table"),
        ("replicates = 1.5\n[grid]\na = 1", "replicates = 1.5 must be a whole number"),
        ("[grid]\na = 1\n[smoke]\nreplicates = 0", "replicates = 0 must be"),
        ("small = 3\n[grid]\na = 1", r"small must be a table, \[small\]"),
        ("correlate = 3\n[grid]\na = 1", "correlate must be a table"),
        ("function = 3\n[grid]\na = 1", "function = 3 must be a text"),
        ('function = "math:pi"\n[grid]\na = 1', "math:pi is no function"),
        ('name = "a/b"\n[grid]\na = 1', "the name 'a/b' names a file"),
        ("[grid]\na = 1\n[small]\nb = 2", r"\[small\] changes 'b', which is not in the grid"),
    ],
)
def test_toml_that_cannot_be_used(text, message, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        read_study(path).configurations("small")


def test_toml_that_is_no_text(tmp_path):
    (tmp_path / "s.toml").write_bytes(b'title = "\xff"')
    with pytest.raises(StudyError, match="is not valid TOML"):
        read_study(tmp_path / "s.toml")


def test_the_command_alone_shows_its_help(capsys):
    with pytest.raises(SystemExit):
        app([])
    shown = capsys.readouterr()
    assert "study" in shown.out + shown.err
    assert "(see --help)" not in shown.err


@pytest.mark.parametrize("arguments", [["--n-points", "5"], ["--n-points=5"]])
def test_options_of_the_study_itself(arguments, tmp_path):
    result = CliRunner().invoke(app, ["study", "show", "digits", "-o", str(tmp_path), *arguments])
    assert "'digits' does not take 'n_points'" in str(result.exception) + result.output


def test_an_option_without_value(tmp_path):
    result = CliRunner().invoke(app, ["study", "show", "digits", "--points"])
    assert "options of a study are --name VALUE" in str(result.exception) + result.output
