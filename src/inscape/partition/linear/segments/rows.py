"""Rows of a batch, the crossings found between them, and the rows that these add."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.partition.linear.segments import kernels


@dataclass(frozen=True, eq=False)
class Rows:
    """Places along the segments of a batch, in order: row r has parameter t[r] on segment[r]."""

    t: Floats
    segment: Ints

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Crossings:
    """Where an operation bends between neighbouring rows, in order of intervals.

    Attributes:
        interval: the row after which it bends, (m,).
        s: how far on the way to the next row, (m,).
        entry: which entry bends, (m,); for windows, nothing.
        is_upper: whether it does at the second of two thresholds, (m,).
        n_flat: for each interval the number of entries that lie on a threshold all along it, (rows,).
        start: where the crossings of each interval start, (rows + 1,); known once they are sorted.
    """

    interval: Ints
    s: Floats
    entry: Ints
    is_upper: npt.NDArray[np.bool_]
    n_flat: Ints
    start: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def chosen(self, which: Any) -> "Crossings":
        """Some of them, or all in another order."""
        if not len(self.entry):  # windows
            return Crossings(self.interval[which], self.s[which], self.entry, self.is_upper, self.n_flat)
        return Crossings(
            self.interval[which], self.s[which], self.entry[which], self.is_upper[which], self.n_flat
        )

    def sorted_by_place(self, n_rows: int) -> "Crossings":
        """In order of intervals and of s within each."""
        order, start = kernels.ordered(self.interval, self.s, n_rows)
        return replace(self.chosen(order), start=start)

    @staticmethod
    def joined(parts: "Sequence[Crossings]", n_flat: Ints) -> "Crossings":
        """The crossings of all parts, in order of intervals."""
        interval, s, entry, is_upper = (
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("interval", "s", "entry", "is_upper")
        )
        whole = Crossings(interval, s, entry, is_upper, n_flat)
        return whole.chosen(np.argsort(whole.interval, kind="stable"))


@dataclass(frozen=True, eq=False)
class Refinement:
    """Rows after a node has bent: each lies at `fraction` of the interval after old row `parent`."""

    parent: Ints
    fraction: Floats
    rows: Rows
    bends: Crossings

    def part(self, start: int, stop: int) -> "Refinement":
        """The rows start, ..., stop - 1."""
        cut = slice(start, stop)
        rows = Rows(self.rows.t[cut], self.rows.segment[cut])
        return Refinement(self.parent[cut], self.fraction[cut], rows, self.bends)
