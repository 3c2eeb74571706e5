"""Which face each face was cut from, layer after layer, and so where its patterns are."""

from functools import cached_property

import numpy as np

from inscape.arrays import Ints


class Lineage:
    """For each layer so far, which row of the layer's patterns belongs to each face.

    Rows are found when they are asked for: who only counts faces does not need them.
    """

    def __init__(self, known: tuple[Ints, ...] = (), steps: tuple[tuple[Ints, int | None], ...] = ()) -> None:
        """`known` rows of the first layers, then steps: the faces that were taken or cut, see `cut`."""
        self._known, self._steps = known, steps

    def cut(self, parent: Ints, first: int) -> "Lineage":
        """After one more layer, whose patterns start at row `first`, a row for each face with a parent."""
        return Lineage(self._known, (*self._steps, (parent, first)))

    def of(self, faces: Ints) -> "Lineage":
        """Of some of the faces."""
        return Lineage(self._known, (*self._steps, (faces, None)))

    def __len__(self) -> int:
        return len(self._known) + sum(first is not None for _, first in self._steps)

    @cached_property
    def rows(self) -> tuple[Ints, ...]:
        """A row for each face (f,), for each layer."""
        found: list[Ints] = []
        now: Ints | None = None  # the faces of the last step, as numbered after the step at hand
        for before, first in reversed(self._steps):
            now = np.arange(len(before)) if now is None else now
            if first is not None:
                found.append(first + now)
            now = before[now]
        known = self._known if now is None else tuple(rows[now] for rows in self._known)
        return (*known, *reversed(found))
