"""Pictures of studies: labels on a plane, lines with intervals."""

import numpy as np
from matplotlib.colors import to_rgb

from inscape.drawing.intervals import draw_intervals
from inscape.drawing.palette import TEN
from inscape.drawing.planes.labels import draw_labels


def test_labels_stand_where_they_are():
    labels = np.array([[0, 0, 1], [0, 0, 1], [2, 2, 2]])
    ax = draw_labels(labels, ((-1.0, 2.0), (0.0, 6.0)), np.array([[0.0, 0.0], [1.0, 5.0]]), [0, 3])
    (image,) = ax.images
    assert np.allclose(image.get_array()[2, 0], to_rgb(TEN[2]))  # rows go up
    assert np.allclose(image.get_array()[0, 2], to_rgb(TEN[1]))
    assert image.get_extent() == [-1.0, 2.0, 0.0, 6.0]
    assert [t.get_text() for t in ax.texts] == ["0", "3"]
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0.0, 0.0]], [[1.0, 5.0]]]


def test_one_label_everywhere_has_no_border():
    ax = draw_labels(np.ones((4, 4), dtype=int), ((0, 1), (0, 1)), np.empty((0, 2)), [])
    assert len(ax.collections) == 0


def test_intervals_are_drawn_where_they_are_known():
    line = np.array([[1.0, 2.0], [5.0, 6.0], [4.0, np.nan], [7.0, np.nan]])
    ax = draw_intervals({"a": line}, xlabel="x", ylabel="y")
    (bars,) = ax.collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[4.0, 7.0], [6.0, 6.0]]
