"""Pictures of the univariate laboratory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import TEN

Array = npt.NDArray[np.float64]


def draw_function(
    t: Array,
    f: Array,
    x: Array | None = None,
    y: Array | None = None,
    *,
    label: str | None = None,
    colour: str = TEN[0],
    ax: Any = None,
) -> Any:
    """Draw the broken line through (t, f) with its knots marked, and data points as crosses.

    Args:
        t: left end, knots, right end, ascending.
        f: the values there.
        x: places of data points.
        y: their values; crosses sit at 0 if None.
        label: for the legend.
        colour: of the line.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (6.0, 3.6))
    ax.plot(t, f, color=colour, lw=1.5, label=label, zorder=2)
    ax.plot(t[1:-1], f[1:-1], "o", color=colour, ms=3, mew=0, zorder=2)
    if x is not None:
        values = np.zeros_like(x) if y is None else y
        ax.plot(x, values, "x", color="black", ms=5, mew=1.1, zorder=3)
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("f(x)")
    return ax


def draw_region_table(
    place: Array, slope: Array, counts: npt.NDArray[np.int64], effective: int, *, ax: Any = None
) -> Any:
    """Draw the number of linear regions over both tolerances, the plateau framed."""
    ax = axes_or_new(ax, (5.6, 4.2))
    shown = np.log10(np.maximum(counts, 1))
    image = ax.pcolormesh(slope, place, shown, cmap="cividis", shading="nearest")
    ax.contour(
        slope, place, (counts == effective).astype(float), levels=[0.5], colors="white", linewidths=1.6
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("slope change below which a knot is dropped (relative)")
    ax.set_ylabel("distance below which knots are one")
    ax.set_title(f"linear regions: {effective} on the framed plateau")
    ticks = np.unique(np.round(np.quantile(np.unique(counts), [0, 0.33, 0.67, 1.0])).astype(int))
    bar = ax.figure.colorbar(image, ax=ax, ticks=np.log10(ticks))
    bar.ax.set_yticklabels([str(tick) for tick in ticks])
    return ax


def draw_losses(
    runs: Mapping[str, tuple[npt.NDArray[np.int64], Array]],
    *,
    mark: float | None = None,
    colours: Sequence[str] = TEN,
    ax: Any = None,
) -> Any:
    """Draw losses over steps on a logarithmic scale, one line for each run; `mark` is a step to point out."""
    ax = axes_or_new(ax, (6.0, 3.6))
    for i, (name, (steps, loss)) in enumerate(runs.items()):
        ax.plot(steps, loss, lw=1.2, color=colours[i % len(colours)], label=name)
    if mark is not None:
        ax.axvline(mark, color="grey", lw=0.8, ls=":")
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    return ax


def draw_curvature(
    knots: Array,
    size: Array,
    low: float,
    high: float,
    *,
    label: str = "|f''|",
    colour: str = TEN[0],
    ax: Any = None,
) -> Any:
    """Draw the sizes of the slope changes at the knots in [low, high] as stems."""
    ax = axes_or_new(ax, (6.0, 3.6))
    inside = (knots >= low) & (knots <= high)
    ax.vlines(knots[inside], 0, size[inside], color=colour, lw=1.4)
    ax.plot(knots[inside], size[inside], "o", color=colour, ms=4, mew=0, label=label)
    ax.set_xlabel("x")
    ax.set_ylabel("size of the slope change")
    ax.set_ylim(bottom=0)
    return ax


def draw_weight(at: Array, weight: Array, *, ax: Any) -> Any:
    """Shade the weight g behind `ax`, on a twin axis."""
    twin = ax.twinx()
    twin.fill_between(at, weight, color="0.75", alpha=0.5, lw=0)
    twin.set_ylim(bottom=0)
    twin.set_ylabel("weight g (shaded)")
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    return twin


def draw_convergence(norm: Array, change: Array, tol: float, *, ax: Any = None) -> Any:
    """Draw the change of direction per unit of log norm over the norm, with the tolerance."""
    ax = axes_or_new(ax, (6.0, 3.6))
    finite = np.isfinite(change) & (change > 0)
    ax.plot(norm[finite], change[finite], lw=1.2, color=TEN[0])
    ax.axhline(tol, color="grey", lw=0.8, ls=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("norm of the parameters")
    ax.set_ylabel("change of direction per log norm")
    return ax


def draw_multipliers(margins: Array, multipliers: Array, *, ax: Any = None) -> Any:
    """Draw the KKT multipliers of the points over their margins, scaled to least margin 1."""
    ax = axes_or_new(ax, (6.0, 3.6))
    ax.vlines(margins, 0, multipliers, color=TEN[0], lw=1.2)
    ax.plot(margins, multipliers, "o", color=TEN[0], ms=4, mew=0)
    ax.axvline(1.0, color="grey", lw=0.8, ls=":")
    ax.set_xlabel("margin (least margin 1)")
    ax.set_ylabel("multiplier")
    ax.set_ylim(bottom=0)
    return ax
