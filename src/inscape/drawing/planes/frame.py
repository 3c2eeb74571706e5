"""What all pictures of planes share: the domain's outline, the data points that span it, limits and title.

Data points that are images are shown as images; classes are named in a legend and inside large regions.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.palette import Colour, ink_on

Floats = npt.NDArray[np.float64]

_HALF_IMAGE = 0.08
"""Half the side of an image beside its mark, as a fraction of the domain's extent, about."""


def squares_of_images(domain: Floats, marks: Floats, images: npt.NDArray[Any]) -> Floats:
    """The lowest and highest corners of the squares that images cover, about, (m, 2, 2), m = 0 for none."""
    if len(marks) == 0 or as_images(images) is None:
        return np.zeros((0, 2, 2))
    side = _HALF_IMAGE * float(np.ptp(domain, axis=0).max())
    away = marks - marks.mean(axis=0)
    centre = marks + 1.3 * side * away / np.linalg.norm(away, axis=1, keepdims=True).clip(min=1e-300)
    return np.stack([centre - side, centre + side], axis=1)


def draw_marks(ax: Any, marks: Floats, images: npt.NDArray[Any]) -> bool:
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


def frame_plane(ax: Any, domain: Floats, marks: Floats, images: npt.NDArray[Any], title: str) -> None:
    """Outline the domain, draw the data points, and set aspect, limits and title.

    Args:
        ax: where to draw.
        domain: the corners of the convex domain, (k, 2).
        marks: the coordinates of the data points, (m, 2).
        images: the data points themselves, (m, ...); shown if they are images.
        title: the title.
    """
    from matplotlib.patches import Polygon

    ax.add_patch(Polygon(domain, fill=False, ec="black", lw=1.0, zorder=3.5))
    has_images = draw_marks(ax, marks, images)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    low, high = domain.min(axis=0), domain.max(axis=0)
    extent = (high - low).max()
    stand_out = has_images and min((marks - low).min(), (high - marks).min()) < 0.05 * extent
    pad = (0.22 if stand_out else 0.02) * extent
    ax.set_xlim(low[0] - pad, high[0] + pad)
    ax.set_ylim(low[1] - pad, high[1] + pad)
    ax.set_title(title, pad=14 if stand_out else None)


def as_images(points: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
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


def place_image(
    ax: Any,
    image: npt.NDArray[np.float64],
    at: tuple[float, float],
    away_from: tuple[float, float],
    size: float,
) -> None:
    """Put a framed thumbnail of `size` points beside `at`, on the side that faces away from `away_from`."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    direction = np.subtract(at, away_from)
    length = float(np.hypot(*direction)) or 1.0
    shift = direction / length * (size * 0.5 + 12)
    picture = OffsetImage(image, zoom=size / max(image.shape[:2]), cmap="gray_r", interpolation="nearest")
    picture.image.set_clim(0, 1)
    ax.add_artist(
        AnnotationBbox(
            picture,
            at,
            xybox=tuple(shift),
            boxcoords="offset points",
            frameon=True,
            pad=0.15,
            arrowprops={"arrowstyle": "-", "color": "black", "lw": 0.8},
            zorder=6,
        )
    )


MOST_NAMES = 12


def draw_legend(
    ax: Any,
    labels: npt.NDArray[np.int64],
    areas: npt.NDArray[Any],
    names: dict[int, str],
    colours: dict[int, Colour],
) -> None:
    """The classes by area, at most twelve of them, so that the legend stays readable with 100 classes."""
    from matplotlib.patches import Patch

    present, place = np.unique(labels, return_inverse=True)
    total = np.bincount(place, weights=areas)
    largest = present[np.argsort(-total, kind="stable")][:MOST_NAMES]
    handles = [
        Patch(fc=colours[i], ec="black", lw=0.5, label=_short(names[i])) for i in sorted(largest.tolist())
    ]
    if len(present) > MOST_NAMES:
        handles.append(Patch(fc="none", ec="none", label=f"+ {len(present) - MOST_NAMES} more"))
    ax.legend(handles=handles, title="class", loc="upper left", bbox_to_anchor=(1.04, 1.0), frameon=False)


def write_name(ax: Any, x: float, y: float, name: str, colour: Colour) -> None:
    """A class name centred at (x, y) on its colour."""
    style = {"color": ink_on(colour), "fontsize": 11, "weight": "bold", "zorder": 4}
    ax.text(x, y, _short(name), ha="center", va="center", **style)


def _short(name: str) -> str:
    return name if len(name) <= 20 else name[:19] + "…"
