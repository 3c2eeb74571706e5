"""Exact decision regions on planes: closed forms, an ever finer grid, holes, ties, and results."""

import math

import numpy as np
import pytest
import torch
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp
from relu_networks import network, random_patch, square
from torch import nn

from inscape import Patch, Segment, Simplex, decision_regions, region_count, wrap
from inscape.errors import InscapeWarning, NonGenericError, PartitionError

SEEDS = st.integers(0, 10**6)


class Saddle(nn.Module):
    """The sign of x y on a square, as |x + y| - |x - y|."""

    def forward(self, x):
        return ((x[:, :1] + x[:, 1:]).abs() - (x[:, :1] - x[:, 1:]).abs()) / 2


class Diamond(nn.Module):
    """Positive where |x| + |y| < 1/2."""

    def forward(self, x):
        return 0.5 - x.abs().sum(dim=1, keepdim=True)


class Rings(nn.Module):
    """Alternating labels on rings |x| + |y| around the origin."""

    def forward(self, x):
        r = x.abs().sum(dim=1, keepdim=True)
        return (r - 0.4).abs() - 0.2 - 2 * torch.relu(r - 0.9)


def area_of(rings):
    x = [(r[:, 0] * np.roll(r[:, 1], -1) - r[:, 1] * np.roll(r[:, 0], -1)).sum() / 2 for r in rings]
    return sum(x)


def test_the_sign_of_a_product_has_four_regions():
    p = decision_regions(Saddle(), square(), method="exact")
    assert p.n_regions == 4
    assert p.is_exact
    assert sorted(p.labels.tolist()) == [0, 0, 1, 1]
    assert np.allclose(p.areas, 1.0)
    assert p.boundary_length == pytest.approx(4.0)


def test_a_region_with_a_hole():
    p = decision_regions(Diamond(), square(), method="exact")
    assert p.n_regions == 2
    inner, outer = p.polygons[list(p.labels).index(1)], p.polygons[list(p.labels).index(0)]
    assert (len(inner), len(outer)) == (1, 2)
    assert area_of(inner) == pytest.approx(0.5)
    assert area_of(outer) == pytest.approx(3.5)
    assert area_of(outer[:1]) == pytest.approx(4.0)
    assert p.boundary_length == pytest.approx(4 * math.sqrt(0.5))
    assert p.n_boundary_pieces == 4
    assert p.boundary.shape == (4, 2, 2)


def test_rings_within_rings():
    p = decision_regions(Rings(), square(), method="exact")
    fine = decision_regions(Rings(), square(), method="grid", resolution=401)
    assert p.n_regions == fine.n_regions == 7  # the middle, two rings, four corners
    for rings, area in zip(p.polygons, p.areas, strict=True):
        assert area_of(rings) == pytest.approx(area)
    assert p.areas.sum() == pytest.approx(4.0, rel=1e-12)


def test_three_classes_meet_in_a_point():
    directions = np.stack([np.cos([0.1, 2.2, 4.3]), np.sin([0.1, 2.2, 4.3])], axis=1)
    net = nn.Linear(2, 3).double()
    net.weight.data, net.bias.data = torch.from_numpy(directions), torch.zeros(3).double()
    p = decision_regions(net, square(), method="exact")
    assert p.n_regions == 3
    assert p.n_boundary_pieces == 3
    assert set(p.labels.tolist()) == {0, 1, 2}


def large_regions(grid, share):
    """How many regions of a grid hold more than a share of its points: it splits the tip of every sliver."""
    return int((np.bincount(grid.sample_regions) > share * len(grid.sample_regions)).sum())


@pytest.mark.slow
@settings(max_examples=8)
@given(seed=SEEDS)
def test_a_finer_grid_finds_the_same_regions(seed):
    with torch.no_grad():
        net = mlp(2, 10, 10, 3, seed=seed).double()
        net[-1].weight *= 3
    p = decision_regions(net, square(3.0), method="exact")
    fine = decision_regions(net, square(3.0), method="grid", resolution=601)
    assert p.n_regions >= large_regions(fine, 0.003)
    assert (p.areas > 0.003 * 36).sum() <= large_regions(fine, 0.002)
    points = np.random.default_rng(seed).uniform(-3, 3, size=(400, 2))
    assert (p.labels[p.locate(points)] == wrap(net).labels(points)).all()


@pytest.mark.parametrize(
    ("name", "size"), [("cnn", 0.004), ("vgg", 0.01), ("resnet18", 0.04), ("mobilenet_v2", 0.03)]
)
def test_networks_of_every_kind(name, size):
    net, probe = zoo.make(name), random_patch(zoo.shape_of(name), 1, size)
    p = decision_regions(net, probe, method="exact")
    points = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    labels = wrap(net.double()).labels(probe.points(points))
    assert (p.labels[p.locate(points)] == labels).mean() > 0.995
    assert p.areas.sum() == pytest.approx(4 * np.sqrt(np.linalg.det(p.domain.metric)), rel=1e-10)


def test_a_triangle_is_measured_in_the_input_space():
    net = nn.Linear(3, 1).double()
    net.weight.data, net.bias.data = torch.tensor([[1.0, 0.0, 0.0]]).double(), torch.tensor([-1.0]).double()
    p = decision_regions(net, Simplex([[0, 0, 5], [3, 0, 5], [0, 4, 5]]), method="exact")
    assert p.areas.sum() == pytest.approx(6.0)
    assert dict(zip(p.labels.tolist(), p.areas.tolist(), strict=True))[1] == pytest.approx(6 * (2 / 3) ** 2)
    assert p.boundary_length == pytest.approx(4 * 2 / 3)


def test_regions_along_a_side_are_those_of_the_segment():
    net = mlp(2, 16, 16, 4, seed=2).double()
    corners = np.array([[-2.0, -1.0], [2.0, -1.5], [0.5, 2.0]])
    p = decision_regions(net, Simplex(corners), method="exact")
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        side = decision_regions(net, Segment(a, b), method="exact")
        edges = np.concatenate([[0.0], side.boundaries, [1.0]])
        middle = a + (edges[:-1] + edges[1:])[:, None] / 2 * (b - a)
        inward = middle + 1e-9 * (corners.mean(axis=0) - middle)
        plane = p.domain.plane
        coordinates = np.linalg.lstsq(plane.axes.T, (inward - plane.origin).T, rcond=None)[0].T
        assert (p.labels[p.locate(coordinates)] == side.labels).all()


def test_ties_are_reported_and_go_to_the_smaller_label():
    net = network((np.eye(2), [0.0, 0.0]), ([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [0.0, 0.0, 0.0]))
    p = decision_regions(net, square(), method="exact")
    assert p.status.kind == "ties"
    assert set(p.labels.tolist()) == {0, 1}


def test_counts_on_triangles():
    net, x = mlp(2, 24, 24, 3, seed=0).double(), np.random.default_rng(0).normal(size=(60, 2)) * 3
    exact = region_count(net, x, dim=2, n_probes=12, method="exact", random_state=1)
    grid = region_count(net, x, dim=2, n_probes=12, method="grid", resolution=100, random_state=1)
    assert exact.is_exact
    assert exact.status == "complete"
    assert exact.settings["dim"] == 2
    assert (exact.counts <= grid.counts).all()  # this grid only splits slivers
    assert (exact.counts == grid.counts).mean() > 0.5
    one = decision_regions(net, [Simplex(x[:3]), Segment(x[0], x[1]), square()], method="exact")
    assert [r.probe.dim for r in one] == [2, 1, 2]


def test_memory_changes_nothing():
    from inscape.partition.decision.exact.networks import exact_plane

    net, probe = zoo.make("vgg"), random_patch(zoo.shape_of("vgg"), 1, 0.02)
    one = decision_regions(net, probe, method="exact")
    two = exact_plane(wrap(net), probe, meter=lambda *_: None, memory=2**21)
    assert (one.n_regions, one.n_boundary_pieces) == (two.n_regions, two.n_boundary_pieces)
    assert np.allclose(np.sort(one.areas), np.sort(two.areas))


def test_what_is_refused():
    with pytest.raises(PartitionError, match="float64"):
        decision_regions(Saddle(), square(), method="exact", precision="float32")
    with pytest.raises(PartitionError, match=r"expected \(n, c\)"):
        decision_regions(
            nn.Conv2d(1, 1, 2), Patch(np.zeros((1, 3, 3)), np.eye(9)[:2].reshape(2, 1, 3, 3)), method="exact"
        )
    with pytest.raises(PartitionError, match="not piecewise affine"):
        decision_regions(nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 2)), square(), method="exact")
    with pytest.raises(PartitionError, match="use method='grid'"):
        decision_regions(nn.Linear(4, 2), Simplex(np.eye(4)), method="exact")


def test_the_result_as_json():
    import json

    found = json.loads(json.dumps(decision_regions(Diamond(), square(), method="exact").to_dict()))
    assert found["n_regions"] == 2
    assert found["method"] == "exact"
    assert found["boundary_length"] == pytest.approx(4 * math.sqrt(0.5))


@pytest.mark.parametrize(
    ("probe", "method"),
    [
        (Patch([0.0, 0.0], np.eye(2)), "adaptive"),
        (Patch([0.0, 0.0], np.eye(2), corners=[(0, 0), (1, 0), (1, 1), (0.5, 1.2), (0, 1)]), "grid"),
    ],
)
def test_auto_samples_where_lines_meet_too_closely(probe, method, monkeypatch):
    def tied(*_, **__):
        raise NonGenericError("lines meet too closely", remedy="at (0, 0)")

    monkeypatch.setattr("inscape.partition.linear.planes.subdivision.subdivision_on", tied)
    net = mlp(2, 5, 3, seed=0)
    with pytest.warns(InscapeWarning, match="instead of exact, since lines meet too closely"):
        assert decision_regions(net, probe).method == method
    with pytest.raises(NonGenericError):
        decision_regions(net, probe, method="exact")
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(InscapeWarning, match="instead of exact"):
        count = region_count(net, x, dim=2, n_probes=3, random_state=0)
    assert (count.method, count.is_exact, count.reason) == ("adaptive", False, "lines meet too closely")
