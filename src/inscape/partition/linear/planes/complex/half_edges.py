"""A planar subdivision of a convex domain."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.partition.linear.planes.complex import kernels

BORDER = -1
"""The layer of birth of the domain's own edges."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Vertices, edges and faces; a face is a loop of half-edges, anticlockwise.

    Half-edge 2 e + d runs along edge e from its first end to its second if d = 0, back if d = 1.

    Attributes:
        xy: coordinates of the vertices, (v, 2).
        ends: the vertices of each edge, (e, 2), int32.
        born: the piecewise-linear node in whose layer each edge came up, `BORDER` for the domain's, (e,).
        start: where the loop of each face starts, (f + 1,).
        loop: half-edges of the loops, int32.
        shared: edges whose other face is in another part of the subdivision, (e,).
        fixed: the corners of the domain, which stay vertices whatever meets there, (v,).
    """

    xy: Floats
    ends: npt.NDArray[np.int32]
    born: npt.NDArray[np.int32]
    start: Ints
    loop: npt.NDArray[np.int32]
    shared: npt.NDArray[np.bool_]
    fixed: npt.NDArray[np.bool_]

    @property
    def n_faces(self) -> int:
        """How many faces there are."""
        return len(self.start) - 1

    @property
    def corners(self) -> Any:
        """The vertex at the start of each half-edge of `loop`."""
        return self.ends[self.loop >> 1, self.loop & 1]

    @property
    def first_corners(self) -> Any:
        """The first vertex of each face, (f,)."""
        first = self.loop[self.start[:-1]]
        return self.ends[first >> 1, first & 1]

    @property
    def face_of_loop(self) -> Ints:
        """The face of each half-edge of `loop`."""
        return np.repeat(np.arange(self.n_faces), np.diff(self.start))

    def sides(self) -> Ints:
        """The faces to the left and to the right of each edge, -1 for none, (e, 2)."""
        found = np.full(2 * len(self.ends), -1, np.int64)
        found[self.loop] = self.face_of_loop
        return found.reshape(-1, 2)

    def areas(self) -> Floats:
        """The area of each face, (f,)."""
        return np.asarray(kernels.areas(self.start, self.loop, self.ends, self.xy))

    def centroids(self) -> Floats:
        """The mean of each face's corners, (f, 2): a point inside."""
        n = np.diff(self.start)[:, None]
        return np.asarray(np.add.reduceat(self.xy[self.corners], self.start[:-1], axis=0) / n)


def oriented(cells: Cells) -> Cells:
    """The same with every edge starting at its end nearer to (0, 0)."""
    far = np.hypot(*cells.xy.T)
    turned = far[cells.ends[:, 1]] < far[cells.ends[:, 0]]
    ends = np.where(turned[:, None], cells.ends[:, ::-1], cells.ends)
    return replace(cells, ends=ends, loop=cells.loop ^ turned[cells.loop >> 1])


def following(corners: Floats) -> Floats:
    """The corner after each corner of a polygon, (k, 2)."""
    return np.concatenate([corners[1:], corners[:1]])


def polygon_cells(corners: Floats) -> Cells:
    """One face: a convex polygon with corners (k, 2), anticlockwise."""
    k = len(corners)
    around = np.arange(k, dtype=np.int32)
    return Cells(
        xy=np.asarray(corners, dtype=np.float64),
        ends=np.array([(i, (i + 1) % k) for i in range(k)], np.int32),
        born=np.full(k, BORDER, np.int32),
        start=np.array([0, k]),
        loop=2 * around,
        shared=np.zeros(k, bool),
        fixed=np.ones(k, bool),
    )
