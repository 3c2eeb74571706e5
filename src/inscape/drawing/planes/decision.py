"""The picture of exact decision regions: filled classes, faint linear regions, the boundary in black."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import Classes
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import draw_legend, raster_of_edges, write_names
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
    draw_legend(ax, labels[face], triangle_areas(triangles), classes, scene.point_labels)
    raster = raster_of_edges(xy[ends[changes]], sides[changes], scene.domain)
    write_names(ax, raster, region_labels, classes, scene.occupied)
    frame_plane(ax, scene, classes, title)
    return ax
