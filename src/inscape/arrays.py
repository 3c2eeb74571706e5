"""The kinds of arrays that pass between functions, by what they hold, and how much memory they may take."""

import math
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Shape = tuple[int, ...]
"""The shape of one point, without the batch axis."""


MEMORY = 2**30
"""Bytes that the arrays of one call may fill at once: the default of every argument `memory`. A gigabyte
holds the walk of most networks in one chunk, and is little on a machine that trains networks."""


def machine_memory() -> int | None:
    """The bytes of memory that the machine has, None where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def in_bytes(n: float) -> str:
    """A number of bytes for a reader.

    >>> in_bytes(3 * 2**40), in_bytes(512)
    ('3 TiB', '512 bytes')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} TiB" if n < 1000 else f"{n:.0f} TiB"


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

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """The point of a number, or the points of a slice, a mask or numbers."""
        chosen = np.arange(len(self))[rows]
        return self.read(chosen[None])[0] if np.ndim(chosen) == 0 else self.read(chosen)

    def some(self, n: int = 1000) -> npt.NDArray[Any]:
        """About n points, evenly spread: enough for a mean and a deviation of pixels."""
        return self[:: 1 + len(self) // n]

    @abstractmethod
    def read(self, rows: Ints) -> npt.NDArray[Any]:
        """The points of these numbers, (len(rows), ...)."""
