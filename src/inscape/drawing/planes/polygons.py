"""Pictures of a planar subdivision: its linear regions, or the decision regions that are unions of them.

Linear regions are coloured by pattern, by layer or by a number; decision regions by class, with faint linear
regions below and the boundary in black. Faces and edges are few long paths, not an object each: a million can
be drawn.
"""

from typing import Any

import numpy as np

from inscape.drawing import Array, Floats, Hashes, Ints
from inscape.drawing.axes import axes_or_new, colour_bar
from inscape.drawing.palette import PATTERNS, Classes, pattern_colours
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import draw_legend, raster_of_edges, write_names

PackedPolygons = tuple[Floats, Ints, Ints]
"""Coordinates of the vertices, the vertices of all faces, and where those of each face start."""

RASTER_LIMIT = 20_000
"""Files with lines and polygons (PDF, SVG) hold an image instead above this many faces or edges."""
_FACES_IN_PATH = 10_000
"""Of one colour; of edges as many."""
_COLOURS = 256
"""To which values are rounded: faces of one colour are one path."""
_AREA_OFF_SCALE = 0.005
"""The fraction of the area whose values may lie beyond either end of the colour bar."""


def draw_faces(
    xy: Floats,
    corners: Ints,
    start: Ints,
    ends: Ints,
    *,
    values: Array,
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
        label = "last layer that cuts the region out" if kind == "layer" else kind
        bar = colour_bar(ax, filled, label, extend=_beyond(filled, values))
        if kind == "layer":
            bar.minorticks_off()
            bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if edges:
        draw_edges(ax, xy, ends, edgecolors="0.1", lw=line_width(n), zorder=2)
    frame_plane(ax, scene, classes, title)
    if classes is not None and scene.point_labels is not None:
        draw_legend(ax, np.empty(0, int), np.empty(0), classes, scene.point_labels)
    return ax


def _fill_patterns(ax: Any, values: Hashes, faces: PackedPolygons) -> Any:
    paths, group = faces_by_group(*faces, pattern_colours(values))
    return fill_faces(ax, paths, len(values), facecolors=PATTERNS[group])


def _fill_layers(ax: Any, values: Ints, faces: PackedPolygons) -> Any:
    """One colour per layer, from early (dark) to late (light)."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    low, high = int(values.min()), int(values.max())
    n = high - low + 1
    paths, group = faces_by_group(*faces, values)
    scale = ListedColormap(0.35 + 0.65 * colormaps["cividis"](np.linspace(0.1, 0.9, n))[:, :3])
    norm = BoundaryNorm(np.arange(low - 0.5, high + 1), n)
    return fill_faces(ax, paths, len(values), array=group, cmap=scale, norm=norm)


def _fill_values(ax: Any, values: Floats, faces: PackedPolygons) -> Any:
    """A scale of 256 steps; faces without a number are grey."""
    from matplotlib import colormaps

    values = np.asarray(values, dtype=np.float64)
    low, high = _range(values, faces)
    step = (high - low) / _COLOURS or 1.0
    level = np.where(np.isnan(values), -1, np.clip((values - low) // step, 0, _COLOURS - 1)).astype(np.int64)
    paths, group = faces_by_group(*faces, level)
    shown = np.ma.masked_less(group, 0) * step + (low + step / 2)
    scale = colormaps["viridis"].with_extremes(bad="0.85")
    return fill_faces(ax, paths, len(values), array=shown, cmap=scale, clim=(low, high))


def _range(values: Floats, faces: PackedPolygons) -> tuple[float, float]:
    """The values between which all but half a per cent of the area lies, on either side."""
    triangles, face = fan(*faces)
    areas = np.bincount(face, weights=triangle_areas(triangles), minlength=len(values))
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    if not len(order):
        return 0.0, 1.0
    running = np.cumsum(areas[order])
    ends = np.searchsorted(running, np.array([_AREA_OFF_SCALE, 1 - _AREA_OFF_SCALE]) * running[-1]).clip(
        max=len(order) - 1
    )
    low, high = values[order[ends]]
    return float(low), float(high)


def _beyond(filled: Any, values: Array) -> str:
    """At which ends of the colour bar there are values beyond it."""
    low, high = (values < filled.norm.vmin).any(), (values > filled.norm.vmax).any()
    return "both" if low and high else "min" if low else "max" if high else "neither"


def draw_decision_faces(
    xy: Floats,
    corners: Ints,
    start: Ints,
    ends: Ints,
    *,
    sides: Ints,
    face_regions: Ints,
    region_labels: Ints,
    classes: Classes,
    scene: Scene,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw decision regions that are unions of the faces of a planar subdivision.

    Args:
        xy: coordinates of the vertices, (v, 2).
        corners: the vertices of all faces, one face after the other.
        start: where the corners of each face start, (f + 1,).
        ends: the two vertices of each edge, (e, 2).
        sides: the regions to the left and to the right of each edge, -1 outside, (e, 2).
        face_regions: the region of each face, (f,).
        region_labels: the label of each region.
        classes: names and colours of the labels.
        scene: the domain, and the data points on it.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (7.2, 5.4))
    n = len(start) - 1
    labels = region_labels[face_regions]
    changes = sides[:, 0] != sides[:, 1]
    is_boundary = changes & (sides >= 0).all(axis=1)
    paths, group = faces_by_group(xy, corners, start, labels)
    fill_faces(ax, paths, n, facecolors=[classes.colours[label] for label in group.tolist()])
    draw_edges(ax, xy, ends[~is_boundary], edgecolors=(0, 0, 0, 0.5), lw=0.8 * line_width(n), zorder=2)
    draw_edges(ax, xy, ends[is_boundary], edgecolors="black", lw=1.3, zorder=3)
    triangles, face = fan(xy, corners, start)
    raster = raster_of_edges(xy[ends[changes]], sides[changes], scene.domain)
    write_names(ax, raster, region_labels, classes, scene.occupied)
    frame_plane(ax, scene, classes, title)
    draw_legend(ax, labels[face], triangle_areas(triangles), classes, scene.point_labels)
    return ax


def faces_by_group(xy: Floats, corners: Ints, start: Ints, group: Ints) -> tuple[list[Any], Ints]:
    """Paths that each hold many faces of one group, and the group of each path.

    Args:
        xy: coordinates of the vertices, (v, 2).
        corners: the vertices of all faces, one face after the other.
        start: where the corners of each face start, (f + 1,).
        group: a number for each face, (f,).
    """
    order = np.argsort(group, kind="stable")
    size = np.diff(start)[order]
    stop = np.cumsum(size)
    first = stop - size
    vertices = xy[corners[np.arange(stop[-1]) + np.repeat(start[:-1][order] - first, size)]]
    codes = np.full(len(vertices), 2, np.uint8)  # lines, apart from a move to the first corner of each face
    codes[first] = 1
    sorted_group = group[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(sorted_group)) + 1, [len(order)]])
    paths, groups = [], []
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        for i in range(a, b, _FACES_IN_PATH):
            chunk = slice(int(first[i]), int(stop[min(i + _FACES_IN_PATH, b) - 1]))
            paths.append(_path(vertices[chunk], codes[chunk]))
            groups.append(sorted_group[a])
    return paths, np.array(groups)


def fill_faces(ax: Any, paths: list[Any], n_faces: int, **style: Any) -> Any:
    """The collection of filled paths, added to the Axes.

    Without antialiasing every pixel has one colour, and no seams shine through between the faces. Up to the
    limit a smooth copy on top mixes the colours of neighbours along their borders.
    """
    from matplotlib.collections import PathCollection

    style |= {"lw": 0, "edgecolors": "none", "rasterized": n_faces > RASTER_LIMIT}
    if n_faces <= RASTER_LIMIT:
        _added(ax, PathCollection(paths, antialiaseds=True, zorder=1.5, **style))
    return _added(ax, PathCollection(paths, antialiaseds=False, zorder=1, **style))


def draw_edges(ax: Any, xy: Floats, ends: Ints, **style: Any) -> Any:
    """The collection of the edges (e, 2), added to the Axes."""
    from matplotlib.collections import PathCollection

    vertices = xy[ends.reshape(-1)]
    codes = np.tile(np.array([1, 2], np.uint8), len(ends))
    paths = [
        _path(vertices[i : i + 2 * _FACES_IN_PATH], codes[i : i + 2 * _FACES_IN_PATH])
        for i in range(0, len(vertices), 2 * _FACES_IN_PATH)
    ]
    lines = PathCollection(
        paths, facecolors="none", rasterized=len(ends) > 2 * RASTER_LIMIT, capstyle="round", **style
    )
    return _added(ax, lines)


def line_width(n_faces: int) -> float:
    """The width of edges in points: 0.8 up to fifty faces, then falling with the cube root of their number.

    >>> line_width(10), round(line_width(50_000), 3)
    (0.8, 0.08)
    """
    return float(0.8 * min(1.0, 50 / max(n_faces, 1)) ** (1 / 3))


def fan(xy: Floats, corners: Ints, start: Ints) -> tuple[Floats, Ints]:
    """Convex faces as triangles (m, 3, 2), and the face of each."""
    count = np.diff(start) - 2
    face = np.repeat(np.arange(len(count)), count)
    k = np.arange(len(face)) - np.repeat(np.cumsum(count) - count, count)
    first = start[:-1][face]
    return xy[np.stack([corners[first], corners[first + k + 1], corners[first + k + 2]], axis=1)], face


def triangle_areas(triangles: Floats) -> Floats:
    """The area of each triangle (m, 3, 2)."""
    (ax, ay), (bx, by) = (triangles[:, i].T - triangles[:, 0].T for i in (1, 2))
    return np.asarray(np.abs(ax * by - ay * bx) / 2)


def _path(vertices: Floats, codes: Any) -> Any:
    from matplotlib.path import Path

    path = Path(vertices, codes)
    path.should_simplify = False
    return path


def _added(ax: Any, collection: Any) -> Any:
    collection.set_snap(False)
    collection.set_in_layout(False)
    return ax.add_collection(collection, autolim=False)
