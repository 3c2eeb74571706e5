"""The figures of a study as pictures inside the page."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inscape.errors import StudyError, unknown_name

KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg+xml", ".webp": "webp"}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture as a data address, with its caption and the words for those who cannot see it."""

    source: str
    caption: str
    alt: str
    size: tuple[int, int] | None


def pictures(figures: Sequence[str] | Mapping[str, str], folder: Path) -> list[Picture]:
    """The pictures of that names in the folder of the study."""
    captions = figures if isinstance(figures, Mapping) else dict.fromkeys(figures, "")
    return [_picture(folder / name, caption) for name, caption in captions.items()]


def _picture(path: Path, caption: str) -> Picture:
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise StudyError(f"the figure {path.name}: " + unknown_name("kind of picture", kind, KINDS))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"cannot read the figure {path}: {error.strerror or error}") from error
    return Picture(
        source=f"data:image/{KINDS[kind]};base64,{base64.b64encode(content).decode()}",
        caption=caption,
        alt=caption or f"Figure: {path.stem.replace('_', ' ').replace('-', ' ')}",
        size=None if kind == ".svg" else _size(path),
    )


def _size(path: Path) -> tuple[int, int]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.size
    except UnidentifiedImageError as error:
        raise StudyError(f"the figure {path} is not a picture: draw it again") from error
