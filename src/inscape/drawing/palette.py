"""Colours for classes that colour-blind readers can tell apart, and never colour alone."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inscape.drawing import Floats, Hashes, Ints

Colour = tuple[float, float, float]


class Classes(NamedTuple):
    """The names and the colours of the labels of a picture, and whether it has a legend of them."""

    names: dict[int, str]
    colours: dict[int, Colour]
    legend: bool = True


# Petroff 2021 (arXiv 2107.02270), ten colours optimised for readers with colour-vision deficiencies.
TEN = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
# Each is, of a raster of colours neither pale nor dark nor glaring, the one furthest from all before it: by
# CIEDE2000, the least over full sight, protanopia and deuteranopia (these count 1.6 times).
TEN_MORE = (
    "#0d5143",
    "#ffc9bc",
    "#ae1b5e",
    "#aebcff",
    "#bcf286",
    "#d751ae",
    "#5e9479",
    "#6b5136",
    "#6b5e86",
    "#bca1c9",
)
TWENTY = TEN + TEN_MORE


def class_colours(labels: Iterable[int]) -> dict[int, Colour]:
    """A colour for each label.

    If all labels are below twenty, the first ten take the colours of Petroff and the others ten more that
    are far from these and from each other. No hundred colours are distinct to anyone; with others, each label
    takes its place on the cividis scale (which differs in lightness, the one thing that all readers see) at
    golden-ratio steps, so that neighbouring numbers are far apart. Pictures also draw the boundaries and
    print the class names into the large regions.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    known = sorted(set(labels))
    if all(0 <= label < len(TWENTY) for label in known):
        return {label: to_rgb(TWENTY[label]) for label in known}
    scale = colormaps["cividis"]
    golden = (np.sqrt(5) - 1) / 2
    return {label: tuple(scale((0.5 + label * golden) % 1.0)[:3]) for label in known}


def name_colours(names: Iterable[str]) -> dict[str, Colour]:
    """A colour for each class name, which depends on the set of names alone, not on their order.

    Names that are whole numbers have the colours of these numbers, as classes without names do; others take
    the colours in alphabetical order.

    >>> name_colours(["dog", "cat"]) == name_colours(["cat", "dog"])
    True
    >>> name_colours(["3"])["3"] == class_colours([3])[3]
    True
    """
    known = sorted(set(names), key=in_order)
    numbers = [int(name) if _is_number(name) else None for name in known]
    labels = [n for n in numbers if n is not None] if None not in numbers else list(range(len(known)))
    colours = class_colours(labels)
    return {name: colours[label] for name, label in zip(known, labels, strict=True)}


def in_order(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts names as people do, numbers in them by their size.

    >>> sorted(["class 10", "class 9", "b", "2", "10"], key=in_order)
    ['2', '10', 'b', 'class 9', 'class 10']
    """
    runs = re.findall(r"\d+|\D+", name)
    return [(not run.isdecimal(), int(run) if run.isdecimal() else 0, run.casefold()) for run in runs]


def _is_number(name: str) -> bool:
    return re.fullmatch(r"-?\d{1,9}", name, re.ASCII) is not None


def deeper(colour: Colour) -> Colour:
    """A darker shade, for points that lie on their own colour."""
    r, g, b = colour
    return 0.75 * r, 0.75 * g, 0.75 * b


def ink_on(colour: Colour) -> str:
    """Black or white, whichever reads better on `colour`."""
    r, g, b = colour
    return "black" if 0.299 * r + 0.587 * g + 0.114 * b > 0.5 else "white"


def pattern_colours(hashes: Hashes) -> Ints:
    """The index into `PATTERNS` for each hash: the lowest bit says light or dark, five more the colour.

    Hashes whose lowest bit differs between neighbours make every border visible, whatever the reader's eyes.
    """
    return (hashes & np.uint64(63)).astype(np.int64)


def _patterns() -> Floats:
    """64 muted colours: even ones light, odd ones darker, both from blue to sand."""
    ends = np.array([[[0.80, 0.87, 0.94], [0.97, 0.91, 0.78]], [[0.44, 0.57, 0.72], [0.76, 0.62, 0.40]]])
    t = np.linspace(0, 1, 32)[:, None, None]
    return np.asarray(((1 - t) * ends[:, 0] + t * ends[:, 1]).reshape(64, 3))


PATTERNS = _patterns()
