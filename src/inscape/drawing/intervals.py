"""Lines with the interval of each point."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.counts import MARKERS
from inscape.drawing.palette import TEN


def draw_intervals(
    lines: Mapping[str, npt.NDArray[np.float64]], *, xlabel: str, ylabel: str, ax: Any = None
) -> Any:
    """Draw each line through its points, with a bar where the interval is known.

    Args:
        lines: name -> x, y, low and high, (4, n); NaN where there is no interval.
        xlabel: what x is.
        ylabel: what y is.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (5.6, 3.8))
    for i, (name, (x, y, low, high)) in enumerate(lines.items()):
        reach = np.nan_to_num(np.maximum([y - low, high - y], 0.0))
        ax.errorbar(
            x, y, yerr=reach, marker=MARKERS[i % len(MARKERS)], color=TEN[i % len(TEN)], capsize=3, label=name
        )
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=8)
    return ax
