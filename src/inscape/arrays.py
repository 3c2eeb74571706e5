"""The kinds of arrays that pass between functions, by what they hold, and the order of their axes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
"""Pixels, 0 to 255."""
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.uint32]
"""Unsigned: compiled loops need not look for negative ones, which count from the end."""
SignVectors = npt.NDArray[np.uint64]
"""A sign vector for each vertex or face, (n, words)."""
ActivationPatterns = npt.NDArray[np.unsignedinteger[Any]]
"""The states of units on each face, a number for each, (f, units); or packed."""
Hashes = npt.NDArray[np.uint64]
Texts = npt.NDArray[np.str_]
Array = npt.NDArray[Any]
"""Of numbers of any kind."""
Shape = tuple[int, ...]
"""The shape of one point, without the batch axis."""

LAYOUTS: dict[str, tuple[int, ...]] = {"HWC": (2, 0, 1), "CHW": (1, 2, 0)}
"""The order of the data's axes -> which of them the model takes first, second and third."""


def transposed(shape: Shape, axes: Sequence[int]) -> Shape:
    """The sizes of the axes in another order.

    >>> transposed((32, 30, 3), LAYOUTS["HWC"]), transposed((3, 32, 30), LAYOUTS["CHW"])
    ((3, 32, 30), (32, 30, 3))
    """
    return tuple(shape[a] for a in axes)


class Streamed(ABC):
    """Points that are read from where they are kept when they are asked for, and not held.

    x[i] is a point, x[i:j] and x[rows] are arrays of points. What works batch by batch (training, accuracy,
    margins, sampling of probes) reads each batch as it comes; anything else takes `np.asarray(x)`, which
    reads all.
    """

    dtype: "np.dtype[Any]" = np.dtype(np.float32)

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes, that of the points included."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """What all points would take in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: Any) -> Array:
        """The point of a number, or the points of a slice, a mask or numbers."""
        chosen = np.arange(len(self))[rows]
        return self.read(chosen[None])[0] if np.ndim(chosen) == 0 else self.read(chosen)

    def some(self, n: int = 1000) -> Array:
        """About n points, evenly spread: enough for a mean and a deviation of pixels."""
        return self[:: 1 + len(self) // n]

    @abstractmethod
    def read(self, rows: Ints) -> Array:
        """The points of these numbers, (len(rows), ...)."""


Points = Array | Streamed
"""Of shape (n, ...): an array, or one that is read from a folder when it is needed."""
