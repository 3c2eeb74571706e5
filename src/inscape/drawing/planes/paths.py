"""A planar subdivision as a few long paths, not an object per face or edge: a million can be drawn."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]

RASTER_LIMIT = 20_000
"""Files with lines and polygons (PDF, SVG) hold an image instead above this many faces or edges."""
_CHUNK = 10_000


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
    codes = np.full(len(vertices), 2, np.uint8)  # lines, but for a move to the first corner of each face
    codes[first] = 1
    sorted_group = group[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(sorted_group)) + 1, [len(order)]])
    paths, groups = [], []
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        for i in range(a, b, _CHUNK):
            cut = slice(int(first[i]), int(stop[min(i + _CHUNK, b) - 1]))
            paths.append(_path(vertices[cut], codes[cut]))
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
        _path(vertices[i : i + 2 * _CHUNK], codes[i : i + 2 * _CHUNK])
        for i in range(0, len(vertices), 2 * _CHUNK)
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
