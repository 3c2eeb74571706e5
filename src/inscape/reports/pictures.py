"""The figures of a study as pictures inside the page."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg+xml", ".webp": "webp"}

WIDE = 900
"""Dots."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture as a data address, with its caption and the words for those who cannot see it.

    A figure that is missing, or of a kind that no browser shows, has no `source`.
    """

    name: str
    source: str
    caption: str
    alt: str
    size: tuple[int, int] | None

    @property
    def is_wide(self) -> bool:
        """Whether it has so many dots to the right that half of the page would be too narrow for it."""
        return self.size is not None and self.size[0] > WIDE


def pictures(figures: Sequence[str] | Mapping[str, str], folder: Path) -> list[Picture]:
    """The pictures of these names in the folder of the study."""
    captions = figures if isinstance(figures, Mapping) else dict.fromkeys(figures, "")
    return [_picture(folder / name, caption) for name, caption in captions.items()]


def _picture(path: Path, caption: str) -> Picture:
    kind = KINDS.get(path.suffix.lower())
    content = path.read_bytes() if kind and path.is_file() else b""
    return Picture(
        name=path.name,
        source=f"data:image/{kind};base64,{base64.b64encode(content).decode()}" if content else "",
        caption=caption,
        alt=caption or f"Figure: {path.stem.replace('_', ' ').replace('-', ' ')}",
        size=_size(path) if content else None,
    )


def _size(path: Path) -> tuple[int, int] | None:
    """Width and height, so that the page does not jump while it loads; None of a drawing in SVG."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.size
    except UnidentifiedImageError:
        return None
