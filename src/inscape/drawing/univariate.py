"""Pictures of the univariate laboratory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape.drawing import Floats, Ints
from inscape.drawing.axes import axes_or_new, colour_bar, ink
from inscape.drawing.palette import TEN


def draw_function(
    t: Floats,
    f: Floats,
    x: Floats | None = None,
    y: Floats | None = None,
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
    ax.plot(t[1:-1], f[1:-1], "o", color=colour, ms=2.5, mew=0, zorder=2)
    if x is not None:
        values = np.zeros_like(x) if y is None else y
        ax.plot(x, values, "x", color=ink(), ms=5, mew=1.1, zorder=3)
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("f(x)")
    return ax


def draw_region_table(place: Floats, slope: Floats, counts: Ints, effective: int, *, ax: Any = None) -> Any:
    """Draw the number of linear regions over both tolerances, the plateau framed."""
    ax = axes_or_new(ax, (5.6, 4.2))
    shown = np.log10(np.maximum(counts, 1))
    image = ax.pcolormesh(slope, place, shown, cmap="cividis", shading="nearest")
    if (counts != effective).any():
        ax.contour(
            slope, place, (counts == effective).astype(float), levels=[0.5], colors="white", linewidths=1.6
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("slope change below which a knot is dropped (relative)")
    ax.set_ylabel("distance below which knots are one")
    ax.set_title(f"linear regions: {effective} on the framed plateau")
    ticks = np.unique(np.round(np.quantile(np.unique(counts), [0, 0.33, 0.67, 1.0])).astype(int))
    bar = colour_bar(ax, image, "linear regions", ticks=np.log10(ticks))
    bar.ax.set_yticklabels([str(tick) for tick in ticks])
    return ax


def draw_losses(
    runs: Mapping[str, tuple[Ints, Floats]],
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
    knots: Floats,
    size: Floats,
    low: float,
    high: float,
    *,
    label: str = "|f''|",
    colour: str = TEN[0],
    ax: Any = None,
) -> Any:
    """Draw |f''| on [low, high]: each slope change at its knot as a bell of width (high - low) / 50.

    Args:
        knots: where the slope changes, (m,).
        size: by how much, (m,): the areas of the bells.
        low: left end.
        high: right end.
        label: for the legend.
        colour: of the curve.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (6.0, 3.6))
    at, width = np.linspace(low, high, 800), (high - low) / 50
    bells = np.exp(-(((at[:, None] - knots) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    ax.plot(at, bells @ size, color=colour, lw=1.5, label=label)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("x")
    ax.set_ylabel("|f''|, smoothed")
    return ax


def draw_weight(at: Floats, weight: Floats, *, ax: Any) -> Any:
    """Shade the weight g behind `ax`, on a twin axis."""
    twin = ax.twinx()
    twin.fill_between(at, weight, color="0.75", alpha=0.5, lw=0)
    twin.set_ylim(bottom=0)
    twin.set_ylabel("weight g (shaded)")
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    return twin


def draw_convergence(norm: Floats, change: Floats, tolerance: float, *, ax: Any = None) -> Any:
    """Draw the change of direction per unit of log norm over the norm, with the tolerance."""
    ax = axes_or_new(ax, (6.0, 3.6))
    finite = np.isfinite(change) & (change > 0)
    ax.plot(norm[finite], change[finite], lw=1.2, color=TEN[0])
    ax.axhline(tolerance, color="grey", lw=0.8, ls=":")
    if finite.any():
        ax.set_xscale("log")
    else:
        ax.set_title("too few steps for a change of direction")
    ax.set_yscale("log")
    ax.set_xlabel("norm of the parameters")
    ax.set_ylabel("change of direction per log norm")
    return ax


def draw_multipliers(margins: Floats, multipliers: Floats, *, ax: Any = None) -> Any:
    """Draw the KKT multipliers of the points over their margins, scaled to least margin 1."""
    ax = axes_or_new(ax, (6.0, 3.6))
    ax.vlines(margins, 0, multipliers, color=TEN[0], lw=1.2)
    ax.plot(margins, multipliers, "o", color=TEN[0], ms=4, mew=0)
    ax.axvline(1.0, color="grey", lw=0.8, ls=":")
    ax.set_xlabel("margin (least margin 1)")
    ax.set_ylabel("multiplier")
    ax.set_ylim(bottom=0)
    return ax


def draw_weights(at: Floats, sample: Floats, population: Floats, x: Floats, *, ax: Any = None) -> Any:
    """Draw the weight g of a sample x and of its population over the places `at`, the sample as ticks."""
    ax = axes_or_new(ax, (5.0, 3.4))
    ax.plot(at, population, color=TEN[0], lw=1.8, label="population")
    ax.plot(at, sample, color=TEN[2], lw=1.4, ls="--", label=f"sample of {len(x)}")
    ax.vlines(x, 0, 0.05, transform=ax.get_xaxis_transform(), color=ink(), lw=0.7)
    ax.set_xlim(at[0], at[-1])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("x (ticks: the sample)")
    ax.set_ylabel("g(x)")
    ax.legend(frameon=False)
    return ax


def draw_sharpness(sizes: Floats, series: Mapping[str, Floats], others: Floats, *, ax: Any = None) -> Any:
    """Draw sharpness over step size with the limit 2/eta; step sizes of other runs as crosses below.

    Args:
        sizes: step sizes of the runs that interpolate, ascending, (m,).
        series: name -> values there, (m,).
        others: step sizes of the runs that do not.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (6.4, 4.2))
    everything = np.concatenate([sizes, others])
    eta = np.geomspace(everything.min(), everything.max(), 200)
    ax.plot(eta, 2 / eta, color=TEN[2], lw=1.4, label="2 / step size")
    for (name, values), colour, marker in zip(series.items(), (TEN[1], TEN[0], TEN[4]), "osD", strict=False):
        ax.plot(sizes, values, marker, color=colour, ms=4.5, mew=0, alpha=0.85, label=name)
    if len(others):
        height = np.full(len(others), 0.03)
        ax.plot(
            others,
            height,
            "x",
            transform=ax.get_xaxis_transform(),
            color="0.4",
            ms=5,
            label="not at zero loss",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("step size")
    ax.set_ylabel("top eigenvalue of the Hessian")
    ax.legend(frameon=False)
    return ax


def draw_region_counts(
    groups: Mapping[str, tuple[Floats, Floats]], at: Floats, bound: Floats, *, xlabel: str, ax: Any = None
) -> Any:
    """Draw numbers of linear regions on a logarithmic scale, one marker per group, with their bound.

    Args:
        groups: name -> places and counts, (m,) each; groups are moved a little apart.
        at: places of the bound, (b,).
        bound: its values.
        xlabel: what the places are.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (5.4, 4.0))
    ax.plot(at, bound, color=ink(), lw=1.2, ls="--", label="bound 32 r + 67")
    room = 0.015 * (at.max(initial=0.0) - at.min(initial=at.max(initial=0.0)) or at.max(initial=1.0))
    for i, (name, (places, counts)) in enumerate(groups.items()):
        shift = room * (i - (len(groups) - 1) / 2)
        ax.plot(places + shift, counts, "osD^"[i % 4], color=TEN[i], ms=5, mew=0, alpha=0.8, label=name)
    ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.set_ylabel("effective linear regions")
    ax.legend(frameon=False)
    return ax


def draw_errors_by_width(groups: Mapping[float, Floats], least: Floats, *, ax: Any = None) -> Any:
    """Draw the errors of many runs for each ratio of widths as boxes, and a lower bound as a line.

    Args:
        groups: ratio of widths -> errors.
        least: the lower bound for each ratio.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (6.4, 4.0))
    places = np.arange(len(groups))
    boxes = ax.boxplot(list(groups.values()), positions=places, widths=0.5, patch_artist=True)
    for box in boxes["boxes"]:
        box.set(facecolor=TEN[0], alpha=0.6)
    for median in boxes["medians"]:
        median.set(color=ink())
    ax.plot(places, least, color=TEN[2], lw=1.4, marker="o", ms=4, label="least error of the living neurons")
    ax.set_xticks(places, [f"{alpha:g}" for alpha in groups])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("width over the teacher's width")
    ax.set_ylabel("population error")
    ax.legend(frameon=False)
    return ax
