"""The convex polygon of a two-dimensional probe, with coordinates of its own, and where it lies."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats
from inscape.errors import ProbeError
from inscape.probes import Patch, Probe, Simplex


@dataclass(frozen=True, eq=False)
class Plane:
    """x(s, t) = origin + s axes[0] + t axes[1], flattened.

    Attributes:
        origin: (d,).
        axes: (2, d).
        extent: how large |s| and |t| become: the rounding of coordinates is that of numbers of this size. 0
            if they are known to relative accuracy, which `near_zero.fan` sees to around (0, 0).
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
class Domain:
    """A convex polygon in a plane of the input space.

    Attributes:
        plane: where coordinates lie in the input space.
        corners: anticlockwise, (k, 2).
        marks: coordinates of the data points that span the probe, (m, 2).
    """

    plane: Plane
    corners: Floats
    marks: Floats

    @property
    def metric(self) -> Floats:
        """The Gram matrix of the axes: lengths in the input space from coordinates."""
        return np.asarray(self.plane.axes @ self.plane.axes.T)

    def lengths(self, vectors: Floats) -> Floats:
        """The lengths in the input space of vectors of coordinates, (n, 2)."""
        return np.asarray(np.sqrt(np.einsum("ni,ij,nj->n", vectors, self.metric, vectors)))

    @property
    def area_unit(self) -> float:
        """The area in the input space of a unit square of coordinates."""
        return float(np.sqrt(np.linalg.det(self.metric)))


def domain_of(probe: Probe) -> Domain:
    """A patch in its own coordinates; a triangle true to scale, its first vertex at (0, 0)."""
    if isinstance(probe, Patch):
        plane = Plane(probe.origin.reshape(-1), probe.axes.reshape(2, -1))
        return Domain(plane, probe.corners, probe.marks)
    if isinstance(probe, Simplex) and probe.dim == 2:
        flat = probe.vertices.reshape(3, -1)
        sides = flat[1:] - flat[0]
        if np.linalg.matrix_rank(sides) < 2:
            raise ProbeError("the three vertices are on a line: their hull has no area")
        q, r = np.linalg.qr(sides.T)
        sign = np.where(np.diag(r) < 0, -1.0, 1.0)
        corners = np.concatenate([np.zeros((1, 2)), (r * sign[:, None]).T])
        return Domain(Plane(flat[0], (q * sign).T), corners, corners)
    raise ProbeError(
        f"expected a Patch or a Simplex with three vertices, got a {type(probe).__name__} "
        f"of dimension {probe.dim}"
    )
