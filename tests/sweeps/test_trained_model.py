"""The rows of trained models, and the study of the digits that is made of them."""

import os
from concurrent.futures import Executor, Future

import numpy as np
import pytest

import inscape
from inscape.studies import digits
from inscape.sweeps.study import SCALES
from inscape.sweeps.tasks import as_tasks
from inscape.sweeps.trained_model import batch, cell, together

BASE = {"data": "digits", "n_train": 200, "n_test": 150, "n_probes": 10}
NET = {**BASE, "model": "mlp", "learning_rate": 0.1, "batch_size": 32, "epochs": 3, "hidden": [16]}


class Serial(Executor):
    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


@pytest.mark.parametrize("model", ["mlp", "tree", "forest", "knn", "svm", "logistic"])
def test_one_row_format_for_all(model):
    configuration = NET if model == "mlp" else {**BASE, "model": model}
    row = cell({**configuration, "seed": 5})
    assert row["gap"] == pytest.approx(row["train_accuracy"] - row["test_accuracy"])
    assert row["region_count"] >= 1
    assert row["training_status"] == "complete"
    assert (row["train_loss"] is None) == (model != "mlp")
    assert row["n_parameters"] == (64 * 16 + 16 + 16 * 10 + 10 if model == "mlp" else None)
    assert set(row) == set(cell({**BASE, "model": "tree", "seed": 0}))


def test_a_row_depends_on_configuration_and_seed_alone():
    tasks = [c.seeded for c in as_tasks([{**NET, "learning_rate": r} for r in (0.1, 0.05, 0.02)], 0)]
    assert len({together({k: v for k, v in t.items() if k != "seed"}) for t in tasks}) == 1
    for row, task in zip(batch(tasks), tasks, strict=True):
        alone = cell(task)
        assert alone["train_loss"] == pytest.approx(row["train_loss"], rel=1e-4)
        assert alone["test_accuracy"] == pytest.approx(row["test_accuracy"], abs=0.02)


def test_measures_can_be_chosen():
    row = cell({**BASE, "model": "tree", "measures": {"region_count": {"n_probes": 5, "dim": 2}}, "seed": 0})
    assert row["region_count"] >= 1
    assert np.isfinite(row["region_count_error"])


@pytest.mark.slow
def test_the_study_of_the_digits(tmp_path, monkeypatch):
    result = inscape.studies.run("digits", scale="smoke", out=tmp_path, executor=Serial())
    assert set(result.frame["model"]) == {"mlp", "tree", "forest"}
    trees = inscape.correlate(result.frame[result.frame["model"] == "tree"], by=("max_depth", "criterion"))
    assert result.summary.findings["tree"].evidence == f"r = {trees.pearson} over 4 configurations"
    low, high = trees.pearson.interval
    assert low < 0 < high
    assert result.summary.findings["tree"].holds is None  # a failure needs power, as in all studies
    page = (tmp_path / "summary.md").read_text()
    assert "granulated Kendall" in page
    report = (tmp_path / "report.html").read_text()
    assert all(claim in report for claim in digits.STUDY.claims.values())
    assert all(chart.hover[-2:] == ["train_accuracy", "test_accuracy"] for chart in result.summary.charts)
    assert {p.name for p in tmp_path.iterdir()} == {
        "digits.sqlite",
        "summary.md",
        "report.html",
        "scatter.png",
        "networks.png",
    }
    assert result.frame["batch_size"].notna().sum() == 4


def test_every_scale_has_its_grid():
    sizes = [len(as_tasks(digits.STUDY.configurations(scale), 0)) for scale in SCALES]
    assert sizes == sorted(sizes)


def test_data_are_read_once_for_all_configurations_that_want_the_same(tmp_path, monkeypatch):
    from inscape.training.data import own_files

    reads, read = [], own_files.read_npz
    monkeypatch.setattr(own_files, "read_npz", lambda path, split: reads.append(split) or read(path, split))
    rng = np.random.default_rng(0)
    path = tmp_path / "own.npz"
    points = {f"x_{name}": rng.normal(size=(40, 3)) for name in ("train", "test")}
    np.savez(path, **points, **{f"y_{name}": np.arange(40) % 2 for name in ("train", "test")})
    seeds = {"seed": 0, "replicate_seed": 0}
    wanted = {"data": str(path), "n_train": 30, "model": "tree", "n_probes": 4, **seeds}
    rows = [cell({**wanted, "max_depth": depth}) for depth in (1, 2, 1)]
    assert reads == ["train", "test"]
    assert rows[0] == rows[2]
    cell({**wanted, "max_depth": 1, "n_train": 20})
    assert len(reads) == 4
    os.utime(path, ns=(0, 0))  # written again
    cell({**wanted, "max_depth": 1, "n_train": 20})
    assert len(reads) == 6
