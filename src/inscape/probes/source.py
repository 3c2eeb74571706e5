"""Data points from wherever the user keeps them: arrays, tensors, tables, data sets, loaders.

Columns of a table have names, and are found by name for a model that was fitted to such a table.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import as_array
from inscape.arrays import Array, Floats, Ints, Streamed
from inscape.errors import DataError, ProbeError
from inscape.models import Model
from inscape.models.class_names import as_labels, fractions, listed
from inscape.probes.probe import Probe, as_point
from inscape.seeding import random_state_kept

MOST_LISTED = 4
"""Names of columns in a message."""


class PointSource:
    """Random access to the points of a data set, and to their classes where known.

    Arrays and tensors are taken as they are. A map-style data set is asked only for the points that are
    drawn; a loader or another iterable of batches is read once, as a whole. Reading leaves the global
    random states as they were; a loader that shuffles by torch's global state is read in one fixed order.
    """

    def __init__(self, x: Any, y: npt.ArrayLike | None = None) -> None:
        if isinstance(x, str | bytes):
            raise ProbeError(
                f"x={x!r} is text: load the data first, with inscape.training.load_data or numpy"
            )
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

    def take(self, rows: Ints) -> tuple[Array, Ints]:
        """An array of points, and the same `rows` as numbers into it."""
        if self._dataset is None:
            return self._x, rows
        needed, inverse = np.unique(rows, return_inverse=True)
        return self._items(needed), inverse.reshape(rows.shape)

    def everything(self) -> tuple[Array, Array | None]:
        """All points, and their classes if known."""
        points, _ = self.take(np.arange(self._n))
        return points, self._labels() if self.has_labels else None

    def by_class(self) -> tuple[Ints, Ints, Ints]:
        """The point indices sorted by class, and where each class starts there and how many it has."""
        labels = self._labels()
        strange = fractions(labels)
        if len(strange):
            raise ProbeError(f"y holds {listed(strange)}: classes are whole numbers or names")
        order = np.argsort(labels, kind="stable")
        _, start, size = np.unique(labels[order], return_index=True, return_counts=True)
        return order, start, size

    def _items(self, rows: Ints) -> Array:
        assert self._dataset is not None
        with random_state_kept(torch_seed=0):
            points = [as_point(_first(self._dataset[int(i)]), f"point {i}") for i in rows]
        shapes = {p.shape for p in points}
        if len(shapes) > 1:
            raise ProbeError(f"the points of the data set differ in shape: {sorted(shapes)}")
        return np.stack(points)

    def _carries_labels(self) -> bool:
        if self._dataset is None:
            return False
        with random_state_kept(torch_seed=0):
            item = self._dataset[0]
        return isinstance(item, tuple | list) and len(item) > 1

    def _labels(self) -> Array:
        if self._y is None and self._dataset is not None and self._carries_labels():
            with random_state_kept(torch_seed=0):
                self._y = _as_labels([self._dataset[i][1] for i in range(self._n)])
        if self._y is None:
            raise ProbeError("drawing by class needs the class of each point: give y, or data of (x, y)")
        return self._y


def points_near(points: Any, probe: Probe) -> tuple[Floats, Any]:
    """Data points as rows (n, d), and their classes or None; an error if they do not fit to a probe."""
    x, y = PointSource(points).everything()
    d = int(np.prod(probe.input_shape))
    if x[0].size != d:
        raise ProbeError(f"points have shape {x.shape[1:]}, the probe is one of shape {probe.input_shape}")
    return x.reshape(len(x), d).astype(np.float64), y


def _is_dataset(x: Any) -> bool:
    """Whether `x` has indexed items, (x, y) or x, but is no array, tensor, list of points or loader."""
    if isinstance(x, Streamed):
        return True
    if isinstance(x, list):
        return len(x) > 0 and isinstance(x[0], tuple)
    return (
        hasattr(x, "__getitem__")
        and hasattr(x, "__len__")
        and not hasattr(x, "shape")
        and not isinstance(x, tuple)
    )


def _first(item: Any) -> Any:
    if isinstance(item, dict):
        raise ProbeError(f"the data are dictionaries ({', '.join(map(str, item))}): give x or (x, y) instead")
    return item[0] if isinstance(item, tuple | list) else item


def _read(x: Any) -> tuple[Array, Any]:
    """The points (n, ...) of an array, tensor, (x, y) pair or loader, and their labels if it has them."""
    labels: Any = None
    if isinstance(x, tuple) and len(x) == 2 and hasattr(x[0], "shape") and len(x[0]) == len(x[1]):
        x, labels = x
    elif not hasattr(x, "shape") and not isinstance(x, list | tuple) and hasattr(x, "__iter__"):
        x, labels = _read_batches(x)
    check_columns(x)
    points = as_array(x, "the data", ProbeError)
    if points.dtype.kind not in "fiub":
        raise ProbeError(f"the data must be numbers, got an array of {points.dtype}")
    if points.ndim == 0:
        raise ProbeError("the data must be an array (n, ...) of points, got a single value")
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


def _read_batches(loader: Any) -> tuple[Array, Array | None]:
    with random_state_kept(torch_seed=0):
        batches = list(loader)
    if not batches:
        return np.empty((0, 1)), None
    torch = sys.modules.get("torch")
    one_by_one = torch is not None and isinstance(loader, torch.utils.data.IterableDataset)
    join = np.stack if one_by_one or getattr(loader, "batch_size", 1) is None else np.concatenate
    try:
        x = join([as_array(_first(b), "a batch", ProbeError) for b in batches])
        if all(isinstance(b, tuple | list) and len(b) > 1 for b in batches):
            return x, join([as_labels(b[1], ProbeError) for b in batches])
    except ValueError as error:
        if isinstance(error, ProbeError):
            raise
        raise ProbeError(f"the batches do not form one array: {error}") from error
    return x, None


def _as_labels(y: Any) -> Array | None:
    if y is None:
        return None
    labels = as_labels(y, ProbeError)
    if labels.ndim != 1:
        raise ProbeError(f"y must be one label per point, got shape {labels.shape}")
    return labels


def column_names(x: Any) -> tuple[str, ...] | None:
    """The names of a table's columns, or of the entries of one of its rows; None if they have none.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"alcohol": [12.3, 13.1], "proline": [520.0, 1065.0]})
    >>> column_names(table), column_names(table.iloc[0]), column_names([[1.0, 2.0]])
    (('alcohol', 'proline'), ('alcohol', 'proline'), None)
    """
    names = getattr(x, "columns", None)
    if names is None and getattr(x, "ndim", None) == 1:
        names = getattr(x, "index", None)
    if names is None or callable(names) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def check_columns(x: Any, what: str = "the data") -> None:
    """Raise an error that names the columns of a data frame which do not hold numbers."""
    kinds: Any = getattr(x, "dtypes", None)
    if not hasattr(x, "columns") or not hasattr(kinds, "items"):
        return
    strange = [str(name) for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]
    if strange:
        raise ProbeError(
            f"{what} have columns that are not numbers: {listed_names(strange)}; leave them out, or encode "
            "them. Of a pipeline that encodes them itself, measure the rest: pipeline[1:] on "
            "pipeline[0].transform(x)"
        )


def for_model(model: Model, x: Any) -> Any:
    """The data as a model was fitted to them: of a table, the columns that it knows by name, in its order.

    Anything without names stays as it is, and so does a table for a model that was fitted without names.
    """
    if isinstance(x, tuple) and len(x) == 2 and hasattr(x[0], "columns"):
        return for_model(model, x[0]), x[1]
    names, known = model.feature_names, column_names(x)
    if names is None or known is None or not hasattr(x, "columns") or names == known:
        return x
    missing = [name for name in names if name not in known]
    if missing:
        raise DataError(
            f"the table has no column {listed_names(missing)}, which {model.name} was fitted with: it needs "
            f"{listed_names(names)}"
        )
    return x[list(names)]


def for_models(models: Iterable[Model], x: Any) -> Any:
    """The same for several models, which must want the same columns in the same order."""
    named = [model for model in models if model.feature_names is not None]
    for model in named[1:]:
        if model.feature_names != named[0].feature_names and column_names(x) is not None:
            raise DataError(
                f"{named[0].name} and {model.name} were fitted to different columns, or in another order: "
                "look at one input space, and fit all models to the same table"
            )
    return for_model(named[0], x) if named else x


def listed_names(names: Iterable[str]) -> str:
    """Some names for a message.

    >>> listed_names("abcdef")
    "'a', 'b', 'c', 'd' and 2 more"
    """
    all_names = [repr(name) for name in names]
    more = len(all_names) - MOST_LISTED
    return ", ".join(all_names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
