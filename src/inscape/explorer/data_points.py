"""The data beside the plane: points, classes, thumbnails, and in which order the page shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from inscape.arrays import Array, Bytes, Float32s, Floats, Ints, Shape
from inscape.drawing.planes.frame import as_images
from inscape.errors import DataError, unknown_name
from inscape.probes.source import PointSource

MOST_ROWS = 5000
"""Rows that the strip of a page offers: the first of larger data."""
THUMBNAIL = 56
"""The longest side of a thumbnail in pixels; larger images lose rows and columns."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DataPoints:
    """Points of the input space.

    Attributes:
        x: the points, (n, *shape).
        y: their classes as they were given, (n,), or None.
        n_given: how many there were, of which these are the first.
        features: names of the numbers of a point, () if they have none.
        units: what each number is measured in, as "cm"; () if that is not known.
        image_shape: the shape in which a point is drawn as an image; None if it has its own or is none.
        unit: the unit of each number, in which points are near or far; None for 1.
    """

    x: Floats
    y: Array | None
    n_given: int
    features: tuple[str, ...]
    units: tuple[str, ...]
    image_shape: Shape | None
    unit: Floats | None

    @classmethod
    def of(
        cls,
        x: Any,
        y: Any,
        *,
        features: Sequence[str] | None,
        units: Mapping[str, str] | Sequence[str] | None,
        image_shape: Shape | None,
        scale: Any,
    ) -> "DataPoints":
        """The data that a user gives; see `explore`."""
        columns = getattr(x, "columns", None)
        names = features if features is not None else columns if columns is not None else ()
        points, classes = PointSource(x, y).everything()
        n_given = len(points)
        points = np.asarray(points[:MOST_ROWS], dtype=np.float64)
        size = points[0].size
        if size < 2:
            raise DataError("the data have one feature: the explorer looks at planes, which need two or more")
        if len(points) < 3 and size > 2:
            raise DataError(f"the data have {len(points)} points: a plane goes through three")
        if image_shape is not None and int(np.prod(image_shape)) != size:
            raise DataError(f"image_shape={tuple(image_shape)} does not hold the {size} numbers of a point")
        data = cls(
            x=points,
            y=None if classes is None else np.asarray(classes)[:MOST_ROWS],
            n_given=n_given,
            features=tuple(str(name) for name in names),
            units=_units(_known_units(x, names) if units is None else units, names, size),
            image_shape=None if image_shape is None else tuple(image_shape),
            unit=None,
        )
        unit = data._unit(scale)
        return data if unit is None else replace(data, unit=unit)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def is_plane(self) -> bool:
        """Whether the points are those of a plane themselves: two features."""
        return int(self.x[0].size) == 2

    @property
    def kind(self) -> str:
        """How points are shown: "plane", "image" or "table"."""
        return "plane" if self.is_plane else "image" if self.is_image else "table"

    @cached_property
    def is_image(self) -> bool:
        """Whether points are images."""
        return as_images(self._drawable(self.x[:1])) is not None

    @cached_property
    def picture_shape(self) -> Shape:
        """The shape of one picture: (height, width) or (height, width, 3)."""
        pictures = as_images(self._drawable(self.x[:1]))
        return () if pictures is None else tuple(pictures.shape[1:])

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The values that black and white stand for."""
        return float(self.x.min()), float(self.x.max())

    def pictures(self, points: Floats, longest: int | None = None) -> Float32s:
        """Points as pictures (n, height, width[, 3]) in their own values, thinned to a longest side."""
        x = self._drawable(points)
        if x.ndim == 4 and x.shape[1] in (1, 3) and min(x.shape[2:]) >= 4:
            x = np.moveaxis(x, 1, -1)
        if x.ndim == 4 and x.shape[3] == 1:
            x = x[..., 0]
        step = 1 if longest is None else max(1, -(-max(x.shape[1:3]) // longest))
        return np.ascontiguousarray(x[:, ::step, ::step], np.float32)

    def thumbnails(self, rows: Ints) -> Bytes:
        """Rows as small pictures of bytes."""
        low, high = self.limits
        grey = (self.pictures(self.x[rows], THUMBNAIL) - low) / ((high - low) or 1.0)
        return np.asarray(np.round(255 * np.clip(grey, 0, 1)), np.uint8)

    def _drawable(self, points: Floats) -> Floats:
        return points if self.image_shape is None else points.reshape(len(points), *self.image_shape)

    def _unit(self, scale: Any) -> Floats | None:
        """The unit of each number: given, standard deviations for tables, or None."""
        if isinstance(scale, str) and scale == "auto":
            scale = "std" if self.kind == "table" else None
        if scale is None or self.is_plane:
            return None
        if isinstance(scale, str):
            if scale != "std":
                raise DataError(f"scale={scale!r} must be 'auto', 'std', None, or a number for each feature")
            spread = self.x.std(axis=0)
            return np.where(spread > 0, spread, 1.0)
        unit = np.asarray(scale, dtype=np.float64)
        if unit.shape != self.x.shape[1:] or not (np.isfinite(unit) & (unit > 0)).all():
            raise DataError(f"scale must hold a positive number for each feature, {self.x.shape[1:]}")
        return unit


def _known_units(x: Any, names: Sequence[str]) -> Any:
    """The units that a data frame has of its columns, some of which may be no features."""
    known = getattr(x, "attrs", {}).get("units")
    return {name: known[name] for name in names if name in known} if isinstance(known, Mapping) else None


def _units(given: Any, names: Sequence[str], size: int) -> tuple[str, ...]:
    """The unit of each number, "" for none, of those given by name or in order.

    >>> _units({"height": "cm"}, ["height", "age"], 2), _units(["cm", "a"], (), 2), _units(None, (), 2)
    (('cm', ''), ('cm', 'a'), ())
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        known = [str(name) for name in names]
        for name in given:
            if str(name) not in known:
                raise DataError(unknown_name("feature with a unit", str(name), known))
        return tuple(str(given.get(name) or "") for name in names)
    if isinstance(given, str) or len(given) != size:
        raise DataError(f"units must name one for each of the {size} features, or be a dictionary by name")
    return tuple(str(unit or "") for unit in given)
