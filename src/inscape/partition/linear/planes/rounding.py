"""Where a plane lies in the input space, and how exactly float64 knows a node's values on it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph
from inscape.partition.linear.bending import ROUNDING
from inscape.partition.linear.engine import magnitude

_NUMBERS = 2**22
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Plane:
    """x(s, t) = origin + s axes[0] + t axes[1], flattened.

    Attributes:
        origin, axes: (d,) and (2, d).
        extent: how large |s| and |t| become: the rounding of coordinates is that of numbers of this size. 0
            if they are exact to a part of themselves, which `fan.fan_cells` sees to around (0, 0).
    """

    origin: Floats
    axes: Floats
    extent: float = 0.0

    def points(self, xy: Floats) -> Tensor:
        """The points of the input space at coordinates (n, 2), (n, d)."""
        return torch.from_numpy(self.origin + xy @ self.axes)

    def sizes(self, xy: Floats) -> Tensor:
        """The scale of the numbers from which points were formed, (n, d)."""
        reach = np.maximum(np.abs(xy).max(axis=1, initial=0.0), self.extent)
        return torch.from_numpy(self._offset + reach[:, None] * self._span)

    def reach(self, coordinates: Floats) -> float:
        """The largest of the sizes at one point, (2,)."""
        far = max(abs(float(coordinates[0])), abs(float(coordinates[1])), self.extent)
        return self._reach if far == self.extent else self._size(far)

    @cached_property
    def _reach(self) -> float:
        return self._size(self.extent)

    def _size(self, far: float) -> float:
        return float((self._offset + far * self._span).max())

    @cached_property
    def _offset(self) -> Floats:
        return np.abs(self.origin)

    @cached_property
    def _span(self) -> Floats:
        return np.asarray(np.abs(self.axes).sum(axis=0))


@dataclass(frozen=True, eq=False)
class NodeNoise:
    """Bounds for the rounding error of a node's entries at vertices with coordinates `xy`."""

    graph: Graph
    plane: Plane
    xy: Floats
    node: int

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry of the node, of this scale at most, may be zero but for rounding."""
        return scale <= _TINY * self.plane.reach(self.xy[0]) or self.node in self.graph.cancelling

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """The bounds for pairs of a vertex and an entry, (m,)."""
        return self.largest(vertices, entries[:, None])

    def largest(self, vertices: Ints, entries: Ints) -> Floats:
        """The largest bound over several entries (m, k) at each vertex (m,); entry -1 is none."""
        needed, where = np.unique(vertices, return_inverse=True)
        result = np.zeros(len(vertices))
        most = max(1, _NUMBERS // max(int(np.prod(s)) for s in self.graph.shapes))
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
            chosen = order[bounds[k] : bounds[k + 1]]
            found = size[where[chosen] - start, :][np.arange(len(chosen))[:, None], entries[chosen]]
            result[chosen] = np.where(entries[chosen] >= 0, found, 0.0).max(axis=1)
        return np.asarray(ROUNDING * float(np.finfo(np.float64).eps) * result)
