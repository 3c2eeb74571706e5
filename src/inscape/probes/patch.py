"""The patch: a rectangle or another convex polygon in a plane of the input space."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import ProbeError
from inscape.probes.probe import Probe, as_interval, as_point

Bounds = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False, init=False)
class Patch(Probe):
    """x(s, t) = origin + s axes[0] + t axes[1] for (s, t) in `bounds`.

    Args:
        origin: the point at (0, 0), an array of any shape.
        axes: two linearly independent directions of that shape.
        bounds: the intervals of s and of t.
        marks: coordinates (m, 2) of data points in the plane, drawn in pictures.
        corners: coordinates (k, 2) of the corners of a convex polygon, in order around it; `bounds` are then
            those of the rectangle around it. None takes the rectangle `bounds`.

    >>> Patch([0, 0, 0], [[1, 0, 0], [0, 1, 0]]).points([[0.5, -1.0]]).tolist()
    [[0.5, -1.0, 0.0]]
    """

    origin: Floats
    axes: Floats
    bounds: Bounds
    marks: Floats
    corners: Floats

    def __init__(
        self,
        origin: npt.ArrayLike,
        axes: npt.ArrayLike,
        bounds: Bounds = ((-1.0, 1.0), (-1.0, 1.0)),
        *,
        marks: npt.ArrayLike = (),
        corners: npt.ArrayLike | None = None,
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
        (s0, s1), (t0, t1) = as_interval(in_s, "bounds[0]"), as_interval(in_t, "bounds[1]")
        polygon = np.array([[s0, t0], [s1, t0], [s1, t1], [s0, t1]])
        if corners is not None:
            polygon = as_polygon(corners)
            (s0, t0), (s1, t1) = polygon.min(axis=0).tolist(), polygon.max(axis=0).tolist()
        object.__setattr__(self, "origin", o)
        object.__setattr__(self, "axes", a)
        object.__setattr__(self, "bounds", ((s0, s1), (t0, t1)))
        object.__setattr__(self, "corners", polygon)
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
    def is_rectangle(self) -> bool:
        """Whether the patch fills its bounds."""
        (s0, s1), (t0, t1) = self.bounds
        return np.array_equal(self.corners, [[s0, t0], [s1, t0], [s1, t1], [s0, t1]])

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the origin."""
        return self.origin.shape

    @property
    def generators(self) -> Floats:
        """The lower corner, and the two sides that start there."""
        (s0, s1), (t0, t1) = self.bounds
        corner = self.origin + s0 * self.axes[0] + t0 * self.axes[1]
        return np.stack([corner, (s1 - s0) * self.axes[0], (t1 - t0) * self.axes[1]])

    @property
    def anchors(self) -> Floats:
        """The marked data points."""
        return self.points(self.marks)

    def points(self, parameters: npt.ArrayLike) -> Floats:
        """The points at coordinates (s, t), (n, 2) -> (n, *input_shape)."""
        st = np.asarray(parameters, dtype=np.float64).reshape(-1, 2)
        return self.origin + np.tensordot(st, self.axes, axes=1)

    def __repr__(self) -> str:
        shape = "" if self.is_rectangle else f", {len(self.corners)} corners"
        return f"Patch(input_shape={self.origin.shape}, bounds={self.bounds}{shape})"


def as_polygon(corners: npt.ArrayLike) -> Floats:
    """The corners (k, 2) of a convex polygon, anticlockwise; an error if they are not that."""
    c = as_point(corners, "corners")
    if c.ndim != 2 or c.shape[1] != 2 or len(c) < 3:
        raise ProbeError(f"corners must be coordinates (k, 2) of at least 3 points, got shape {c.shape}")
    sides = np.roll(c, -1, axis=0) - c
    after = np.roll(sides, -1, axis=0)
    turns = sides[:, 0] * after[:, 1] - sides[:, 1] * after[:, 0]
    if turns.sum() < 0:
        return as_polygon(c[::-1])
    angles = np.arctan2(turns, (sides * after).sum(axis=1))
    least = 1e-12 * np.linalg.norm(sides, axis=1) * np.linalg.norm(after, axis=1)
    if not (turns > least).all() or abs(angles.sum() - 2 * np.pi) > 1e-6:
        raise ProbeError("the corners are not those of a convex polygon, in order around it")
    return c
