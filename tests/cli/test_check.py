"""`inscape check`: the table of the library, with reasons for what does not apply; errors are one line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from inscape import theory
from inscape.cli import app
from inscape.univariate import ShallowNet

NET = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])


@pytest.fixture
def run(tmp_path, monkeypatch):
    x = np.array([[-1.0], [0.0], [1.0]])
    np.savez(tmp_path / "data.npz", x=x, y=NET(x[:, 0]))
    source = (
        "from inscape.univariate import ShallowNet\n\n\ndef net():\n    return ShallowNet({}).to_module()\n"
    )
    (tmp_path / "checked_nets.py").write_text(source.format("[1.0, 1.0], [1.5, -0.5], [1.0, -2.0]"))
    monkeypatch.syspath_prepend(tmp_path)
    data = ("checked_nets:net", "--data", tmp_path / "data.npz")
    return lambda *more: CliRunner().invoke(app, ["check", *map(str, (*data, *more))])


@pytest.mark.slow
def test_a_table_of_what_applies_and_reasons_for_the_rest(run):
    result = run("--step-size", 0.25, "--noise", 4)
    assert result.exit_code == 0, result.output
    first, second = result.stdout.split("what does not apply")
    assert "ms_theorem1" in first
    for heading in ("statement", "left", "right", "ratio", "verdict"):
        assert heading in first
    assert "vacuous" in first
    assert "does not apply" not in first
    assert "ms_theorem2 (stated): Delta" in first  # the two forms have notes of their own
    assert "ms_theorem2 (corrected): Delta" in first
    assert "theory.lc_corollary10" in second
    assert "not met: every margin is positive" in second


def test_json_equals_the_library(run):
    result = run("--step-size", 0.25, "--noise", 4, "--json")
    found = {(c["name"], c["form"]): c for c in json.loads(result.stdout)["checks"]}
    expected = theory.ms_theorem2(NET, [-1, 0, 1], NET([-1, 0, 1]), 0.25)
    assert found["ms_theorem2", "corrected"]["rhs"] == expected.rhs
    assert found["ms_theorem2", "corrected"]["verdict"] == "holds"
    assert found["lc_proposition9", "stated"]["lhs"] is None


def test_a_user_error_is_one_line(run):
    result = run("--sigma", 0)
    assert result.exit_code == 2
    assert result.stderr == "inscape: sigma=0.0 must be a positive number\n"


@pytest.mark.parametrize(
    ("x", "reason"),
    [([[0.0], [np.nan]], "1 of 2 points hold NaN"), ([[0.0, 1.0], [1.0, 0.0]], "takes 1 features")],
)
def test_data_that_the_model_cannot_take_are_one_line(run, tmp_path, x, reason):
    np.savez(tmp_path / "bad.npz", x=np.array(x))
    result = run("--data", tmp_path / "bad.npz")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_names_of_classes_do_not_stand_in_the_way(run, tmp_path):
    x = np.array([[-1.0], [0.0], [1.0]])
    np.savez(tmp_path / "named.npz", x=x, y=["no", "yes", "yes"])
    result = run("--data", tmp_path / "named.npz", "--step-size", 0.25, "--noise", 4)
    assert result.exit_code == 0, result.output
    assert "needs y of numbers" in result.stdout


def test_a_model_with_named_classes_gets_reasons(tmp_path):
    import skops.io
    from sklearn.datasets import load_wine
    from sklearn.tree import DecisionTreeClassifier

    wine = load_wine(as_frame=True)
    names = wine.target.map({0: "barolo", 1: "grignolino", 2: "barbera"})
    tree = DecisionTreeClassifier(random_state=0).fit(wine.data.to_numpy(), names)
    skops.io.dump(tree, tmp_path / "wine.skops")
    wine.data.assign(**{"class": names}).to_csv(tmp_path / "wine.csv", index=False)
    command = ["check", str(tmp_path / "wine.skops"), "--data", str(tmp_path / "wine.csv")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "no statement applies" in result.stdout
    assert "not class names" in result.stdout
