"""Pictures of univariate nets hold the numbers that they show."""

import numpy as np
import pytest

from inscape.drawing.univariate import (
    draw_curvature,
    draw_errors_by_width,
    draw_region_counts,
    draw_sharpness,
    draw_weights,
)
from inscape.univariate import ShallowNet

HAT = ShallowNet([1, 1, 1], [1, 0, -1], [1, -2, 1])


def test_a_net_is_drawn_with_its_knots_and_data():
    ax = HAT.plot(x=[-1.0, 0.5], y=[0.0, 0.5])
    line, knots, data = ax.get_lines()
    assert line.get_ydata() == pytest.approx(HAT(line.get_xdata()))
    assert set(knots.get_xdata()) <= {-1.0, 0.0, 1.0}
    assert data.get_xdata().tolist() == [-1.0, 0.5]
    assert ShallowNet([0.0], [1.0], [1.0]).plot().get_lines()  # without knots


@pytest.mark.parametrize("tols", [None, [1e-6, 3.0]])
def test_the_region_table_names_its_plateau(tols):
    ax = HAT.region_table(tols, tols).plot()
    assert ax.get_title().startswith("linear regions: ")
    ax.figure.draw_without_rendering()


def test_the_area_under_the_smoothed_curvature_is_the_sum_of_slope_changes():
    ax = draw_curvature(np.array([-0.2, 0.3]), np.array([1.0, 2.0]), -1, 1)
    x, y = ax.get_lines()[0].get_data()
    assert float(((y[1:] + y[:-1]) / 2) @ np.diff(x)) == pytest.approx(3.0, rel=1e-6)


def test_the_limit_in_the_sharpness_picture_is_two_over_the_step_size():
    sizes = np.array([0.1, 0.2])
    ax = draw_sharpness(sizes, {"measured": np.array([19.0, 9.0])}, np.array([0.5]))
    eta, limit = ax.get_lines()[0].get_data()
    assert limit == pytest.approx(2 / eta)
    assert eta[-1] == pytest.approx(0.5)
    assert "not at zero loss" in {t.get_text() for t in ax.get_legend().get_texts()}


def test_the_other_pictures_draw():
    at = np.linspace(-1, 1, 5)
    assert draw_weights(at, at**2, at**2, at).get_ylabel() == "g(x)"
    ax = draw_region_counts({"a": (at[:2], at[:2] + 2)}, at[:2], at[:2] + 90, xlabel="r")
    assert ax.get_xlabel() == "r"
    boxes = draw_errors_by_width({1.0: at**2, 2.0: at**2}, np.array([0.1, 0.0]))
    assert [t.get_text() for t in boxes.get_xticklabels()] == ["1", "2"]
