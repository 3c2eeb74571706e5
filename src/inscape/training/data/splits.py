"""Training and test points of a data set."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import DataError
from inscape.seeding import RandomState, as_generator, as_seed
from inscape.training.data.datasets import EMBEDDED, DataSet, load_data

Points = Any
"""An array (n, ...), or `inscape.arrays.Streamed` for many images in a folder."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test points with their classes."""

    x_train: Points
    y_train: npt.NDArray[np.int64]
    x_test: Points
    y_test: npt.NDArray[np.int64]

    @property
    def train(self) -> tuple[Points, npt.NDArray[np.int64]]:
        """The training points and classes."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[Points, npt.NDArray[np.int64]]:
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
        parts = [
            load_data(source, split=name, n=n, random_state=seed, image_size=image_size)
            for name, n in (("train", n_train), ("test", n_test))
        ]
        return Split(*_labelled(parts[0]), *_labelled(parts[1]))
    x, y = _labelled(load_data(source))
    n_train = 2 * len(x) // 3 if n_train is None else whole_number(n_train, "n_train", 1, DataError)
    n_test = len(x) - n_train if n_test is None else whole_number(n_test, "n_test", 1, DataError)
    if n_train + n_test > len(x):
        raise DataError(f"n_train={n_train} and n_test={n_test} are too many: {source} has {len(x)} points")
    order = as_generator(seed).permutation(len(x))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return Split(x[train], y[train], x[test], y[test])


def _labelled(data: DataSet) -> tuple[Points, npt.NDArray[np.int64]]:
    if data.y is None or data.y.dtype.kind not in "iub":
        raise DataError(f"{data.name} needs classes 0, 1, 2, ... to train on")
    return data.x, data.y.astype(np.int64)
