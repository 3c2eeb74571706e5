"""Pictures of counts: their distribution over probes, models in order, counts against the gap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import TEN

MARKERS = "osD^vP*X<>"


def draw_counts(
    counts: npt.NDArray[np.int64], mean: float, interval: tuple[float, float], *, title: str, ax: Any = None
) -> Any:
    """How many probes have how many regions, with the mean and its 95 % interval."""
    ax = axes_or_new(ax, (5.6, 3.4))
    values, frequency = np.unique(counts, return_counts=True)
    ax.bar(values, frequency, color=TEN[0], width=0.9)
    ax.axvline(mean, color="black", lw=1.5, label=f"mean {mean:.2f}")
    if not np.isnan(interval[0]):
        ax.axvspan(*interval, color="black", alpha=0.15, lw=0, label="95 % interval")
    ax.set_xlabel("decision regions on a probe")
    ax.set_ylabel("probes")
    ax.set_title(title)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


def draw_ranking(
    names: Sequence[str],
    means: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    probabilities: Sequence[float],
    *,
    ax: Any = None,
) -> Any:
    """Models from fewest regions (top) to most, and between neighbours the probability of that order."""
    ax = axes_or_new(ax, (6.4, 1.2 + 0.42 * len(names)))
    rows = np.arange(len(names))
    reach = np.abs(np.array(intervals).T - np.array(means))
    ax.errorbar(means, rows, xerr=reach, fmt="o", color=TEN[0], ecolor=TEN[8], capsize=3)
    for row, p in enumerate(probabilities):
        ax.text(1.02, row + 0.5, f"{p:.1%}", transform=ax.get_yaxis_transform(), va="center", fontsize=9)
    ax.set_yticks(rows, names)
    ax.invert_yaxis()
    ax.set_xlabel("region count (95 % interval); right: how likely the upper model has fewer")
    return ax


def draw_scatter(
    groups: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    ax: Any = None,
) -> Any:
    """One marker and colour per group of points (x, y)."""
    ax = axes_or_new(ax, (6.2, 4.4))
    for i, (name, (x, y)) in enumerate(groups.items()):
        ax.scatter(
            x,
            y,
            marker=MARKERS[i % len(MARKERS)],
            color=TEN[i % len(TEN)],
            edgecolor="black",
            lw=0.5,
            label=name,
        )
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax
