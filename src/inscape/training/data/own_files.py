"""The user's own data: .npz, .npy and .csv files, and folders of images, one per class, as in ImageNet."""

import math
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from inscape.arrays import Array, Bytes, Float32s, Ints, Streamed
from inscape.budget import in_bytes, machine_memory
from inscape.errors import DataError, unknown_name
from inscape.files import check_sizes
from inscape.seeding import RandomState
from inscape.training.data.subset import balanced_rows

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_LABEL_COLUMNS = ("y", "label", "labels", "target", "class")


def read_file(path: Path, split: str | None) -> tuple[Array, Array | None, tuple[str, ...] | None]:
    """Points, classes and the names of columns in a file, as they are; None for what it does not hold."""
    readers: dict[str, Callable[..., tuple[Any, ...]]]
    readers = {".npz": read_npz, ".npy": _read_npy, ".csv": _read_csv}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise DataError(f"cannot read {path}: expected .npz, .npy or .csv, or the name of a data set")
    if not path.is_file():
        raise DataError(f"{path} is a folder" if path.is_dir() else f"{path} does not exist")
    if split is not None and suffix != ".npz":
        raise DataError(f"split={split!r} belongs to an .npz file with x_train and x_test, not to {path}")
    x, y, *columns = readers[suffix](path, split)
    return x, y, columns[0] if columns else None


def read_npz(path: Path, split: str | None) -> tuple[Array, Array | None]:
    """The arrays x and y, or x_train, y_train, x_test, y_test, of a split; "test" is the default."""
    if split not in (None, "train", "test"):
        raise DataError(unknown_name("split", split, ("train", "test")))
    with _readable(path), zipfile.ZipFile(path) as archive:
        check_sizes(archive, path, DataError)
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        suffix = "" if split is None and "x" in names else f"_{split or 'test'}"
        if f"x{suffix}" not in names:
            raise DataError(
                f"{path} holds {', '.join(names) or 'nothing'}: expected x, or x_train and x_test"
            )
        x, y = (_member(archive, key, path) if key in names else None for key in (f"x{suffix}", f"y{suffix}"))
    assert x is not None
    return x, y


def _member(archive: zipfile.ZipFile, key: str, path: Path) -> Array:
    member = archive.getinfo(f"{key}.npy")
    with archive.open(member) as file:
        return _read_array(file, member.file_size, f"{key} in {path}")


def _read_npy(path: Path, split: str | None) -> tuple[Array, None]:
    with _readable(path), path.open("rb") as file:
        if file.read(2) == b"PK":
            raise DataError(f"{path} is an .npz archive with the ending .npy: rename it")
        file.seek(0)
        return _read_array(file, path.stat().st_size, str(path)), None


def _read_array(file: IO[bytes], n_bytes: int, what: str) -> Array:
    """The array in a .npy file, once its header is known to ask for no more than the file holds."""
    version = np.lib.format.read_magic(file)
    read_header = _HEADERS.get(version)
    if read_header is None:
        raise DataError(f"{what} is not a readable .npy file: version {version} holds no plain numbers")
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise DataError(
            f"{what} holds Python objects, pickled, and loading them can run any code: keep numbers"
        )
    declared = math.prod(shape) * dtype.itemsize
    if declared > n_bytes or min(shape, default=0) < 0:
        raise DataError(
            f"{what} is damaged: it declares an array of shape {shape} and type {dtype}, "
            f"{in_bytes(declared)}, and holds {in_bytes(n_bytes)}"
        )
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what a damaged file raises, which can be almost anything, into one line."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{path} is not a readable {path.suffix.lower()} file: truncated, of another kind, or pickled"
        ) from error


def _read_csv(path: Path, split: str | None) -> tuple[Array, Array | None, tuple[str, ...]]:
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except Exception as error:  # pandas raises by what its parser stumbles over
        raise DataError(f"{path} is not a readable .csv file: {' '.join(str(error).split())}") from error
    if len(frame) == 0:
        raise DataError(f"{path} has a header but no rows")
    if all(_is_number(c) for c in frame.columns):
        raise DataError(f"{path} has no header: its first line must name the columns")
    labels = [c for c in frame.columns if str(c).strip().lower() in _LABEL_COLUMNS]
    if len(labels) > 1:
        raise DataError(f"{path} has several columns of classes ({', '.join(labels)}): keep one")
    features = frame.drop(columns=labels)
    words = [str(c) for c in features.columns if features[c].dtype.kind not in "fiub"]
    if words:
        raise DataError(f"{path}: column {words[0]!r} is not numeric; name the class column y, or encode it")
    y = frame[labels[0]].to_numpy() if labels else None
    if y is not None and y.dtype.kind not in "fiub":
        y = y.astype(str)
    return features.to_numpy(dtype=np.float64), y, tuple(str(c) for c in features.columns)


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".tif", ".tiff")
STREAMED_FROM = 2**30
"""Bytes of images beyond which they are not held in memory."""
DECODERS = 8
"""Images that are decoded at a time."""
_SPLITS = {"train": ("train",), "test": ("test", "val", "validation")}


def read_folder(
    root: Path, split: str | None, n: int | None, image_size: int | None, random_state: RandomState
) -> tuple[Float32s | Streamed, Ints, tuple[str, ...]]:
    """The images (n, 3, h, w), in 0..1, their classes, and the names of these.

    Images that would take more than `STREAMED_FROM` bytes are read when they are asked for.

    Args:
        root: holds a folder for each class, or folders train and test (or val) that do.
        split: "train" or "test", if there are both; "test" is the default.
        n: how many images to take, equally many of each class; only they are read.
        image_size: scale the shorter side to this many pixels and crop a square out of the middle.
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
    images = ImageFiles([path for path, _ in files], image_size)
    return images if images.nbytes > STREAMED_FROM else images[:], y, classes


class ImageFiles(Streamed):
    """Images of one size in files, (n, 3, h, w) in 0..1; several are decoded at a time."""

    def __init__(self, files: list[Path], image_size: int | None) -> None:
        first = read_image(files[0], image_size)
        super().__init__((len(files), 3, *first.shape[:2]))
        self._files, self._image_size = files, image_size

    def read(self, rows: Ints) -> Float32s:
        """Decode the images of these numbers, (len(rows), 3, h, w)."""
        images = np.empty((len(rows), *self.shape[1:]), dtype=np.float32)
        with ThreadPoolExecutor(min(DECODERS, max(1, len(rows)))) as decoders:  # decoding holds no lock
            for k, image in enumerate(decoders.map(self._image, rows)):
                np.divide(image.transpose(2, 0, 1), 255, out=images[k], dtype=np.float32)
        return images

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All points; an error if they are more than half of what the machine has."""
        memory = machine_memory()
        if memory is not None and self.nbytes > memory / 2:
            raise DataError(
                f"{len(self)} points of shape {self.shape[1:]} take {in_bytes(self.nbytes)}, and the machine "
                f"has {in_bytes(memory)}: take fewer, or something that works batch by batch"
            )
        return np.asarray(self[:], dtype)

    def _image(self, row: int) -> Bytes:
        path = self._files[row]
        image = read_image(path, self._image_size)
        height, width = self.shape[-2:]
        if image.shape[:2] != (height, width):
            raise DataError(
                f"{path} has {image.shape[1]}x{image.shape[0]} pixels, {self._files[0]} {width}x{height}: "
                "give image_size"
            )
        return image


def _of_split(root: Path, split: str | None) -> Path:
    files = {
        name: root / folder
        for name, folders in _SPLITS.items()
        for folder in reversed(folders)
        if (root / folder).is_dir()
    }
    if not files:
        if split is not None:
            raise DataError(f"{root} has no folders train and test (or val): leave split out")
        return root
    if (split or "test") not in files:
        raise DataError(f"{root} has no split {split or 'test'!r}: it has {', '.join(files)}")
    return files[split or "test"]


def read_image(path: Path, image_size: int | None) -> Array:
    """The pixels (h, w, 3) of a file, scaled and cropped to a square of `image_size` if that is given."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            picture = image.convert("RGB")
    except Exception as error:  # each decoder has its own classes for a damaged file or one that is too large
        raise DataError(f"{path} is not a readable image: {' '.join(str(error).split())}") from error
    if image_size is not None:
        picture = ImageOps.fit(picture, (image_size, image_size))
    return np.asarray(picture)
