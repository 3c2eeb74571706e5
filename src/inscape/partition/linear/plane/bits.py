"""Packed signs: one bit per unit, 64 to a word."""

import numpy as np
from numba import njit

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_TABLE = np.zeros(64, np.int64)
for _i in range(64):
    _TABLE[((1 << _i) * 0x03F79D71B4CB0A89 % 2**64) >> 58] = _i


@njit(cache=True, nogil=True, inline="always")
def lowest(word):
    """The number of the lowest set bit of a word that is not zero."""
    return _TABLE[((word & (~word + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)]


@njit(cache=True, nogil=True)
def count(word):
    """How many bits are set."""
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@njit(cache=True, nogil=True)
def pack_row(row, threshold, cutoff, words):
    """Set the bits of the entries above a threshold; return whether any is within `cutoff` of it."""
    h = len(row)
    near = False
    for w in range((h + 63) // 64):
        word = np.uint64(0)
        low, high = 64 * w, min(64 * w + 64, h)
        for u in range(low, high):
            value = row[u] - threshold
            word |= np.uint64(value > 0.0) << np.uint64(u - low)
            near |= abs(value) <= cutoff
        words[w] = word
    return near


@njit(cache=True, nogil=True)
def pack(z, thresholds, cutoff):
    """Which entries of z (n, h) are above each threshold, packed: (n, thresholds * words).

    Returns:
        the words, and the rows (k,) that hold an entry within `cutoff` of a threshold.
    """
    n, h = z.shape
    per = (h + 63) // 64
    words = np.empty((n, per * len(thresholds)), np.uint64)
    near = np.zeros(n, np.bool_)
    for r in range(n):
        for k in range(len(thresholds)):
            near[r] |= pack_row(z[r], thresholds[k], cutoff, words[r, k * per : (k + 1) * per])
    return words, np.flatnonzero(near)
