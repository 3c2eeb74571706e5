"""Class names in pictures of planes: a legend, and the names inside large regions."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.palette import Colour, ink_on

MOST_NAMES = 12


def draw_legend(
    ax: Any,
    labels: npt.NDArray[np.int64],
    areas: npt.NDArray[Any],
    names: dict[int, str],
    colours: dict[int, Colour],
) -> None:
    """The classes by area, at most twelve of them, so that the legend stays readable with 100 classes."""
    from matplotlib.patches import Patch

    present, place = np.unique(labels, return_inverse=True)
    total = np.bincount(place, weights=areas)
    largest = present[np.argsort(-total, kind="stable")][:MOST_NAMES]
    handles = [
        Patch(fc=colours[i], ec="black", lw=0.5, label=_short(names[i])) for i in sorted(largest.tolist())
    ]
    if len(present) > MOST_NAMES:
        handles.append(Patch(fc="none", ec="none", label=f"+ {len(present) - MOST_NAMES} more"))
    ax.legend(handles=handles, title="class", loc="upper left", bbox_to_anchor=(1.04, 1.0), frameon=False)


def write_name(ax: Any, x: float, y: float, name: str, colour: Colour) -> None:
    """A class name centred at (x, y) on its colour."""
    style = {"color": ink_on(colour), "fontsize": 11, "weight": "bold", "zorder": 4}
    ax.text(x, y, _short(name), ha="center", va="center", **style)


def _short(name: str) -> str:
    return name if len(name) <= 20 else name[:19] + "…"
