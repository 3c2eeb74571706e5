"""Colours for classes that colour-blind readers can tell apart, and never colour alone."""

from collections.abc import Iterable

import numpy as np

Colour = tuple[float, float, float]

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


def class_colours(labels: Iterable[int]) -> dict[int, Colour]:
    """A colour for each label, the same in every picture.

    Labels below ten take the ten colours of Petroff. No hundred colours are distinct to anyone; with more
    classes each takes its place on the cividis scale (which differs in lightness, the one thing that all
    readers see) at golden-ratio steps, so that neighbouring numbers are far apart; pictures then also
    print the class name into each region and draw the boundaries.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    known = sorted(set(labels))
    if all(0 <= label < len(TEN) for label in known):
        return {label: to_rgb(TEN[label]) for label in known}
    scale = colormaps["cividis"]
    golden = (np.sqrt(5) - 1) / 2
    return {label: tuple(scale((0.5 + label * golden) % 1.0)[:3]) for label in known}


def ink_on(colour: Colour) -> str:
    """Black or white, whichever reads better on `colour`."""
    r, g, b = colour
    return "black" if 0.299 * r + 0.587 * g + 0.114 * b > 0.5 else "white"
