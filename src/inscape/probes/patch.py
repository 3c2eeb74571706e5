"""The patch: a rectangle or another convex polygon in a plane of the input space."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import ProbeError, unknown_name
from inscape.models import Model
from inscape.probes.probe import Probe, as_interval, as_point
from inscape.probes.source import check_columns, column_names, listed_names

Bounds = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False, init=False)
class Patch(Probe):
    """x(s, t) = origin + s axes[0] + t axes[1] for (s, t) in `bounds`.

    Args:
        origin: the point at (0, 0), an array of any shape.
        axes: two linearly independent directions of that shape.
        bounds: the intervals of s and of t.
        marks: coordinates (m, 2) of data points in the plane, drawn in pictures.
        mark_names: the names of these points, () for none.
        axis_names: what s and t are; None for the features if the axes are those of two features, else none.
        unit: the unit of each feature, in which data points beside the plane are near or far; None for 1.
        feature_names: the columns of the table that the plane was made from, None if it has no names; a model
            that was fitted to other columns is refused.
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
    mark_names: tuple[str, ...] = ()
    axis_names: tuple[str, str] | None = None
    unit: Floats | None = None
    feature_names: tuple[str, ...] | None = None

    def __init__(
        self,
        origin: npt.ArrayLike,
        axes: npt.ArrayLike,
        bounds: Bounds = ((-1.0, 1.0), (-1.0, 1.0)),
        *,
        marks: npt.ArrayLike = (),
        corners: npt.ArrayLike | None = None,
        mark_names: Sequence[str] = (),
        axis_names: tuple[str, str] | None = None,
        unit: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
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
        object.__setattr__(self, "mark_names", tuple(str(name) for name in mark_names))
        object.__setattr__(
            self, "axis_names", _feature_axes(o, a) if axis_names is None else tuple(axis_names)
        )
        object.__setattr__(self, "unit", None if unit is None else _as_unit(unit, o.shape))
        object.__setattr__(self, "feature_names", None if feature_names is None else tuple(feature_names))

    @classmethod
    def around(cls, x: Any, *, margin: float = 0.1) -> Self:
        """The patch around data of two features, in their own coordinates.

        Args:
            x: the data, (n, 2), an array or a data frame.
            margin: how far the patch reaches beyond the data, as a fraction of the extent of each feature.

        >>> Patch.around([[0.0, 2.0], [1.0, 4.0]], margin=0.5).bounds
        ((-0.5, 1.5), (1.0, 5.0))
        """
        points = _as_table(x)
        if points.shape[1] != 2:
            raise ProbeError(
                f"x has shape {points.shape}, expected (n, 2): choose two of more with Patch.features"
            )
        return cls.features(x, 0, 1, margin=margin)

    @classmethod
    def features(cls, x: Any, first: Any, second: Any, *, at: Any = None, margin: float = 0.1) -> Self:
        """The patch along two features of a table, the others as in one row; coordinates are the features.

        Args:
            x: the table, (n, d), an array or a data frame.
            first: the feature to the right: a column of the data frame, or its number.
            second: the feature upwards.
            at: a row by its number, or a point (d,), which is marked; None for the median of each feature.
            margin: how far the patch reaches beyond the data, as a fraction of the extent of each feature.
        """
        table = _as_table(x)
        i, j = _column(x, first, table.shape[1]), _column(x, second, table.shape[1])
        if i == j:
            raise ProbeError(f"the two features are the same, {first!r}: a patch needs two")
        is_row = isinstance(at, int | np.integer)
        point = (
            np.median(table, axis=0)
            if at is None
            else _rows(table, [at])[0]
            if is_row
            else as_point(at, "at")
        )
        if point.shape != table.shape[1:]:
            raise ProbeError(f"at={at!r} must be the number of a row or a point of {table.shape[1]} numbers")
        columns = table[:, [i, j]]
        low, high = columns.min(axis=0), columns.max(axis=0)
        reach = _margin(margin) * np.where(high > low, high - low, 1.0)
        (s0, t0), (s1, t1) = (low - reach).tolist(), (high + reach).tolist()
        return cls(
            np.where(np.isin(np.arange(len(point)), (i, j)), 0.0, point),
            np.eye(len(point))[[i, j]],
            ((s0, s1), (t0, t1)),
            marks=() if at is None or len(point) == 2 else point[None, [i, j]],
            mark_names=_row_names(x, [at]) if is_row and len(point) > 2 else (),
            axis_names=(_column_name(x, i), _column_name(x, j)),
            feature_names=column_names(x),
        )

    @classmethod
    def through(
        cls, points: Any, *, rows: Sequence[int] | None = None, scale: Any = None, margin: float = 0.25
    ) -> Self:
        """The patch of the plane through three points, true to scale, with a margin around them.

        Args:
            points: three points that are not on a line, (3, *input_shape); with `rows`, a table of many. The
                points have the names of the rows of a data frame.
            rows: the numbers of three rows of the table.
            scale: in which units distances in the plane are measured: None as the data are; "std" in
                standard deviations of the table, which needs `rows`; a fitted scaler of scikit-learn, or a
                pipeline that begins with one; or a number for each feature. It is the same plane, drawn so
                that no feature rules over the others because of its unit.
            margin: how far the patch reaches beyond the points, as a fraction of their extent.
        """
        check_columns(points, "points")
        names = _row_names(points, rows)
        unit = None if scale is None else _unit_of(scale, points, rows)
        p = as_point(points, "points") if rows is None else _rows(as_point(points, "points"), rows)
        if len(p) != 3:
            raise ProbeError(f"a plane goes through 3 points, got {len(p)}")
        flat = p.reshape(3, -1)
        units = np.ones(flat.shape[1]) if unit is None else _as_unit(unit, p.shape[1:]).reshape(-1)
        ways = (flat[1:] - flat[0]) / units
        q, r = np.linalg.qr(ways.T)
        scale = np.abs(r).max()
        if len(r) < 2 or scale == 0 or np.abs(np.diag(r)).min() <= 1e-12 * scale:
            raise ProbeError("the three points are on a line: they span no plane")
        marks = np.concatenate([np.zeros((1, 2)), ways @ q])
        low, high = marks.min(axis=0), marks.max(axis=0)
        reach = _margin(margin) * (high - low).max()
        bounds = ((low[0] - reach, high[0] + reach), (low[1] - reach, high[1] + reach))
        axes = (q.T * units).reshape(2, *p.shape[1:])
        columns = column_names(points)
        return cls(p[0], axes, bounds, marks=marks, mark_names=names, unit=unit, feature_names=columns)

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

    @property
    def extremes(self) -> Floats:
        """The corners in the input space, (k, *input_shape)."""
        return self.points(self.corners)

    def points(self, parameters: npt.ArrayLike) -> Floats:
        """The points at coordinates (s, t), (n, 2) -> (n, *input_shape)."""
        st = np.asarray(parameters, dtype=np.float64).reshape(-1, 2)
        return self.origin + np.tensordot(st, self.axes, axes=1)

    def __repr__(self) -> str:
        shape = "" if self.is_rectangle else f", {len(self.corners)} corners"
        (s0, s1), (t0, t1) = self.bounds
        bounds = f"(({s0:.4g}, {s1:.4g}), ({t0:.4g}, {t1:.4g}))"
        return f"Patch(input_shape={self.origin.shape}, bounds={bounds}{shape})"


def _feature_axes(origin: Floats, axes: Floats) -> tuple[str, str] | None:
    """The features that coordinates are, if each axis is the unit vector of one; None otherwise."""
    if origin.ndim != 1:
        return None
    i, j = np.abs(axes).argmax(axis=1).tolist()
    is_plain = i != j and np.array_equal(axes, np.eye(len(origin))[[i, j]]) and not origin[[i, j]].any()
    return (f"feature {i}", f"feature {j}") if is_plain else None


def _margin(margin: Any) -> float:
    if not (isinstance(margin, int | float | np.number) and 0 <= margin < np.inf):
        raise ProbeError(f"margin={margin!r} must be a number of at least 0")
    return float(margin)


def _as_table(x: Any) -> Floats:
    check_columns(x, "x")
    table = as_point(x, "x")
    if table.ndim != 2 or len(table) == 0:
        raise ProbeError(f"x has shape {table.shape}, expected a table (n, d)")
    return table


def _rows(table: Floats, rows: Sequence[Any]) -> Floats:
    for row in rows:
        if not isinstance(row, int | np.integer) or not -len(table) <= row < len(table):
            raise ProbeError(f"there is no row {row!r}: the table has rows 0 to {len(table) - 1}")
    return table[list(rows)]


def _column(x: Any, feature: Any, n: int) -> int:
    """The number of a column, by name or number."""
    names = list(getattr(x, "columns", ()))
    if feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and 0 <= feature < n:
        return int(feature)
    known = [str(name) for name in names] or [str(i) for i in range(n)]
    raise ProbeError(unknown_name("feature", str(feature), known))


def _column_name(x: Any, i: int) -> str:
    return str(x.columns[i]) if hasattr(x, "columns") else f"feature {i}"


def _row_names(x: Any, rows: Sequence[int] | None) -> tuple[str, ...]:
    """The names of rows of a data frame, or of chosen rows of an array; numbers are called "row 3"."""
    index = getattr(x, "index", None) if hasattr(x, "columns") else None
    if index is None:
        names: list[Any] = [] if rows is None or np.ndim(x) != 2 else list(rows)
    else:
        names = [index[row] for row in (range(len(index)) if rows is None else rows)]
    return tuple(f"row {n}" if isinstance(n, int | np.integer) else str(n) for n in names)


def _as_unit(unit: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    units = as_point(unit, "scale")
    if units.shape != shape or not (units > 0).all():
        raise ProbeError(f"scale must be a positive number for each feature, {shape}, got {units.shape}")
    return units


def _unit_of(scale: Any, points: Any, rows: Sequence[int] | None) -> Any:
    """The unit of each feature, from what `Patch.through` takes as scale."""
    if isinstance(scale, str):
        if scale != "std":
            raise ProbeError(f'scale={scale!r} must be "std", a fitted scaler, or a number for each feature')
        if rows is None:
            raise ProbeError(
                'scale="std" needs a whole table and three of its rows: Patch.through(x, rows=...)'
            )
        deviation = as_point(points, "points").std(axis=0)
        return np.where(deviation > 0, deviation, 1.0)
    scaler = scale.steps[0][1] if hasattr(scale, "steps") else scale
    if not hasattr(scaler, "transform"):
        return scale
    shape = as_point(points, "points").shape[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the two points have no names of features
        low, high = (np.asarray(scaler.transform(np.full((1, *shape), v)))[0] for v in (0.0, 1.0))
    if low.shape != shape:
        raise ProbeError(f"{type(scaler).__name__} does not scale each feature on its own: give numbers")
    return 1.0 / np.where(high == low, 1.0, np.abs(high - low))


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


def check_features(model: Model, probes: Iterable[Any]) -> None:
    """Raise an error if a probe was made from other columns than the model was fitted to."""
    names = model.feature_names
    if names is None:
        return
    for probe in probes:
        known = getattr(probe, "feature_names", None)
        if known is not None and known != names:
            raise ProbeError(
                f"the {type(probe).__name__.lower()} was made from the columns {listed_names(known)}, and "
                f"{model.name} was fitted to {listed_names(names)}, in that order: make it from "
                "x[model.feature_names_in_]"
            )
