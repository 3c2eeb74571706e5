"""The picture of a piecewise-linear function along a segment."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import TEN

_MOST_CURVES = 10


def draw_pieces(t: npt.NDArray[np.float64], scores: npt.NDArray[np.float64], *, ax: Any = None) -> Any:
    """Draw scores (n, c) that are linear between the parameters t (n,), the knots marked below.

    Args:
        t: the ends of the span and the knots between, ascending.
        scores: the scores there.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (8.0, 3.4))
    for k in range(min(scores.shape[1], _MOST_CURVES)):
        ax.plot(t, scores[:, k], color=TEN[k % len(TEN)], lw=1.4, label=str(k))
    knots = t[1:-1]
    ax.vlines(knots, 0, 0.05, transform=ax.get_xaxis_transform(), color="black", lw=0.5)
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("t (ticks: knots)")
    ax.set_ylabel("score")
    ax.set_title(f"{len(t) - 1} linear piece{'s' if len(t) != 2 else ''}")
    if scores.shape[1] > 1:
        ax.legend(title="class", loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return ax
