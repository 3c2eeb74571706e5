"""On which side of its threshold each unit is at each vertex, with three values: above, below, on it."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.partition.linear.planes.complex import kernels
from inscape.partition.linear.planes.layer.bits import pack_rows
from inscape.partition.linear.planes.values.values import Values

Words = npt.NDArray[np.uint64]

_AT_ONCE = 4096
"""How many rows are looked at again at once."""

SUSPICIOUS = 1e-10
"""Values this small, against the largest of the layer, may be zero but for rounding."""


class Noise(Protocol):
    """How exactly the values of a layer are known."""

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry, of this scale at most, may be zero but for rounding."""

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Bounds for the rounding error of entries at vertices, for each pair (m,)."""


@dataclass(frozen=True, eq=False)
class Packed:
    """On which side of their thresholds the entries of some rows are, but for rounding.

    Attributes:
        words: packed bits of the units above their threshold, (n, words).
        near: the rows with an entry within `cutoff` of a threshold, (n,).
    """

    words: Words
    near: npt.NDArray[np.bool_]
    thresholds: Floats
    cutoff: float

    @classmethod
    def room(cls, n: int, h: int, thresholds: Floats, cutoff: float) -> "Packed":
        """Room for n rows of h entries."""
        words = np.empty((n, (h + 63) // 64 * len(thresholds)), np.uint64)
        return cls(words, np.empty(n, bool), thresholds, cutoff)

    def pack(self, z: Any, first: int) -> None:
        """Write rows z (k, h) from row `first` on."""
        rows = slice(first, first + len(z))
        pack_rows(z, self.thresholds, self.cutoff, self.words[rows], self.near[rows])

    def of(self, rows: Ints) -> "Packed":
        """Some of the rows."""
        return replace(self, words=self.words[rows], near=self.near[rows])


@dataclass(frozen=True, eq=False)
class Signed:
    """Values with their signs."""

    values: Values
    packed: Packed


def cutoff_of(z: Any, thresholds: Floats, noise: Noise, largest: float = 0.0) -> float:
    """How near to its threshold an entry may be on it, from some of the rows z; `largest` is of others."""
    some = z[:: max(1, len(z) // 64)]
    low, high = float(some.min(initial=0.0)), float(some.max(initial=0.0))
    scale = max(high, -low, largest, *(abs(float(t)) for t in thresholds))
    return scale * (1.0 if noise.may_be_zero(scale) else SUSPICIOUS)


def signs(
    values: Values, thresholds: Floats, noise: Noise, packed: Packed | None = None
) -> tuple[Words, Words]:
    """Packed bits of the units above their threshold and of those on it; (0, words) if there are none."""
    if packed is None:
        z = values.rows
        packed = Packed.room(len(z), values.h, thresholds, cutoff_of(z, thresholds, noise))
        packed.pack(z, 0)
    above, zero = packed.words, np.zeros((0, packed.words.shape[1]), np.uint64)
    if not packed.near.any():
        return above, zero
    rows = np.flatnonzero(packed.near)
    for first in range(0, len(rows), _AT_ONCE):
        own = rows[first : first + _AT_ONCE]
        exact = values.rows_at(own)
        for k, theta in enumerate(thresholds):
            vertex, entry = _zeros(np.abs(exact - theta), own, packed.cutoff, noise)
            if len(vertex):
                zero = zero if len(zero) else np.zeros_like(above)
                kernels.mark_zero(above, zero, vertex, entry, k, values.h)
    return above, zero


def _zeros(size: Floats, vertices: Ints, cutoff: float, noise: Noise) -> tuple[Ints, Ints]:
    """Pairs of a vertex and an entry whose distance from its threshold, in rows `size`, may be rounding."""
    row, entry = np.nonzero(size <= cutoff)
    own = size[row, entry]
    is_zero = own == 0
    doubt = np.flatnonzero(~is_zero)
    if len(doubt):
        is_zero[doubt] = own[doubt] <= noise(vertices[row[doubt]], entry[doubt])
    return vertices[row[is_zero]], entry[is_zero]
