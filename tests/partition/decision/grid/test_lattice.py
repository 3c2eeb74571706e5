"""Grids cover their probe, and their points have the neighbours that they should."""

import math

import numpy as np
import pytest

import inscape
from inscape import Patch, Segment, Simplex
from inscape.errors import PartitionError
from inscape.partition.decision.grid.lattice import half, lattice_on, resolution_for


def simplex(d):
    return Simplex(np.concatenate([np.zeros((1, d)), np.eye(d)]))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("r", [2, 3, 6])
def test_simplex_grid_covers_the_hull_only_corners_included(d, r):
    probe = simplex(d)
    lattice = lattice_on(probe, r)
    assert len(lattice) == math.comb(r - 1 + d, d)
    assert (lattice.weights >= 0).all()
    assert np.allclose(lattice.weights.sum(axis=1), 1)
    points = lattice.weights @ probe.generators
    assert {tuple(v) for v in probe.vertices} <= {tuple(p) for p in points}
    assert sorted(map(tuple, points[lattice.corners()])) == sorted(map(tuple, probe.vertices))
    assert len(np.unique(lattice.coordinates, axis=0)) == len(lattice)


def test_patch_grid_reaches_the_four_corners():
    probe = Patch([1.0, 2.0], np.eye(2), ((-1, 3), (0, 1)))
    points = lattice_on(probe, 7).weights @ probe.generators
    corners = {(0.0, 2.0), (4.0, 2.0), (0.0, 3.0), (4.0, 3.0)}
    assert corners <= {tuple(np.round(p, 12)) for p in points}
    assert len(points) == 49


def test_segment_grid_is_evenly_spaced_over_the_span():
    probe = Segment([0.0], [1.0], span=(-1, 2))
    points = lattice_on(probe, 31).weights @ probe.generators
    assert np.allclose(points[:, 0], np.linspace(-1, 2, 31))


def test_default_resolution():
    assert [resolution_for(p, None) for p in (simplex(1), simplex(2))] == [200, 30]
    for d in (3, 4, 5):
        assert len(lattice_on(simplex(d), None)) <= 4096
        assert math.comb(resolution_for(simplex(d), None) + d, d) > 4096


@pytest.mark.parametrize(("d", "face", "full"), [(1, 1, 1), (2, 3, 4), (3, 6, 12)])
def test_neighbours_on_a_simplex(d, face, full):
    lattice = lattice_on(simplex(d), 4)
    assert len(lattice.neighbours("face")) == face
    assert len(lattice.neighbours("full")) == full


def test_neighbours_on_a_patch():
    lattice = lattice_on(Patch([0.0, 0.0], np.eye(2)), 4)
    assert len(lattice.neighbours("face")) == 2
    assert len(lattice.neighbours("full")) == 4


PENTAGON = [[0, 0], [2, -0.5], [3, 1], [1.5, 2.5], [-0.5, 1]]


@pytest.mark.parametrize(
    "probe",
    [
        simplex(1),
        simplex(2),
        simplex(3),
        Patch([0.0, 0.0], np.eye(2)),
        Patch([0.0, 0.0], np.eye(2), corners=PENTAGON),
    ],
)
@pytest.mark.parametrize("r", [5, 8, 9, 40])
def test_half_is_every_second_point(probe, r):
    lattice = lattice_on(probe, r)
    coarse = half(lattice)
    assert (lattice.coordinates[lattice.every_second()] == 2 * coarse.coordinates).all()
    assert len(coarse) == len(coarse.sites) == len(np.unique(coarse.sites))
    assert coarse.sites.max() < coarse.bordered_size


def test_half_of_two_points_is_nothing():
    assert half(lattice_on(simplex(2), 2)) is None


def test_a_polygon_between_the_grid_points():
    diamond = Patch([0.0, 0.0], np.eye(2), corners=[[0, 0.5], [0.5, 0], [1, 0.5], [0.5, 1]])
    with pytest.raises(PartitionError, match="puts no grid point into"):
        lattice_on(diamond, 2)


@pytest.mark.parametrize("bad", [1, 0, -3, 2.5])
def test_resolution_below_two(bad):
    with pytest.raises(PartitionError, match=r"whole number of at least 2 per axis; try resolution=30"):
        lattice_on(simplex(2), bad)


def test_grids_that_would_not_fit():
    with pytest.raises(PartitionError, match=r"resolution=500 in 5 dimensions.*lower the resolution"):
        lattice_on(simplex(5), 500)


def test_unknown_connectivity():
    with pytest.raises(PartitionError, match=r"unknown connectivity 'faces'.*did you mean 'face'"):
        inscape.decision_regions(lambda x: x[:, 0] > 0, simplex(2), method="grid", connectivity="faces")
