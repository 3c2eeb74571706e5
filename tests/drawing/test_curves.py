"""Curves, fits and intervals are drawn where they are known."""

import numpy as np

from inscape.drawing.curves import draw_fit, draw_intervals, draw_runs


def test_a_band_is_drawn_where_there_is_an_interval():
    steps, mean = np.array([0.0, 10.0, 100.0]), np.array([1.0, 2.0, 3.0])
    none = np.full(3, np.nan)
    ax = draw_runs({"a": (steps, mean, mean - 1, mean + 1), "b": (steps, mean, none, none)}, ylabel="value")
    assert len(ax.lines) == 2
    assert len(ax.collections) == 1
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "$10^1$", "$10^2$"]


def test_a_fit_is_drawn_from_the_first_to_the_last_point():
    ax = draw_fit(np.array([3.0, 1.0]), np.array([5.0, 2.0]), (1.0, 2.0), xlabel="x", ylabel="y", title="t")
    assert ax.lines[0].get_xydata().tolist() == [[1.0, 3.0], [3.0, 7.0]]
    assert not draw_fit(np.ones(2), np.ones(2), None, xlabel="", ylabel="", title="").lines


def test_intervals_are_drawn_where_they_are_known():
    line = np.array([[1.0, 2.0], [5.0, 6.0], [4.0, np.nan], [7.0, np.nan]])
    ax = draw_intervals({"a": line}, xlabel="x", ylabel="y")
    (bars,) = ax.collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[4.0, 7.0], [6.0, 6.0]]
