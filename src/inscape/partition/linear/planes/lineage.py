"""Which face each face was cut from, layer after layer, and so which patterns it has."""

from functools import cached_property

import numpy as np

from inscape.arrays import Ints


class Lineage:
    """For each layer so far, which of the layer's patterns belongs to each face.

    That is worked out when it is first read: who only counts faces does not need it.
    """

    def __init__(self, known: tuple[Ints, ...] = (), steps: tuple[tuple[Ints, int | None], ...] = ()) -> None:
        """`known` numbers for the first layers, then steps: the faces that were taken or cut, see `cut`."""
        self._known, self._steps = known, steps

    def cut(self, parent: Ints, first: int) -> "Lineage":
        """After one more layer, whose patterns are numbered from `first` on, one for each face."""
        return Lineage(self._known, (*self._steps, (parent, first)))

    def of(self, faces: Ints) -> "Lineage":
        """The lineage of some of the faces."""
        return Lineage(self._known, (*self._steps, (faces, None)))

    def __len__(self) -> int:
        return len(self._known) + sum(first is not None for _, first in self._steps)

    @cached_property
    def pattern_numbers(self) -> tuple[Ints, ...]:
        """For each layer the number of the pattern of each face, (f,)."""
        numbers: list[Ints] = []
        now: Ints | None = None  # the faces of the last step, as numbered after the step at hand
        for before, first in reversed(self._steps):
            now = np.arange(len(before)) if now is None else now
            if first is not None:
                numbers.append(first + now)
            now = before[now]
        known = self._known if now is None else tuple(k[now] for k in self._known)
        return (*known, *reversed(numbers))
