import json

import pytest
from typer.testing import CliRunner

from inscape.cli import app
from inscape.studies import demo


@pytest.fixture
def small(monkeypatch):
    """The same demonstration with fewer, shorter runs."""
    monkeypatch.setattr(demo, "EPOCHS", 3)
    monkeypatch.setattr(demo, "DEPTHS", (3, 8))
    monkeypatch.setattr(demo, "N_PROBES", 20)


@pytest.mark.slow
def test_demo_table_correlation_and_pictures(small, tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("net lr=0.1 batch=16", "tree depth=8", "forest depth=3", "gap", "all", "does not say"):
        assert text in result.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"scatter.png", "plane-best.png", "plane-worst.png"}


@pytest.mark.slow
def test_demo_is_deterministic_and_sorted(small, tmp_path):
    runs = [CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--json"]).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    data = json.loads(runs[0])
    counts = [m["region_count"] for m in data["models"]]
    assert counts == sorted(counts)
    assert len(counts) == 9 + 2 + 2
    assert set(data["correlation"]) >= {"network", "tree", "forest", "all"}
    for m in data["models"]:
        assert m["gap"] == pytest.approx(m["train_accuracy"] - m["test_accuracy"])


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file" / "sub")])
    assert result.exit_code == 2
    assert "cannot write into" in result.stderr
