"""On which side of its threshold each unit is at each vertex, with three values: above, below, on it."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from inscape.partition.linear.plane import kernels
from inscape.partition.linear.plane.bits import pack
from inscape.partition.linear.plane.cells import Floats, Ints

Words = npt.NDArray[np.uint64]

SUSPICIOUS = 1e-10
"""Values this small, against the largest of the layer, may be zero but for rounding."""


class Noise(Protocol):
    """How exactly the values of a layer are known."""

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry, of this scale at most, may be zero but for rounding."""

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Bounds for the rounding error of entries at vertices, for each pair (m,)."""


def signs(z: Any, thresholds: Floats, noise: Noise) -> tuple[Words, Words]:
    """Packed bits of the units above their threshold and of those on it; (0, words) if there are none."""
    scale = _scale(z, thresholds)
    small = scale * (1.0 if noise.may_be_zero(scale) else SUSPICIOUS)
    above, rows = pack(z, thresholds, small)
    zero = np.zeros((0, above.shape[1]), np.uint64)
    for k, theta in enumerate(thresholds):
        if not len(rows):
            break
        value = np.abs(z[rows] - theta)
        row, entry = np.nonzero(value <= small)
        size = value[row, entry]
        is_zero = size == 0
        doubt = np.flatnonzero(~is_zero)
        if len(doubt):
            is_zero[doubt] = size[doubt] <= noise(rows[row[doubt]], entry[doubt])
        if is_zero.any():
            if not len(zero):
                zero = np.zeros_like(above)
            kernels.mark_zero(above, zero, rows[row[is_zero]], entry[is_zero], k, z.shape[1])
    return above, zero


def _scale(z: Any, thresholds: Floats) -> float:
    """About the largest |z|, from some of the rows."""
    some = z[:: max(1, len(z) // 256)]
    return float(max(np.abs(some).max(initial=0.0), np.abs(thresholds).max(initial=0.0)))
