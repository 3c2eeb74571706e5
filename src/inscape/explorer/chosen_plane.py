"""The plane that a page looks at: through three points, each a data point or an affine combination of some.

In JSON a point is a list of [row, weight] with weights that add up to 1, so that a plane is a few numbers
whatever the dimension of the data. `frame` says where coordinates lie, and `corners` where the three corners
are now: a corner that was dragged along the plane leaves the frame, and so the picture, where it is.
"""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.errors import ProbeError
from inscape.explorer.data_points import DataPoints
from inscape.probes import Patch
from inscape.probes.probe import nearest

Combination = tuple[tuple[int, float], ...]
_MOST_TERMS = 60
"""Rows that a corner may combine: it comes from the page, and could be of any length."""
_MARGIN = 0.35
"""How far the first look reaches beyond the three corners, of their extent."""


@dataclass(frozen=True, eq=False)
class ChosenPlane:
    """A plane through data points.

    Attributes:
        data: the data.
        frame: the three points through which the plane was laid; () for the plane of data of two features.
        corners: where its corners are now.
    """

    data: DataPoints
    frame: tuple[Combination, ...]
    corners: tuple[Combination, ...]

    @classmethod
    def read(cls, value: Any, data: DataPoints) -> "ChosenPlane":
        """The plane that a request names; an error if it names none."""
        if data.is_plane:
            return cls(data, (), ())
        if not isinstance(value, dict):
            raise ProbeError("the request names no plane: expected its frame and its corners")
        frame = tuple(_combination(point, len(data)) for point in _three(value.get("frame")))
        corners = tuple(
            _combination(point, len(data)) for point in _three(value.get("corners", value["frame"]))
        )
        return cls(data, frame, corners)

    @classmethod
    def through(cls, rows: Any, data: DataPoints) -> "ChosenPlane":
        """The plane through three rows of the data."""
        if data.is_plane:
            return cls(data, (), ())
        points = [[[int(row), 1.0]] for row in rows]
        return cls.read({"frame": points, "corners": points}, data)

    def named(self) -> dict[str, Any]:
        """The plane as a request names it; `read` reads that."""
        return {
            "frame": [[list(term) for term in point] for point in self.frame],
            "corners": [[list(term) for term in point] for point in self.corners],
        }

    @cached_property
    def key(self) -> str:
        """A text that is the same for the same frame."""
        return json.dumps(self.frame)

    @cached_property
    def home(self) -> Patch:
        """The patch of the first look."""
        if self.data.is_plane:
            return Patch.around(self.data.x, margin=0.12)
        return Patch.through(self._points(self.frame), scale=self.data.unit, margin=_MARGIN)

    @cached_property
    def corner_coordinates(self) -> Floats:
        """Where the corners are in the plane, (3, 2), or (0, 2) without corners."""
        if not self.corners:
            return np.empty((0, 2))
        return self.coordinates(self._points(self.corners).reshape(3, -1))[0]

    @property
    def outline(self) -> dict[str, Any]:
        """What a page needs to know of the plane before its regions are there."""
        (s0, s1), (t0, t1) = self.home.bounds
        return {
            "corners": self.corner_coordinates.tolist(),
            "frame": self.home.marks.tolist(),
            "home": [s0, s1, t0, t1],
        }

    def coordinates(self, points: Floats) -> tuple[Floats, Floats]:
        """Where points (n, d) are nearest to the plane, (n, 2), and how far they are from there, (n,).

        Both in the units of the data, if these have some.
        """
        origin, axes = self.home.origin.reshape(-1), self.home.axes.reshape(2, -1)
        units = 1.0 if self.data.unit is None else self.data.unit.reshape(-1)
        places, _ = nearest(origin / units, axes / units, points / units)
        return places, np.linalg.norm((points - origin - places @ axes) / units, axis=1)

    def window(self, bounds: Any) -> Patch:
        """The window of the plane between bounds [s0, s1, t0, t1]."""
        if not isinstance(bounds, list) or len(bounds) != 4 or not all(_is_number(v) for v in bounds):
            raise ProbeError("the request names no window: expected four numbers s0, s1, t0, t1")
        s0, s1, t0, t1 = (float(v) for v in bounds)
        home = self.home
        marks = self.corner_coordinates
        return Patch(home.origin, home.axes, ((s0, s1), (t0, t1)), marks=marks, unit=home.unit)

    def whole(self, size: Any) -> list[float]:
        """The window that holds the first look on a canvas of some size (width, height) in pixels."""
        (s0, s1), (t0, t1) = self.home.bounds
        is_pair = isinstance(size, list) and len(size) == 2
        w, h = size if is_pair and all(_is_number(n) and n >= 1 for n in size) else (1.0, 1.0)
        units = (s1 - s0) / w, (t1 - t0) / h
        ratio = (s1 - s0) / (t1 - t0)
        if not (self.data.is_plane and not 0.25 <= ratio <= 4):  # else the page stretches it, too
            units = max(units), max(units)
        reach = [1.2 * units[0] * w / 2, 1.2 * units[1] * h / 2]
        s, t = (s0 + s1) / 2, (t0 + t1) / 2
        return [s - reach[0], s + reach[0], t - reach[1], t + reach[1]]

    def _points(self, combinations: tuple[Combination, ...]) -> Floats:
        return np.stack([sum(weight * self.data.x[row] for row, weight in point) for point in combinations])


def _three(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) != 3:
        raise ProbeError("a plane goes through three points, each a list of [row, weight]")
    return value


def _combination(value: Any, n: int) -> Combination:
    """The rows and weights of one point, checked."""
    is_list = isinstance(value, list) and 0 < len(value) <= _MOST_TERMS
    if not is_list or not all(isinstance(term, list | tuple) and len(term) == 2 for term in value):
        raise ProbeError(f"a point of the plane is a list of up to {_MOST_TERMS} pairs [row, weight]")
    for row, weight in value:
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < n:
            raise ProbeError(f"there is no row {row!r}: the data have rows 0 to {n - 1}")
        if not _is_number(weight):
            raise ProbeError(f"the weight of row {row} is not a finite number")
    if abs(sum(weight for _, weight in value) - 1) > 1e-6:
        raise ProbeError("the weights of a point must add up to 1")
    return tuple((row, float(weight)) for row, weight in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
