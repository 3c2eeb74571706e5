"""The points where units change sign along the edges of a subdivision."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.partition.linear.planes.complex import kernels
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.layer.crossings import edge_crossings
from inscape.partition.linear.planes.layer.sign_vectors import Noise, Words
from inscape.partition.linear.planes.values.values import Values

CLOSE = 1e-9
"""Cut points this near on an edge, as a part of it, may be one."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """The points where units change sign along the edges.

    Attributes:
        start: where the crossings of each edge start, (e + 1,).
        edge: of each crossing, (m,).
        unit, s, change: which unit, where from the first end to the second, by how much its value changes on
            that way, (m,).
        node: the cut point that each crossing belongs to: several units may cross in one, (m,).
        nstart: where the cut points of each edge start, (e + 1,).
        first: the first crossing of each cut point, (k,).
    """

    start: Ints
    edge: npt.NDArray[np.int32]
    unit: npt.NDArray[np.int32]
    s: Floats
    change: Floats
    node: Ints
    nstart: Ints
    first: Ints

    @property
    def is_simple(self) -> bool:
        """Whether each crossing has a cut point of its own."""
        return len(self.first) == len(self.s)

    def of_points(self, values: Any) -> Any:
        """Values of crossings for the cut points."""
        return values if self.is_simple else values[self.first]


def cut_points(
    cells: Cells, values: Values, thresholds: Floats, above: Words, zero: Words, noise: Noise
) -> Cuts:
    """All crossings on the edges; those that rounding cannot tell apart share a cut point."""
    found = edge_crossings(values, thresholds, above, zero, cells.ends, CLOSE)
    start, edges, unit, s, change, is_close = found
    node = np.arange(len(s))
    nstart, first = start, node
    if is_close:
        close = kernels.close_pairs(start, s, CLOSE)
        h = values.h
        edge = edges[close]
        error = np.zeros(len(close))
        for k in (close, close + 1):
            a, b = (noise(cells.ends[edge, d].astype(np.int64), unit[k] % h) for d in (0, 1))
            error += (a + s[k] * (b - a)) / change[k]
        same = close[s[close + 1] - s[close] <= error]
        if len(same):
            is_first = np.ones(len(s), bool)
            is_first[same + 1] = False
            node = np.cumsum(is_first) - 1
            first = np.flatnonzero(is_first)
            nstart = np.concatenate([[0], np.cumsum(is_first)])[start]
    return Cuts(start, edges, unit, s, change, node, nstart, first)
