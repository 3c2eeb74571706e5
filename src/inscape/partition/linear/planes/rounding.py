"""How exactly float64 knows a node's values on a plane: bounds for rounding errors."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph
from inscape.partition.linear.planes.domain import Plane
from inscape.partition.linear.segments.breakpoints import ROUNDING
from inscape.partition.linear.segments.walk import magnitude

_NUMBERS_AT_ONCE = 2**22
"""How many numbers the largest tensor of an evaluation may have."""

_TINY = 1e-9
"""Entries this small, relative to the numbers from which points were formed, may be zero up to rounding."""


class RoundingBounds(Protocol):
    """How exactly the values of a layer are known."""

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry, of this scale at most, may be zero up to rounding."""

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Bounds for the rounding error of entries at vertices, for each pair (m,)."""


@dataclass(frozen=True, eq=False)
class NodeRoundingBounds:
    """Bounds for the rounding error of a node's entries at vertices with coordinates `xy`."""

    graph: Graph
    plane: Plane
    xy: Floats
    node: int

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry of the node, of this scale at most, may be zero up to rounding."""
        return scale <= _TINY * self.plane.reach(self.xy[0]) or self.node in self.graph.cancelling

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """The bounds for pairs of a vertex and an entry, (m,)."""
        return self.largest(vertices, entries[:, None])

    def largest(self, vertices: Ints, entries: Ints) -> Floats:
        """The largest bound over several entries (m, k) at each vertex (m,); entry -1 is none."""
        needed, where = np.unique(vertices, return_inverse=True)
        result = np.zeros(len(vertices))
        most = max(1, _NUMBERS_AT_ONCE // max(int(np.prod(s)) for s in self.graph.shapes))
        order = np.argsort(where, kind="stable")
        bounds = np.searchsorted(where[order], np.arange(0, len(needed) + most, most))
        for k, start in enumerate(range(0, len(needed), most)):
            xy = self.xy[needed[start : start + most]]
            x = self.plane.points(xy)
            with torch.no_grad():
                shape = (-1, *self.graph.input_shape)
                scale = self.plane.sizes(xy).reshape(shape)
                size: Any = magnitude(self.graph, x.reshape(shape), self.node, scale)
            size = size.reshape(len(x), -1).numpy()
            own = order[bounds[k] : bounds[k + 1]]
            sizes = size[where[own] - start, :][np.arange(len(own))[:, None], entries[own]]
            result[own] = np.where(entries[own] >= 0, sizes, 0.0).max(axis=1)
        return np.asarray(ROUNDING * float(np.finfo(np.float64).eps) * result)
