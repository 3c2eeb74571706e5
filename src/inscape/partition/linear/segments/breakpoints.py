"""What a piecewise-linear node does to a batch of rows: where it bends, and its values there."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph.piecewise import Bend, Clip, Leaky, Windows
from inscape.partition.linear.segments import kernels, maxima
from inscape.partition.linear.segments.rows import Crossings, Refinement, Rows

ROUNDING = 2.0**10
"""Rounding error of an entry, in units of eps times the scale that `rounding.evaluated` gives."""

SLACK = 2.0**6
"""How much smaller than they can be the entries of a layer may be, and still not be taken for rounding."""

SUSPICIOUS = SLACK * ROUNDING * float(np.finfo(np.float64).eps)
"""A crossing whose values are this small, against what the layer's entries can be, may be rounding."""

DROPPED = 1e-9
"""In float32, a crossing this near to a row may be one with it or beside it: float64 decides."""

NEAR = 4.0
"""In float32, what is nearer than this many units of rounding, against the largest entry of the layer, is
decided in float64. Measured errors have a root mean square of 0.2 to 1.4 such units."""


class Rounding(Protocol):
    """What a walk can say about the rounding of a node's values."""

    @property
    def scale(self) -> float:
        """How large the node's entries can be; it does not shrink where they are nothing but rounding."""

    def ends(self, interval: Ints, entry: Ints) -> tuple[Floats, Floats]:
        """Entries at a row and at the next one, evaluated anew, and bounds for their errors, (2, m) each."""

    def at(self, rows: Ints) -> "Rounding":
        """The same for some of the rows, in that order."""

    def exactly(self, rows: Ints) -> Any:
        """The node's values at some rows, evaluated anew in float64, (k, h)."""

    def doubt(self, rows: Ints) -> None:
        """Take note of rows around which float32 cannot tell whether there are further crossings."""


def refine(op: Bend, z: Tensor, rows: Rows, tolerance: Floats, rounding: Rounding) -> Refinement:
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


def crossings(op: Bend, values: Any, shape: tuple[int, ...], segment: Ints, rounding: Rounding) -> Crossings:
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
    found = [_threshold(values, segment, theta, rounding) for theta in thresholds(op)]
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
    op: Bend, values: Any, shape: tuple[int, ...], rows: Rows, found: Crossings, rounding: Rounding
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
        for theta in thresholds(op):
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


def thresholds(op: Bend) -> list[float]:
    """Where an elementwise function bends."""
    if isinstance(op, Clip):
        return [b for b in (op.low, op.high) if np.isfinite(b)]
    return [0.0]


def _threshold(values: Any, segment: Ints, theta: float, rounding: Rounding) -> Crossings:
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
    interval: Ints, before: Ints, after: Ints, gap: Floats, rounding: Rounding
) -> npt.NDArray[np.bool_]:
    """Which changes of winners are not between entries that are equal up to rounding at both ends, (m,)."""
    kept = np.ones(len(interval), bool)
    doubt = np.flatnonzero(gap <= SUSPICIOUS * rounding.scale)
    if len(doubt):
        (a, error), (b, other) = (rounding.ends(interval[doubt], u[doubt]) for u in (before, after))
        kept[doubt] = (np.abs(a - b) > error + other).any(axis=0)
    return kept


@lru_cache(maxsize=64)
def window_table(op: Windows, shape: tuple[int, ...]) -> Ints:
    """The entries of each window of a row of `shape`."""
    return np.ascontiguousarray(op.table(shape).numpy())


@lru_cache(maxsize=64)
def gather_table(op: Windows, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """The same turned round, with the length of the row for padding."""
    table = window_table(op, shape)
    return np.ascontiguousarray(np.where(table < 0, int(np.prod(shape)), table).T.astype(np.int32))


def flat(z: Tensor) -> Any:
    """A batch as a contiguous array (rows, h)."""
    return z.reshape(len(z), -1).contiguous().numpy()


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


def overwrite(op: Bend, z: Tensor) -> Tensor:
    """The node's output, written over its input where that is possible."""
    if isinstance(op, Clip):
        return z.clamp_(op.low, op.high)
    return z.relu_() if isinstance(op, Leaky) and op.slope == 0.0 else op(z)


def _slopes(slope: Tensor, z: Tensor) -> Any:
    return slope.to(z.dtype).expand(z.shape[1:]).reshape(-1).contiguous().numpy()
