"""Data points from wherever the user keeps them: arrays, tensors, data sets, loaders."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import ProbeError
from inscape.probes.base import Array, as_point


class PointSource:
    """Random access to the points of a data set, and to their classes where known.

    Arrays and tensors are taken as they are. A map-style torch data set is asked only for the points
    that are drawn; a loader or another iterable of batches is read once, as a whole.
    """

    def __init__(self, x: Any, y: npt.ArrayLike | None = None) -> None:
        self._dataset = None
        if _is_dataset(x):
            self._dataset, self._n = x, len(x)
            labels = getattr(x, "targets", None)
        else:
            self._x, labels = _read(x)
            self._n = len(self._x)
        if self._n == 0:
            raise ProbeError("the data are empty: give at least two points")
        self._y = _as_labels(labels if y is None else y)
        if self._y is not None and len(self._y) != self._n:
            raise ProbeError(f"y has {len(self._y)} labels for {self._n} points")

    def __len__(self) -> int:
        return self._n

    @property
    def has_labels(self) -> bool:
        """Whether the class of each point is known."""
        return self._y is not None or self._carries_labels()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one point."""
        return self.points(np.zeros(1, dtype=np.int64)).shape[1:]

    def points(self, indices: npt.NDArray[np.int64]) -> Array:
        """The points at `indices`, float64."""
        if self._dataset is None:
            return np.array(self._x[indices], dtype=np.float64)
        return np.stack([as_point(_first(self._dataset[int(i)]), f"point {i}") for i in indices])

    def everything(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        """All points, and their classes if known."""
        if self._dataset is None:
            return self._x, self._y
        return self.points(np.arange(self._n)), self._labels() if self.has_labels else None

    def by_class(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The point indices sorted by class, and where each class starts there and how many it has."""
        labels = self._labels()
        order = np.argsort(labels, kind="stable")
        _, start, size = np.unique(labels[order], return_index=True, return_counts=True)
        return order, start, size

    def _carries_labels(self) -> bool:
        return self._dataset is not None and isinstance(self._dataset[0], tuple | list)

    def _labels(self) -> npt.NDArray[Any]:
        if self._y is None and self._dataset is not None and self._carries_labels():
            self._y = _as_labels([self._dataset[i][1] for i in range(self._n)])
        if self._y is None:
            raise ProbeError("drawing by class needs the class of each point: give y, or data of (x, y)")
        return self._y


def _is_dataset(x: Any) -> bool:
    """Whether `x` has indexed items but is no array, tensor, list or loader."""
    return (
        hasattr(x, "__getitem__")
        and hasattr(x, "__len__")
        and not hasattr(x, "shape")
        and not isinstance(x, list | tuple)
    )


def _first(item: Any) -> Any:
    return item[0] if isinstance(item, tuple | list) else item


def _read(x: Any) -> tuple[npt.NDArray[Any], Any]:
    """The points (n, ...) of an array, tensor, (x, y) pair or loader, and their labels if it has them."""
    labels: Any = None
    if isinstance(x, tuple) and len(x) == 2 and np.ndim(_array(x[1])) == 1 and len(x[0]) == len(x[1]):
        x, labels = x
    elif not hasattr(x, "shape") and not isinstance(x, list | tuple) and hasattr(x, "__iter__"):
        x, labels = _read_batches(x)
    points = _array(x)
    if points.dtype.kind not in "fiub":
        raise ProbeError(f"the data must be numbers, got an array of {points.dtype}")
    if points.ndim == 0:
        raise ProbeError("the data must be an array (n, ...) of points, got a single number")
    if points.ndim == 1 and len(points) > 0:
        raise ProbeError(
            f"the data have shape {points.shape}: expected (n, ...), reshape to ({len(points)}, 1)?"
        )
    finite = np.isfinite(points).all(axis=tuple(range(1, points.ndim)))
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise ProbeError(
            f"{len(bad)} of {len(points)} points hold NaN or infinite values, the first at row {bad[0]}: "
            "remove or impute them first"
        )
    return points, labels


def _read_batches(loader: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    batches = list(loader)
    if not batches:
        return np.empty((0, 1)), None
    torch = sys.modules.get("torch")
    one_by_one = torch is not None and isinstance(loader, torch.utils.data.IterableDataset)
    join = np.stack if one_by_one else np.concatenate
    x = join([_array(_first(b)) for b in batches])
    if all(isinstance(b, tuple | list) and len(b) > 1 for b in batches):
        return x, join([_array(b[1]) for b in batches])
    return x, None


def _array(value: Any) -> npt.NDArray[Any]:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ProbeError(f"the data do not form one array: {error}") from error


def _as_labels(y: Any) -> npt.NDArray[Any] | None:
    if y is None:
        return None
    labels = _array(y)
    if labels.ndim != 1:
        raise ProbeError(f"y must be one label per point, got shape {labels.shape}")
    return labels
