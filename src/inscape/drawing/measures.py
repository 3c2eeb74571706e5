"""Pictures of measures: by layer, over points, on a patch, over training; counts over probes and models."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inscape.drawing import Floats, Ints
from inscape.drawing.axes import axes_or_new, colour_bar, ink
from inscape.drawing.palette import TEN, Classes
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import draw_legend


def draw_layers(values: Floats, names: Sequence[str], *, ylabel: str, title: str, ax: Any = None) -> Any:
    """One bar per layer."""
    ax = axes_or_new(ax, (max(4.5, 0.5 * len(values) + 2), 3.4))
    places = np.arange(len(values))
    ax.bar(places, values, color=TEN[0], width=0.8)
    many = len(names) > 6 or any(len(n) > 8 for n in names)
    ax.set_xticks(places, names, rotation=60 if many else 0, ha="right" if many else "center")
    ax.set_xlabel("layer")
    ax.set_ylabel(ylabel)
    ax.set_title(title)
    return ax


def draw_values(
    values: Floats, mean: float, *, xlabel: str, title: str, of: str = "points", ax: Any = None
) -> Any:
    """How a quantity is distributed over points, or what else it is of, with its mean."""
    ax = axes_or_new(ax, (5.6, 3.4))
    ax.hist(values, bins=min(40, max(5, len(values) // 4)), color=TEN[0])
    ax.axvline(mean, color=ink(), lw=1.5, label=f"mean {mean:.4g}")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(of)
    ax.set_title(title)
    ax.legend(frameon=False)
    return ax


def draw_density(
    density: Floats,
    scene: Scene,
    *,
    classes: Classes | None = None,
    from_zero: bool = True,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw a density on a rectangle, dark where it is high.

    Args:
        density: its values at the points of a grid, (r, r); the first axis runs to the right.
        scene: the rectangle, and the data points on it.
        classes: names and colours of the labels of the points, if they have labels.
        from_zero: whether colours begin at zero; else at the least value.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (5.6 if scene.point_labels is None else 6.8, 4.6))  # a legend beside the bar
    low = 0.0 if from_zero else float(density.min())
    (s0, t0), (s1, t1) = scene.domain.min(axis=0), scene.domain.max(axis=0)
    image = ax.imshow(density.T, origin="lower", extent=(s0, s1, t0, t1), cmap="magma_r", vmin=low)
    colour_bar(ax, image, "density")
    frame_plane(ax, scene, classes, title)
    if classes is not None and scene.point_labels is not None:
        draw_legend(ax, np.empty(0, int), np.empty(0), classes, scene.point_labels)
    return ax


def draw_curves(curves: Mapping[str, tuple[Floats, Floats]], *, xlabel: str, ax: Any = None) -> Any:
    """One panel per measure over log-steps; given Axes, all curves in them, each scaled to its maximum."""
    if ax is not None:
        for i, (name, (steps, values)) in enumerate(curves.items()):
            top = np.nanmax(np.abs(values)) or 1.0
            ax.plot(steps, values / top, color=TEN[i % len(TEN)], marker=".", label=f"{name} / {top:.3g}")
        _log_steps(ax, curves)
        ax.set_xlabel(xlabel)
        ax.legend(frameon=False, fontsize=8)
        return ax
    n = max(1, len(curves))
    columns = min(n, 2)
    rows = -(-n // columns)
    first = axes_or_new(None, (4.4 * columns, 2.4 * rows))
    figure = first.figure
    first.remove()
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for i, (name, (steps, values)) in enumerate(curves.items()):
        panel = axes[i // columns, i % columns]
        panel.plot(steps, values, color=TEN[i % len(TEN)], marker=".", lw=1.4)
        panel.set_title(name, fontsize=10)
        panel.grid(alpha=0.3)
        _log_steps(panel, curves)
    for panel in axes.flat[len(curves) :]:
        panel.set_visible(False)
    for panel in axes.flat[max(0, len(curves) - columns) : len(curves)]:  # the lowest of each column
        panel.set_xlabel(xlabel)
        panel.tick_params(labelbottom=True)
    return axes[0, 0]


def _log_steps(ax: Any, curves: Mapping[str, tuple[Floats, Floats]]) -> None:
    """A logarithmic axis that has room for step 0."""
    last = max((float(steps.max()) for steps, _ in curves.values() if len(steps)), default=1.0)
    if last > 10:
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(left=0)


MARKERS = "osD^vP*X<>"


def draw_counts(
    counts: Ints, mean: float, interval: tuple[float, float], *, title: str, ax: Any = None
) -> Any:
    """How many probes have how many regions, with the mean and its 95 % interval."""
    ax = axes_or_new(ax, (5.6, 3.4))
    values, frequency = np.unique(counts, return_counts=True)
    ax.bar(values, frequency, color=TEN[0], width=0.9)
    ax.axvline(mean, color=ink(), lw=1.5, label=f"mean {mean:.2f}")
    if not np.isnan(interval[0]):
        ax.axvspan(*interval, color=ink(), alpha=0.15, lw=0, label="95 % interval")
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
        style: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 9}
        ax.text(0.985, row + 0.5, f"{p:.1%}", transform=ax.get_yaxis_transform(), **style)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(names) - 0.5, -0.5)  # half a row above the first and below the last
    ax.set_xlabel("region count (95 % interval);\nright: how likely the upper model has fewer")
    return ax


def draw_scatter(
    groups: dict[str, tuple[Floats, Floats]],
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


def draw_distances(of_layers: Sequence[Floats], names: Sequence[str], *, title: str, ax: Any = None) -> Any:
    """How far the hyperplanes of each layer's units are: a stroke for each, the nearest of all in black."""
    ax = axes_or_new(ax, (6.0, max(2.2, 0.35 * len(names) + 1.4)))
    for k, distances in enumerate(of_layers):
        ax.vlines(distances, k - 0.35, k + 0.35, color=TEN[k % len(TEN)], lw=1, alpha=0.6)
    nearest = min((float(d.min()) for d in of_layers if len(d)), default=None)
    if nearest is not None:
        ax.axvline(nearest, color=ink(), lw=1.5)
        ax.set_xscale("log" if nearest > 0 else "linear")
        title = f"{title}, the nearest {nearest:.3g} away"
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_ylabel("layer")
    ax.set_xlabel("distance to the hyperplane of a unit")
    ax.set_title(title)
    return ax


def draw_bracket(lower: float, upper: float, *, title: str, ax: Any = None) -> Any:
    """What is known of a distance: one label for sure up to `lower`, another one at `upper`."""
    ax = axes_or_new(ax, (6.0, 1.9))
    known = [f"one label up to {lower:.4g}"] * math.isfinite(lower)
    known += [f"another at {upper:.4g}" if math.isfinite(upper) else "no other found"]
    far = next((b for b in (upper, 2 * lower) if 0 < b < math.inf), 1.0)
    near = min(lower, far)
    ax.barh([0], [near], color=TEN[0], height=0.5)
    ax.barh([0], [far - near], left=[near], color=TEN[0], alpha=0.25, height=0.5)
    if math.isfinite(upper):
        ax.axvline(upper, color=ink(), lw=1.5)
    ax.set_yticks([])
    ax.set_xlim(0, 1.05 * far)
    ax.set_xlabel(f"distance: {', '.join(known)}")
    ax.set_title(title)
    return ax
