"""The simplex: the convex hull of d + 1 points."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import ProbeError
from inscape.probes.probe import Probe, as_point


@dataclass(frozen=True, eq=False, init=False)
class Simplex(Probe):
    """The convex hull of d + 1 points, d >= 1: the hull of Def. 4 (Li et al. 2025, arXiv 2505.11370).

    Args:
        vertices: the d + 1 different points, (d + 1, *input_shape).

    >>> Simplex([[0, 0], [3, 0], [0, 3]]).points([[1 / 3, 1 / 3, 1 / 3]]).round(12).tolist()
    [[1.0, 1.0]]
    """

    vertices: Floats

    def __init__(self, vertices: npt.ArrayLike) -> None:
        if isinstance(vertices, list | tuple):
            vertices = [as_point(v, f"vertex {i}") for i, v in enumerate(vertices)]
        v = as_point(vertices, "vertices")
        if len(v) < 2:
            raise ProbeError(f"a simplex needs at least 2 vertices, got {len(v)}")
        if v.ndim == 1:
            v = v[:, None]
        if len(np.unique(v.reshape(len(v), -1), axis=0)) < len(v):
            raise ProbeError("two vertices are the same point: a simplex needs different points")
        object.__setattr__(self, "vertices", v)

    @property
    def dim(self) -> int:
        """One less than the number of vertices."""
        return len(self.vertices) - 1

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a vertex."""
        return self.vertices.shape[1:]

    @property
    def generators(self) -> Floats:
        """The vertices, the one nearest to all others first (for d >= 2).

        Grids are laid along the edges from the first generator; this choice makes them independent of
        the order in which the vertices are given, and as little skewed as possible.
        """
        if self.dim == 1:
            return self.vertices
        flat = self.vertices.reshape(len(self.vertices), -1)
        squared = ((flat[:, None] - flat[None]) ** 2).sum(axis=2)
        spread = np.sort(squared, axis=1).sum(axis=1)
        first = min(range(len(flat)), key=lambda i: (spread[i], flat[i].tolist()))
        return np.concatenate([self.vertices[[first]], np.delete(self.vertices, first, axis=0)])

    @property
    def anchors(self) -> Floats:
        """The vertices."""
        return self.vertices

    def points(self, parameters: npt.ArrayLike) -> Floats:
        """The points at barycentric coordinates (n, d + 1) in the order of `vertices`."""
        return np.tensordot(np.asarray(parameters, dtype=np.float64), self.vertices, axes=1)

    def __repr__(self) -> str:
        return f"Simplex(dim={self.dim}, input_shape={self.input_shape})"
