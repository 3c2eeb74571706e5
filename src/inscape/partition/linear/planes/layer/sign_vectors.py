"""On which side of its kink each unit of a layer is, at each vertex and on each face.

A sign vector holds one bit per unit, 64 to a word; unit k h + u, entry u of h at kink k, has its bit among
the k-th ceil(h / 64) words. A unit at a vertex is above its kink, below, or on it up to rounding, for which
there is a second bit: vectors of zeros are made only if some unit is on its kink.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Bools, Floats, Ints, SignVectors
from inscape.compiled import compiled, inlined, kernel, summing
from inscape.partition.linear.rounding import RoundingBounds

if TYPE_CHECKING:
    from inscape.partition.linear.planes.values.values import Values

_RECHECKED_AT_ONCE = 4096
"""How many vertices with an entry near a kink are rechecked at once."""

RECHECKED_WITHIN = 1e-10
"""Entries this near to a kink, relative to the largest of the layer, may be on it up to rounding."""


@dataclass(frozen=True, eq=False)
class Packed:
    """The sign vectors of a tensor at some vertices, before rounding is considered.

    Attributes:
        above: packed bits of the units above their kink, (n, words).
        near: which vertices have an entry within `cutoff` of a kink, (n,).
        kinks: of the entries, (k,).
        cutoff: an entry at most this far from its kink may be on it up to rounding.
    """

    above: SignVectors
    near: Bools
    kinks: Floats
    cutoff: float

    @classmethod
    def empty(cls, n: int, h: int, kinks: Floats, cutoff: float) -> "Packed":
        """Memory for n vertices with h entries."""
        above = np.empty((n, (h + 63) // 64 * len(kinks)), np.uint64)
        return cls(above, np.empty(n, bool), kinks, cutoff)

    def pack(self, z: Any, first: int) -> None:
        """Write the signs of z (k, h) from vertex `first` on."""
        vertices = slice(first, first + len(z))
        pack_vectors(z, self.kinks, self.cutoff, self.above[vertices], self.near[vertices])

    def of(self, vertices: Ints) -> "Packed":
        """The signs at some of the vertices."""
        return replace(self, above=self.above[vertices], near=self.near[vertices])


def cutoff_of(z: Any, kinks: Floats, rounding: RoundingBounds, largest: float = 0.0) -> float:
    """How far from its kink an entry may be on it up to rounding, by a sample of the vectors z (n, h).

    `largest` bounds the size of entries that are not in z.
    """
    sample = z[:: max(1, len(z) // 64)]
    low, high = float(sample.min(initial=0.0)), float(sample.max(initial=0.0))
    scale = max(high, -low, largest, *(abs(float(kink)) for kink in kinks))
    return scale * (1.0 if rounding.may_be_zero(scale) else RECHECKED_WITHIN)


def signs_at_vertices(
    values: "Values", kinks: Floats, rounding: RoundingBounds, packed: Packed | None = None
) -> tuple[SignVectors, SignVectors]:
    """Packed bits of the units above their kink and of those on it, (v, words); of these (0, words) if none.

    Args:
        values: of the layer at the vertices, (v, h).
        kinks: of the entries, (k,).
        rounding: bounds for rounding errors of the values.
        packed: the signs before rounding is considered, if they are known; overwritten.
    """
    if packed is None:
        z = values.vectors
        packed = Packed.empty(len(z), values.h, kinks, cutoff_of(z, kinks, rounding))
        packed.pack(z, 0)
    above, zero = packed.above, np.zeros((0, packed.above.shape[1]), np.uint64)
    if not packed.near.any():
        return above, zero
    vertices = np.flatnonzero(packed.near)
    for first in range(0, len(vertices), _RECHECKED_AT_ONCE):
        batch = vertices[first : first + _RECHECKED_AT_ONCE]
        vectors = values.vectors_at(batch)
        for k, kink in enumerate(kinks):
            vertex, entry = _zeros(np.abs(vectors - kink), batch, packed.cutoff, rounding)
            if len(vertex):
                zero = zero if len(zero) else np.zeros_like(above)
                _mark_zero(above, zero, vertex, entry, k, values.h)
    return above, zero


def _zeros(distance: Floats, vertices: Ints, cutoff: float, rounding: RoundingBounds) -> tuple[Ints, Ints]:
    """Pairs of a vertex and an entry whose distance from its kink, (n, h), is at most its rounding bound."""
    vertex, entry = np.nonzero(distance <= cutoff)
    near = distance[vertex, entry]
    is_zero = near == 0
    unsure = np.flatnonzero(~is_zero)
    if len(unsure):
        is_zero[unsure] = near[unsure] <= rounding(vertices[vertex[unsure]], entry[unsure])
    return vertices[vertex[is_zero]], entry[is_zero]


@inlined
def count_bits(word):
    """How many bits are set: in pairs, in fours, in eights, then all eights at once."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def lowest_bit(word):
    """The number of the lowest set bit of a word that is not zero: how many bits are below it."""
    return count_bits((word & (~word + np.uint64(1))) - np.uint64(1))


@inlined
def word_and_bit(unit, h):
    """The word and the bit of a unit: entry u of h at kink k has number k h + u."""
    first, u = 0, np.int64(unit)
    while u >= h:
        first, u = first + ((h + 63) >> 6), u - h
    return first + (u >> 6), np.uint64(1) << np.uint64(u & 63)


@summing
def _count_near(values, kink, cutoff):
    """How many entries are within `cutoff` of a kink; counted in floats, which fill vector registers."""
    n = 0.0
    if kink == 0.0:  # the usual case, and quicker
        for u in range(len(values)):
            n += 1.0 if abs(values[u]) <= cutoff else 0.0
        return n
    for u in range(len(values)):
        n += 1.0 if abs(values[u] - kink) <= cutoff else 0.0
    return n


@inlined
def _pack_above(values, kink, words, first):
    """Write the bits of the entries above a kink, from word `first` on."""
    whole = len(values) // 64
    for w in range(whole):
        word = np.uint64(0)
        for u in range(64):
            word |= np.uint64(values[64 * w + u] > kink) << np.uint64(u)
        words[first + w] = word
    if 64 * whole < len(values):
        word = np.uint64(0)
        for u in range(len(values) - 64 * whole):
            word |= np.uint64(values[64 * whole + u] > kink) << np.uint64(u)
        words[first + whole] = word


@inlined
def pack_vector(values, kinks, cutoff, words):
    """Write which entries of a vector are above each kink; returns whether any is within `cutoff` of one."""
    per, n_near = (len(values) + 63) // 64, 0.0
    for k in range(len(kinks)):
        _pack_above(values, kinks[k], words, k * per)
        n_near += _count_near(values, kinks[k], cutoff)
    return n_near > 0.0


@kernel
def pack_vectors(z, kinks, cutoff, above, near):
    """Write which entries of z (n, h) are above each kink, packed, and which vectors have one near a kink.

    Args:
        z: a vector for each of n vertices.
        kinks: (k,).
        cutoff: how near a kink an entry counts.
        above: written, (n, words).
        near: written, (n,).
    """
    for r in range(len(z)):
        near[r] = pack_vector(z[r], kinks, cutoff, above[r])


@compiled
def _mark_zero(above, zero, vertices, entries, k, h):
    """Set the zero bits of entries at kink number k, and clear their bits above it."""
    per = (h + 63) // 64
    for i in range(len(vertices)):
        word, bit = k * per + (entries[i] >> 6), np.uint64(1) << np.uint64(entries[i] & 63)
        zero[vertices[i], word] |= bit
        above[vertices[i], word] &= ~bit


@compiled
def signs_of_faces(start, corners, above, zero):
    """The units that are positive somewhere on each face, those with both signs, and whether it is tied.

    A face is tied if one of the units with both signs is zero at a corner.
    """
    n, n_words = len(start) - 1, above.shape[1]
    plus, both = np.zeros((n, n_words), np.uint64), np.empty((n, n_words), np.uint64)
    tied = np.zeros(n, np.bool_)
    for f in range(n):
        for w in range(n_words):
            p, m, o = np.uint64(0), np.uint64(0), np.uint64(0)
            for i in range(start[f], start[f + 1]):
                a, z = above[corners[i], w], zero[corners[i], w]
                p |= a
                m |= ~(a | z)
                o |= z
            plus[f, w], both[f, w] = p, p & m
            tied[f] |= (p & m & o) != 0
    return plus, both, tied


@compiled
def hash_vectors(vectors):
    """A hash of each vector of unsigned integers, (n,); odd if the number of its set bits is."""
    hashes = np.empty(len(vectors), np.uint64)
    one = np.uint64(1)
    for r in range(len(vectors)):
        value = np.uint64(0x9E3779B97F4A7C15)
        odd = np.uint64(0)
        for k in range(vectors.shape[1]):
            value = (value ^ np.uint64(vectors[r, k])) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
            odd ^= np.uint64(vectors[r, k])
        for shift in (32, 16, 8, 4, 2, 1):
            odd ^= odd >> np.uint64(shift)
        hashes[r] = (value & ~one) | (odd & one)
    return hashes
