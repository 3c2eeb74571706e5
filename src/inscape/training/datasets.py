"""Data sets: embedded ones by name, the user's own from files."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError, unknown_name

EMBEDDED = ("digits", "iris", "wine", "breast_cancer")
_LABEL_COLUMNS = ("y", "label", "labels", "target", "class")


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points x (n, ...) in float64 and, where known, their classes y (n,)."""

    name: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.x)


def load_data(source: str | Path, *, split: str | None = None) -> DataSet:
    """The data set that a name or a file stands for.

    Args:
        source: "digits" (8x8 images in 0..1), "iris", "wine", "breast_cancer"; or a file: .npz with `x` and
            optionally `y` (or `x_train`, `y_train`, `x_test`, `y_test`), .npy with x, .csv with a header,
            whose column y, label, target or class, if there is one, holds the classes.
        split: "train" or "test", for an .npz that has both; the default is "test" there.

    >>> load_data("digits").x.shape
    (1797, 8, 8)
    """
    name = str(source)
    suffix = Path(name).suffix.lower()
    if suffix == "" and not Path(name).exists():
        return _embedded(name)
    readers = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv}
    if suffix not in readers:
        raise DataError(f"cannot read {name}: expected .npz, .npy or .csv, or one of {', '.join(EMBEDDED)}")
    path = Path(name)
    if not path.is_file():
        raise DataError(f"{name} does not exist")
    if split is not None and suffix != ".npz":
        raise DataError(f"split={split!r} belongs to an .npz file with x_train and x_test, not to {name}")
    x, y = readers[suffix](path, split)
    return _checked(path.stem, x, y)


def _embedded(name: str) -> DataSet:
    if name not in EMBEDDED:
        raise DataError(
            unknown_name("data set", name, EMBEDDED) + " (a file needs its ending: .npz, .npy, .csv)"
        )
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    x = bunch.images / 16 if name == "digits" else bunch.data
    return DataSet(name, x, bunch.target)


def _read_npz(path: Path, split: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
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
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} is not a readable .npz file (truncated, of another kind, or pickled): {error}"
        ) from error


def _read_npy(path: Path, split: str | None) -> tuple[npt.NDArray[Any], None]:
    try:
        with path.open("rb") as file:
            x = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path} is not a readable .npy file (truncated, of another kind, or pickled): {error}"
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


def _checked(name: str, x: npt.NDArray[Any], y: npt.NDArray[Any] | None) -> DataSet:
    if x.ndim < 2 or len(x) == 0:
        raise DataError(f"{name}: x has shape {x.shape}, expected (n, ...) with n >= 1")
    if x.dtype.kind not in "fiub":
        raise DataError(f"{name}: x must hold numbers, not {x.dtype}")
    if y is not None and (y.ndim != 1 or len(y) != len(x)):
        raise DataError(f"{name}: y has shape {y.shape}, expected ({len(x)},)")
    return DataSet(name, x, y)
