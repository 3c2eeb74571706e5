"""Trees on planes: closed forms, `predict` everywhere, slices, and the same in rational arithmetic."""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rational_trees import nodes_of, plane_regions
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier
from trees_by_kind import ESTIMATORS, fitted

from inscape import Patch, Segment, Simplex, decision_regions, region_count, sample_probes, wrap
from inscape.errors import ModelError, PartitionError
from inscape.partition.decision import DecisionPlane
from inscape.partition.decision.exact.trees import on_planes, tree_plane, tree_segments

UNIT = Patch([0.0, 0.0], np.eye(2), ((0, 1), (0, 1)))


def box_tree(low, high):
    """A tree of two inputs that says 1 inside a box of cells of a 5 x 5 board, else 0."""
    x = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    return DecisionTreeClassifier(random_state=0).fit(x, ((x >= low) & (x <= high)).all(axis=1))


def inside(probe, n, seed=0):
    """Coordinates of random points."""
    return np.random.default_rng(seed).uniform(*np.array(probe.bounds).T, (n, 2))


def check_complex(p):
    planar = p.subdivision.planar
    assert len(planar.xy) - len(planar.ends) + planar.n_faces == 1
    assert (planar.areas() > 0).all()
    assert p.areas.sum() == pytest.approx(planar.total_area() * p.domain.area_unit, rel=1e-12)
    assert planar.total_area() == pytest.approx(area_of([p.domain.corners]), rel=1e-12)


def area_of(rings):
    return sum((r[:, 0] * np.roll(r[:, 1], -1) - r[:, 1] * np.roll(r[:, 0], -1)).sum() / 2 for r in rings)


# closed forms


def test_a_board_of_fields():
    x = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    tree = DecisionTreeClassifier().fit(x, x.sum(axis=1) % 2)
    p = tree_plane(tree, Patch([0.0, 0.0], np.eye(2), ((-0.5, 3.5), (-0.5, 3.5))))
    assert p.n_regions == 16
    assert np.allclose(p.areas, 1.0)
    assert p.boundary_length == pytest.approx(2 * 3 * 4)
    assert p.status == "complete"
    check_complex(p)


def test_a_region_with_a_hole():
    p = tree_plane(box_tree(1, 2), Patch([0.0, 0.0], np.eye(2), ((0, 4), (0, 4))))
    assert p.labels.tolist().count(1) == 1
    inner, outer = p.polygons[list(p.labels).index(1)], p.polygons[list(p.labels).index(0)]
    assert (p.n_regions, len(inner), len(outer)) == (2, 1, 2)
    assert area_of(inner) == pytest.approx(4.0)
    assert area_of(outer) == pytest.approx(12.0)
    assert p.boundary_length == pytest.approx(8.0)


def test_oblique_planes_and_triangles():
    tree = DecisionTreeClassifier().fit([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], ["a", "b"])  # one split, at 1/2
    f = int(tree.tree_.feature[0])
    corners = np.zeros((3, 3))
    corners[1, f], corners[2, (f + 1) % 3] = 2.0, 3.0
    p = tree_plane(tree, Simplex(corners))  # 2 by 3, cut across its short side at a quarter
    assert dict(zip(p.labels.tolist(), p.areas.round(6), strict=True)) == pytest.approx(
        {0: 3 * (1 - 0.75**2), 1: 3 * 0.75**2}, rel=1e-6
    )
    assert p.boundary_length == pytest.approx(3 * 0.75)
    assert p.class_names == ("a", "b")


def test_no_split_is_one_region():
    p = tree_plane(DecisionTreeClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [1, 1]), UNIT)
    assert (p.n_regions, p.labels.tolist(), p.trees.n_nodes) == (1, [0], 1)
    assert p.corner_labels.tolist() == [0, 0, 0, 0]


def test_only_what_the_plane_meets_is_looked_at():
    model, x = fitted("forest")
    tiny = Patch(x[0], np.eye(2, 5), ((0, 1e-6), (0, 1e-6)))
    assert tree_plane(model, tiny).trees.n_nodes <= 14
    wide = tree_plane(model, Patch.through(x[:3]))
    assert 100 < wide.trees.n_nodes < sum(t.tree_.node_count for t in model.estimator.estimators_)


# second routes


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_predict_agrees_inside_every_face_and_across_every_boundary(kind, n_classes):
    model, x = fitted(kind, n_classes=n_classes)
    patch = Patch.through(x[[0, 1, 2]])
    p = tree_plane(model, patch)
    check_complex(p)
    xy = inside(patch, 4000)
    assert np.array_equal(p.labels[p.locate(xy)], model.labels(patch.points(xy)))
    planar = p.subdivision.planar
    assert np.array_equal(p.subdivision.labels, model.labels(patch.points(planar.centroids())))
    ends = p.boundary
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    way = (ends[:, 1] - ends[:, 0])[length > 1e-4] / length[length > 1e-4, None]
    middle, across = ends.mean(axis=1)[length > 1e-4], np.stack([-way[:, 1], way[:, 0]], axis=1)
    left, right = (p.labels[p.locate(middle + s * 1e-6 * across)] for s in (1, -1))
    assert (left != right).mean() > 0.95  # a split can be nearer than that
    for s, own in ((1, left), (-1, right)):
        assert np.array_equal(own, model.labels(patch.points(middle + s * 1e-6 * across)))


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(ESTIMATORS)), st.integers(0, 2**16))
def test_slicing_a_plane_gives_the_regions_of_a_segment(kind, seed):
    model, x = fitted(kind, seed=seed % 7)
    rng = np.random.default_rng(seed)
    patch = Patch.through(x[rng.choice(len(x), 3, replace=False)])
    p = tree_plane(model, patch)
    ends = inside(patch, 2, seed)
    [r] = tree_segments(model, [Segment(*patch.points(ends))])
    t = np.concatenate([[0.0], r.boundaries, [1.0]])
    middles = ends[0] + ((t[1:] + t[:-1]) / 2)[:, None] * (ends[1] - ends[0])
    wide = np.diff(t) > 1e-6
    assert np.array_equal(p.labels[p.locate(middles)][wide], r.labels[wide])
    assert crossed(p.boundary, ends) == pytest.approx(r.boundaries, abs=1e-6)


def crossed(boundary, ends):
    """Where a segment crosses straight pieces, in order."""
    way, across = boundary[:, 1] - boundary[:, 0], ends[1] - ends[0]
    det = across[0] * way[:, 1] - across[1] * way[:, 0]
    off = boundary[:, 0] - ends[0]
    t = (off[:, 0] * way[:, 1] - off[:, 1] * way[:, 0]) / det
    s = (off[:, 0] * across[1] - off[:, 1] * across[0]) / det
    return np.sort(t[(s >= 0) & (s < 1) & (t > 0) & (t < 1)])


@pytest.mark.parametrize("scale", [1, 16, 255])
@pytest.mark.parametrize(("n_trees", "depth"), [(8, 4), (3, 8)])
def test_regions_and_areas_are_those_of_rational_arithmetic(n_trees, depth, scale):
    """On whole numbers many lines coincide and many meet in a point, but for the rounding of x and c."""
    x, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(n_trees, max_depth=depth, random_state=scale).fit(
        x[:600] / scale, y[:600]
    )
    trees = nodes_of(forest, lambda c: Fraction(round(2 * scale * c), 2 * scale))
    low, high = Fraction(-1, 4), Fraction(5, 4)
    for i in range(0, 12, 3):
        exact = [[Fraction(int(v), scale) for v in row] for row in x[i : i + 3]]
        axes = [[v - w for v, w in zip(row, exact[0], strict=True)] for row in exact[1:]]
        expected = plane_regions(trees, exact[0], axes, [(low, low), (high, low), (high, high), (low, high)])
        a, b, c = x[i : i + 3] / scale
        p = tree_plane(forest, Patch(a, [b - a, c - a], ((-0.25, 1.25), (-0.25, 1.25))))
        found = sorted(zip(p.labels.tolist(), p.areas / p.domain.area_unit, strict=True))
        assert [label for label, _ in found] == [label for label, _ in expected]
        assert [size for _, size in found] == pytest.approx([float(size) for _, size in expected], abs=1e-6)


def test_a_fine_grid_finds_no_more_regions():
    x, y = load_digits(return_X_y=True)
    model = wrap(RandomForestClassifier(30, max_depth=6, random_state=0).fit(x[:600], y[:600]))
    patch = Patch.through(x[[0, 1, 2]])
    p = tree_plane(model, patch)
    grid = decision_regions(model, patch, resolution=200)
    assert sorted(set(grid.labels)) == sorted(set(p.labels))
    share = np.bincount(grid.labels[grid.sample_regions], minlength=10) / len(grid.sample_regions)
    assert np.bincount(p.labels, p.areas, minlength=10) / p.areas.sum() == pytest.approx(share, abs=0.01)


# what lies closer than the trees can tell apart


def test_a_sliver_is_no_region_unless_asked_for():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = DecisionTreeClassifier(random_state=0).fit(x, [0, 1, 2, 3])  # both thresholds are 0.5
    plane = Patch([0.0, 1.0], [[1.0, -1.0], [1.0, 1.0]], ((0, 1), (0, 0.1)))
    p, seen = tree_plane(tree, plane), tree_plane(tree, plane, narrow=True)
    assert sorted(p.labels.tolist()) == [1, 2, 3]
    assert p.trees.n_narrow > 0
    assert "splits closer together than float32 numbers can tell are taken as one, once" in p.status
    assert sorted(seen.labels.tolist()) == [0, 1, 2, 3]
    assert seen.status == "complete"
    assert seen.areas[list(seen.labels).index(0)] < 1e-14


def test_regions_that_touch_in_a_point_are_two():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    board = DecisionTreeClassifier(random_state=0).fit(x, [0, 1, 1, 0])
    for turn in (0.0, 0.3, 1.1):
        axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        p = tree_plane(board, Patch([0.5, 0.5], axes, ((-0.2, 0.2), (-0.2, 0.2))))
        assert sorted(p.labels.tolist()) == [0, 0, 1, 1]


def test_ties_are_decided_as_predict_does():
    x = np.random.default_rng(0).random((40, 2)).round(2)
    model = wrap(RandomForestClassifier(2, random_state=3).fit(x, np.tile(["b", "a"], 20)))
    p = tree_plane(model, UNIT)
    assert p.trees.n_tied > 0
    assert f"the top classes tie on {p.trees.n_tied} of {p.subdivision.planar.n_faces} faces" in p.status
    xy = inside(UNIT, 2000)
    assert np.array_equal(p.labels[p.locate(xy)], model.labels(UNIT.points(xy)))


# the verbs


def test_decision_regions_of_trees_on_planes_are_exact():
    model, x = fitted("forest")
    patch = Patch.through(x[:3])
    p = decision_regions(model, patch)
    assert isinstance(p, DecisionPlane)
    assert (p.method, p.is_exact) == ("exact", True)
    first, second = decision_regions(model, [patch, Simplex(x[:3])], method="exact")
    assert first.n_regions == p.n_regions
    assert second.areas.sum() < p.areas.sum()
    count = region_count(model, x, dim=2, n_probes=5, random_state=0)
    probes = sample_probes(x, dim=2, n=5, random_state=0)
    assert count.is_exact
    assert count.counts.tolist() == [tree_plane(model, probe).n_regions for probe in probes]


def test_a_result_is_written_and_read_back():
    model, x = fitted("forest")
    p = tree_plane(model, Patch.through(x[:3]))
    again = DecisionPlane.from_dict(p.to_dict())
    assert again.trees == p.trees
    assert again.areas == pytest.approx(p.areas)


def test_the_picture_shows_the_regions_and_not_the_faces():
    model, x = fitted("forest")
    p = tree_plane(model, Patch.through(x[:3]))
    assert p.n_boundary_pieces < len(p.subdivision.planar.ends) / 2
    ax = p.plot()
    drawn = sum(len(c.get_segments()) for c in ax.collections if hasattr(c, "get_segments"))
    plt.close(ax.figure)
    assert ax.get_title().startswith(f"{p.n_regions:,} decision region")
    assert drawn <= p.n_boundary_pieces


def test_what_does_not_fit_is_refused(monkeypatch):
    model, x = fitted("forest")
    with pytest.raises(PartitionError, match="points of 2 numbers, but the trees take 5"):
        tree_plane(model, UNIT)
    with pytest.raises(ModelError, match=r"expects points of shape \(5,\), got \(2,\)"):
        decision_regions(model, UNIT, method="exact")
    with pytest.raises(PartitionError, match=r"leaves the range \+-3.4e\+38"):
        tree_plane(model, Patch(x[0], 1e30 * np.eye(2, 5), ((0, 1e9), (0, 1e9))))
    monkeypatch.setattr(on_planes, "MOST_FACES", 10)
    with pytest.raises(PartitionError, match="into more than 10 faces: use method='adaptive'"):
        tree_plane(model, Patch.through(x[:3]))
