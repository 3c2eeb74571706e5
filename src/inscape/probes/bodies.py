"""Convex bodies of the whole input space: a box, and a ball."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arrays import Bools, Floats
from inscape.errors import ProbeError
from inscape.probes.probe import as_point
from inscape.serialising import OfKind


class Body(OfKind, ABC):
    """A convex set with an inside, of as many dimensions as there are inputs.

    Attributes:
        centre: (*input_shape).

    >>> from inscape import Ball, Box
    >>> isinstance(Box([0.0, 0.0], [1.0, 1.0]), Body), isinstance(Ball([0.0, 0.0], 1.0), Body)
    (True, True)
    """

    _error: ClassVar = ProbeError
    centre: Floats

    @property
    @abstractmethod
    def half_widths(self) -> Floats:
        """Half of the extent along each axis, (*input_shape)."""

    @abstractmethod
    def contains(self, points: npt.ArrayLike) -> Bools:
        """Whether each of n points is in the body, its border included, (n,)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Floats:
        """A random point of the inside, (*input_shape)."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one point."""
        return self.centre.shape

    @property
    def dim(self) -> int:
        """The number of inputs."""
        return self.centre.size

    def _relative(self, points: npt.ArrayLike) -> Floats:
        """Points (n, d) as seen from the centre."""
        return as_point(points, "points").reshape(-1, self.dim) - self.centre.reshape(-1)


@dataclass(frozen=True, eq=False, init=False)
class Box(Body):
    """All points between two corners, {x : low <= x <= high}.

    Args:
        low: the lowest corner, (*input_shape).
        high: the highest corner, above `low` along every axis; numbers count for all axes.

    >>> Box([0, 0, 0], 1).contains([[0.5, 0.5, 1.0], [0.5, 0.5, 1.5]]).tolist()
    [True, False]
    """

    low: Floats
    high: Floats

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        try:
            corners = np.broadcast_arrays(as_point(low, "low"), as_point(high, "high"))
        except ValueError as error:
            raise ProbeError(f"low and high must be points of one shape: {error}") from error
        if not (corners[0] < corners[1]).all():
            where = np.argwhere(~(corners[0] < corners[1]))[0].tolist()
            raise ProbeError(f"high must be above low along every axis, it is not at index {where}")
        for name, corner in zip(("low", "high"), corners, strict=True):
            object.__setattr__(self, name, as_point(corner, name))
        object.__setattr__(self, "centre", (self.low + self.high) / 2)

    @property
    def half_widths(self) -> Floats:
        """Half of what lies between the corners."""
        return np.asarray((self.high - self.low) / 2)

    @property
    def volume(self) -> float:
        """The product of the widths."""
        return float(np.prod(self.high - self.low))

    def contains(self, points: npt.ArrayLike) -> Bools:
        """Whether each of n points is in the box, its border included, (n,)."""
        return np.asarray((np.abs(self._relative(points)) <= self.half_widths.reshape(-1)).all(axis=1))

    def sample(self, rng: np.random.Generator) -> Floats:
        """A uniform random point."""
        return np.asarray(rng.uniform(self.low, self.high))

    def __repr__(self) -> str:
        if self.dim <= 4:
            return f"Box({_short(self.low)}, {_short(self.high)})"
        return f"Box(input_shape={self.input_shape})"


@dataclass(frozen=True, eq=False, init=False)
class Ball(Body):
    """All points within a Euclidean distance of a centre.

    Args:
        centre: (*input_shape).
        radius: positive.

    >>> Ball([0, 0], 1).contains([[0.6, 0.8], [0.8, 0.8]]).tolist()
    [True, False]
    """

    centre: Floats
    radius: float

    def __init__(self, centre: npt.ArrayLike, radius: float) -> None:
        is_number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
        if not is_number or not 0 < radius < math.inf:
            raise ProbeError(f"radius={radius!r} must be a positive number")
        object.__setattr__(self, "centre", as_point(centre, "centre"))
        object.__setattr__(self, "radius", float(radius))

    @property
    def half_widths(self) -> Floats:
        """The radius along every axis."""
        return np.full(self.input_shape, self.radius)

    def contains(self, points: npt.ArrayLike) -> Bools:
        """Whether each of n points is in the ball, its border included, (n,)."""
        return np.asarray(np.linalg.norm(self._relative(points), axis=1) <= self.radius)

    def sample(self, rng: np.random.Generator) -> Floats:
        """A uniform random point."""
        way = rng.standard_normal(self.dim)
        way *= self.radius * rng.uniform() ** (1 / self.dim) / np.linalg.norm(way)
        return np.asarray(self.centre + way.reshape(self.input_shape))

    def __repr__(self) -> str:
        where = _short(self.centre) if self.dim <= 4 else f"a point of shape {self.input_shape}"
        return f"Ball({where}, {self.radius:.4g})"


def _short(point: Floats) -> str:
    """The coordinates of a point in four digits."""
    return f"[{', '.join(f'{value:.4g}' for value in point.reshape(-1))}]"
