"""Connected components on a grid against a search breadth first."""

import numpy as np
import pytest
from breadth_first import count_breadth_first
from hypothesis import given
from hypothesis import strategies as st

from inscape import Patch, Simplex
from inscape.partition.decision.grid import components
from inscape.partition.decision.grid.lattice import lattice_on

PATCH = Patch([0.0, 0.0], np.eye(2))


def simplex(d):
    return Simplex(np.concatenate([np.zeros((1, d)), np.eye(d)]))


def both_counts(labels, lattice, connectivity):
    grid = np.full((lattice.resolution,) * lattice.coordinates.shape[1], -1)
    grid[tuple(lattice.coordinates.T)] = labels
    ids, counts = components(
        labels[None], lattice.sites, lattice.neighbours(connectivity), lattice.bordered_size
    )
    return ids[0], int(counts[0]), count_breadth_first(grid, connectivity, not lattice.is_patch)


@given(
    probe=st.sampled_from([PATCH, simplex(1), simplex(2), simplex(3), simplex(4)]),
    resolution=st.integers(2, 7),
    connectivity=st.sampled_from(["face", "full"]),
    n_labels=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_agrees_with_breadth_first_search(probe, resolution, connectivity, n_labels, seed):
    lattice = lattice_on(probe, resolution)
    labels = np.random.default_rng(seed).integers(n_labels, size=len(lattice))
    ids, count, expected = both_counts(labels, lattice, connectivity)
    assert count == expected
    assert set(ids.tolist()) == set(range(count))
    for region in range(count):
        assert len(set(labels[ids == region].tolist())) == 1


@given(seed=st.integers(0, 10**6), connectivity=st.sampled_from(["face", "full"]))
def test_relabelling_changes_nothing(seed, connectivity):
    rng = np.random.default_rng(seed)
    lattice = lattice_on(PATCH, 8)
    labels = rng.integers(3, size=(5, len(lattice)))
    names = rng.permutation(10)[:3]
    for values in (labels, names[labels]):
        counts = components(values, lattice.sites, lattice.neighbours(connectivity), lattice.bordered_size)[1]
        if values is labels:
            first = counts
    assert (counts == first).all()


@pytest.mark.slow
@given(
    d=st.integers(1, 5),
    resolution=st.integers(2, 8),
    connectivity=st.sampled_from(["face", "full"]),
    seed=st.integers(0, 10**6),
)
def test_half_spaces_of_a_simplex_are_connected(d, resolution, connectivity, seed):
    """Convex sets are connected, however thin: by steps along the axes alone, a slab would shatter."""
    lattice = lattice_on(simplex(d), resolution)
    height = lattice.weights @ np.random.default_rng(seed).normal(size=d + 1)
    for level in np.quantile(height, [0.0, 0.03, 0.5, 0.97]):
        labels = (height > level).astype(int)
        count = both_counts(labels, lattice, connectivity)[1]
        assert count == len(set(labels.tolist()))


def test_spiral_is_one_region():
    grid = np.array(
        [
            [1, 1, 1, 1, 1],
            [0, 0, 0, 0, 1],
            [1, 1, 1, 0, 1],
            [1, 0, 0, 0, 1],
            [1, 1, 1, 1, 1],
        ]
    )
    lattice = lattice_on(PATCH, 5)
    labels = grid[tuple(lattice.coordinates.T)]
    assert both_counts(labels, lattice, "face")[1:] == (2, 2)


@pytest.mark.parametrize(("connectivity", "expected"), [("face", 25), ("full", 2)])
def test_checkerboard_of_single_points(connectivity, expected):
    lattice = lattice_on(PATCH, 5)
    labels = lattice.coordinates.sum(axis=1) % 2
    assert both_counts(labels, lattice, connectivity)[1:] == (expected, expected)
