"""Data in the user's own files: .npz, .npy, .csv."""

import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError, unknown_name

_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    AttributeError,
    NotImplementedError,  # a compression that zipfile does not know
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
_LABEL_COLUMNS = ("y", "label", "labels", "target", "class")


def read_file(path: Path, split: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Points and classes in a file, as they are."""
    readers = {".npz": read_npz, ".npy": _read_npy, ".csv": _read_csv}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise DataError(f"cannot read {path}: expected .npz, .npy or .csv, or the name of a data set")
    if not path.is_file():
        raise DataError(f"{path} is a folder" if path.is_dir() else f"{path} does not exist")
    if split is not None and suffix != ".npz":
        raise DataError(f"split={split!r} belongs to an .npz file with x_train and x_test, not to {path}")
    return readers[suffix](path, split)


def read_npz(path: Path, split: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """The arrays x and y, or x_train, y_train, x_test, y_test, of a split; "test" is the default."""
    if split not in (None, "train", "test"):
        raise DataError(unknown_name("split", split, ("train", "test")))
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            suffix = "" if split is None and "x" in archive else f"_{split or 'test'}"
            if f"x{suffix}" not in archive:
                raise DataError(
                    f"{path} holds {', '.join(archive) or 'nothing'}: expected x, or x_train and x_test"
                )
            return archive[f"x{suffix}"], archive.get(f"y{suffix}")
    except _UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} is not a readable .npz file: truncated, of another kind, or pickled"
        ) from error


def _read_npy(path: Path, split: str | None) -> tuple[npt.NDArray[Any], None]:
    try:
        with path.open("rb") as file:
            x = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path} is not a readable .npy file: truncated, of another kind, or pickled"
        ) from error
    if not isinstance(x, np.ndarray):
        raise DataError(f"{path} is an .npz archive with the ending .npy: rename it")
    return x, None


def _read_csv(path: Path, split: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is not a readable .csv file: {error}") from error
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
    return features.to_numpy(dtype=np.float64), y


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
