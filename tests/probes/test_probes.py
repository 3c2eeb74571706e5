"""Segments, simplices and patches: their points, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from inscape import Patch, Segment, Simplex
from inscape.errors import ProbeError


def test_segment_points_and_ends():
    s = Segment([0.0, 1.0], [2.0, 5.0], span=(-1, 2))
    assert s.points([0.0, 1.0, 0.5]).tolist() == [[0, 1], [2, 5], [1, 3]]
    assert s.generators.tolist() == s.points([-1, 2]).tolist()
    assert (s.dim, s.input_shape) == (1, (2,))


def test_images_stay_images():
    a, b = torch.zeros(3, 4, 4), torch.ones(3, 4, 4)
    assert Segment(a, b).points([0.25]).shape == (1, 3, 4, 4)
    assert Simplex([a, b, 2 * b]).input_shape == (3, 4, 4)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_segment_passes_exactly_through_its_ends(a, b):
    if a != b:
        assert Segment([a], [b]).points([0, 1]).ravel().tolist() == [a, b]


def test_probes_are_frozen():
    s = Segment([0.0], [1.0])
    with pytest.raises(AttributeError):
        s.start = 3
    with pytest.raises(ValueError, match="read-only"):
        s.start[0] = 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0]), "same point"),
        (([0.0], [0.0, 1.0]), "shape"),
        (([0.0, np.nan], [0.0, 1.0]), r"start holds 1 NaN or infinite values, the first at index \[1\]"),
        (([0.0], [1.0], (1, 0)), "low < high"),
        (([0.0], [1.0], (0, np.inf)), "finite"),
        (([0.0], [1.0], 3), "pair"),
        ((["a"], [1.0]), "array of numbers"),
    ],
)
def test_bad_segments(arguments, message):
    with pytest.raises(ProbeError, match=message):
        Segment(*arguments)


@pytest.mark.parametrize(
    ("vertices", "message"),
    [
        ([[0.0, 1.0]], "at least 2 vertices"),
        ([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]], "same point"),
        ([[0.0, 1.0], [np.inf, 1.0]], "vertex 1 holds 1 NaN"),
        ([[0.0, 1.0], [1.0]], "array of numbers"),
    ],
)
def test_bad_simplices(vertices, message):
    with pytest.raises(ProbeError, match=message):
        Simplex(vertices)


@given(st.permutations(range(4)), st.integers(0, 10**6))
def test_first_generator_does_not_depend_on_the_order_of_vertices(order, seed):
    vertices = np.random.default_rng(seed).normal(size=(4, 5))
    a, b = Simplex(vertices), Simplex(vertices[order])
    assert (a.generators[0] == b.generators[0]).all()


def test_first_generator_of_a_regular_simplex_is_stable():
    vertices = np.eye(4)
    firsts = {
        tuple(Simplex(vertices[list(p)]).generators[0]) for p in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0])
    }
    assert len(firsts) == 1


def test_right_angle_comes_first():
    assert Simplex([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]).generators[0].tolist() == [0, 0]


def test_patch_points_bounds_and_corner():
    p = Patch([1.0, 1.0, 1.0], [[1, 0, 0], [0, 2, 0]], ((0, 2), (-1, 1)))
    assert p.points([[2, 1]]).tolist() == [[3, 3, 1]]
    assert p.generators[0].tolist() == p.points([[0, -1]])[0].tolist()


def test_patch_through_three_points_is_true_to_scale(rng):
    points = rng.normal(size=(3, 2, 5))
    p = Patch.through(points)
    assert np.allclose(p.anchors, points)
    drawn = np.linalg.norm(p.marks[:, None] - p.marks[None], axis=2)
    real = np.linalg.norm((points[:, None] - points[None]).reshape(3, 3, -1), axis=2)
    assert np.allclose(drawn, real)
    for (low, high), marks in zip(p.bounds, p.marks.T, strict=True):
        assert low < marks.min()
        assert marks.max() < high


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Patch([0.0, 0.0], [[1, 0], [2, 0]]), "parallel"),
        (lambda: Patch([0.0, 0.0], [[1, 0]]), r"shape \(2, 2\)"),
        (lambda: Patch([0.0, 0.0], np.eye(2), ((0, 1),)), "two pairs"),
        (lambda: Patch([0.0, 0.0], np.eye(2), ((1, 0), (0, 1))), r"bounds\[0\]"),
        (lambda: Patch.through([[0, 0], [1, 1]]), "3 points, got 2"),
        (lambda: Patch.through([[0, 0], [1, 1], [3, 3]]), "on a line"),
        (lambda: Patch.through([[0, 0], [0, 0], [0, 0]]), "on a line"),
        (lambda: Patch.through([[0], [1], [2]]), "on a line"),
        (lambda: Patch.through(np.eye(3), margin="a"), "margin='a' must be a number"),
        (lambda: Patch.through(np.eye(3), margin=np.inf), "margin=inf must be"),
        (lambda: Patch([0.0, 0.0], np.eye(2), 3), "two pairs"),
        (lambda: Patch([0.0, 0.0], np.eye(2), ((0, 1), (0, 1, 2))), r"bounds\[1\]"),
        (lambda: Patch([0.0, 0.0], np.eye(2), marks=[1.0, 2.0, 3.0]), r"marks must be coordinates \(m, 2\)"),
    ],
)
def test_bad_patches(make, message):
    with pytest.raises(ProbeError, match=message):
        make()


def test_a_patch_around_data_of_two_features():
    x = np.array([[0.0, 10.0], [2.0, 30.0], [1.0, 20.0]])
    patch = Patch.around(x, margin=0.5)
    assert patch.bounds == ((-1.0, 3.0), (0.0, 40.0))
    assert np.array_equal(patch.points(x), x)  # coordinates are the features
    assert patch.axis_names == ("feature 0", "feature 1")
    assert Patch.around(pd.DataFrame(x, columns=["length", "width"])).axis_names == ("length", "width")
    with pytest.raises(ProbeError, match="expected \\(n, 2\\): choose two of more"):
        Patch.around(np.zeros((4, 3)))


def test_a_patch_along_two_features_of_a_table(rng):
    x = rng.normal(size=(20, 4))
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"], index=[f"wine {i}" for i in range(20)])
    patch = Patch.features(frame, "d", "b", at=3)
    place = patch.points([[1.5, -2.0]])[0]
    assert place.tolist() == [x[3, 0], -2.0, x[3, 2], 1.5]
    assert np.allclose(patch.anchors, x[[3]])
    assert (patch.axis_names, patch.mark_names) == (("d", "b"), ("wine 3",))
    (low, high), _ = patch.bounds
    assert low < x[:, 3].min() < x[:, 3].max() < high
    assert np.array_equal(Patch.features(x, 3, 1, at=x[3]).origin, patch.origin)
    assert np.array_equal(Patch.features(x, 3, 1).points([[0, 0]])[0, [0, 2]], np.median(x, axis=0)[[0, 2]])
    with pytest.raises(ProbeError, match="unknown feature 'e'"):
        Patch.features(frame, "e", "b")
    with pytest.raises(ProbeError, match="there is no row 99"):
        Patch.features(frame, "a", "b", at=99)
    with pytest.raises(ProbeError, match="the two features are the same"):
        Patch.features(frame, "a", 0)


def test_a_plane_in_standardised_coordinates(rng):
    """It is the plane of the same three points, and isometric to their plane in the scaler's coordinates."""
    x = rng.normal(size=(30, 5)) * [1, 10, 100, 1000, 1e-3]
    scaler = StandardScaler().fit(x)
    patch = Patch.through(x, rows=[2, 5, 7], scale="std")
    assert np.allclose(patch.anchors, x[[2, 5, 7]])
    z = scaler.transform(x[[2, 5, 7]])
    drawn = np.linalg.norm(patch.marks[:, None] - patch.marks[None], axis=2)
    assert np.allclose(drawn, np.linalg.norm(z[:, None] - z[None], axis=2))
    assert patch.mark_names == ("row 2", "row 5", "row 7")
    for scale in (scaler, make_pipeline(scaler, LinearSVC()), x.std(axis=0)):
        assert np.allclose(Patch.through(x[[2, 5, 7]], scale=scale).axes, patch.axes)
    again = Patch.from_dict(patch.to_dict())
    assert (again.mark_names, again.unit.tolist()) == (patch.mark_names, patch.unit.tolist())
    for scale, message in (
        ("std", "needs a whole table"),
        ("max", 'must be "std"'),
        ([1.0], "for each"),
    ):
        with pytest.raises(ProbeError, match=message):
            Patch.through(x[[2, 5, 7]], scale=scale)


def test_axes_of_features_are_told():
    assert Patch(np.zeros(3), np.eye(3)[[2, 0]]).axis_names == ("feature 2", "feature 0")
    for other in (Patch(np.ones(3), np.eye(3)[:2]), Patch(np.zeros(3), 2 * np.eye(3)[:2])):
        assert other.axis_names is None


def test_extremes_are_the_points_of_which_a_probe_is_the_hull():
    assert Segment([0.0, 0.0], [4.0, 2.0], span=(0.5, 2.0)).extremes.tolist() == [[2.0, 1.0], [8.0, 4.0]]
    triangle = [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]]
    assert sorted(Simplex(triangle).extremes.tolist()) == sorted(triangle)
    patch = Patch([1.0, 1.0], [[2.0, 0.0], [0.0, 1.0]], corners=[[0, 0], [1, 0], [0, 1]])
    assert sorted(patch.extremes.tolist()) == [[1.0, 1.0], [1.0, 2.0], [3.0, 1.0]]
