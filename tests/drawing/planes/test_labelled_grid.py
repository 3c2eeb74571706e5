"""Labels of a grid on a rectangle."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from inscape.drawing.palette import TEN
from inscape.drawing.planes.labelled_grid import draw_labels

LABELS = np.array([[0, 0, 1], [0, 0, 1], [2, 2, 2]])
BOUNDS = ((-1.0, 2.0), (0.0, 6.0))


@pytest.fixture(scope="module")
def ax():
    return draw_labels(LABELS, BOUNDS, np.array([[0.0, 0.0], [1.0, 5.0]]), [0, 3])


def test_labels_stand_where_they_are(ax):
    cells, _ = ax.collections
    corners = cells.get_coordinates()
    centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    for row, column in np.ndindex(LABELS.shape):  # rows go up, columns to the right
        assert np.allclose(centres[column, row], (-1.0 + 1.5 * column, 3.0 * row))
        assert np.allclose(cells.get_array()[column, row, :3], to_rgb(TEN[LABELS[row, column]]))
    assert (ax.get_xlim(), ax.get_ylim()) == BOUNDS


def test_marks_carry_their_class(ax):
    assert [t.get_text() for t in ax.texts] == ["0", "3"]
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0.0, 0.0]], [[1.0, 5.0]]]


def test_borders_lie_halfway_between_grid_points(ax):
    lines = np.array(ax.collections[1].get_segments())
    upright = lines[:, 0, 0] == lines[:, 1, 0]
    assert lines[upright, 0, 0].tolist() == [1.25, 1.25]
    assert lines[~upright, 0, 1].tolist() == [4.5, 4.5, 4.5]


def test_a_grid_need_not_be_square():
    ax = draw_labels(np.array([[0, 0, 0], [1, 1, 1]]), ((0, 2), (0, 1)), np.empty((0, 2)), [])
    assert {y for line in ax.collections[1].get_segments() for y in line[:, 1]} == {0.5}


def test_one_label_everywhere_has_no_border():
    ax = draw_labels(np.ones((4, 4), dtype=int), ((0, 1), (0, 1)), np.empty((0, 2)), [])
    assert len(ax.collections[1].get_segments()) == 0
