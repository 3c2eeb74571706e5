"""Breakpoints of a piecewise-linear node along segments: where units change, and the values there.

A batch holds positions, points of the segments in order: `segment[r]` says to which segment position r
belongs, and two neighbouring positions of one segment bound an interval on which every tensor is linear. The
compiled loops, at the end, find breakpoints, sort them, and interpolate tensors there.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Bools, Floats, Int8s, Ints
from inscape.compiled import compiled, kernel, summing
from inscape.models.graph import flat
from inscape.models.graph.piecewise import Bend, WindowTable
from inscape.partition.linear.envelope import interpolated_windows, positions_touching_tie, window_breakpoints
from inscape.partition.linear.rounding import RECHECKED_BELOW, SLACK, SegmentRounding

FLOAT64_DECIDES_WITHIN = 1e-9
"""In float32, a breakpoint this near a position may be at it or beside it: float64 decides."""

NEAR_IN_UNITS = 4.0
"""In float32, what is nearer than this many units of rounding, relative to the largest entry of the layer, is
decided in float64. Measured errors have a root mean square of 0.2 to 1.4 such units."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Points along the segments of a batch, in order: position r has parameter t[r] on segment[r]."""

    t: Floats
    segment: Ints

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Breakpoints:
    """Where an operation bends between neighbouring positions, in order of intervals.

    Attributes:
        interval: the position after which it bends, (m,).
        s: how far on the way to the next position, (m,).
        entry: which entry bends, (m,); for windows, nothing.
        kink: at which of the operation's kinks, by its number, (m,); for windows, nothing.
        n_flat: for each interval the number of entries that lie on a kink all along it, (positions,).
        start: where the breakpoints of each interval start, (positions + 1,); known once they are sorted.
    """

    interval: Ints
    s: Floats
    entry: Ints
    kink: Int8s
    n_flat: Ints
    start: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def chosen(self, which: Any) -> "Breakpoints":
        """Some of them, or all in another order."""
        if not len(self.entry):  # windows
            return Breakpoints(self.interval[which], self.s[which], self.entry, self.kink, self.n_flat)
        return Breakpoints(
            self.interval[which], self.s[which], self.entry[which], self.kink[which], self.n_flat
        )

    def in_order(self, n_positions: int) -> "Breakpoints":
        """In order of intervals and of s within each."""
        order, start = ordered(self.interval, self.s, n_positions)
        return replace(self.chosen(order), start=start)

    @staticmethod
    def joined(several: "Sequence[Breakpoints]", n_flat: Ints) -> "Breakpoints":
        """All of several breakpoints, in order of intervals."""
        interval, s, entry, kink = (
            np.concatenate([getattr(p, name) for p in several]) for name in ("interval", "s", "entry", "kink")
        )
        whole = Breakpoints(interval, s, entry, kink, n_flat)
        return whole.chosen(np.argsort(whole.interval, kind="stable"))


@dataclass(frozen=True, eq=False)
class Refinement:
    """The positions after a piecewise-linear node: those before it, and its breakpoints.

    Attributes:
        parent: the old position after which each one comes, or which it is, (n,).
        fraction: where it lies on the interval from there to the next old position, (n,); 0 for an old one.
        positions: the positions, (n,).
        breakpoints: all that lie between the old positions.
    """

    parent: Ints
    fraction: Floats
    positions: Positions
    breakpoints: Breakpoints

    def between(self, start: int, stop: int) -> "Refinement":
        """The positions start, ..., stop - 1."""
        chosen = slice(start, stop)
        positions = Positions(self.positions.t[chosen], self.positions.segment[chosen])
        return Refinement(self.parent[chosen], self.fraction[chosen], positions, self.breakpoints)


def refine(
    op: Bend, z: Tensor, positions: Positions, tolerance: Floats, rounding: SegmentRounding
) -> Refinement:
    """The positions and, between them, every breakpoint of `op` on z (positions, ...).

    Args:
        op: the piecewise-linear node.
        z: its input on the positions.
        positions: the positions.
        tolerance: breakpoints nearer in t than this are one, per segment.
        rounding: tells what z does not in its own precision.
    """
    values = flat(z)
    shape = tuple(z.shape[1:])
    breakpoints = breakpoints_of(op, values, shape, positions.segment, rounding)
    if values.dtype == np.float32:
        breakpoints = repaired(op, values, shape, positions, breakpoints, rounding)
    breakpoints = breakpoints.in_order(len(positions))
    parent, fraction, t, segment = refined(
        breakpoints.start, breakpoints.s, positions.t, positions.segment, tolerance
    )
    return Refinement(parent, fraction, Positions(t, segment), breakpoints)


def breakpoints_of(
    op: Bend, values: Any, shape: tuple[int, ...], segment: Ints, rounding: SegmentRounding
) -> Breakpoints:
    """Every breakpoint of `op` on values (positions, h), those that are rounding error left out."""
    windows = op.windows(shape)
    if windows is not None:
        return _window_changes(values, segment, windows, rounding)
    by_kink = [_at_kink(values, segment, k, kink, rounding) for k, kink in enumerate(op.kinks)]
    if len(by_kink) == 1:
        return by_kink[0]
    none = np.zeros(0, np.int64)
    n_flat = sum((c.n_flat for c in by_kink), np.zeros(len(values), np.int64))
    start = Breakpoints(none, np.zeros(0), none, none.astype(np.int8), n_flat)
    return Breakpoints.joined([start, *by_kink], n_flat)


def _window_changes(
    values: Any, segment: Ints, windows: WindowTable, rounding: SegmentRounding
) -> Breakpoints:
    """Where the winner of a window changes."""
    # in float32 lines that differ at all are different: `repaired` deals with those that hardly do
    relative = 16 * float(np.finfo(np.float64).eps) if values.dtype == np.float64 else 0.0
    changes = window_breakpoints(values, segment, *windows, relative)
    interval, s, before, after, gap = changes
    if values.dtype == np.float64:
        kept = _more_than_rounding(interval, before, after, gap, rounding)
        interval, s = interval[kept], s[kept]
    none = np.zeros(0, np.int64)
    return Breakpoints(interval, s, none, none.astype(np.int8), none)


def repaired(
    op: Bend,
    values: Any,
    shape: tuple[int, ...],
    positions: Positions,
    breakpoints: Breakpoints,
    rounding: SegmentRounding,
) -> Breakpoints:
    """Breakpoints of float32 values; those very near to each other are computed again from float64 values.

    So a knot that several units share stays one knot. Positions where a unit comes near its kink and may or
    may not pass it, or passes it at the very position, are handed to `rounding.doubt`.
    """
    eps = float(np.finfo(values.dtype).eps)
    sample = values[[0, len(values) // 2, len(values) - 1]]
    size = max(float(np.abs(sample).max(initial=0.0)), rounding.scale / SLACK)
    near = values.dtype.type(NEAR_IN_UNITS * eps * size)
    windows = op.windows(shape)
    if windows is not None:
        touching = positions_touching_tie(values, positions.segment, *windows, near)
    else:
        touching = np.zeros(len(values), bool)
        for kink in op.kinks:
            touching |= positions_touching_kink(values, positions.segment, values.dtype.type(kink), near)
    interval, s = breakpoints.interval, breakpoints.s
    gap = np.minimum(s, 1 - s) * (positions.t[interval + 1] - positions.t[interval])
    touching[(interval + (s > 0.5))[gap <= FLOAT64_DECIDES_WITHIN]] = True
    rounding.doubt(np.flatnonzero(touching))
    close = intervals_with_close_breakpoints(interval, s, positions.t, NEAR_IN_UNITS * eps)
    again = np.flatnonzero(close)
    if not len(again):
        return breakpoints
    ends = np.stack([again, again + 1], axis=1).reshape(-1)
    needed, where = np.unique(ends, return_inverse=True)
    exact = rounding.exactly(needed)[where]
    of_exact = breakpoints_of(op, exact, shape, np.repeat(np.arange(len(again)), 2), rounding.at(ends))
    of_exact = replace(of_exact, interval=again[of_exact.interval // 2])
    return Breakpoints.joined([breakpoints.chosen(~close[interval]), of_exact], breakpoints.n_flat)


def _at_kink(values: Any, segment: Ints, k: int, kink: float, rounding: SegmentRounding) -> Breakpoints:
    """Breakpoints at a kink, which has number k, without rounding errors; and how many entries lie on it."""
    interval, entry, s, size, n_flat = kink_breakpoints(values, segment, values.dtype.type(kink))
    if len(s) and values.dtype == np.float64:
        doubt = np.flatnonzero(size <= RECHECKED_BELOW * max(rounding.scale, abs(kink)))
        if len(doubt):
            ends, bounds = rounding.ends(interval[doubt], entry[doubt])
            false = np.zeros(len(s), bool)
            false[doubt] = (np.abs(ends - kink) <= bounds).all(axis=0)
            np.add.at(n_flat, interval[false], 1)
            interval, entry, s = interval[~false], entry[~false], s[~false]
    return Breakpoints(interval, s, entry, np.full(len(s), k, np.int8), n_flat)


def _more_than_rounding(
    interval: Ints, before: Ints, after: Ints, gap: Floats, rounding: SegmentRounding
) -> Bools:
    """Which changes of winners are between entries that differ by more than rounding at an end, (m,)."""
    kept = np.ones(len(interval), bool)
    doubt = np.flatnonzero(gap <= RECHECKED_BELOW * rounding.scale)
    if len(doubt):
        (a, error), (b, other) = (rounding.ends(interval[doubt], u[doubt]) for u in (before, after))
        kept[doubt] = (np.abs(a - b) > error + other).any(axis=0)
    return kept


def interpolate(z: Tensor, refinement: Refinement) -> Tensor:
    """A tensor that is linear between the old positions, on the new positions."""
    out = torch.empty((len(refinement.positions), *z.shape[1:]), dtype=z.dtype)
    interpolated(flat(z), refinement.parent, refinement.fraction, out.view(len(out), -1).numpy())
    return out


def bent(op: Bend, z: Tensor, refinement: Refinement) -> Tensor:
    """The node's output on the new positions, from its input on the old ones."""
    windows = op.windows(tuple(z.shape[1:]))
    shape = z.shape[1:] if windows is None else op(z[:1]).shape[1:]
    out = torch.empty((len(refinement.positions), *shape), dtype=z.dtype)
    values, target = flat(z), out.view(len(out), -1).numpy()
    if windows is not None:
        interpolated_windows(values, refinement.parent, refinement.fraction, windows.gather, target)
        return out
    low, high, slope = op.form
    each = torch.as_tensor(slope, dtype=z.dtype)
    slopes = (each.expand(z.shape[1:]) if each.ndim else each).reshape(-1).contiguous().numpy()
    interpolated_bend(values, refinement.parent, refinement.fraction, low, high, slopes, target)
    return out


ENTRIES_COUNTED_AT_ONCE = 256
"""Entries whose changes are counted before any of these is located."""


@summing
def _counts(a, b, kink):
    """How many entries are active at one of two positions only, and how many lie on the kink at both.

    Counted in the type of the values, so that the sums fill vector registers.
    """
    one, nought = a.dtype.type(1), a.dtype.type(0)
    changed, on = nought, nought
    for u in range(len(a)):
        changed += one if (a[u] > kink) != (b[u] > kink) else nought
        on += one if (a[u] == kink) & (b[u] == kink) else nought
    return int(changed), int(on)


def kink_breakpoints(z: Any, segment: Ints, kink: Any) -> tuple[Ints, Ints, Floats, Floats, Ints]:
    """Where entries of z (positions, h) pass a kink between neighbouring positions.

    Entry u is active where z_u > kink. On an interval where its activity differs between the ends, it changes
    at s = a / (a - b), a and b being z_u - kink at the ends.

    Returns:
        interval (m,), entry (m,), s (m,), max(|a|, |b|) (m,), in order of intervals, and for each interval
        (n,) the number of entries that equal the kink at both its ends, so everywhere on it.
    """
    n = len(z)
    capacity = 4 * n + 2 * ENTRIES_COUNTED_AT_ONCE
    arrays: Any = (
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(capacity),
    )
    n_flat, cursor = np.zeros(n, np.int64), np.zeros(3, np.int64)
    while not _find_breakpoints(z, segment, kink, cursor, *arrays, n_flat):
        arrays = [np.concatenate([array, np.empty_like(array)]) for array in arrays]
    interval, entry, s, size = (array[: cursor[2]] for array in arrays)
    return interval, entry, s, size, n_flat


@kernel
def _find_breakpoints(z, segment, kink, cursor, interval, entry, s, size, n_flat):
    """Write the breakpoints from `cursor` on: an interval, an entry, and how many were written before.

    False if there is no memory for the next, and `cursor` says where to go on.
    """
    n, h = z.shape
    i, start, m = cursor[0], cursor[1], cursor[2]
    while i < n - 1:
        while segment[i] == segment[i + 1] and start < h:
            # (1) count the changes among some entries, in vector registers
            stop = min(start + ENTRIES_COUNTED_AT_ONCE, h)
            changes, on = _counts(z[i, start:stop], z[i + 1, start:stop], kink)
            # (2) is there memory for them?
            if m + changes > len(s):
                cursor[0], cursor[1], cursor[2] = i, start, m
                return False
            # (3) locate them, until that many are written
            n_flat[i] += on
            target = m + changes
            for u in range(start, stop):
                if m == target:
                    break
                if (z[i, u] > kink) != (z[i + 1, u] > kink):
                    a, b = z[i, u] - kink, z[i + 1, u] - kink
                    interval[m], entry[m] = i, u
                    s[m], size[m] = a / (a - b), max(abs(a), abs(b))
                    m += 1
            start = stop
        i, start = i + 1, 0
    cursor[2] = m
    return True


@summing
def _count_near(a, kink, near):
    """How many entries at a position lie within `near` of a kink."""
    one, nought = a.dtype.type(1), a.dtype.type(0)
    count = nought
    for u in range(len(a)):
        count += one if abs(a[u] - kink) <= near else nought
    return int(count)


@compiled
def positions_touching_kink(z, segment, kink, near):
    """Where an entry is within `near` of a kink and on one side of it at both neighbours, (n,).

    Such an entry may turn just before or just after the kink. At the end of a batch or of a segment a
    neighbour is missing, and any entry that near counts, unless it is on the kink.
    """
    n, h = z.shape
    touching = np.zeros(n, np.bool_)
    for r in range(n):
        if _count_near(z[r], kink, near) == 0:
            continue
        before = r - 1 if r > 0 and segment[r - 1] == segment[r] else r
        after = r + 1 if r + 1 < n and segment[r + 1] == segment[r] else r
        for u in range(h):
            if abs(z[r, u] - kink) <= near:
                turns = before == r or after == r or (z[before, u] > kink) == (z[after, u] > kink)
                flat = (z[before, u] == kink) & (z[after, u] == kink)
                if turns and not flat:
                    touching[r] = True
                    break
    return touching


@compiled
def intervals_with_close_breakpoints(interval, s, t, near):
    """Which intervals hold two breakpoints nearer than `near` in t, (n,); `interval` is ascending."""
    close = np.zeros(len(t), np.bool_)
    m, k = len(s), 0
    while k < m:
        first, i = k, interval[k]
        while k < m and interval[k] == i:
            k += 1
        if k - first > 1:
            ordered = np.sort(s[first:k])
            for j in range(1, k - first):
                if (ordered[j] - ordered[j - 1]) * (t[i + 1] - t[i]) <= near:
                    close[i] = True
                    break
    return close


def ordered(interval: Ints, s: Floats, n: int) -> tuple[Ints, Ints]:
    """The order (m,) that sorts breakpoints by interval and s; where each of n intervals starts, (n + 1,).

    `interval` is ascending already.
    """
    order, start = np.arange(len(s)), np.empty(n + 1, np.int64)
    _order(interval, s, order, start)
    return order, start


@kernel
def _order(interval, s, order, start):
    """Sort the breakpoints of each interval by Shell's sort, gaps 1, 4, 13, ...; write where they start."""
    k = 0
    for i in range(len(start) - 1):
        start[i] = k
        while k < len(s) and interval[k] == i:
            k += 1
        first, gap = start[i], 1
        while gap < (k - first) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for a in range(first + gap, k):
                item, b = order[a], a
                while b >= first + gap and s[order[b - gap]] > s[item]:
                    order[b] = order[b - gap]
                    b -= gap
                order[b] = item
            gap //= 3
    start[len(start) - 1] = k


def refined(
    start: Ints, s: Floats, t: Floats, segment: Ints, tolerance: Floats
) -> tuple[Ints, Floats, Floats, Ints]:
    """Positions after adding breakpoints: the old positions and, between them, the new ones in order.

    Breakpoints nearer than `tolerance[segment]` to a position or to each other are one position.

    Args:
        start: where the breakpoints of each interval start, (n + 1,).
        s: how far along the interval they are, ascending in each, (m,).
        t: the parameter of each position, (n,).
        segment: (n,).
        tolerance: in t, one per segment.

    Returns:
        parent (r,), fraction (r,), t (r,), segment (r,): position i lies at `fraction[i]` of the interval
        that starts at old position `parent[i]`; an old position has fraction 0.
    """
    n = len(t) + len(s)
    positions = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n, segment.dtype)
    r = _refine(start, s, t, segment, tolerance, *positions)
    parent, fraction, new_t, owner = positions
    return parent[:r], fraction[:r], new_t[:r], owner[:r]


@kernel
def _refine(start, s, t, segment, tolerance, parent, fraction, new_t, owner):
    """Write the positions after adding breakpoints; returns how many."""
    r = 0
    for i in range(len(t)):
        # (1) an old position
        parent[r], fraction[r], new_t[r], owner[r] = i, 0.0, t[i], segment[i]
        r += 1
        # (2) the breakpoints after it that are not too near the last position or the next old one
        for k in range(start[i], start[i + 1]):
            at = t[i] + s[k] * (t[i + 1] - t[i])
            near = tolerance[segment[i]]
            if at - new_t[r - 1] > near and t[i + 1] - at > near:
                parent[r], fraction[r], new_t[r], owner[r] = i, s[k], at, segment[i]
                r += 1
    return r


@kernel
def interpolated(z, parent, fraction, out):
    """Values of z (n, h) at new positions: out = z[p] + f (z[p + 1] - z[p])."""
    h = z.shape[1]
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        for u in range(h):
            out[r, u] = z[p, u] + f * (z[q, u] - z[p, u])


@kernel
def interpolated_bend(z, parent, fraction, low, high, slope, out):
    """As `interpolated`, then y -> min(max(y, low), high) + slope min(y, 0); `slope` is (1,) or (h,)."""
    h = z.shape[1]
    lo, hi, zero = z.dtype.type(low), z.dtype.type(high), z.dtype.type(0)
    is_flat, n_slopes = len(slope) == 1 and slope[0] == 0, len(slope)
    for r in range(len(parent)):
        # (1) the position is the old one `p`, or lies between that and the next
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        # (2) bend it; the two frequent cases have loops of their own, without a choice of slopes
        if is_flat:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                y = y if y > lo else lo
                out[r, u] = y if y < hi else hi
        elif n_slopes == 1:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                w = y if y > lo else lo
                out[r, u] = (w if w < hi else hi) + (slope[0] * y if y < zero else zero)
        else:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                w = y if y > lo else lo
                out[r, u] = (w if w < hi else hi) + (slope[u] * y if y < zero else zero)
