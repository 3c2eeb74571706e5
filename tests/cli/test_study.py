"""`inscape study`: run, list, show, export and add, stores, grids in TOML, and what code is trusted."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import inscape
from inscape.cli import app
from inscape.errors import StudyError
from inscape.studies import Store
from inscape.sweeps.registry import find, read_study
from inscape.sweeps.row_files import export

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


MANY = "[grid]\n" + "\n".join(f"{key} = [{', '.join(map(str, range(10)))}]" for key in "abcdefgh")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "depths.toml").write_text(TOML)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, ["study", *arguments])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return invoke


@pytest.mark.slow
def test_run_show_export(run, tmp_path):
    assert "10 configurations, 0 finished, 0 failed, 10 missing" in run("show", "depths.toml")
    page = run("run", "depths.toml", "--workers", "1")
    assert page.startswith("Depths of trees\n")
    assert "granulated Kendall" in page
    assert len(page.splitlines()) < 30  # the claims, not the tables
    assert "summary.md" in page
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
    assert "Mulayoff, Michaeli and Soudry 2021, Fig. 2" in run("list")
    assert json.loads(run("list", "--json"))[0]["smoke"] > 0


def test_failed_rows_are_exported_with_their_error(tmp_path):
    from inscape.sweeps.sweep import OneByOne, failed, work
    from inscape.sweeps.tasks import as_tasks

    with Store(tmp_path / "s.sqlite", "test") as store:
        good = work(OneByOne(lambda task: {"x": [1, 2]}), [{}])
        store.insert(as_tasks([{"a": 0}, {"a": 1}], 0), [*good, failed("a reason")])
        for ending in ("csv", "parquet"):
            assert export(store, tmp_path / f"t.{ending}") == 2
        with pytest.raises(StudyError, match=r"must end in \.csv, \.parquet or \.jsonl"):
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
        (
            ["run", "depths.toml", "--scheduler", "http://a:1"],
            "'http://a:1' is no address of a Dask scheduler",
        ),
        (
            ["run", "depths.toml", "--scheduler", "bogus://a:1"],
            "expected tcp://HOST:PORT (or tls, ws, wss, ucx)",
        ),
        (["run", "depths.toml", "--trust", "nowhere"], "nowhere is no folder"),
        (["export", "depths.toml", "--to", "a.csv"], "there is no store"),
        (["run", "nomodule:STUDY"], "cannot find 'nomodule:STUDY'"),
    ],
)
def test_errors_are_one_line(run, arguments, message):
    err = run(*arguments, code=2)
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_folder_in_the_place_of_the_store_is_said_to_be_one(run, tmp_path):
    (tmp_path / "inscape-studies" / "depths" / "depths.sqlite").mkdir(parents=True)
    for command in (["show"], ["run"], ["export", "--to", "a.csv"]):
        assert "depths.sqlite is a folder, not a store" in run(
            command[0], "depths.toml", *command[1:], code=2
        )


NAMED = 'function = "%s:root"\n[grid]\ni = [0, 1]\n'
CODE = """
import inscape
open("it-ran", "w").close()
@inscape.studies.cell
def root(configuration): return {"root": configuration["i"] ** 0.5}
"""


def test_code_of_the_working_folder_runs_only_if_that_is_trusted(tmp_path):
    """As it is started in a shell: Python itself puts the working folder first then."""
    (tmp_path / "s.toml").write_text(NAMED % "lying_here")
    (tmp_path / "lying_here.py").write_text(CODE)
    command = [sys.executable, "-m", "inscape", "study", "show", "s.toml"]
    env = {**os.environ, "PYTHONPATH": str(Path(inscape.__file__).parents[1])}
    first = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert first.returncode == 2
    assert first.stderr.startswith("inscape: cannot find 'lying_here:root'")
    assert "--trust" in first.stderr
    assert not (tmp_path / "it-ran").exists()
    second = subprocess.run([*command, "--trust", "."], cwd=tmp_path, env=env, capture_output=True, text=True)
    place = tmp_path / "lying_here.py"
    assert (second.returncode, second.stderr) == (
        0,
        f"inscape: running code of lying_here:root, found in {place}\n",
    )
    assert "2 configurations, 0 finished" in second.stdout
    assert (tmp_path / "it-ran").exists()


def test_trusted_code_is_found_by_the_processes_of_the_pool(run, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "trusted_cells.py").write_text(CODE)
    (tmp_path / "s.toml").write_text(NAMED % "trusted_cells")
    before = sys.path[:]
    assert "2 rows, 0 failed" in run("run", "s.toml", "--trust", "theirs", "--workers", "1")
    assert sys.path == before


def test_texts_that_spreadsheets_take_for_formulas_are_quoted(tmp_path):
    from inscape.sweeps.sweep import OneByOne, work
    from inscape.sweeps.tasks import as_tasks

    texts = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1", "-1", "\t=1", "\r=1", "plain", "a=b"]
    row = {"number": -1.5, "whole": -3, "=name": "x", "list": [-1, 2]}
    cells = as_tasks([{"text": text} for text in texts], 0)
    with Store(tmp_path / "s.sqlite", "test") as store:
        for cell in cells:
            store.insert([cell], work(OneByOne(lambda task: row), [{}]))
        export(store, tmp_path / "t.csv")
        export(store, tmp_path / "t.parquet")
    with open(tmp_path / "t.csv", newline="") as file:
        head, *lines = csv.reader(file)
    column = {name: [line[i] for line in lines] for i, name in enumerate(head)}
    assert sorted(column["text"]) == sorted([f"'{text}" for text in texts[:5]] + ["'\n=1"] + texts[6:])
    assert set(column["number"]) == {"-1.5"}
    assert set(column["whole"]) == {"-3"}
    assert set(column["list"]) == {"[-1, 2]"}
    assert "'=name" in head
    assert sorted(pd.read_parquet(tmp_path / "t.parquet")["text"]) == sorted(texts)


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
        ('function = "math:pi"\n[grid]\na = 1', "math:pi is not declared as the cell of a study"),
        ('function = "subprocess:call"\n[grid]\na = 1', "subprocess:call is not declared as the cell"),
        ('function = "unittest.mock:call"\n[grid]\na = 1', "unittest.mock:call is not declared as the cell"),
        ('name = "a/b"\n[grid]\na = 1', "the name 'a/b' names a file"),
        ('name = ".."\n[grid]\na = 1', r"the name '\.\.' names a file"),
        (
            "replicates = 1_000_000_000\n[grid]\na = 1",
            "1,000,000,000 configurations at the scale",
        ),
        (MANY, "100,000,000 configurations at the scale small, 100,000,000 settings by 1 replicates"),
        ("[grid]\na = 2020-01-01", "a = 2020-01-01 cannot be kept: give finite numbers"),
        ("[grid]\na = [1, nan]", r"a = \[1, nan\] cannot be kept"),
        ("[grid]\na = 1\n[smoke]\na = inf", "a = inf cannot be kept"),
        ("n_train = 3\n[grid]\na = 1", r"unknown key 'n_train'.*; it is a key of the \[grid\]"),
        ("[grid]\na = 1\n[small]\nb = 2", r"\[small\] changes 'b', which is not in the grid"),
    ],
)
def test_toml_that_cannot_be_used(text, message, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        read_study(path).configurations("small")


def test_toml_with_a_byte_order_mark(tmp_path):
    (tmp_path / "s.toml").write_text("[grid]\na = 1", encoding="utf-8-sig")
    assert read_study(tmp_path / "s.toml").configurations("small") == [{"a": 1, "replicate": 0}]


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


def test_show_lists_settings_and_the_paper(run):
    text = run("show", "minima-stability-step", "--scale", "smoke")
    assert "repeats Mulayoff, Michaeli and Soudry 2021, Fig. 1" in text
    shown = json.loads(run("show", "depths.toml", "--json", "--set", "max_depth=3,4", "--set", "n_train=50"))
    assert shown["settings"]["max_depth"] == [3, 4]
    assert (shown["cells"], shown["settings"]["n_train"]) == (4, [50])
    assert shown["claims"] == {"correlation": "The larger the region count, the larger the gap."}
    assert "  max_depth: 2, 4, 6, 8, 10" in run("show", "depths.toml")


@pytest.mark.slow
def test_set_changes_any_setting_and_the_report_says_so(run):
    run("run", "depths.toml", "--workers", "1", "--set", "max_depth=2,3,5", "--set", "n_probes=3")
    report = Path("inscape-studies/depths/report.html").read_text(encoding="utf-8")
    assert (
        "inscape study run depths.toml --scale small --seed 0 --set max_depth=2,3,5 --set n_probes=3"
        in report
    )
    for wrong, words in (
        ("max_dept=3", "did you mean 'max_depth'"),
        ("max_depth=deep", "'deep' is a text: expected a number"),
        ("max_depth", "write NAME=VALUE"),
        ("max_depth=3", "--set max_depth is given twice: write all its values with commas"),
        ("model=treee", "1 of its 1 configurations cannot be: model = treee"),
    ):
        more = (
            ("--set", "max_depth=2", "--set", "replicate=0")
            if wrong in ("model=treee", "max_depth=3")
            else ()
        )
        assert words in run("run", "depths.toml", *more, "--set", wrong, code=2)


@pytest.mark.parametrize(
    ("study", "setting", "words"),
    [
        ("minima-stability-weight", "distribution=laplace", "in 4 of 4 samples"),
        ("minima-stability-weight", "n=30", "cannot be said: g of a sample tends to g of the population"),
        ("digits", "max_depth=2,3,4,5", "cannot be said: So do random forests."),
    ],
)
@pytest.mark.slow
def test_a_study_with_other_settings_is_summarised_all_the_same(run, study, setting, words):
    text = run("run", study, "--scale", "smoke", "--workers", "1", "--set", setting)
    assert words in " ".join(text.split())
    assert "nan" not in text


def test_rows_of_other_settings_without_a_summary_are_kept(run, monkeypatch):
    def lost(frame, out):
        raise KeyError("a column")

    weight = find("minima-stability-weight")
    monkeypatch.setattr("inscape.studies.minima_stability.weight.STUDY", replace(weight, summarise=lost))
    error = run("run", weight.name, "--scale", "smoke", "--workers", "1", "--set", "replicate=0", code=2)
    assert "has no summary of rows with these settings (KeyError: 'a column'); they are in" in error
    assert "cannot be said" in Path(f"inscape-studies/{weight.name}/summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_depth", "max_depths", "10 of its 10 configurations cannot be"),
        ('model = "tree"', 'model = ["tree", "treee"]', "10 of its 20 configurations cannot be"),
        ('["max_depth"]', '["max_dept"]', "did you mean 'max_depth'"),
        ('by = ["max_depth"]', 'target = "gaps"', "did you mean 'gap'"),
        ("\nby =", "\nbuy =", "did you mean 'by'"),
        ("max_depth = [2, 3]", "max_dept = [2, 3]", "[smoke] changes 'max_dept', which is not in the grid"),
        ("n_probes = 5", "n_probes = 0", "n_probes=0 is too small"),
        ("n_probes = 5", 'data = "digitz"', "did you mean 'digits'"),
        ("n_probes = 5", 'measures = [["margins"]]', "did you mean 'margin'"),
        ("n_train = 100", "n_train = 300_000", "n_train=300000 and n_test=100 are too many: digits has 1797"),
        ("max_depth = [2, 4, 6, 8, 10]", "max_depth = [2.5]", "max_depth=2.5 is not a whole number"),
        ("max_depth = [2, 4, 6, 8, 10]", "max_depth = 0", "max_depth=0 is too small"),
        ('model = "tree"', 'model = "forest"\nn_estimators = "5"', "n_estimators='5' is not a whole number"),
        (
            "\nby =",
            '\nn_resamples = "many"\nby =',
            "n_resamples = 'many' must be a whole number of at least 1",
        ),
        ("\nby =", "\nmin_train_accuracy = true\nby =", "min_train_accuracy = True must be a number"),
        ("\nby =", "\nrandom_state = -1\nby =", "random_state = -1 must be a whole number"),
        ("\nby =", "\nprogress = true\nby =", "unknown argument 'progress'"),
        ('by = ["max_depth"]', "by = 3", "by = 3 must be a column's name, or a list of some"),
        ("\nby =", "\nmin_train_accuracy = 50\nby =", "min_train_accuracy = 50 must be a number from 0 to 1"),
        ('model = "tree"', 'modle = "tree"', "did you mean it by 'modle'?"),
        ("n_test", "n_tset", "did you mean 'n_test'"),
        ("n_test = 100", "n_test = true", "n_test=True is not a whole number"),
        ("n_probes = 5", "seed = 5", "seed is no key of the grid; the study draws seeds (--seed)"),
        ("n_probes = 5", "replicate = 5", "replicate is no key of the grid"),
        ("max_depth = [2, 3]", "max_depth = []", "max_depth = [] has no value"),
        ("max_depth = [2, 3]", "max_depth = [3, 3]", "max_depth has the value 3 twice"),
        (
            "max_depth = [2, 3]",
            "max_depth = [2, 2.5]",
            "1 of its 2 configurations cannot be (at the scale smoke)",
        ),
        ("n_probes = 5", "measures = [3]", "measures = 3 must be a name, a list of names, or a table"),
        (
            "n_probes = 5",
            'measures = [{region_count = {method = "exat"}}]',
            "region_count: unknown method 'exat'",
        ),
        (
            "n_probes = 5",
            'measures = [{region_count = {n_probes = "5"}}]',
            "n_probes='5' is not a whole number",
        ),
        (
            "n_probes = 5",
            "measures = [{local_complexity = {sigma = -1}}]",
            "sigma=-1 must be a positive number",
        ),
        (
            "replicates = 2",
            'replicates = 2\nfunction = "abc"',
            "'abc' names no code: expected package.module",
        ),
        ("replicates = 2", "replicates = 2\nmax_depth = 3", "it is a key of the [grid]"),
        (
            "n_probes = 5",
            'criterion = "ginny"',
            "tree: The 'criterion' parameter of DecisionTreeClassifier must be",
        ),
        ("n_probes = 5", "measures = [[]]", "measures = [] names none"),
        ("\nby =", '\ntarget = "training_status"\nby =', "the column 'training_status' holds texts"),
        ("\nby =", '\ntarget = "region_count"\nby =', "measure and target are both 'region_count'"),
    ],
)
def test_a_file_is_checked_before_anything_runs(run, tmp_path, old, new, words):
    assert old in TOML
    (tmp_path / "depths.toml").write_text(TOML.replace(old, new))
    assert words in run("run", "depths.toml", code=2)
    assert not (tmp_path / "inscape-studies").exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("hidden = [[16, -1]]", "hidden=[16, -1] must be whole numbers of at least 1"),
        ("hidden = [16, 32]", "hidden=16 must be a list of whole numbers"),
        ("width = 0", "width=0 must be a positive number, a factor"),
        ('init = "hee"', "unknown init 'hee'"),
        ("he_scale = -1", "he_scale=-1 must be a positive number"),
        ('normalise = "yes"', "normalise='yes' must be true, false, or a list of mean and deviation"),
        ('normalise = [["a", "b"]]', "normalise=['a', 'b'] must be true, false, or a list"),
        ('flip = "yes"', "flip='yes' must be true or false"),
        ("milestones = 3", "milestones=3 must be a list of numbers"),
        ("epoch = 3", "did you mean 'epochs'"),
    ],
)
def test_networks_of_a_file_are_checked_before_anything_runs(run, tmp_path, setting, words):
    grid = '[grid]\nmodel = "mlp"\nlearning_rate = 0.1\nbatch_size = 16\nepochs = 1\n'
    (tmp_path / "depths.toml").write_text(grid + setting)
    assert words in run("run", "depths.toml", code=2)
    assert not (tmp_path / "inscape-studies").exists()


def test_models_that_are_pooled_are_also_said_apart(tmp_path):
    (tmp_path / "both.toml").write_text(TOML.replace('model = "tree"', 'model = ["tree", "forest"]'))
    rows = [
        {"model": model, "max_depth": d, "region_count": d + 9 * (model == "forest"), "gap": sign * d / 100}
        for model, sign in (("tree", 1), ("forest", -1))
        for d in (2, 4, 6, 8, 10)
    ]
    frame = pd.DataFrame(rows).assign(configuration=lambda f: f.index.astype(str), train_accuracy=1.0)
    found = read_study(tmp_path / "both.toml").summarise(frame, tmp_path).findings["correlation"]
    assert "apart: tree +1.00" in found.evidence
    assert "forest -1.00" in found.evidence


@pytest.mark.slow
def test_add_puts_models_of_ones_own_into_the_tables(run, tmp_path):
    import numpy as np
    import skops.io
    from sklearn.tree import DecisionTreeClassifier

    from inscape.training.data import split_data

    split = split_data("digits", n_train=300, n_test=300)
    x = split.x_train.reshape(300, -1)
    lines = ["file,model,data,n_train,n_test,max_depth,replicate"]
    (tmp_path / "mine").mkdir()
    trees = {}
    for depth in (1, 2, 3, 4, 6, 9):
        trees[depth] = tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, split.y_train)
        skops.io.dump(tree, tmp_path / "mine" / f"{depth}.skops")
        lines.append(f"{depth}.skops,mine,digits,300,300,{depth},0")
    (tmp_path / "mine" / "models.csv").write_text("\n".join(lines) + "\n")

    added = json.loads(run("add", "mine", "--out", "study", "--workers", "1", "--json"))
    assert added["n_rows"] == 6
    assert run("export", "region-counts", "--out", "study", "--to", "rows.csv") == "6 rows in rows.csv\n"
    rows = pd.read_csv("rows.csv").sort_values("max_depth")
    test = split.x_test.reshape(300, -1)
    for _, row in rows.iterrows():
        tree = trees[row.max_depth]
        assert row.test_accuracy == tree.score(test, split.y_test)
        count = inscape.region_count(tree, split.x_test, n_probes=100, method="exact", random_state=0)
        assert len(json.loads(row.line_counts)) == 100
        assert row.region_count == pytest.approx(count.mean)
    assert np.corrcoef(rows.region_count, rows.max_depth)[0, 1] > 0.9
    assert "mine" in (tmp_path / "study" / "summary.md").read_text()
    again = run("add", "mine", "--out", "study", "--workers", "1")
    assert "6 rows, 0 failed" in again

    content = (tmp_path / "mine" / "1.skops").read_bytes()
    (tmp_path / "mine" / "2.skops").write_bytes(content)  # another model of the same name is another row
    assert json.loads(run("add", "mine", "--out", "study", "--workers", "1", "--json"))["n_rows"] == 6
    assert "7 rows" in run("export", "region-counts", "--out", "study", "--to", "rows.csv")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "cannot read"),
        ("file,model\na.skops,mine\n", "no column 'data'"),
        ("file,model,data\n", "no models"),
        ("file,model,data\na.skops,mine,digits\n", "names 'a.skops', which is not in"),
    ],
)
def test_add_says_what_a_folder_lacks(run, tmp_path, table, message):
    (tmp_path / "mine").mkdir()
    if table is not None:
        (tmp_path / "mine" / "models.csv").write_text(table)
    assert message in run("add", "mine", code=2)
