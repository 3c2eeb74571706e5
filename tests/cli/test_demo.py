"""`inscape demo`: its table, its correlation and its pictures, the same each time."""

import json
import math
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from inscape.cli import app
from inscape.correlation.coefficients import Correlation
from inscape.studies import demo


@pytest.mark.slow
def test_demo_table_correlation_and_pictures(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("net lr=0.1 batch=16", "tree depth=8", "forest depth=3", "net images=30", "All 15 models"):
        assert text in result.stdout
    lessons = [line for line in result.stdout.splitlines() if line.startswith("Learnt here: ")]
    assert len(lessons) == 1
    names = {"scatter.png", "plane-best.png", "plane-worst.png", "digits.npz", "net-a.pt2", "net-b.pt2"}
    assert {p.name for p in tmp_path.iterdir()} == names
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^inscape (.*inscape-demo/.*)$", readme, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        words = command.replace("inscape-demo/", f"{tmp_path}/").replace("plane.png", str(tmp_path / "p.png"))
        again = CliRunner().invoke(app, shlex.split(words))
        assert again.exit_code == 0, again.output


@pytest.mark.slow
def test_demo_is_deterministic_and_sorted(tmp_path):
    runs = [
        CliRunner().invoke(app, ["demo", "--quick", "--out", str(tmp_path), "--json"]).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    data = json.loads(runs[0])
    counts = [m["region_count"] for m in data["models"]]
    assert counts == sorted(counts)
    assert len(counts) == 9 + 2 + 2 + 2
    assert set(data["correlation"]) == {*demo.FAMILIES, "all"}
    assert set(data["lessons"]) == set(demo.FAMILIES)
    for m in data["models"]:
        assert m["gap"] == pytest.approx(m["train_accuracy"] - m["test_accuracy"])


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file" / "sub")])
    assert result.exit_code == 2
    assert "cannot write into" in result.stderr


def family(gaps, counts, train=1.0):
    """Models of one family with these gaps and counts, the same training accuracy or one each."""
    fits = np.broadcast_to(train, len(gaps))
    return [
        demo.DemoModel(str(i), "trees", None, float(f), float(f - g), SimpleNamespace(mean=float(c)))
        for i, (g, c, f) in enumerate(zip(gaps, counts, fits, strict=True))
    ]


def test_gaps_that_hardly_differ_tell_nothing_however_large_the_correlation_is():
    gaps, counts = np.linspace(0.02, 0.03, 8), np.arange(8)
    told = demo.lesson("trees", family(gaps, counts), Correlation(1.0, (1.0, 1.0), 8))
    assert told.kind == "alike"
    assert told.sampling_error == pytest.approx(np.sqrt(0.025 * 0.975 / 1197), rel=0.1)
    gaps = np.linspace(0.02, 0.3, 8)
    wide = demo.lesson("trees", family(gaps, counts), Correlation(1.0, (1.0, 1.0), 8))
    assert (wide.kind, wide.with_fit) == ("tells", None)
    assert demo.lesson("trees", family(gaps, counts), Correlation(0.5, (-0.1, 0.9), 8)).kind == "open"
    two = demo.lesson("trees", family(gaps, counts), Correlation(1.0, (math.nan, math.nan), 2))
    assert (two.kind, two.words) == ("few", "too few models to tell")
    back = demo.lesson("trees", family(gaps, -counts), Correlation(-1.0, (-1.0, -1.0), 8))
    assert (back.kind, back.words) == ("against", "more regions, smaller gap")
    fitting = demo.lesson("trees", family(gaps, counts, 0.5 + 0.05 * counts), Correlation(1.0, (1.0, 1.0), 8))
    assert fitting.follows_fit
    assert "follows training accuracy" in fitting.words
