from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import PartitionError
from inscape.partition.cost_table import CostTable, cost_table
from inscape.provenance import Provenance

X = np.random.default_rng(0).random((100, 16))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))


@pytest.fixture(scope="module")
def table():
    return cost_table(network(), X, random_state=0)


def cell(table, probes, method):
    return next(row for row in table.rows if (row["probes"], row["method"]) == (probes, method))


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
    rows = cost_table(lambda x: np.tanh(x[:, :2]), X, method="exact", n_probes=5, random_state=0).rows
    assert [row["seconds"] for row in rows] == [None, None]
    assert all(row["note"].startswith("not possible: ") for row in rows)


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
    assert CostTable.from_dict(plan.to_dict()).n_workers == 8
    with pytest.raises(PartitionError, match="n_models"):
        cost_table(network(), X, n_models=0)
