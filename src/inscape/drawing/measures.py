"""Pictures of measures: by layer, over points, on a patch, over training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import TEN, Classes
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import draw_legend

Floats = npt.NDArray[np.float64]


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


def draw_values(values: Floats, mean: float, *, xlabel: str, title: str, ax: Any = None) -> Any:
    """How a quantity is distributed over points, with its mean."""
    ax = axes_or_new(ax, (5.6, 3.4))
    ax.hist(values, bins=min(40, max(5, len(values) // 4)), color=TEN[0])
    ax.axvline(mean, color="black", lw=1.5, label=f"mean {mean:.4g}")
    ax.set_xlabel(xlabel)
    ax.set_ylabel("points")
    ax.set_title(title)
    ax.legend(frameon=False)
    return ax


def draw_density(
    density: Floats, scene: Scene, *, classes: Classes | None = None, title: str, ax: Any = None
) -> Any:
    """Draw a density on a rectangle, dark where it is high.

    Args:
        density: its values at the points of a grid, (r, r); the first axis runs to the right.
        scene: the rectangle, and the data points on it.
        classes: names and colours of the labels of the points, if they have labels.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (5.6, 4.6))
    (s0, t0), (s1, t1) = scene.domain.min(axis=0), scene.domain.max(axis=0)
    image = ax.imshow(density.T, origin="lower", extent=(s0, s1, t0, t1), cmap="magma_r", vmin=0.0)
    ax.figure.colorbar(image, ax=ax, label="density", shrink=0.85)
    if classes is not None and scene.point_labels is not None:
        draw_legend(ax, np.empty(0, int), np.empty(0), classes, scene.point_labels)
    frame_plane(ax, scene, classes, title)
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
    for panel in axes[-1]:
        panel.set_xlabel(xlabel)
    return axes[0, 0]


def _log_steps(ax: Any, curves: Mapping[str, tuple[Floats, Floats]]) -> None:
    """A logarithmic axis that has room for step 0."""
    last = max((float(steps.max()) for steps, _ in curves.values() if len(steps)), default=1.0)
    if last > 10:
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(left=0)
