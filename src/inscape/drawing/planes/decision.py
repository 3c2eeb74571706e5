"""The picture of exact decision regions: filled classes, faint linear regions, the boundary in black."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import class_colours
from inscape.drawing.planes.frame import MOST_NAMES, draw_legend, frame_plane, squares_of_images, write_name
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

_SAMPLES_FOR_NAMES = 8192
_ROOM_FOR_NAME = 0.03
"""A name is written where this fraction of the domain's extent is free around it."""


def draw_decision_faces(
    xy: Floats,
    corners: Ints,
    start: Ints,
    ends: Ints,
    *,
    is_boundary: npt.NDArray[np.bool_],
    face_regions: Ints,
    region_labels: Ints,
    names: dict[int, str],
    domain: Floats,
    marks: Floats,
    images: npt.NDArray[Any],
    ax: Any = None,
) -> Any:
    """Draw decision regions that are unions of the faces of a planar subdivision.

    Args:
        xy: coordinates of the vertices, (v, 2).
        corners: the vertices of all faces, one face after the other.
        start: where the corners of each face start, (f + 1,).
        ends: the two vertices of each edge, (e, 2).
        is_boundary: whether the label changes across each edge, (e,).
        face_regions: the region of each face, (f,).
        region_labels: the label of each region.
        names: the class name of each label that occurs.
        domain: the corners of the convex domain, (k, 2).
        marks: the coordinates of the data points, (m, 2).
        images: the data points themselves, (m, ...); shown if they are images.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (7.2, 5.4))
    colours = class_colours(names)
    n, count = len(start) - 1, len(region_labels)
    labels = region_labels[face_regions]
    paths, group = faces_by_group(xy, corners, start, labels)
    fill_faces(ax, paths, n, facecolors=[colours[label] for label in group.tolist()])
    draw_edges(ax, xy, ends[~is_boundary], edgecolors=(0, 0, 0, 0.5), lw=0.8 * line_width(n), zorder=2)
    draw_edges(ax, xy, ends[is_boundary], edgecolors="black", lw=1.3, zorder=3)
    triangles, face = fan(xy, corners, start)
    areas = triangle_areas(triangles)
    draw_legend(ax, labels[face], areas, names, colours)
    extent = float(np.ptp(domain, axis=0).max())
    around = np.stack([domain, np.roll(domain, -1, axis=0)], axis=1)
    walls = np.concatenate([xy[ends[is_boundary]], around])
    points = np.concatenate([_points_along(walls, extent / 400), _covered(domain, marks, images)])
    centres, room = _innermost(triangles, areas, face_regions[face], count, points)
    for region in np.argsort(-room, kind="stable")[:MOST_NAMES].tolist():
        if room[region] > _ROOM_FOR_NAME * extent:
            label = int(region_labels[region])
            x, y = centres[region].tolist()
            write_name(ax, x, y, names[label], colours[label])
    frame_plane(ax, domain, marks, images, f"{count:,} decision region{'' if count == 1 else 's'}")
    return ax


def _covered(domain: Floats, marks: Floats, images: npt.NDArray[Any]) -> Floats:
    """Points all over what marks and the images beside them cover, about, (n, 2)."""
    squares = squares_of_images(domain, marks, images)
    t = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 9)]), axis=-1).reshape(-1, 2)
    inside = squares[:, :1] + t * (squares[:, 1:] - squares[:, :1])
    return np.concatenate([marks, inside.reshape(-1, 2)])


def _points_along(segments: Floats, spacing: float) -> Floats:
    """Points on segments (n, 2, 2), no further apart than `spacing`."""
    a, b = segments[:, 0], segments[:, 1]
    count = 2 + (np.linalg.norm(b - a, axis=1) / spacing).astype(np.int64)
    of = np.repeat(np.arange(len(count)), count)
    t = (np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)) / (count[of] - 1)
    return np.asarray(a[of] + t[:, None] * (b - a)[of])


def _innermost(
    triangles: Floats, areas: Floats, region: Ints, count: int, walls: Floats
) -> tuple[Floats, Floats]:
    """For each region its point farthest from all walls, of many spread evenly over the domain, and how far.

    A region between the points has distance 0: it is too small for a name.
    """
    from scipy.spatial import KDTree

    i = np.arange(_SAMPLES_FOR_NAMES)
    running = np.cumsum(areas)
    of = np.searchsorted(running, (i + 0.5) / _SAMPLES_FOR_NAMES * running[-1]).clip(max=len(areas) - 1)
    # Kronecker sequence of the plastic number: even in the unit square, folded into the triangle
    u = np.stack([i * 0.7548776662466927, i * 0.5698402909980532], axis=1) % 1.0
    u = np.where(u.sum(axis=1, keepdims=True) > 1, 1 - u, u)
    corner = triangles[of]
    points = corner[:, 0] + (u[:, :, None] * (corner[:, 1:] - corner[:, :1])).sum(axis=1)
    distance = KDTree(walls).query(points)[0]
    order = np.argsort(distance, kind="stable")
    room, centres = np.zeros(count), np.zeros((count, 2))
    room[region[of[order]]] = distance[order]  # the last, farthest point of each region stays
    centres[region[of[order]]] = points[order]
    return centres, room
