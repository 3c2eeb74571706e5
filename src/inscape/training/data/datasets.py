"""Data sets: embedded and published ones by name, the user's own from files and folders; and their splits."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Array, Bytes, Float32s, Ints, Points
from inscape.errors import DataError, unknown_name
from inscape.models import Model
from inscape.probes.source import for_models
from inscape.progress import Meter
from inscape.seeding import RandomState, as_generator, as_seed
from inscape.training.data.image_sets import IMAGE_SETS, find_or_fetch
from inscape.training.data.own_files import read_file, read_folder
from inscape.training.data.subset import balanced_rows

if TYPE_CHECKING:
    import pandas as pd

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
    x: Points
    y: Array | None
    classes: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.x)

    def subset(self, n: int, *, random_state: RandomState = 0) -> "DataSet":
        """N random points in random order, of each class as many (up to one)."""
        rows = balanced_rows(self.y, len(self), n, random_state)
        return replace(self, x=self.x[rows], y=None if self.y is None else self.y[rows])

    def table(self) -> "Points | pd.DataFrame":
        """The points as a pandas table if their columns have names, else as they are."""
        if self.feature_names is None:
            return self.x
        import pandas as pd

        return pd.DataFrame(np.asarray(self.x), columns=pd.Index(self.feature_names))

    def fitting(self, *models: Model) -> "DataSet":
        """The data with the columns that models were fitted to, by name, where both have names."""
        if self.feature_names is None:
            return self
        chosen = for_models(models, self.table())
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
        data = _embedded(name)
        if split is not None:
            raise DataError(f"split={split!r} belongs to an .npz file with x_train and x_test, not to {name}")
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


def _unit(pixels: Bytes) -> Float32s:
    return np.divide(pixels, 255, dtype=np.float32, order="C")


def _embedded(name: str) -> DataSet:
    if name not in EMBEDDED:
        raise DataError(
            unknown_name("data set", name, NAMES) + " (a file needs its ending: .npz, .npy, .csv)"
        )
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    x = bunch.images / 16 if name == "digits" else bunch.data
    classes = tuple(str(c).replace("_", " ") for c in bunch.target_names)
    columns = None if name == "digits" else tuple(str(c) for c in bunch.feature_names)
    return DataSet(name, x, bunch.target, classes, columns)


def _checked(name: str, x: Array, y: Array | None) -> DataSet:
    if x.ndim < 2 or len(x) == 0:
        raise DataError(f"{name}: x has shape {x.shape}, expected (n, ...) with n >= 1")
    if x.dtype.kind not in "fiub":
        raise DataError(f"{name}: x must hold numbers, not {x.dtype}")
    if y is not None and (y.ndim != 1 or len(y) != len(x)):
        raise DataError(f"{name}: y has shape {y.shape}, expected ({len(x)},)")
    return DataSet(name, x, y)


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test points with their classes."""

    x_train: Points
    y_train: Ints
    x_test: Points
    y_test: Ints

    @property
    def train(self) -> tuple[Points, Ints]:
        """The training points and classes."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[Points, Ints]:
        """The test points and classes."""
        return self.x_test, self.y_test

    @property
    def n_classes(self) -> int:
        """One more than the highest class."""
        return int(max(self.y_train.max(), self.y_test.max())) + 1


def split_data(
    source: str,
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    random_state: RandomState = 0,
    image_size: int | None = None,
) -> Split:
    """Training and test points of a data set by name or file.

    An embedded set is divided at random; of one with splits, balanced subsets are taken.

    Args:
        source: as for `load_data`.
        n_train: training points; the default is all there are, of an embedded set two thirds.
        n_test: test points; the default is all (the rest).
        random_state: seed of the choice.
        image_size: of a folder of images, as for `load_data`.

    >>> split = split_data("digits", n_train=600)
    >>> len(split.x_train), len(split.x_test)
    (600, 1197)
    """
    seed = as_seed(random_state)
    if source not in EMBEDDED:
        halves = [
            load_data(source, split=name, n=n, random_state=seed, image_size=image_size)
            for name, n in (("train", n_train), ("test", n_test))
        ]
        return Split(*_labelled(halves[0]), *_labelled(halves[1]))
    x, y = _labelled(load_data(source))
    n_train = 2 * len(x) // 3 if n_train is None else whole_number(n_train, "n_train", 1, DataError)
    n_test = len(x) - n_train if n_test is None else whole_number(n_test, "n_test", 1, DataError)
    if n_train + n_test > len(x):
        raise DataError(f"n_train={n_train} and n_test={n_test} are too many: {source} has {len(x)} points")
    order = as_generator(seed).permutation(len(x))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return Split(x[train], y[train], x[test], y[test])


def _labelled(data: DataSet) -> tuple[Points, Ints]:
    if data.y is None or data.y.dtype.kind not in "iub":
        raise DataError(f"{data.name} needs classes 0, 1, 2, ... to train on")
    return data.x, data.y.astype(np.int64)
