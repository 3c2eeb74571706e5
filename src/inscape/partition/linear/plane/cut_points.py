"""The points where units change sign along the edges of a subdivision."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.partition.linear.plane import kernels
from inscape.partition.linear.plane.cells import Cells, Floats, Ints
from inscape.partition.linear.plane.crossings import edge_crossings
from inscape.partition.linear.plane.signs import Noise, Words

CLOSE = 1e-9
"""Cut points this near on an edge, as a part of it, may be one."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """The points where units change sign along the edges.

    Attributes:
        start: where the crossings of each edge start, (e + 1,).
        unit, s, rise: which unit, where from the first end to the second, by how much its value grows, (m,).
        node: the cut point that each crossing belongs to: several units may cross in one, (m,).
        nstart: where the cut points of each edge start, (e + 1,).
        first: the first crossing of each cut point, (k,).
    """

    start: Ints
    unit: npt.NDArray[np.int32]
    s: Floats
    rise: Floats
    node: Ints
    nstart: Ints
    first: Ints

    @property
    def edge(self) -> Ints:
        """The edge of each crossing."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def cut_points(cells: Cells, z: Any, thresholds: Floats, above: Words, zero: Words, noise: Noise) -> Cuts:
    """All crossings on the edges; those that rounding cannot tell apart share a cut point."""
    start, unit, s, rise = edge_crossings(z, thresholds, above, zero, cells.ends)
    node = np.arange(len(s))
    nstart, first = start, node
    close = kernels.close_pairs(start, s, CLOSE)
    if len(close):
        h = z.shape[1]
        edge = np.searchsorted(start, close, side="right") - 1
        error = np.zeros(len(close))
        for k in (close, close + 1):
            a, b = (noise(cells.ends[edge, d].astype(np.int64), unit[k] % h) for d in (0, 1))
            error += (a + s[k] * (b - a)) / np.abs(rise[k])
        same = close[s[close + 1] - s[close] <= error]
        if len(same):
            is_first = np.ones(len(s), bool)
            is_first[same + 1] = False
            node = np.cumsum(is_first) - 1
            first = np.flatnonzero(is_first)
            nstart = np.concatenate([[0], np.cumsum(is_first)])[start]
    return Cuts(start, unit, s, rise, node, nstart, first)
