"""A folder of images, one folder per class, as ImageNet is kept."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError
from inscape.seeding import RandomState
from inscape.training.data.subset import balanced_rows

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".tif", ".tiff")
_SPLITS = {"train": ("train",), "test": ("test", "val", "validation")}


def read_folder(
    root: Path, split: str | None, n: int | None, image_size: int | None, random_state: RandomState
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], tuple[str, ...]]:
    """The images (n, 3, h, w) as bytes, their classes, and the names of these.

    Args:
        root: holds a folder for each class, or folders train and test (or val) that do.
        split: "train" or "test", if there are both; "test" is the default.
        n: only so many images, of each class as many; only they are read.
        image_size: scale the shorter side to so many pixels and cut a square out of the middle.
        random_state: seed of the choice.
    """
    folder = _of_split(root, split)
    classes = tuple(sorted(p.name for p in folder.iterdir() if p.is_dir()))
    files = [
        (path, k)
        for k, name in enumerate(classes)
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in ENDINGS
    ]
    if not files:
        raise DataError(
            f"{folder} holds no images: expected a folder for each class with {', '.join(ENDINGS)}"
        )
    y = np.array([k for _, k in files])
    if n is not None:
        rows = balanced_rows(y, len(y), n, random_state)
        files, y = [files[i] for i in rows], y[rows]
    images = [_read(path, image_size) for path, _ in files]
    for (path, _), image in zip(files, images, strict=True):
        if image.shape != images[0].shape:
            raise DataError(
                f"{path} has {image.shape[1]}x{image.shape[0]} pixels, {files[0][0]} "
                f"{images[0].shape[1]}x{images[0].shape[0]}: give image_size"
            )
    return np.stack(images).transpose(0, 3, 1, 2), y, classes


def _of_split(root: Path, split: str | None) -> Path:
    found = {
        name: root / folder
        for name, folders in _SPLITS.items()
        for folder in reversed(folders)
        if (root / folder).is_dir()
    }
    if not found:
        if split is not None:
            raise DataError(f"{root} has no folders train and test (or val): leave split out")
        return root
    if (split or "test") not in found:
        raise DataError(f"{root} has no split {split or 'test'!r}: it has {', '.join(found)}")
    return found[split or "test"]


def _read(path: Path, image_size: int | None) -> npt.NDArray[Any]:
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            picture = image.convert("RGB")
    except Exception as error:  # each decoder has its own classes for a damaged file or one that is too large
        raise DataError(f"{path} is not a readable image: {' '.join(str(error).split())}") from error
    if image_size is not None:
        picture = ImageOps.fit(picture, (image_size, image_size))
    return np.asarray(picture)
