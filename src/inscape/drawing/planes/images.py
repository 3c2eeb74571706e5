"""Data points that are images, shown as images."""

from typing import Any

import numpy as np
import numpy.typing as npt


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
