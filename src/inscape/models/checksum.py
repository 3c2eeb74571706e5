"""A fast checksum of an array, to see whether weights have changed."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit


def checksum(array: npt.NDArray[Any]) -> int:
    """A 64-bit number that changes, but for one chance in about 2^64, when any byte of the array does.

    >>> a = np.zeros(10)
    >>> before = checksum(a)
    >>> a[3] = 1e-300
    >>> checksum(a) == before
    False
    """
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(flat) // 8 * 8
    return int(_weighted(flat[:whole].view(np.uint64))) ^ hash(flat[whole:].tobytes())


@njit(cache=True, nogil=True)
def _weighted(words):
    """The sum of each word times an odd number of its own, modulo 2^64."""
    total = np.uint64(0)
    factor = np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(words)):
        total += words[i] * ((np.uint64(i) * factor) | np.uint64(1))
    return total
