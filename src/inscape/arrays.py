"""The kinds of arrays that pass between functions, by what they hold, and how much memory they may take."""

import os
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


def checksum(array: npt.NDArray[Any]) -> int:
    """A 64-bit number of this process that changes, but by chance, when any byte of the array does.

    Python's hash of bytes (SipHash) passes gigabytes in a second, and nothing has to be compiled for it.

    >>> a = np.zeros(10)
    >>> before = checksum(a)
    >>> a[3] = 1e-300
    >>> checksum(a) == before
    False
    """
    return hash(array.tobytes())
