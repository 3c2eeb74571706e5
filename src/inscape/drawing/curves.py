"""Pictures of curves: runs over training with bands, lines with the interval of each point, fits."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.measures import MARKERS
from inscape.drawing.palette import TEN

Floats = npt.NDArray[np.float64]
Curve = tuple[Floats, Floats, Floats, Floats]
"""Steps, means, and the ends of the interval of each mean (NaN for none)."""


def draw_runs(
    curves: Mapping[str, Curve],
    *,
    ylabel: str,
    colours: Mapping[str, str] | None = None,
    styles: Mapping[str, str] | None = None,
    log_y: bool = False,
    xlabel: str = "step",
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Each curve with its interval as a band; the axis of steps is logarithmic and has room for step 0."""
    ax = axes_or_new(ax, (5.6, 3.6))
    for i, (name, (steps, mean, low, high)) in enumerate(curves.items()):
        colour = (colours or {}).get(name, TEN[i % len(TEN)])
        ax.plot(
            steps, mean, (styles or {}).get(name, "-"), color=colour, lw=1.6, marker=".", ms=4, label=name
        )
        known = np.isfinite(low) & np.isfinite(high)
        if known.any():
            ax.fill_between(steps[known], low[known], high[known], color=colour, alpha=0.25, lw=0)
    ax.set_xscale("symlog", linthresh=10.0, linscale=0.4)
    ax.set_xlim(left=0)
    last = max((float(c[0][-1]) for c in curves.values()), default=10.0)
    ticks = [0.0, *10.0 ** np.arange(1, int(np.log10(max(last, 10))) + 1)]
    ax.set_xticks(ticks, ["0", *(f"$10^{k}$" for k in range(1, len(ticks)))])
    if log_y:
        ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(alpha=0.25)
    if legend and curves:
        ax.legend(frameon=False, fontsize=8)
    return ax


def draw_fit(
    x: Floats,
    y: Floats,
    line: tuple[float, float] | None,
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    ax: Any = None,
) -> Any:
    """Points and the line a + b x, if there is one."""
    ax = axes_or_new(ax, (5.0, 3.8))
    ax.scatter(x, y, s=22, color=TEN[0], alpha=0.85, edgecolor="white", lw=0.4, zorder=3)
    if line is not None:
        ends = np.array([x.min(), x.max()])
        ax.plot(ends, line[0] + line[1] * ends, color=TEN[2], lw=1.6)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, fontsize=10)
    ax.grid(alpha=0.25)
    return ax


def draw_intervals(lines: Mapping[str, Floats], *, xlabel: str, ylabel: str, ax: Any = None) -> Any:
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
