"""The picture of linear regions: faces coloured by pattern, by layer or by a number, and their edges."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import PATTERNS, Classes, pattern_colours
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import draw_legend
from inscape.drawing.planes.paths import (
    draw_edges,
    faces_by_group,
    fan,
    fill_faces,
    line_width,
    triangle_areas,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]
Faces = tuple[Floats, Ints, Ints]
"""Coordinates of the vertices, the vertices of all faces, and where those of each face start."""

_LEVELS = 256
_TAIL = 0.005
"""The fraction of the area whose values may lie beyond either end of the colour bar."""


def draw_faces(
    xy: Floats,
    corners: Ints,
    start: Ints,
    ends: Ints,
    *,
    values: npt.NDArray[Any],
    kind: str,
    edges: bool,
    scene: Scene,
    classes: Classes | None = None,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw a planar subdivision.

    Args:
        xy: coordinates of the vertices, (v, 2).
        corners: the vertices of all faces, one face after the other.
        start: where the corners of each face start, (f + 1,).
        ends: the two vertices of each edge, (e, 2).
        values: a number for each face, (f,).
        kind: "pattern" if the values are hashes, "layer" if they are the numbers of layers; else what the
            colour bar says that they are.
        edges: whether to draw the edges.
        scene: the domain, and the data points on it.
        classes: names and colours of the labels of the points, if they have labels.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_new(ax, (6.4 if kind == "pattern" else 7.2, 5.4))
    n = len(start) - 1
    faces = (xy, corners, start)
    if kind == "pattern":
        _fill_patterns(ax, values, faces)
    else:
        filled = (_fill_layers if kind == "layer" else _fill_values)(ax, values, faces)
        bar = ax.figure.colorbar(filled, ax=ax, shrink=0.8, pad=0.03, extend=_beyond(filled, values))
        bar.set_label("last layer that cuts the region out" if kind == "layer" else kind)
        bar.outline.set_linewidth(0.5)
        if kind == "layer":
            bar.minorticks_off()
            bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if edges:
        draw_edges(ax, xy, ends, edgecolors="0.1", lw=line_width(n), zorder=2)
    if classes is not None and scene.point_labels is not None:
        draw_legend(ax, np.empty(0, int), np.empty(0), classes, scene.point_labels)
    frame_plane(ax, scene, classes, title)
    return ax


def _fill_patterns(ax: Any, values: npt.NDArray[np.uint64], faces: Faces) -> Any:
    paths, group = faces_by_group(*faces, pattern_colours(values))
    return fill_faces(ax, paths, len(values), facecolors=PATTERNS[group])


def _fill_layers(ax: Any, values: Ints, faces: Faces) -> Any:
    """One colour per layer, from early (dark) to late (light)."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    low, high = int(values.min()), int(values.max())
    n = high - low + 1
    paths, group = faces_by_group(*faces, values)
    scale = ListedColormap(0.35 + 0.65 * colormaps["cividis"](np.linspace(0.1, 0.9, n))[:, :3])
    norm = BoundaryNorm(np.arange(low - 0.5, high + 1), n)
    return fill_faces(ax, paths, len(values), array=group, cmap=scale, norm=norm)


def _fill_values(ax: Any, values: Floats, faces: Faces) -> Any:
    """A scale of 256 steps; faces without a number are grey."""
    from matplotlib import colormaps

    values = np.asarray(values, dtype=np.float64)
    low, high = _range(values, faces)
    step = (high - low) / _LEVELS or 1.0
    level = np.where(np.isnan(values), -1, np.clip((values - low) // step, 0, _LEVELS - 1)).astype(np.int64)
    paths, group = faces_by_group(*faces, level)
    shown = np.ma.masked_less(group, 0) * step + (low + step / 2)
    scale = colormaps["viridis"].with_extremes(bad="0.85")
    return fill_faces(ax, paths, len(values), array=shown, cmap=scale, clim=(low, high))


def _range(values: Floats, faces: Faces) -> tuple[float, float]:
    """The values between which all but half a per cent of the area lies, on either side."""
    triangles, face = fan(*faces)
    areas = np.bincount(face, weights=triangle_areas(triangles), minlength=len(values))
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    if not len(order):
        return 0.0, 1.0
    running = np.cumsum(areas[order])
    ends = np.searchsorted(running, np.array([_TAIL, 1 - _TAIL]) * running[-1]).clip(max=len(order) - 1)
    low, high = values[order[ends]]
    return float(low), float(high)


def _beyond(filled: Any, values: npt.NDArray[Any]) -> str:
    """At which ends of the colour bar there are values beyond it."""
    low, high = (values < filled.norm.vmin).any(), (values > filled.norm.vmax).any()
    return "both" if low and high else "min" if low else "max" if high else "neither"
