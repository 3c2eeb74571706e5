"""The picture of a plane: filled decision regions, their boundaries, the data points that span it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.images import as_images, place_image
from inscape.drawing.palette import class_colours, ink_on

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_MOST_NAMES = 12


def draw_plane(
    regions: Ints,
    region_labels: Ints,
    frame: Floats,
    *,
    names: dict[int, str],
    marks: Floats,
    images: npt.NDArray[Any],
    is_triangle: bool,
    ax: Any = None,
) -> Any:
    """Draw a grid of regions.

    Args:
        regions: the region of each grid point, (r, r), -1 outside.
        region_labels: the label of each region.
        frame: the corner and the two sides of the grid in drawing coordinates, (3, 2).
        names: the class name of each label that occurs.
        marks: the drawing coordinates of the data points, (m, 2).
        images: the data points themselves, (m, ...); shown if they are images.
        is_triangle: whether the domain is the triangle of corner and sides, not the whole parallelogram.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (7.2, 5.4))
    colours = class_colours(names)
    labels, inside = region_labels[regions], regions >= 0
    domain = _domain(frame, is_triangle)
    _fill(ax, labels, inside, frame, colours, domain)
    _draw_boundaries(ax, labels, inside, frame, domain)
    _write_names(ax, labels, regions, frame, names, colours)
    has_images = _draw_marks(ax, marks, images)
    _legend(ax, labels[inside], names, colours)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    low, high = domain.min(axis=0), domain.max(axis=0)
    pad = (0.2 if has_images and is_triangle else 0.02) * (high - low).max()
    ax.set_xlim(low[0] - pad, high[0] + pad)
    ax.set_ylim(low[1] - pad, high[1] + pad)
    count = len(region_labels)
    plural = "" if count == 1 else "s"
    ax.set_title(f"{count} decision region{plural}", pad=24 if has_images and is_triangle else None)
    return ax


def _domain(frame: Floats, is_triangle: bool) -> Floats:
    corner, s, t = frame
    return np.array(
        [corner, corner + s, corner + t] if is_triangle else [corner, corner + s, corner + s + t, corner + t]
    )


def _to_plane(frame: Floats, uv: Floats) -> Floats:
    return np.asarray(frame[0] + uv @ frame[1:])


def _fill(
    ax: Any, labels: Ints, inside: Mask, frame: Floats, colours: dict[int, Any], domain: Floats
) -> None:
    from matplotlib.patches import Polygon

    r = len(labels)
    u = (np.arange(r + 1) - 0.5) / (r - 1)
    corners = _to_plane(frame, np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1))
    rgba = np.ones((r, r, 4))
    for label, colour in colours.items():
        rgba[labels == label, :3] = colour
    rgba[~inside] = _nearest_inside(rgba, inside)
    mesh = ax.pcolormesh(corners[..., 0], corners[..., 1], rgba, rasterized=True, zorder=1)
    mesh.set_clip_path(Polygon(domain, transform=ax.transData))
    ax.add_patch(Polygon(domain, fill=False, ec="black", lw=1.0, zorder=3))


def _nearest_inside(rgba: Floats, inside: Mask) -> Floats:
    """Colours of the nearest inside cells: half-cells at a slanted border belong to them."""
    from scipy.ndimage import distance_transform_edt

    if inside.all():
        return rgba[~inside]
    nearest = distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return np.asarray(rgba[tuple(nearest)][~inside])


def _draw_boundaries(ax: Any, labels: Ints, inside: Mask, frame: Floats, domain: Floats) -> None:
    """Lines along the sides of neighbouring cells whose labels differ."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon

    r = len(labels)
    lines = []
    for axis in (0, 1):
        here, there = (np.s_[:-1], np.s_[1:]) if axis == 0 else (np.s_[:, :-1], np.s_[:, 1:])
        i, j = np.nonzero((labels[here] != labels[there]) & inside[here] & inside[there])
        ends = np.array([[0.5, -0.5], [0.5, 0.5]] if axis == 0 else [[-0.5, 0.5], [0.5, 0.5]])
        cells = np.stack([i, j], axis=1)
        lines.append((cells[:, None] + ends[None]) / (r - 1))
    segments = _to_plane(frame, np.concatenate(lines))
    collection = LineCollection(list(segments), colors="black", lw=0.7, capstyle="round", zorder=2)
    collection.set_clip_path(Polygon(domain, transform=ax.transData))
    ax.add_collection(collection)


def _write_names(
    ax: Any, labels: Ints, regions: Ints, frame: Floats, names: dict[int, str], colours: dict[int, Any]
) -> None:
    """The class name at the innermost cell of each large region."""
    from scipy.ndimage import distance_transform_edt

    r = len(labels)
    sizes = np.bincount(regions[regions >= 0])
    for region in np.argsort(-sizes)[:_MOST_NAMES]:
        depth = distance_transform_edt(np.pad(regions == region, 1))[1:-1, 1:-1]
        if depth.max() < max(1.5, 0.03 * r):
            continue
        i, j = np.unravel_index(np.argmax(depth), depth.shape)
        label = int(labels[i, j])
        x, y = _to_plane(frame, np.array([i, j]) / (r - 1))
        style = {"color": ink_on(colours[label]), "fontsize": 11, "weight": "bold", "zorder": 4}
        ax.text(x, y, _short(names[label]), ha="center", va="center", **style)


def _draw_marks(ax: Any, marks: Floats, images: npt.NDArray[Any]) -> bool:
    """Draw the data points; True if they are images and were drawn as such."""
    if len(marks) == 0:
        return False
    ax.scatter(*marks.T, s=46, facecolor="white", edgecolor="black", lw=1.2, zorder=5, clip_on=False)
    pictures = as_images(images)
    if pictures is None:
        return False
    centre = tuple(marks.mean(axis=0))
    for mark, picture in zip(marks, pictures, strict=True):
        place_image(ax, picture, (float(mark[0]), float(mark[1])), centre, size=52)
    return True


def _legend(ax: Any, labels: Ints, names: dict[int, str], colours: dict[int, Any]) -> None:
    """The classes by area, at most twelve of them, so that the legend stays readable with 100 classes."""
    from matplotlib.patches import Patch

    present, areas = np.unique(labels, return_counts=True)
    largest = present[np.argsort(-areas)][:_MOST_NAMES]
    handles = [
        Patch(fc=colours[i], ec="black", lw=0.5, label=_short(names[i])) for i in sorted(largest.tolist())
    ]
    if len(present) > _MOST_NAMES:
        handles.append(Patch(fc="none", ec="none", label=f"+ {len(present) - _MOST_NAMES} more"))
    ax.legend(handles=handles, title="class", loc="upper left", bbox_to_anchor=(1.04, 1.0), frameon=False)


def _short(name: str) -> str:
    return name if len(name) <= 20 else name[:19] + "…"
