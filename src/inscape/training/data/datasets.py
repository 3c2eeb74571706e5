"""Data sets: embedded and published ones by name, the user's own from files and folders."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError, unknown_name
from inscape.models import Model
from inscape.probes.source import for_models
from inscape.progress import Meter
from inscape.seeding import RandomState
from inscape.training.data.image_sets import IMAGE_SETS, find_or_fetch
from inscape.training.data.own_files import read_file, read_folder
from inscape.training.data.subset import balanced_rows

EMBEDDED = ("digits", "iris", "wine", "breast_cancer")
NAMES = (*EMBEDDED, *IMAGE_SETS)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points and, where known, their classes.

    Attributes:
        name: what the data are called.
        x: the points, (n, ...): an array, or `inscape.arrays.Streamed` for many images in a folder.
        y: their classes, (n,); None if unknown.
        classes: the names of the classes; None if unknown.
        feature_names: the names of the columns of a table; None if it has none.
    """

    name: str
    x: Any
    y: npt.NDArray[Any] | None
    classes: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.x)

    def subset(self, n: int, *, random_state: RandomState = 0) -> "DataSet":
        """N random points in random order, of each class as many (up to one)."""
        rows = balanced_rows(self.y, len(self), n, random_state)
        return replace(self, x=self.x[rows], y=None if self.y is None else self.y[rows])

    def fitting(self, *models: Model) -> "DataSet":
        """The data with the columns that models were fitted to, by name, where both have names."""
        if self.feature_names is None:
            return self
        import pandas as pd

        table = pd.DataFrame(self.x, columns=pd.Index(self.feature_names))
        chosen = for_models(models, table)
        return replace(self, x=chosen.to_numpy(), feature_names=tuple(chosen.columns))


def load_data(
    source: str | Path,
    *,
    split: str | None = None,
    n: int | None = None,
    random_state: RandomState = 0,
    image_size: int | None = None,
    progress: bool | Meter | None = None,
) -> DataSet:
    """The data set that a name, a file or a folder stands for.

    Published image sets are looked for as .npz in the folder that the environment variable INSCAPE_DATA
    names and in the cache, else downloaded from their official source. Their pixels are float32 in 0..1,
    and nothing is normalised: that belongs to the model, so that probes live in pixel space.

    Args:
        source: "digits" (8x8 images in 0..1), "iris", "wine", "breast_cancer"; "mnist", "fashion_mnist"
            (28x28), "cifar10", "cifar100", "svhn" (3x32x32); a folder with a folder of images for each
            class, which are read when they are asked for if they would take more than a gigabyte; or a
            file: .npz with `x` and optionally `y` (or `x_train`, `y_train`, `x_test`, `y_test`), .npy with x,
            .csv with a header, whose column y, label, target or class, if there is one, holds the classes.
        split: "train" or "test", for what has both; the default is "test" there.
        n: how many points to take, equally many of each class (up to one), in random order.
        random_state: seed of this choice.
        image_size: for a folder of images: scale and crop them to this many pixels each way.
        progress: of a download: None for a bar after two seconds, False for none, or a function of
            (bytes, bytes in all).

    >>> load_data("digits").x.shape
    (1797, 8, 8)
    """
    if not isinstance(source, str | os.PathLike):
        raise DataError(f"expected the name of a data set, a file or a folder, got {source!r}")
    name, path = str(source), Path(source)
    is_name = name in NAMES  # also where a folder is called so
    if image_size is not None and (is_name or not path.is_dir()):
        raise DataError(f"image_size belongs to a folder of images, not to {name}")
    if name in IMAGE_SETS:
        return _image_set(name, split, n, random_state, progress)
    if not is_name and path.is_dir() and path.suffix.lower() not in (".npz", ".npy", ".csv"):
        x, y, classes = read_folder(path, split, n, image_size, random_state)
        return DataSet(path.name, x, y, classes)
    if path.suffix == "":
        if split is not None:
            raise DataError(f"split={split!r} belongs to an .npz file with x_train and x_test, not to {name}")
        data = _embedded(name)
    else:
        points, labels, columns = read_file(path, split)
        data = replace(_checked(path.stem, points, labels), feature_names=columns)
    return data if n is None else data.subset(n, random_state=random_state)


def _image_set(
    name: str, split: str | None, n: int | None, random_state: RandomState, progress: bool | Meter | None
) -> DataSet:
    images = IMAGE_SETS[name]
    x, y = find_or_fetch(images, split, progress)
    rows = slice(None) if n is None else balanced_rows(y, len(y), n, random_state)
    return DataSet(name, _unit(x[rows]), y[rows], images.classes)


def _unit(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return np.divide(pixels, 255, dtype=np.float32, order="C")


def _embedded(name: str) -> DataSet:
    if name not in EMBEDDED:
        raise DataError(
            unknown_name("data set", name, NAMES) + " (a file needs its ending: .npz, .npy, .csv)"
        )
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    x = bunch.images / 16 if name == "digits" else bunch.data
    return DataSet(name, x, bunch.target, tuple(str(c).replace("_", " ") for c in bunch.target_names))


def _checked(name: str, x: npt.NDArray[Any], y: npt.NDArray[Any] | None) -> DataSet:
    if x.ndim < 2 or len(x) == 0:
        raise DataError(f"{name}: x has shape {x.shape}, expected (n, ...) with n >= 1")
    if x.dtype.kind not in "fiub":
        raise DataError(f"{name}: x must hold numbers, not {x.dtype}")
    if y is not None and (y.ndim != 1 or len(y) != len(x)):
        raise DataError(f"{name}: y has shape {y.shape}, expected ({len(x)},)")
    return DataSet(name, x, y)
