"""Packed signs: one bit per unit, 64 to a word."""

import numpy as np

from inscape.compiled import compiled, inlined, kernel, summing


@inlined
def count(word):
    """How many bits are set: in pairs, in fours, in eights, then all eights at once."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def lowest(word):
    """The number of the lowest set bit of a word that is not zero: how many are below it."""
    return count((word & (~word + np.uint64(1))) - np.uint64(1))


@summing
def _count_near(row, threshold, cutoff):
    """How many entries are within `cutoff` of a threshold; counted in floats, which fill vector registers."""
    n = 0.0
    if threshold == 0.0:  # mostly, and quicker
        for u in range(len(row)):
            n += 1.0 if abs(row[u]) <= cutoff else 0.0
        return n
    for u in range(len(row)):
        n += 1.0 if abs(row[u] - threshold) <= cutoff else 0.0
    return n


@inlined
def _pack_above(row, threshold, words, first):
    """Write the bits of the entries above a threshold, from word `first` on."""
    whole = len(row) // 64
    for w in range(whole):
        word = np.uint64(0)
        for u in range(64):
            word |= np.uint64(row[64 * w + u] > threshold) << np.uint64(u)
        words[first + w] = word
    if 64 * whole < len(row):
        word = np.uint64(0)
        for u in range(len(row) - 64 * whole):
            word |= np.uint64(row[64 * whole + u] > threshold) << np.uint64(u)
        words[first + whole] = word


@inlined
def pack_row(row, thresholds, cutoff, words):
    """Write which entries of a row are above each threshold; returns whether any is nearer than `cutoff`."""
    per, n_near = (len(row) + 63) // 64, 0.0
    for k in range(len(thresholds)):
        _pack_above(row, thresholds[k], words, k * per)
        n_near += _count_near(row, thresholds[k], cutoff)
    return n_near > 0.0


@kernel
def pack_rows(z, thresholds, cutoff, words, near):
    """Which entries of z (n, h) are above each threshold, packed, and which rows have one near to one.

    Args:
        z: the rows.
        thresholds: (k,).
        cutoff: how near to a threshold an entry counts.
        words: written, (n, k * words).
        near: written, (n,).
    """
    for r in range(len(z)):
        near[r] = pack_row(z[r], thresholds, cutoff, words[r])


@compiled
def hash_rows(rows):
    """A number for each row of unsigned integers, by the row only, (n,); odd if its set bits are."""
    found = np.empty(len(rows), np.uint64)
    one = np.uint64(1)
    for r in range(len(rows)):
        value = np.uint64(0x9E3779B97F4A7C15)
        odd = np.uint64(0)
        for k in range(rows.shape[1]):
            value = (value ^ np.uint64(rows[r, k])) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
            odd ^= np.uint64(rows[r, k])
        for shift in (32, 16, 8, 4, 2, 1):
            odd ^= odd >> np.uint64(shift)
        found[r] = (value & ~one) | (odd & one)
    return found
