"""What all pictures of planes share: the outline, data points (images as images), axes, limits and title."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from inscape.drawing import Array, Bools, Floats, Ints
from inscape.drawing.axes import ink
from inscape.drawing.palette import Classes, deeper

_MOST_STRETCH = 4.0
"""Features whose extents differ by no more than this factor are drawn true to scale."""
_THUMBNAIL_SHARE = 0.2
"""The side of a thumbnail, of the shorter side of the Axes."""
_SIZES = (12.0, 52.0)
"""Its least and its greatest side in points."""


def _none() -> Floats:
    return np.empty((0, 2))


@dataclass(frozen=True, eq=False)
class Scene:
    """A convex domain in a plane, and the data points to be shown on it.

    Attributes:
        domain: the corners of the domain, (k, 2).
        marks: coordinates of the data points that span the plane, (m, 2).
        images: these points themselves, (m, ...); shown if they are images.
        mark_names: their names, () for none.
        axis_names: what the two coordinates are, if they are features; None leaves the axes out.
        points: coordinates of other data points, (n, 2).
        point_labels: the label of each, (n,), or None if they have no classes.
        in_plane: whether each lies in the plane; else it is drawn where it is nearest.
    """

    domain: Floats
    marks: Floats = field(default_factory=_none)
    images: Array = field(default_factory=_none)
    mark_names: tuple[str, ...] = ()
    axis_names: tuple[str, str] | None = None
    points: Floats = field(default_factory=_none)
    point_labels: Ints | None = None
    in_plane: Bools | None = None

    @property
    def occupied(self) -> Floats:
        """The places of all points, (m + n, 2)."""
        return np.concatenate([self.marks, self.points])


def frame_plane(ax: Any, scene: Scene, classes: Classes | None, title: str) -> None:
    """Outline the domain, draw the data points, and set aspect, limits, axes and title.

    Args:
        ax: where to draw.
        scene: what to draw.
        classes: names and colours of the labels of the points; None if they have none.
        title: the title.
    """
    from matplotlib.patches import Polygon

    ax.add_patch(Polygon(scene.domain, fill=False, ec="black", lw=1.0, zorder=3.5))
    _draw_points(ax, scene, classes)
    has_images = _draw_marks(ax, scene)
    low, high = scene.domain.min(axis=0), scene.domain.max(axis=0)
    extent = high - low
    stand_out = (
        has_images and min((scene.marks - low).min(), (high - scene.marks).min()) < 0.05 * extent.max()
    )
    _set_axes(ax, scene.axis_names, extent)
    margin = 0.0 if scene.axis_names else (0.22 if stand_out else 0.02) * extent.max()
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    ax.set_title(title, pad=14 if stand_out else None)


def _set_axes(ax: Any, names: tuple[str, str] | None, extent: Floats) -> None:
    """Ticks and names if the coordinates are features, which may be stretched; else none, true to scale."""
    is_alike = extent.max() <= _MOST_STRETCH * extent.min()
    ax.set_aspect("equal" if names is None or is_alike else "auto")
    ax.spines[:].set_visible(False)
    if names is None:
        ax.set_xticks([])
        ax.set_yticks([])
        return
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(nbins=6)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def _draw_points(ax: Any, scene: Scene, classes: Classes | None) -> None:
    """Data points in the colour of their class, those beside the plane small and faint."""
    if len(scene.points) == 0:
        return
    inside = np.ones(len(scene.points), bool) if scene.in_plane is None else scene.in_plane
    size = float(np.clip(4000 / len(scene.points), 9.0, 30.0))
    low, high = scene.domain.min(axis=0), scene.domain.max(axis=0)
    seen = ((scene.points >= low) & (scene.points <= high)).all(axis=1)
    for some, area, alpha in ((seen & ~inside, 0.5 * size, 0.55), (seen & inside, size, 1.0)):
        if scene.point_labels is None or classes is None:
            style: dict[str, Any] = {"facecolor": "white", "edgecolor": "black"}
        else:
            colours = [deeper(classes.colours[label]) for label in scene.point_labels[some].tolist()]
            style = {"facecolor": colours, "edgecolor": "white"}
        ax.scatter(*scene.points[some].T, s=area, alpha=alpha, lw=0.7, zorder=4.5, **style)


def _draw_marks(ax: Any, scene: Scene) -> bool:
    """Draw the data points that span the plane; True if they are images and were drawn as such."""
    marks = scene.marks
    if len(marks) == 0:
        return False
    ax.scatter(*marks.T, s=46, facecolor="white", edgecolor="black", lw=1.2, zorder=5, clip_on=False)
    centre = marks.mean(axis=0)
    for mark, name in zip(marks, scene.mark_names, strict=False):
        _write_beside(ax, mark, centre, name)
    pictures = as_images(scene.images)
    if pictures is None:
        return False
    for mark, picture in zip(marks, pictures, strict=True):
        place_image(ax, picture, (float(mark[0]), float(mark[1])), tuple(centre))
    return True


def _write_beside(ax: Any, mark: Floats, away_from: Floats, name: str) -> None:
    """The name of a marked point, above or below it, on the side that faces away from the others."""
    from matplotlib.patheffects import withStroke

    up = 1 if mark[1] >= away_from[1] else -1
    halo = [withStroke(linewidth=2.5, foreground="white")]
    style = {"ha": "center", "va": "bottom" if up > 0 else "top", "fontsize": 9, "color": "black"}
    ax.annotate(
        name,
        mark,
        xytext=(0, 6 * up),
        textcoords="offset points",
        path_effects=halo,
        zorder=6,
        **style,
    )


def as_images(points: Array) -> Floats | None:
    """Points as pictures (n, height, width) or (n, height, width, 3) in 0..1, or None if they are not images.

    Recognised are (h, w), (1, h, w), (3, h, w), (h, w, 1) and (h, w, 3) with sides of at least 4.

    >>> as_images(np.zeros((2, 3, 8, 8))).shape, as_images(np.zeros((2, 64)))
    ((2, 8, 8, 3), None)
    """
    x = np.asarray(points, dtype=np.float64)
    if x.ndim == 4 and x.shape[1] in (1, 3) and min(x.shape[2:]) >= 4:
        x = np.moveaxis(x, 1, -1)
    if x.ndim == 4 and x.shape[3] == 1:
        x = x[..., 0]
    is_grey = x.ndim == 3 and min(x.shape[1:]) >= 4
    is_colour = x.ndim == 4 and x.shape[3] == 3 and min(x.shape[1:3]) >= 4
    if len(x) == 0 or not (is_grey or is_colour):
        return None
    low, high = x.min(), x.max()
    return (x - low) / (high - low) if high > low else np.zeros_like(x)


def place_image(ax: Any, image: Floats, at: tuple[float, float], away_from: tuple[float, float]) -> None:
    """Put a framed thumbnail beside `at`, on the side that faces away from `away_from`."""
    direction = np.subtract(at, away_from)
    ax.add_artist(_thumbnail()(ax, image, at, direction / (float(np.hypot(*direction)) or 1.0)))


@cache
def _thumbnail() -> Any:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    class Thumbnail(AnnotationBbox):
        """An image beside a point, which becomes smaller with the Axes."""

        def __init__(self, ax: Any, image: Any, at: Any, direction: Any) -> None:
            self._ax, self._direction, self._side = ax, direction, max(image.shape[:2])
            self._picture = OffsetImage(image, cmap="gray_r", interpolation="nearest")
            self._picture.image.set_clim(0, 1)
            line = {"arrowstyle": "-", "color": ink(), "lw": 0.8}
            super().__init__(
                self._picture, at, boxcoords="offset points", pad=0.15, arrowprops=line, zorder=6
            )

        def update_positions(self, renderer: Any) -> None:
            """Choose size and distance by the size that the Axes have now."""
            box = self._ax.get_window_extent(renderer)
            room = min(box.width, box.height) / renderer.points_to_pixels(1.0)
            size = float(np.clip(_THUMBNAIL_SHARE * room, *_SIZES))
            self._picture.set_zoom(size / self._side)
            self.xybox = tuple(self._direction * (0.73 * size))
            super().update_positions(renderer)

    return Thumbnail
