"""Breakpoints of a piecewise-linear node along segments: where units change, and the values there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import flat
from inscape.models.graph.piecewise import Bend, Clip, Leaky, Windows, window_table
from inscape.partition.linear.rounding import SLACK, SUSPICIOUS, SegmentRounding
from inscape.partition.linear.segments import kernels, maxima

DROPPED = 1e-9
"""In float32, a crossing this near to a row may be one with it or beside it: float64 decides."""

NEAR = 4.0
"""In float32, what is nearer than this many units of rounding, against the largest entry of the layer, is
decided in float64. Measured errors have a root mean square of 0.2 to 1.4 such units."""


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
    def joined(several: "Sequence[Crossings]", n_flat: Ints) -> "Crossings":
        """All of several crossings, in order of intervals."""
        interval, s, entry, is_upper = (
            np.concatenate([getattr(p, name) for p in several])
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

    def rows_between(self, start: int, stop: int) -> "Refinement":
        """The rows start, ..., stop - 1."""
        own = slice(start, stop)
        rows = Rows(self.rows.t[own], self.rows.segment[own])
        return Refinement(self.parent[own], self.fraction[own], rows, self.bends)


def refine(op: Bend, z: Tensor, rows: Rows, tolerance: Floats, rounding: SegmentRounding) -> Refinement:
    """The rows and, between them, every place where `op` bends on z (rows, ...).

    Args:
        op: the piecewise-linear node.
        z: its input on the rows.
        rows: the rows.
        tolerance: how near in t two crossings are one, per segment.
        rounding: answers what z does not tell in its own precision.
    """
    values = flat(z)
    shape = tuple(z.shape[1:])
    found = crossings(op, values, shape, rows.segment, rounding)
    if values.dtype == np.float32:
        found = repaired(op, values, shape, rows, found, rounding)
    found = found.sorted_by_place(len(rows))
    parent, fraction, t, segment = kernels.refined(found.start, found.s, rows.t, rows.segment, tolerance)
    return Refinement(parent, fraction, Rows(t, segment), found)


def crossings(
    op: Bend, values: Any, shape: tuple[int, ...], segment: Ints, rounding: SegmentRounding
) -> Crossings:
    """Every crossing of `op` on values (rows, h), those that are rounding error left out."""
    if isinstance(op, Windows):
        table = window_table(op, shape)
        # in float32 lines that differ at all are different: `repaired` sees to those that hardly do
        relative = 16 * float(np.finfo(np.float64).eps) if values.dtype == np.float64 else 0.0
        changes = maxima.window_crossings(values, segment, table, gather_table(op, shape), relative)
        interval, s, before, after, gap = changes
        if values.dtype == np.float64:
            kept = _more_than_rounding(interval, before, after, gap, rounding)
            interval, s = interval[kept], s[kept]
        none = np.zeros(0, np.int64)
        return Crossings(interval, s, none, none.astype(bool), none)
    found = [_threshold(values, segment, theta, rounding) for theta in op.kinks]
    if len(found) == 1:
        if isinstance(op, Clip) and np.isinf(op.low):
            return replace(found[0], is_upper=np.ones(len(found[0].s), bool))
        return found[0]
    if not found:
        none = np.zeros(0, np.int64)
        return Crossings(none, np.zeros(0), none, none.astype(bool), np.zeros(len(values), np.int64))
    upper = replace(found[1], is_upper=np.ones(len(found[1].s), bool))
    return Crossings.joined([found[0], upper], found[0].n_flat + found[1].n_flat)


def repaired(
    op: Bend, values: Any, shape: tuple[int, ...], rows: Rows, found: Crossings, rounding: SegmentRounding
) -> Crossings:
    """Crossings of float32 values, those that lie very near to each other placed anew from float64 values.

    So a knot that several units share stays one knot. Rows where a unit comes near its threshold and may or
    may not pass it, or passes it at the very row, are handed to `rounding.doubt`.
    """
    eps = float(np.finfo(values.dtype).eps)
    some = values[[0, len(values) // 2, len(values) - 1]]
    size = max(float(np.abs(some).max(initial=0.0)), rounding.scale / SLACK)
    near = values.dtype.type(NEAR * eps * size)
    if isinstance(op, Windows):
        tables = window_table(op, shape), gather_table(op, shape)
        touching = maxima.rows_touching_tie(values, rows.segment, *tables, near)
    else:
        touching = np.zeros(len(values), bool)
        for theta in op.kinks:
            touching |= kernels.rows_touching_threshold(values, rows.segment, values.dtype.type(theta), near)
    edge = np.minimum(found.s, 1 - found.s) * (rows.t[found.interval + 1] - rows.t[found.interval])
    touching[(found.interval + (found.s > 0.5))[edge <= DROPPED]] = True
    rounding.doubt(np.flatnonzero(touching))
    close = kernels.intervals_with_close_crossings(found.interval, found.s, rows.t, NEAR * eps)
    again = np.flatnonzero(close)
    if not len(again):
        return found
    ends = np.stack([again, again + 1], axis=1).reshape(-1)
    needed, where = np.unique(ends, return_inverse=True)
    exact = rounding.exactly(needed)[where]
    sure = crossings(op, exact, shape, np.repeat(np.arange(len(again)), 2), rounding.at(ends))
    sure = replace(sure, interval=again[sure.interval // 2])
    return Crossings.joined([found.chosen(~close[found.interval]), sure], found.n_flat)


def _threshold(values: Any, segment: Ints, theta: float, rounding: SegmentRounding) -> Crossings:
    """Crossings of one threshold, without those that are rounding error; and entries that lie on it."""
    interval, entry, s, size, n_flat = kernels.threshold_crossings(values, segment, values.dtype.type(theta))
    if len(s) and values.dtype == np.float64:
        doubt = np.flatnonzero(size <= SUSPICIOUS * max(rounding.scale, abs(theta)))
        if len(doubt):
            ends, bounds = rounding.ends(interval[doubt], entry[doubt])
            false = np.zeros(len(s), bool)
            false[doubt] = (np.abs(ends - theta) <= bounds).all(axis=0)
            np.add.at(n_flat, interval[false], 1)
            interval, entry, s = interval[~false], entry[~false], s[~false]
    return Crossings(interval, s, entry, np.zeros(len(s), bool), n_flat)


def _more_than_rounding(
    interval: Ints, before: Ints, after: Ints, gap: Floats, rounding: SegmentRounding
) -> npt.NDArray[np.bool_]:
    """Which changes of winners are not between entries that are equal up to rounding at both ends, (m,)."""
    kept = np.ones(len(interval), bool)
    doubt = np.flatnonzero(gap <= SUSPICIOUS * rounding.scale)
    if len(doubt):
        (a, error), (b, other) = (rounding.ends(interval[doubt], u[doubt]) for u in (before, after))
        kept[doubt] = (np.abs(a - b) > error + other).any(axis=0)
    return kept


@lru_cache(maxsize=64)
def gather_table(op: Windows, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """The same turned round, with the length of the row for padding."""
    table = window_table(op, shape)
    return np.ascontiguousarray(np.where(table < 0, int(np.prod(shape)), table).T.astype(np.int32))


def interpolate(z: Tensor, refinement: Refinement) -> Tensor:
    """A tensor that is linear between the old rows, on the new rows."""
    out = torch.empty((len(refinement.rows), *z.shape[1:]), dtype=z.dtype)
    kernels.interpolated(flat(z), refinement.parent, refinement.fraction, out.view(len(out), -1).numpy())
    return out


def bent(op: Bend, z: Tensor, refinement: Refinement) -> Tensor:
    """The node's output on the new rows, from its input on the old ones."""
    if isinstance(op, Windows):
        shape = op(z[:1]).shape[1:]
        out = torch.empty((len(refinement.rows), *shape), dtype=z.dtype)
        gather = gather_table(op, tuple(z.shape[1:]))
        places = refinement.parent, refinement.fraction
        maxima.interpolated_windows(flat(z), *places, gather, out.view(len(out), -1).numpy())
        return out
    out = torch.empty((len(refinement.rows), *z.shape[1:]), dtype=z.dtype)
    values, target = flat(z), out.view(len(out), -1).numpy()
    if isinstance(op, Clip):
        kernels.interpolated_clip(values, refinement.parent, refinement.fraction, op.low, op.high, target)
        return out
    assert isinstance(op, Leaky)
    slope = np.array([op.slope], values.dtype) if not isinstance(op.slope, Tensor) else _slopes(op.slope, z)
    kernels.interpolated_leaky(values, refinement.parent, refinement.fraction, slope, target)
    return out


def _slopes(slope: Tensor, z: Tensor) -> Any:
    return slope.to(z.dtype).expand(z.shape[1:]).reshape(-1).contiguous().numpy()
