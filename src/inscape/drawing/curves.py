"""Pictures of curves: runs over training with bands, intervals, fits, and theory beside measurements."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape.drawing import Floats
from inscape.drawing.axes import axes_or_new, ink
from inscape.drawing.measures import MARKERS
from inscape.drawing.palette import TEN

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


_LEAST_RATIO, _MOST_RATIO = 1e-2, 1e7
"""Of the right side to the left: ratios beyond these are drawn at the ends."""


def draw_series(
    x: Floats,
    measured: Mapping[str, Floats],
    theory: Mapping[str, Floats],
    *,
    xlabel: str = "step size",
    ax: Any = None,
) -> Any:
    """Draw measured series with marks and theoretical ones as broken lines, over x, both axes logarithmic."""
    ax = axes_or_new(ax, (6.0, 4.0))
    for (label, y), colour in zip(measured.items(), TEN, strict=False):
        ax.plot(x, y, "o-", color=colour, ms=4, lw=1.4, label=label, zorder=3)
    for (label, y), colour, dash in zip(
        theory.items(), (ink(), TEN[8], TEN[2]), ("--", "-.", ":"), strict=False
    ):
        ax.plot(x, y, dash, color=colour, lw=1.4, label=label, zorder=2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.legend(frameon=False, fontsize="small")
    return ax


def draw_tracks(
    tracks: Sequence[tuple[float, Floats, Floats]], *, legend: bool = True, ax: Any = None
) -> Any:
    """Draw one line per (value, x, y) over a logarithmic x, coloured by the value, the extreme ones named."""
    from matplotlib import colormaps

    ax = axes_or_new(ax, (6.0, 4.0))
    scale = colormaps["cividis"]
    for i, (value, x, y) in enumerate(tracks):
        share = i / max(1, len(tracks) - 1)
        named = i in (0, len(tracks) // 2, len(tracks) - 1)
        label = f"step size {value:.3g}" if named else None
        ax.plot(x, y, "-", color=scale(0.95 * share), lw=1.3, label=label)
    ax.set_xscale("log")
    if legend:
        ax.legend(frameon=False, fontsize="small")
    return ax


def draw_tightness(names: Sequence[str], ratios: Mapping[str, Sequence[Floats]], *, ax: Any = None) -> Any:
    """Draw right side over left side of each statement, one row per statement, one mark per network.

    Args:
        names: the statements, from top to bottom.
        ratios: form ("stated", "corrected") -> for each statement the ratios, perhaps none; infinite ones are
            drawn at the right end.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (9.0, 0.34 * len(names) + 1.4))
    ax.axvspan(_LEAST_RATIO, 1.0, color=TEN[2], alpha=0.10, lw=0)
    ax.axvspan(1e3, _MOST_RATIO * 3, color=TEN[3], alpha=0.18, lw=0)
    ax.axvline(1.0, color=ink(), lw=0.8)
    marks = {"stated": (TEN[2], -0.17, "s"), "corrected": (TEN[0], 0.17, "o")}
    for form, (colour, shift, mark) in marks.items():
        label: str | None = form
        for row, values in enumerate(ratios.get(form, ())):
            shown = np.clip(np.asarray(values, dtype=np.float64), 1.2 * _LEAST_RATIO, _MOST_RATIO)
            if len(shown) == 0:
                continue
            at = np.full(len(shown), row + shift)
            ax.plot(shown, at, "|", color=colour, ms=6, mew=0.7, alpha=0.45, zorder=2)
            ax.plot(
                np.median(shown),
                row + shift,
                mark,
                color=colour,
                ms=5.5,
                mec="white",
                mew=0.6,
                label=label,
                zorder=3,
            )
            label = None
    ax.set_xscale("log")
    ax.set_xlim(_LEAST_RATIO, _MOST_RATIO * 3)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xticks([1e-2, 1, 1e2, 1e4, _MOST_RATIO], ["0.01", "1", "100", "10⁴", "10⁷ or ∞"])
    ax.set_xlabel("right side / left side")
    ax.text(1.3 * _LEAST_RATIO, -0.75, "violated", color=TEN[2], va="bottom")
    ax.text(1.3e3, -0.75, "vacuous", color=TEN[8], va="bottom")
    ax.legend(frameon=True, framealpha=0.9, loc="lower left", title="median")
    return ax
