"""Numbers for class names that a model reveals only as it predicts them."""

import numpy as np
import numpy.typing as npt

from inscape.models.base import Array


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

    def number(self, labels: Array) -> npt.NDArray[np.int64]:
        """The number of each name, new names getting the next free ones."""
        names, inverse = np.unique(labels.astype(str), return_inverse=True)
        numbers = [self._numbers.setdefault(str(name), len(self._numbers)) for name in names]
        return np.array(numbers, dtype=np.int64)[inverse]
