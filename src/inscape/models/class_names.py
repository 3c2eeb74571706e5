"""Class names and labels: numbers for the names that a model reveals, and the classes that a user gives."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from inscape.arguments import as_array
from inscape.arrays import Array, Ints, Texts
from inscape.errors import InscapeError

_MOST_LISTED = 3


class ClassNames:
    """Numbers names in the order in which they are met, alphabetically within a batch.

    >>> names = ClassNames()
    >>> names.number(np.array(["dog", "cat", "dog"])).tolist(), names.seen
    ([1, 0, 1], ('cat', 'dog'))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def seen(self) -> tuple[str, ...]:
        """The names met so far, in label order."""
        return tuple(self._numbers)

    def number(self, labels: Array) -> Ints:
        """The number of each name, new names getting the next free ones."""
        names, inverse = np.unique(labels.astype(str), return_inverse=True)
        numbers = [self._numbers.setdefault(str(name), len(self._numbers)) for name in names]
        return np.array(numbers, dtype=np.int64)[inverse]


def name_of(label: int, names: Sequence[str] | None) -> str:
    """The name of a label, or its number where it has none.

    >>> name_of(1, ("cat", "dog")), name_of(2, ("cat", "dog")), name_of(0, None)
    ('dog', '2', '0')
    """
    return names[label] if names is not None and 0 <= label < len(names) else str(label)


def as_labels(y: Any, error: type[InscapeError]) -> Array:
    """The array y of classes or targets; an error if one is missing: masked, NaN, None or infinite.

    >>> as_labels([0.0, float("nan")], InscapeError)
    Traceback (most recent call last):
    inscape.errors.InscapeError: y holds nan for 1 of 2 points, the first at row 1: every point needs a class
    """
    labels = as_array(y, "y", error)
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        missing = np.frompyfunc(_is_missing, 1, 1)(labels).astype(bool)
    else:
        return labels
    if missing.any():
        rows = np.flatnonzero(missing.reshape(len(labels), -1).any(axis=1)) if labels.ndim else [0]
        value = labels[missing][0] if labels.ndim else labels
        raise error(
            f"y holds {value} for {len(rows)} of {labels.shape[0] if labels.ndim else 1} points, the first "
            f"at row {rows[0]}: every point needs a class"
        )
    return labels if labels.dtype.kind == "f" else _typed(labels, error)


def _is_missing(value: Any) -> bool:
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _typed(labels: Array, error: type[InscapeError]) -> Array:
    """Python objects as numbers or names."""
    typed = np.asarray(labels.tolist())
    if typed.dtype.kind == "O" or typed.shape != labels.shape:
        kind = type(labels.ravel()[0]).__name__
        raise error(f"y holds objects of type {kind}: give whole numbers or names")
    return typed


def fractions(labels: Array) -> Array:
    """The values that are no whole numbers, (k,): none of names."""
    return labels[labels != np.rint(labels)] if labels.dtype.kind == "f" else labels[:0]


def names_of(labels: Array) -> Texts:
    """Classes as text that compares: 1, 1.0 and True are one class, "1"."""
    if labels.dtype.kind == "f":
        is_whole = labels == np.rint(labels)
        return np.where(is_whole, labels.astype(np.int64).astype(str), labels.astype(str))
    return (labels.astype(np.int64) if labels.dtype.kind == "b" else labels).astype(str)


def listed(values: Iterable[Any]) -> str:
    """The first few different values, in order, for a message.

    >>> listed([5, 4, 4, 1, 3])
    '1, 3, 4, ...'
    """
    known = np.unique(np.asarray(list(values))).tolist()
    shown = [repr(v) if isinstance(v, str) else f"{v:g}" if isinstance(v, float) else str(v) for v in known]
    return ", ".join(shown[:_MOST_LISTED] + ["..."] * (len(shown) > _MOST_LISTED))
