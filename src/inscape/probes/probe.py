"""What every probe is: an affine image of a low-dimensional domain in the input space."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import as_array
from inscape.arrays import Bools, Floats
from inscape.errors import ProbeError
from inscape.serialising import OfKind

ON_PROBE = 1e-6
"""Relative to their size, how far points may be from a probe that they are on; data are often float32."""


class Probe(OfKind, ABC):
    """A low-dimensional set in the input space.

    The points of a probe are `weights @ generators`: k generators in the input space, combined by
    weights that depend only on the kind of probe and the position in its domain. So all probes of one
    kind share their weights, and a batch of points is one small matrix product.
    """

    _error: ClassVar = ProbeError

    @property
    @abstractmethod
    def dim(self) -> int:
        """The dimension d of the probe."""

    @property
    @abstractmethod
    def generators(self) -> Floats:
        """The k generators, (k, *input_shape)."""

    @property
    @abstractmethod
    def anchors(self) -> Floats:
        """The data points that span the probe, (m, *input_shape)."""

    @property
    def extremes(self) -> Floats:
        """The points of which the probe is the convex hull, (k, *input_shape)."""
        return self.generators

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one point of the input space."""
        return self.generators.shape[1:]

    @abstractmethod
    def points(self, parameters: npt.ArrayLike) -> Floats:
        """The points of the input space at given parameters of the domain."""


def nearest(origin: Floats, axes: Floats, points: Floats) -> tuple[Floats, Bools]:
    """Coordinates (n, k) along axes (k, d) of the places nearest to points (n, d); whether they are there.

    >>> st, is_there = nearest(np.zeros(3), np.eye(3)[:2], np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 5.0]]))
    >>> st.tolist(), is_there.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [True, False])
    """
    ways = points - origin
    coordinates = ways @ np.linalg.pinv(axes)
    away = np.linalg.norm(ways - coordinates @ axes, axis=1)
    sizes = np.linalg.norm(ways, axis=1) + np.linalg.norm(points, axis=1)
    return coordinates, away <= ON_PROBE * np.maximum(sizes, np.linalg.norm(axes))


def as_point(value: Any, what: str) -> Floats:
    """A finite float64 array of at least one dimension, from an array or a tensor."""
    given = as_array(value, what, ProbeError)
    try:
        point = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ProbeError(f"{what} must be an array of numbers: {error}") from error
    if point.ndim == 0:
        point = point[None]
    is_finite = np.isfinite(point)
    if not is_finite.all():
        bad, where = int((~is_finite).sum()), np.argwhere(~is_finite)[0].tolist()
        raise ProbeError(f"{what} holds {bad} NaN or infinite values, the first at index {where}")
    point.flags.writeable = False
    return point


def as_interval(value: Any, what: str) -> tuple[float, float]:
    """A pair low < high of finite numbers."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError) as error:
        raise ProbeError(f"{what}={value!r} must be a pair (low, high) of numbers") from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ProbeError(f"{what}={value!r} must be finite with low < high")
    return low, high
