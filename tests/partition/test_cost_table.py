"""`cost` foresees what is then counted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import PartitionError
from inscape.partition.cost_table import CostTable, cost_table
from inscape.progress import duration_text
from inscape.provenance import Provenance

X = np.random.default_rng(0).random((100, 16))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))


@pytest.fixture(scope="module")
def table():
    return cost_table(network(), X, random_state=0)


def cell(table, probes, method):
    return cell_of(table.rows, probes, method)


def cell_of(rows, probes, method):
    return next(row for row in rows if (row["probes"], row["method"]) == (probes, method))


def test_pieces_are_near_those_that_are_counted(table):
    """Counted by the exact walk itself; the table knows three segments, and six places of a plane."""
    probes = inscape.sample_probes(X, n=100, random_state=0)
    counted = sum(q.n_regions for q in inscape.linear_regions(network(), probes))
    assert 0.6 < cell(table, "100 segments", "exact")["n_pieces"] / counted < 1.6
    three = np.random.default_rng(0).choice(100, 3, replace=False)
    on_plane = inscape.linear_regions(network(), inscape.Patch.through(X[three])).n_regions
    assert 0.4 < cell(table, "1 plane", "exact")["n_pieces"] / on_plane < 2.5


def test_evaluations_are_near_those_that_are_made(table):
    for method in ("exact", "adaptive", "grid"):
        made = inscape.region_count(network(), X, method=method, random_state=0).n_evaluations
        assert 0.5 < cell(table, "100 segments", method)["n_evaluations"] / made < 2


def test_an_adaptive_plane_of_a_quick_model_is_counted_as_a_whole(monkeypatch):
    monkeypatch.setattr(inscape.partition.cost_table, "SAMPLE_SECONDS", 1e9)
    row = cell(cost_table(network(), X, method="adaptive", random_state=0), "1 plane", "adaptive")
    three = np.random.default_rng(0).choice(100, 3, replace=False)
    regions = inscape.decision_regions(network(), inscape.Patch.through(X[three]), method="adaptive")
    assert row["n_evaluations"] == regions.n_evaluations != 1988
    assert row["note"] == ""


def test_every_method_has_a_time(table):
    assert len(table.rows) == 6
    assert all(row["seconds"] > 0 for row in table.rows)
    assert all(row["memory"] > 0 for row in table.rows)


def test_it_comes_back_from_its_dictionary(table):
    again = CostTable.from_dict(table.to_dict())
    assert again.rows == table.rows
    assert again.to_text() == table.to_text()
    assert repr(again).startswith("<costs of Sequential: exact on 100 segments ")


def test_trees_and_black_boxes():
    tree = DecisionTreeClassifier(random_state=0).fit(X, np.arange(100) % 3)
    rows = cost_table(tree, X, n_probes=5, random_state=0).rows
    assert all(row["seconds"] > 0 and row["note"] == "" for row in rows)
    made = inscape.region_count(tree, X, n_probes=5, method="exact", random_state=0).n_evaluations
    assert cell_of(rows, "5 segments", "exact")["n_evaluations"] == made
    rows = cost_table(lambda x: np.tanh(x[:, :2]), X, method="exact", n_probes=5, random_state=0).rows
    assert [row["seconds"] for row in rows] == [None, None]
    assert all(row["note"].startswith("not possible: ") for row in rows)


def test_points_may_have_another_shape_than_the_model_takes(table):
    """As digits have, which are images, for a network of 16 numbers."""
    model = inscape.wrap(network(), input_shape=(16,))
    again = cost_table(model, X.reshape(-1, 4, 4), random_state=0)
    for row, expected in zip(again.rows, table.rows, strict=True):
        assert row["n_pieces"] == expected["n_pieces"]
        assert row["seconds"] > 0


def fine(x):
    """A function with so many regions on a segment that no sample comes to its end."""
    return np.sin(3e5 * x.sum(axis=1, keepdims=True))


def test_a_sample_that_takes_too_long_is_given_up_and_the_row_says_at_least(monkeypatch):
    settings = {"method": "adaptive", "n_probes": 20, "random_state": 0}
    whole = cell(cost_table(fine, X, **settings), "20 segments", "adaptive")
    monkeypatch.setattr(inscape.partition.cost_table, "until_spent", lambda seconds: lambda: True)
    table = cost_table(fine, X, **settings)
    row = cell(table, "20 segments", "adaptive")
    assert row["at_least"]
    assert not whole["at_least"]
    assert 0 < row["n_evaluations"] < whole["n_evaluations"]
    assert "at least: the first 10 segments were given up after" in row["note"]
    assert f"over {duration_text(row['seconds'])}" in table.to_text()
    assert CostTable.from_dict(table.to_dict()).to_text() == table.to_text()


def test_of_a_model_that_is_too_slow_for_the_least_sample_the_usual_evaluations_are_foreseen(monkeypatch):
    asked = []

    def slow(x):
        asked.append(len(x))
        return np.tanh(x[:, :2])

    monkeypatch.setattr(inscape.partition.cost_table, "until_spent", lambda seconds: lambda: True)
    monkeypatch.setattr(inscape.partition.cost_table, "LEAST_SEGMENT", 10**12)
    monkeypatch.setattr(inscape.partition.cost_table, "LEAST_ADAPTIVE_PLANE", np.inf)
    table = cost_table(slow, X, n_probes=20, random_state=0)
    assert cell(table, "20 segments", "adaptive")["n_evaluations"] == 20 * 30
    assert "30 evaluations on a segment are usual" in cell(table, "20 segments", "adaptive")["note"]
    row = cell(table, "1 plane", "adaptive")
    assert row["seconds"] > 0
    assert row["n_evaluations"] == 1988
    assert row["note"] == "not tried as a whole: so many evaluations are usual, and at most twice as many"
    assert sum(asked) < 10


def test_exact_regions_that_take_too_long_to_try_are_estimated_from_an_evaluation(monkeypatch):
    tried = cost_table(network(), X, method="exact", n_probes=20, random_state=0)
    monkeypatch.setattr(inscape.partition.cost_table, "LEAST_WALK", np.inf)
    monkeypatch.setattr(inscape.partition.cost_table, "LEAST_PLANE", np.inf)
    monkeypatch.setattr(inscape.partition.cost_table, "decision_regions", None)
    estimated = cost_table(network(), X, method="exact", n_probes=20, random_state=0)
    for before, after in zip(tried.rows, estimated.rows, strict=True):
        assert after["note"] == "not tried, estimated from the time of an evaluation in float64"
        assert after["n_pieces"] == before["n_pieces"]
        assert after["seconds"] > 0


def test_trees_that_would_cut_a_plane_into_too_many_faces_have_a_note(monkeypatch):
    from inscape.partition.decision.exact.trees import on_planes

    monkeypatch.setattr(on_planes, "MOST_FACES", 1)
    tree = DecisionTreeClassifier(random_state=0).fit(X, np.arange(100) % 3)
    rows = cost_table(tree, X, method="exact", n_probes=5, random_state=0).rows
    assert rows[1]["seconds"] is None
    assert rows[1]["note"].startswith("not possible: ")


def test_a_plane_needs_three_points():
    with pytest.raises(PartitionError, match="a plane goes through three points, of which there are 2"):
        cost_table(network(), X[:2])


def test_a_plan_of_many_models_is_that_many_times_the_cost_of_one():
    row = {"n_evaluations": 200, "n_pieces": None, "memory": None, "note": ""}
    rows = [
        row | {"probes": "1 segment", "method": m, "seconds": s}
        for m, s in (("grid", 2.0), ("adaptive", 0.5))
    ]
    table = CostTable("net", tuple(rows), Provenance.of(inscape.wrap(network()), 0))
    plan = replace(table, n_models=1000, n_workers=8)
    for row in table.rows:
        assert plan.seconds_in_all(row) == pytest.approx(125 * row["seconds"])
        assert table.seconds_in_all(row) == row["seconds"]
    assert "1,000 models on 8 x cpu" in plan.to_text()
    assert "models on" not in table.to_text()
    assert plan.to_dict()["seconds_in_all"] == pytest.approx([250.0, 62.5])
    assert CostTable.from_dict(plan.to_dict()).n_workers == 8
    with pytest.raises(PartitionError, match="n_models"):
        cost_table(network(), X, n_models=0)
