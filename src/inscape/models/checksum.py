"""A fast checksum of an array, to see whether weights have changed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.compiled import compiled


def checksum(array: npt.NDArray[Any]) -> int:
    """A 64-bit number that changes, but by chance, when any byte of the array does.

    Each word goes through exclusive or, an odd multiplier and a shift before the next one, in four lanes that
    run side by side; a plain weighted sum would not see, for instance, two changes of sign.

    >>> a = np.zeros(10)
    >>> before = checksum(a)
    >>> a[3] = 1e-300
    >>> checksum(a) == before
    False
    """
    return int(_mixed(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


@compiled
def _spread(word):
    """The word with its high bits, signs and exponents, carried into the low ones."""
    word = word * np.uint64(0xD6E8FEB86659FD93)
    return word ^ (word >> np.uint64(32))


@compiled
def _mixed(flat):
    """Four running hashes of every fourth word of 8 bytes, mixed into one with the bytes left over."""
    n_words = len(flat) // 8
    words = flat[: 8 * n_words].view(np.uint64)
    odd = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    n = n_words // 4 * 4
    # (1) four lanes side by side, which the processor runs at once
    for i in range(0, n, 4):
        a = (a ^ _spread(words[i])) * odd
        b = (b ^ _spread(words[i + 1])) * odd
        c = (c ^ _spread(words[i + 2])) * odd
        d = (d ^ _spread(words[i + 3])) * odd
        a, b, c, d = a ^ (a >> shift), b ^ (b >> shift), c ^ (c >> shift), d ^ (d >> shift)
    # (2) the lanes into one number, with the length
    total = a ^ np.uint64(len(flat))
    for part in (b, c, d):
        total = (total ^ part) * odd
        total ^= total >> shift
    # (3) the words and bytes that are left over
    for i in range(n, n_words):
        total = (total ^ _spread(words[i])) * odd
        total ^= total >> shift
    for i in range(8 * n_words, len(flat)):
        total = (total ^ _spread(np.uint64(flat[i]))) * odd
        total ^= total >> shift
    return total
