"""Colours of classes can be told apart, and do not depend on which classes are shown."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from inscape.drawing.palette import TEN, TWENTY, class_colours, ink_on

# Machado, Oliveira & Fernandes 2009: full protanopia, deuteranopia and tritanopia, in linear RGB.
SIGHT = {
    "full": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip


def lab(rgb, sight):
    """CIELAB coordinates of a colour as a reader with that sight sees it."""
    rgb = np.array(rgb)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(SIGHT[sight] @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", ["full", "protan", "deutan"])
def test_ten_classes_can_be_told_apart(sight):
    seen = np.array([lab(to_rgb(c), sight) for c in TEN])
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=2) + 1e9 * np.eye(10)
    assert distance.min() > 8  # about 2.3 is just noticeable


@pytest.mark.parametrize(("sight", "least"), [("full", 19), ("protan", 10), ("deutan", 11), ("tritan", 8)])
def test_twenty_classes_can_be_told_apart(sight, least):
    """Twenty places on the cividis scale were 4 apart, and 2 for a reader with tritanopia."""
    colours = class_colours(range(20))
    seen = np.array([lab(colours[k], sight) for k in range(20)])
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=2) + 1e9 * np.eye(20)
    assert distance.min() > least


def test_the_first_ten_are_the_same_among_twenty():
    assert TWENTY[:10] == TEN
    assert class_colours([3, 17])[3] == class_colours([3])[3] == to_rgb(TEN[3])
    assert class_colours([3, 20])[3] != to_rgb(TEN[3])  # with more than twenty all are on one scale


@pytest.mark.parametrize("sight", list(SIGHT))
def test_neighbouring_numbers_among_a_hundred_differ_in_lightness(sight):
    colours = class_colours(range(100))
    lightness = np.array([lab(colours[i], sight)[0] for i in range(100)])
    assert np.abs(np.diff(lightness)).min() > 15


def test_colours_do_not_depend_on_which_classes_are_present():
    assert class_colours([3, 5])[3] == class_colours(range(10))[3]
    assert class_colours([12, 19])[12] == class_colours(range(20))[12]
    assert class_colours([42, 77])[42] == class_colours(range(100))[42]


def test_ink_contrasts():
    assert ink_on((1.0, 1.0, 0.9)) == "black"
    assert ink_on((0.0, 0.1, 0.3)) == "white"
