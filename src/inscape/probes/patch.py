"""The patch: a rectangle in a plane of the input space."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from inscape.errors import ProbeError
from inscape.probes.base import Array, Probe, as_interval, as_point

Bounds = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False, init=False)
class Patch(Probe):
    """x(s, t) = origin + s axes[0] + t axes[1] for (s, t) in `bounds`.

    Args:
        origin: the point at (0, 0), an array of any shape.
        axes: two linearly independent directions of that shape.
        bounds: the intervals of s and of t.
        marks: coordinates (m, 2) of data points in the plane, drawn in pictures.

    >>> Patch([0, 0, 0], [[1, 0, 0], [0, 1, 0]]).points([[0.5, -1.0]]).tolist()
    [[0.5, -1.0, 0.0]]
    """

    origin: Array
    axes: Array
    bounds: Bounds
    marks: Array

    def __init__(
        self,
        origin: npt.ArrayLike,
        axes: npt.ArrayLike,
        bounds: Bounds = ((-1.0, 1.0), (-1.0, 1.0)),
        *,
        marks: npt.ArrayLike = (),
    ) -> None:
        o, a = as_point(origin, "origin"), as_point(axes, "axes")
        if a.shape != (2, *o.shape):
            raise ProbeError(
                f"axes must have shape {(2, *o.shape)} for an origin of shape {o.shape}, got {a.shape}"
            )
        if np.linalg.matrix_rank(a.reshape(2, -1)) < 2:
            raise ProbeError("the two axes are parallel or zero: a patch needs two independent directions")
        try:
            in_s, in_t = bounds
        except (TypeError, ValueError) as error:
            raise ProbeError(f"bounds={bounds!r} must be two pairs ((low, high), (low, high))") from error
        coordinates = as_point(marks, "marks") if np.size(marks) else np.empty((0, 2))
        if coordinates.ndim != 2 or coordinates.shape[1] != 2:
            raise ProbeError(f"marks must be coordinates (m, 2), got shape {coordinates.shape}")
        object.__setattr__(self, "origin", o)
        object.__setattr__(self, "axes", a)
        object.__setattr__(self, "bounds", (as_interval(in_s, "bounds[0]"), as_interval(in_t, "bounds[1]")))
        object.__setattr__(self, "marks", coordinates)

    @classmethod
    def through(cls, points: npt.ArrayLike, *, margin: float = 0.25) -> Self:
        """The patch of the plane through three points, true to scale, with a margin around them.

        Args:
            points: three points that are not on a line, (3, *input_shape).
            margin: how far the patch reaches beyond the points, as a fraction of their extent.
        """
        p = as_point(points, "points")
        if len(p) != 3:
            raise ProbeError(f"a plane goes through 3 points, got {len(p)}")
        if not (isinstance(margin, int | float | np.number) and 0 <= margin < np.inf):
            raise ProbeError(f"margin={margin!r} must be a number of at least 0")
        flat = p.reshape(3, -1)
        q, r = np.linalg.qr((flat[1:] - flat[0]).T)
        scale = np.abs(r).max()
        if len(r) < 2 or scale == 0 or np.abs(np.diag(r)).min() <= 1e-12 * scale:
            raise ProbeError("the three points are on a line: they span no plane")
        marks = np.concatenate([np.zeros((1, 2)), (flat[1:] - flat[0]) @ q])
        low, high = marks.min(axis=0), marks.max(axis=0)
        reach = margin * (high - low).max()
        bounds = ((low[0] - reach, high[0] + reach), (low[1] - reach, high[1] + reach))
        return cls(p[0], q.T.reshape(2, *p.shape[1:]), bounds, marks=marks)

    @property
    def dim(self) -> int:
        """Two."""
        return 2

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the origin."""
        return self.origin.shape

    @property
    def generators(self) -> Array:
        """The lower corner, and the two sides that start there."""
        (s0, s1), (t0, t1) = self.bounds
        corner = self.origin + s0 * self.axes[0] + t0 * self.axes[1]
        return np.stack([corner, (s1 - s0) * self.axes[0], (t1 - t0) * self.axes[1]])

    @property
    def anchors(self) -> Array:
        """The marked data points."""
        return self.points(self.marks)

    def points(self, parameters: npt.ArrayLike) -> Array:
        """The points at coordinates (s, t), (n, 2) -> (n, *input_shape)."""
        st = np.asarray(parameters, dtype=np.float64).reshape(-1, 2)
        return self.origin + np.tensordot(st, self.axes, axes=1)

    def __repr__(self) -> str:
        return f"Patch(input_shape={self.origin.shape}, bounds={self.bounds})"
