"""`decision_regions` on functions whose regions are known."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape import Patch, Segment, Simplex, decision_regions
from inscape.errors import InscapeWarning, ModelError, PartitionError, ProbeError
from inscape.partition.decision import DecisionGrid, DecisionSegment

SQUARE = Patch([0.0, 0.0], np.eye(2))


def corner(d, size=1.0):
    """The simplex of the origin and `size` along each axis."""
    return Simplex(np.concatenate([np.zeros((1, d)), size * np.eye(d)]))


def stripes(k):
    """k equal stripes in the sum of the coordinates, from 0 to 1."""
    return lambda x: np.clip(np.floor(x.sum(axis=1) * k), 0, k - 1).astype(int) % 2


def checkerboard(k):
    def f(x):
        cells = np.clip(np.floor((x + 1) * k / 2), 0, k - 1).astype(int)
        return cells.sum(axis=1) % 2

    return f


def rings(k):
    """k rings in a disc of radius 0.95, and one more label outside."""
    return lambda x: np.minimum(np.floor(np.linalg.norm(x, axis=1) / 0.95 * k), k).astype(int) % 2


def random_net(seed, n_in=3, n_out=3, width=12):
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out)
    )
    for p in net.parameters():
        p.data.normal_(std=1.0)
    return net.double()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("connectivity", ["face", "full"])
def test_stripes(d, k, connectivity):
    p = decision_regions(stripes(k), corner(d), method="grid", connectivity=connectivity)
    assert p.n_regions == k


@pytest.mark.parametrize("d", [2, 3, 4])
def test_nested_simplices(d):
    """Distance to the nearest face, in steps: each shell is one region."""
    probe = corner(d)

    def shells(x):
        depth = np.minimum(x.min(axis=1), 1 - x.sum(axis=1)) * (d + 1)
        return np.clip(np.floor(depth * 2.001), 0, 1).astype(int)

    assert decision_regions(shells, probe).n_regions == 2


def test_sign_of_the_product_has_four_quadrants_by_faces_and_two_by_corners():
    def f(x):
        return (x[:, 0] * x[:, 1] > 0).astype(int)

    assert decision_regions(f, SQUARE, resolution=40).n_regions == 4
    assert decision_regions(f, SQUARE, resolution=40, connectivity="full").n_regions == 2


@pytest.mark.parametrize("k", [2, 3, 6])
def test_checkerboard(k):
    assert decision_regions(checkerboard(k), SQUARE, resolution=60).n_regions == k * k
    assert decision_regions(checkerboard(k), SQUARE, resolution=60, connectivity="full").n_regions == 2


@pytest.mark.parametrize("k", [1, 2, 4])
def test_rings_and_what_is_around_them(k):
    assert decision_regions(rings(k), SQUARE, resolution=120).n_regions == k + 1


def test_a_disc_that_touches_the_border_leaves_four_corners():
    assert decision_regions(lambda x: np.linalg.norm(x, axis=1) > 1.05, SQUARE, resolution=120).n_regions == 5


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize(("connectivity", "expected"), [("face", "cells"), ("full", 2)])
def test_checkerboard_in_a_simplex(d, connectivity, expected):
    """Halves of each axis: 1 + d cells meet the corner simplex in more than their border."""
    probe = corner(d)
    parity = decision_regions(
        lambda x: (x > 0.45).sum(axis=1) % 2, probe, method="grid", connectivity=connectivity
    )
    by_cell = {
        tuple(c) for c in (np.random.default_rng(0).dirichlet(np.ones(d + 1), 20000)[:, :d] > 0.45).tolist()
    }
    assert parity.n_regions == (len(by_cell) if expected == "cells" else expected)


def test_boundaries_and_labels_on_a_segment():
    p = decision_regions(lambda x: np.digitize(x[:, 0], [0.2, 0.7]), Segment([0.0], [1.0]), resolution=1001)
    assert isinstance(p, DecisionSegment)
    assert p.labels.tolist() == [0, 1, 2]
    assert np.allclose(p.boundaries, [0.2, 0.7], atol=1e-3)
    assert (p.method, p.is_exact, p.n_evaluations) == ("grid", False, 1001)
    assert (
        p.status == "convergence not shown: the model has no scores; raise resolution and compare the counts"
    )


def test_boundaries_are_in_t_over_any_span():
    p = decision_regions(
        lambda x: (x[:, 0] > 3).astype(int), Segment([0.0], [2.0], span=(-1, 3)), resolution=401
    )
    assert np.allclose(p.boundaries, [1.5], atol=0.01)


def test_decision_tree_on_a_line_has_one_region_per_run_of_leaves():
    x = np.linspace(0, 1, 64)[:, None]
    y = (np.arange(64) // 8) % 2
    tree = DecisionTreeClassifier().fit(x, y)
    p = decision_regions(tree, Segment([0.0], [1.0]), resolution=2000)
    thresholds = np.sort(tree.tree_.threshold[tree.tree_.feature >= 0])
    assert p.n_regions == 8 == len(thresholds) + 1
    assert np.allclose(p.boundaries, thresholds, atol=1e-3)


def test_decision_tree_in_the_plane(rng):
    x = rng.uniform(-1, 1, size=(400, 2))
    tree = DecisionTreeClassifier(max_depth=2).fit(x, (x[:, 0] > 0) * 2 + (x[:, 1] > 0))
    assert decision_regions(tree, SQUARE).n_regions == 4


def test_status_tells_when_the_grid_is_too_coarse():
    def comb(x):
        return np.sin(np.pi * 79.5 * x[:, :1])

    assert decision_regions(comb, Segment([0.0], [1.0]), resolution=100).status.kind == "not_converged"
    assert decision_regions(comb, Segment([0.0], [1.0]), resolution=1600).status == "converged"


def test_a_grid_that_agrees_with_half_of_it_shows_nothing_of_steps():
    """Two slivers that a grid of 100 points misses as every second one of it does."""

    def scores(x):
        inside = np.abs(x[:, :1] - 0.3037) < 0.002
        return np.where(inside, 1.0, -1.0) * (1 + np.floor(10 * x[:, :1]))

    line = Segment([0.0], [1.0])
    coarse, fine = (decision_regions(scores, line, method="grid", resolution=r) for r in (101, 4001))
    assert (coarse.n_regions, fine.n_regions) == (1, 3)
    assert (
        coarse.status
        == fine.status
        == "convergence not shown: the scores are piecewise constant; raise resolution and compare the counts"
    )


def test_a_list_gives_a_list_in_order_and_in_one_stream_of_batches(rng):
    sizes = []

    def f(x):
        sizes.append(len(x))
        return (x[:, 0] > 0).astype(int)

    probes = inscape.sample_probes(rng.normal(size=(20, 2)), n=10, random_state=0)
    model = inscape.wrap(f, batch_size=64)
    together = decision_regions(model, probes, resolution=50)
    assert sizes == [64, 64, 32, 32] + [64] * 6 + [52]  # the first 64 are compared in two batches
    assert [p.probe for p in together] == probes
    for probe, p in zip(probes, together, strict=True):
        assert p.boundaries.tolist() == decision_regions(f, probe, resolution=50).boundaries.tolist()


def test_scores_of_segments_in_a_mixed_list():
    def scores(x):
        return x[:, :2]

    line = Segment([0.0, 0.0], [1.0, 0.5])
    segment, _ = decision_regions(scores, [line, SQUARE])
    t, top, labels = segment.top
    np.testing.assert_allclose(top, np.stack([t, t / 2], axis=1))
    assert np.unique(labels[t > 0], axis=0).tolist() == [[0, 1]]


def test_plain_json():
    p, q = decision_regions(stripes(2), [corner(1), corner(2)])
    assert json.loads(json.dumps(p.to_dict()))["boundaries"] == p.boundaries.tolist()
    assert json.loads(json.dumps(q.to_dict()))["n_regions"] == 2


def test_kinds_of_probes_can_be_mixed():
    probes = [Segment([0.0, 0.0], [1.0, 1.0]), SQUARE, corner(2), Segment([0.0, 1.0], [1.0, 0.0])]
    results = decision_regions(lambda x: (x[:, 0] > x[:, 1]).astype(int), probes, resolution=20)
    assert [p.probe for p in results] == probes
    assert [type(p) for p in results] == [DecisionSegment, DecisionGrid, DecisionGrid, DecisionSegment]
    assert [p.n_regions for p in results] == [1, 2, 2, 2]


@given(seed=st.integers(0, 10**6), order=st.permutations(range(3)))
def test_the_order_of_the_hulls_points_changes_nothing(seed, order):
    vertices = np.random.default_rng(seed).normal(size=(3, 3))
    net = random_net(seed)
    a, b = (decision_regions(net, Simplex(v), resolution=15) for v in (vertices, vertices[order]))
    assert sorted(a.labels.tolist()) == sorted(b.labels.tolist())


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
def test_reversing_a_segment_reverses_its_regions(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 3))
    net = random_net(seed)
    p, q = decision_regions(net, Segment(a, b)), decision_regions(net, Segment(b, a))
    assert p.labels.tolist() == q.labels[::-1].tolist()
    assert np.allclose(p.boundaries, 1 - q.boundaries[::-1])


@given(seed=st.integers(0, 10**6), scale=st.floats(0.1, 10))
def test_positive_rescaling_of_layers_changes_nothing(seed, scale):
    probe = Simplex(np.random.default_rng(seed).normal(size=(3, 3)))
    net = random_net(seed)
    before = decision_regions(net, probe, resolution=20).sample_labels
    net[0].weight.data *= scale
    net[0].bias.data *= scale
    net[2].weight.data /= scale
    assert (decision_regions(net, probe, resolution=20).sample_labels == before).mean() > 0.999


def test_image_is_minus_one_outside_the_triangle():
    p = decision_regions(stripes(3), corner(2), resolution=5)
    assert (p.image() >= 0).sum() == 15
    assert set(p.labels[p.image()[p.image() >= 0]].tolist()) == set(p.sample_labels.tolist())
    assert p.image()[4, 1] == -1


def test_progress_counts_points():
    seen = []
    decision_regions(
        stripes(2), [corner(1)] * 3, resolution=10, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (0, 30)
    assert seen[-1] == (30, 30)


def test_progress_of_one_adaptive_plane_counts_its_samples():
    seen = []
    plane = Patch([0.0, 0.0], np.eye(2))
    rings = lambda x: np.c_[np.sin(9 * np.hypot(x[:, 0], x[:, 1])), 0 * x[:, 0]]  # noqa: E731
    decision_regions(
        inscape.wrap(rings, batch_size=100),
        plane,
        method="adaptive",
        progress=lambda done, total: seen.append((done, total)),
    )
    done = [d for d, _ in seen]
    assert {total for _, total in seen} == {1000}
    assert (done[0], done[-1]) == (0, 1000)
    assert len({d for d in done if 0 < d < 1000}) > 3
    assert done == sorted(done)


def test_results_say_where_they_came_from():
    p = decision_regions(stripes(2), corner(2))
    assert p.provenance.version == inscape.__version__
    assert "2 decision regions on Simplex(dim=2" in repr(p)
    assert len(repr(p)) < 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "gird"}, "unknown method 'gird'.*did you mean 'grid'"),
        ({"connectivity": "edge"}, "unknown connectivity 'edge'"),
        (
            {"resolution": 1},
            "resolution=1 is too small: give a whole number of at least 2 per axis; try resolution=200",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(PartitionError, match=message):
        decision_regions(stripes(2), corner(1), **options)


@pytest.mark.parametrize("bad", [[], "segment", [1, 2], None, 3])
def test_bad_probes(bad):
    with pytest.raises(ProbeError, match="expected a Segment"):
        decision_regions(stripes(2), bad)


def test_a_resolution_belongs_to_the_grid():
    with pytest.raises(PartitionError, match="resolution=50 belongs to the grid"):
        decision_regions(random_net(0), Segment(np.zeros(3), np.ones(3)), method="exact", resolution=50)


def test_a_model_of_another_input_shape():
    with pytest.raises(ModelError, match=r"takes 5 features"):
        decision_regions(nn.Linear(5, 2), corner(2))


def test_a_grid_of_very_many_points_says_how_many(monkeypatch):
    def model(x):
        return (x[:, 0] > 0.3).astype(int)

    monkeypatch.setattr("inscape.budget.ANNOUNCED_ABOVE_EVALUATIONS", 1000)
    probes = [Segment([0.0], [1.0])] * 5
    decision_regions(model, probes, resolution=200)
    with pytest.warns(InscapeWarning, match="5 probes of about 201 points each are 1,005 evaluations"):
        found = decision_regions(model, probes, resolution=201)
    assert [r.n_regions for r in found] == [2] * 5
