"""What can be asked of planes, what is refused, and what the result says of itself."""

import json

import numpy as np
import pytest
from networks import mlp
from relu_networks import network, square
from torch import nn

from inscape import Patch, Segment, Simplex, linear_regions
from inscape.errors import InscapeError, PartitionError, ProbeError


def test_a_budget_stops_before_the_layer_that_breaks_it():
    net = mlp(2, 16, 16, 16, 2, seed=0)
    whole = linear_regions(net, square(3.0))
    first = linear_regions(net, square(3.0), n_layers=1)
    q = linear_regions(net, square(3.0), max_regions=first.n_regions)
    assert q.status == "budget reached"
    assert (q.n_layers, q.n_regions) == (1, first.n_regions)
    assert q.n_vertices - q.n_edges + q.n_regions == 1
    assert q.patterns.shape == (q.n_regions, 16)
    assert linear_regions(net, square(3.0), max_regions=whole.n_regions).status == "complete"
    assert linear_regions(net, square(3.0), max_regions=1).n_regions == 1


def test_a_budget_in_chunks_gives_a_valid_partition():
    net = mlp(2, 24, 24, 24, 24, 2, seed=0)
    whole = linear_regions(net, square(3.0))
    q = linear_regions(net, square(3.0), max_regions=whole.n_regions // 2, memory=8 * 24 * 100)
    assert q.status == "budget reached"
    assert q.n_vertices - q.n_edges + q.n_regions == 1
    assert 1 <= q.n_regions < whole.n_regions
    assert q.areas.sum() == pytest.approx(36.0)
    assert q.patterns.shape == (q.n_regions, 24 * q.n_layers)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"n_layers": 0}, PartitionError, "n_layers"),
        ({"max_regions": 0.5}, PartitionError, "max_regions"),
        ({"precision": "float32"}, PartitionError, "float64"),
        ({"memory": 0}, PartitionError, "memory"),
        ({"probe": Segment([0, 0], [1, 1]), "n_layers": 1}, ProbeError, "for planes"),
        ({"probe": Simplex(np.eye(3)[:, :2])}, ProbeError, None),
        ({"probe": Simplex([[0, 0], [1, 1], [2, 2]])}, ProbeError, "on a line"),
        ({"probe": [square(), Segment([0, 0], [1, 1])]}, ProbeError, "one dimension"),
        ({"probe": Patch(np.zeros(3), np.eye(3)[:2])}, InscapeError, "3"),
    ],
)
def test_what_is_refused(arguments, error, match):
    given = {"model": mlp(2, 4, 2), "probe": square()} | arguments
    if match is None:
        assert linear_regions(**given).n_regions >= 1
        return
    with pytest.raises(error, match=match):
        linear_regions(**given)


@pytest.mark.parametrize(
    "corners",
    [
        [[0, 0], [1, 0]],
        [[0, 0], [1, 0], [2, 0]],
        [[0, 0], [2, 0], [0.5, 0.5], [0, 2]],
        [[0, 0], [1, 1], [1, 0], [0, 1]],
    ],
)
def test_corners_that_are_no_convex_polygon(corners):
    with pytest.raises(ProbeError, match="corners"):
        Patch([0, 0], np.eye(2), corners=corners)


def test_corners_may_run_clockwise():
    patch = Patch([0, 0], np.eye(2), corners=[[0, 0], [0, 2], [1, 0]])
    assert patch.bounds == ((0.0, 1.0), (0.0, 2.0))
    q = linear_regions(mlp(2, 6, 2, seed=1), patch)
    assert (q.areas >= 0).all()
    assert q.areas.sum() == pytest.approx(1.0)


def test_areas_and_slopes_are_those_of_the_input_space():
    net = network((np.eye(3), [0, 0, -0.5]), (np.ones((1, 3)), [0.0]))
    axes = np.array([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    q = linear_regions(net, Patch(np.zeros(3), axes))
    assert q.areas.sum() == pytest.approx(4 * 6.0)
    best = q.locate([[0.5, 0.5]])[0]
    assert np.allclose(q.slopes[best, 0], axes @ [1, 1, 0])
    assert np.allclose(q.offsets[best], 0.0)


def test_a_result_speaks_for_itself():
    q = linear_regions(mlp(2, 8, 8, 2, seed=0), square())
    found = json.loads(json.dumps(q.to_dict()))
    assert found["n_regions"] == q.n_regions == len(q.polygons) == len(q.faces)
    assert found["provenance"]["dtype"] == "float64"
    assert repr(q) == f"<{q.n_regions} linear regions on {square()!r}, complete>"
    assert np.allclose(q.vertices[q.faces[0]], q.polygons[0])
    assert q.tolerance < 1e-12
    with pytest.raises(PartitionError, match="from 1 to 2"):
        q.layer_patterns(3)


def test_patterns_that_do_not_fit_are_found_anew():
    net = mlp(2, 16, 16, 2, seed=0)
    q, tight = (linear_regions(net, square(3.0), memory=m) for m in (2**30, 3000))
    assert tight.subdivision.patterns[-1] is None
    order = np.argsort(q.pattern_hashes), np.argsort(tight.pattern_hashes)
    assert (q.patterns[order[0]] == tight.patterns[order[1]]).all()


def test_progress_and_a_list():
    seen = []
    found = linear_regions(
        mlp(2, 8, 8, 2),
        [square(), Simplex(np.eye(3)[:, :2])],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [q.probe.dim for q in found] == [2, 2]
    assert seen[-1] == (2000, 2000)
    assert seen == sorted(seen)


def test_progress_is_told_layer_by_layer():
    seen = []
    linear_regions(mlp(2, 20, 20, 20, 2), square(), progress=lambda done, total: seen.append(done / total))
    assert len(seen) > 2
    assert 0 < seen[0] < 0.5
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_models_that_are_not_piecewise_affine():
    with pytest.raises(PartitionError, match="not piecewise affine"):
        linear_regions(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)), square())
