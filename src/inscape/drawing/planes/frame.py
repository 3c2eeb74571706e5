"""What all pictures of planes share: the domain's outline, the data points that span it, limits and title."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.planes.images import as_images, place_image

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
