"""Pictures of a grid on a plane: its decision regions in full, or in small the labels alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inscape.drawing import Bools, Floats, Ints
from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import Classes, class_colours, ink_on
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import Raster, draw_legend, write_names


def draw_plane(
    regions: Ints,
    region_labels: Ints,
    frame: Floats,
    *,
    classes: Classes,
    scene: Scene,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw a grid of regions.

    Args:
        regions: the region of each grid point, (r, r), -1 outside.
        region_labels: the label of each region.
        frame: the corner and the two sides of the grid in drawing coordinates, (3, 2).
        classes: names and colours of the labels.
        scene: the domain, where the picture ends, and the data points on it.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (7.2, 5.4))
    inside = regions >= 0
    labels = _extended(region_labels[regions], inside)
    _fill(ax, labels, frame, classes.colours, scene.domain)
    _draw_boundaries(ax, labels, frame, scene.domain)
    write_names(ax, _raster(regions, frame, scene.domain), region_labels, classes, scene.occupied)
    frame_plane(ax, scene, classes, title)
    draw_legend(ax, labels[inside], np.ones(int(inside.sum())), classes, scene.point_labels)
    return ax


def draw_labels(
    labels: Ints, bounds: Sequence[Sequence[float]], marks: Floats, classes: Sequence[int], *, ax: Any = None
) -> Any:
    """Draw the label of each grid point on a rectangle, the boundaries between them, and marked points.

    Args:
        labels: (rows, columns); rows go up, columns to the right.
        bounds: the two intervals of the rectangle, from the first grid point to the last.
        marks: coordinates of the marked points, (m, 2).
        classes: the class of each, written on it.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (4.0, 4.0))
    (s0, s1), (t0, t1) = bounds
    colours = class_colours([*np.unique(labels).tolist(), *(int(c) for c in classes)])
    frame = np.array([[s0, t0], [s1 - s0, 0.0], [0.0, t1 - t0]])
    domain = np.array([[s0, t0], [s1, t0], [s1, t1], [s0, t1]])
    _fill(ax, labels.T, frame, colours, domain)
    _draw_boundaries(ax, labels.T, frame, domain)
    for (x, y), label in zip(marks, classes, strict=True):
        colour = colours[int(label)]
        ax.plot(x, y, "o", ms=11, mfc=colour, mec="black", mew=1.5)
        ax.text(x, y, str(int(label)), ha="center", va="center", fontsize=7, color=ink_on(colour), zorder=3)
    ax.set_aspect("equal")
    ax.set_xlim(s0, s1)
    ax.set_ylim(t0, t1)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def _to_plane(frame: Floats, uv: Floats) -> Floats:
    return np.asarray(frame[0] + uv @ frame[1:])


def _extended(labels: Ints, inside: Bools) -> Ints:
    """Labels, those outside from the nearest square inside: half squares at a slanted border are its own."""
    from scipy.ndimage import distance_transform_edt

    if inside.all():
        return labels
    nearest = distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return np.asarray(labels[tuple(nearest)])


def _fill(ax: Any, labels: Ints, frame: Floats, colours: dict[int, Any], domain: Floats) -> None:
    from matplotlib.patches import Polygon

    u, v = ((np.arange(n + 1) - 0.5) / (n - 1) for n in labels.shape)
    corners = _to_plane(frame, np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1))
    rgba = np.ones((*labels.shape, 4))
    for label, colour in colours.items():
        rgba[labels == label, :3] = colour
    mesh = ax.pcolormesh(corners[..., 0], corners[..., 1], rgba, rasterized=True, zorder=1)
    mesh.set_clip_path(Polygon(domain, transform=ax.transData))


def _draw_boundaries(ax: Any, labels: Ints, frame: Floats, domain: Floats) -> None:
    """Lines along the sides of neighbouring squares whose labels differ."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon

    lines = []
    for axis in (0, 1):
        here, there = (np.s_[:-1], np.s_[1:]) if axis == 0 else (np.s_[:, :-1], np.s_[:, 1:])
        i, j = np.nonzero(labels[here] != labels[there])
        ends = np.array([[0.5, -0.5], [0.5, 0.5]] if axis == 0 else [[-0.5, 0.5], [0.5, 0.5]])
        corners = np.stack([i, j], axis=1)
        lines.append((corners[:, None] + ends[None]) / (np.array(labels.shape) - 1))
    segments = _to_plane(frame, np.concatenate(lines))
    collection = LineCollection(list(segments), colors="black", lw=0.7, capstyle="round", zorder=2)
    collection.set_clip_path(Polygon(domain, transform=ax.transData))
    ax.add_collection(collection)


def _raster(regions: Ints, frame: Floats, domain: Floats) -> Raster:
    """The regions of the nearest grid points, on a raster that is parallel to the Axes."""
    raster = Raster.empty(domain)
    uv = (raster.all_middles() - frame[0]) @ np.linalg.inv(frame[1:])
    i, j = np.moveaxis(np.rint(uv * (len(regions) - 1)).astype(int), -1, 0)
    inside = (i >= 0) & (i < len(regions)) & (j >= 0) & (j < len(regions))
    colours = np.where(inside, regions[np.where(inside, i, 0), np.where(inside, j, 0)], -1)
    return replace(raster, regions=colours)
