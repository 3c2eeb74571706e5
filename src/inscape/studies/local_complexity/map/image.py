"""The grey image that a coordinate network is fitted to: one drawn here, or any file."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inscape.arrays import Floats
from inscape.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image


def drawn_image(size: int) -> Floats:
    """A lit ball over a striped floor before a graded sky, with a square sign: edges and smooth parts.

    Values in 0..1, (size, size); the first axis runs down.

    >>> image = drawn_image(32)
    >>> image.shape, bool(image.min() >= 0), bool(image.max() <= 1)
    ((32, 32), True, True)
    """
    down, right = np.meshgrid(*2 * [(np.arange(size) + 0.5) / size], indexing="ij")
    image = 0.85 - 0.35 * down
    floor = down > 0.68
    stripes = np.floor((right - 0.5) / (down - 0.45) * 3) % 2
    image = np.where(floor, 0.25 + 0.2 * stripes + 0.15 * (down - 0.68), image)
    u, v = (right - 0.38) / 0.27, (down - 0.52) / 0.27
    height = np.sqrt(np.clip(1 - u**2 - v**2, 0, None))
    shade = np.clip(-0.5 * u - 0.6 * v + 0.62 * height, 0, 1)
    image = np.where(u**2 + v**2 < 1, 0.08 + 0.9 * shade, image)
    sign = (np.abs(right - 0.8) < 0.11) & (np.abs(down - 0.3) < 0.11)
    image = np.where(sign, 0.15, image)
    return np.asarray(
        np.where(sign & (np.abs(right - 0.8) < 0.05) & (np.abs(down - 0.3) < 0.05), 0.95, image)
    )


def read_image(path: str, size: int) -> Floats:
    """The middle square of an image file in grey, 0..1, scaled to (size, size)."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as file:
            grey = _eight_bits(file) if file.mode.startswith("I") else file.convert("L")
    except UnidentifiedImageError as error:
        raise DataError(f"cannot read the image {path}: it is of no known format") from error
    except OSError as error:
        raise DataError(f"cannot read the image {path}: {error.strerror or error}") from error
    side = min(grey.size)
    left, top = (grey.width - side) // 2, (grey.height - side) // 2
    square = grey.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.LANCZOS)
    return np.asarray(square, dtype=np.float64) / 255


def _eight_bits(image: "Image") -> "Image":
    """A grey image of 16 bits, of which Pillow would cut off all above 255."""
    from PIL import Image as Images

    return Images.fromarray((np.asarray(image, dtype=np.float64) / 257).round().clip(0, 255).astype(np.uint8))


def fingerprint(path: str) -> str:
    """Twelve digits that say which image it is, so that another under the same name is another study."""
    read_image(path, 1)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
