"""Bands thinner than the cells: edges are split where a third label leads between two others."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inscape import Patch, decision_regions
from inscape.partition.decision.adaptive.mesh import Mesh
from inscape.partition.decision.adaptive.mesh_kernels import third_leads

SQUARE = Patch([0.0, 0.0], np.eye(2))


def band(width, wave, gaps=0.0):
    """Two labels on either side of a curve, a third in a band of some width along it, or in parts of it."""

    def scores(x):
        t = x[:, 1] - wave * np.sin(2 * x[:, 0]) - 0.31 * x[:, 0]
        third = width / 2 * (np.sin(np.pi * gaps * (x[:, 0] + 1.013)) if gaps else 1.0)
        return np.column_stack([t, -t, third + 0 * t])

    return scores


@given(width=st.floats(1e-4, 1e-2), wave=st.floats(-0.3, 0.3))
@settings(max_examples=20)
def test_a_thin_band_is_one_region(width, wave):
    p = decision_regions(band(width, wave), SQUARE, method="adaptive")
    assert sorted(p.labels.tolist()) == [0, 1, 2]
    assert p.n_evaluations <= 4000


def test_a_grid_finds_many_pieces_of_it():
    p = decision_regions(band(1e-3, 0.2), SQUARE, method="grid", resolution=200)
    assert p.n_regions > 10


@pytest.mark.parametrize("gaps", [1, 3, 6])
@pytest.mark.parametrize("width", [3e-4, 3e-3])
def test_pieces_of_a_band_are_joined_only_where_its_label_is_met(gaps, width):
    """sin(pi k (x + 1.013)) is positive on k parts of -1 < x < 1, and on one more at the right end of it.

    Where the third does not lead the other two touch: they are one region each, the band k + 1 or fewer.
    """
    p = decision_regions(band(width, 0.2, gaps), SQUARE, method="adaptive")
    s = np.sin(np.pi * gaps * (np.linspace(-1, 1, 100_001) + 1.013)) > 0
    n_parts = int(s[0] + (s[1:] & ~s[:-1]).sum())
    assert sorted(p.labels.tolist()) == [0, 1] + [2] * n_parts


@given(seed=st.integers(0, 10**6), n_classes=st.integers(3, 6))
@settings(max_examples=30)
def test_third_labels_are_those_that_interpolation_shows(seed, n_classes):
    rng = np.random.default_rng(seed)
    margins = rng.normal(size=(4, n_classes))
    labels = margins.argmax(axis=1)
    cells = np.array([[0, 1, 2], [3, 2, 1]])
    edges, where, lead = third_leads(np.arange(2), cells, labels, margins)
    told = {tuple(e): (x, m) for e, x, m in zip(edges.tolist(), where, lead, strict=True)}
    t = np.linspace(0, 1, 2001)[:, None]
    for i, j in combinations(range(4), 2):
        if (i, j) == (0, 3):
            continue
        leaders = set(((1 - t) * margins[i] + t * margins[j]).argmax(axis=1).tolist())
        thirds = leaders - {labels[i], labels[j]}
        if thirds:
            assert (i, j) in told
        if (i, j) in told:
            x, m = told[i, j]
            there = (1 - x) * margins[i] + x * margins[j]
            assert np.isclose(there[labels[i]], there[labels[j]])
            assert there.max() > there[labels[i]]
            assert m > 0


@pytest.mark.parametrize("d", [2, 3, 4])
def test_splitting_edges_leaves_a_mesh_without_hanging_vertices(d, rng):
    """Volumes add up, every face is shared by two cells or lies on the border, and no split edge is left."""
    mesh = Mesh(d, False, 1, 6)
    for _ in range(4):
        mesh.cut(np.unique(rng.integers(mesh.n_cells, size=1 + mesh.n_cells // 3)))
    n_cells, old = mesh.n_cells, mesh.cells[: mesh.n_cells].copy()
    pairs = np.concatenate([old[:, [i, j]] for i, j in combinations(range(d + 1), 2)])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    edges = edges[rng.random(len(edges)) < 0.3]
    parents = mesh.cut_edges(edges, rng.uniform(0.1, 0.9, len(edges)))
    assert len(parents) == mesh.n_cells - n_cells > 0
    x, cells = mesh.coordinates(slice(0, mesh.n_vertices)), mesh.cells

    def volumes(cells):
        return np.abs(np.linalg.det(x[cells[:, 1:]] - x[cells[:, :1]]))

    assert np.isclose(volumes(cells).sum(), 1.0)
    of_parents = np.bincount(np.concatenate([np.arange(n_cells), parents]), volumes(cells))
    assert np.allclose(of_parents, volumes(old))
    left = {tuple(e) for c in cells.tolist() for e in combinations(sorted(c), 2)}
    assert not left & {tuple(e) for e in edges.tolist()}
    faces = np.sort(np.concatenate([np.delete(cells, k, axis=1) for k in range(d + 1)]), axis=1)
    unique, shared = np.unique(faces, axis=0, return_counts=True)
    padded = np.column_stack([np.ones(len(x)), x, np.zeros(len(x))])
    on_border = np.isclose(padded[:, :-1], padded[:, 1:])[unique].all(axis=1).any(axis=1)
    assert (shared == np.where(on_border, 1, 2)).all()
