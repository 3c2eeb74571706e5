"""Compiled loops of the segment engine: find crossings, order them, fill in the rows between.

A batch holds rows (points of the segments, in order); `segment[r]` says to which segment row r belongs, and
two neighbouring rows of one segment bound an interval on which every tensor is linear.
"""

import numpy as np

from inscape.compiled import compiled

ENTRIES_COUNTED_AT_ONCE = 256
"""Entries whose changes are counted before any is looked for."""


@compiled
def grown(array, n):
    """A copy with room for n entries."""
    out = np.empty(n, dtype=array.dtype)
    out[: len(array)] = array
    return out


@compiled(fastmath={"reassoc", "nsz"})
def _counts(a, b, threshold):
    """How many entries are active in one row and not in the other, and how many lie on the threshold in both.

    Counted in the type of the rows, so that the sums fill vector registers.
    """
    one, nought = a.dtype.type(1), a.dtype.type(0)
    changed, on = nought, nought
    for u in range(len(a)):
        changed += one if (a[u] > threshold) != (b[u] > threshold) else nought
        on += one if (a[u] == threshold) & (b[u] == threshold) else nought
    return int(changed), int(on)


@compiled
def threshold_crossings(z, segment, threshold):
    """Where entries of z (rows, h) pass a threshold between neighbouring rows.

    Entry u is active where z_u > threshold. On an interval where its activity differs between the ends, it
    changes at s = a / (a - b), a and b being z_u - threshold at the ends.

    Returns:
        interval (m,), entry (m,), s (m,), max(|a|, |b|) (m,), in order of intervals, and for each interval
        (n,) the number of entries that equal the threshold at both its ends, so everywhere on it.
    """
    n, h = z.shape
    room = 4 * n + 256
    interval, entry = np.empty(room, np.int64), np.empty(room, np.int64)
    s, size = np.empty(room), np.empty(room)
    n_flat = np.zeros(n, np.int64)
    m = 0
    for i in range(n - 1):
        if segment[i] != segment[i + 1]:
            continue
        for start in range(0, h, ENTRIES_COUNTED_AT_ONCE):
            # 1. count the changes of a block of entries, in vector registers
            stop = min(start + ENTRIES_COUNTED_AT_ONCE, h)
            changes, on = _counts(z[i, start:stop], z[i + 1, start:stop], threshold)
            n_flat[i] += on
            if changes == 0:
                continue
            # 2. make room for them
            if m + changes > room:
                room = 2 * room + changes
                interval, entry = grown(interval, room), grown(entry, room)
                s, size = grown(s, room), grown(size, room)
            # 3. find the entries, until that many are found
            target = m + changes
            for u in range(start, stop):
                if m == target:
                    break
                if (z[i, u] > threshold) != (z[i + 1, u] > threshold):
                    a, b = z[i, u] - threshold, z[i + 1, u] - threshold
                    interval[m], entry[m] = i, u
                    s[m], size[m] = a / (a - b), max(abs(a), abs(b))
                    m += 1
    return interval[:m], entry[:m], s[:m], size[:m], n_flat


@compiled(fastmath={"reassoc", "nsz"})
def _count_near(a, threshold, near):
    """How many entries of a row lie within `near` of a threshold."""
    one, nought = a.dtype.type(1), a.dtype.type(0)
    count = nought
    for u in range(len(a)):
        count += one if abs(a[u] - threshold) <= near else nought
    return int(count)


@compiled
def rows_touching_threshold(z, segment, threshold, near):
    """Which rows hold an entry within `near` of a threshold whose neighbours lie on one side of it, (n,).

    Such an entry may turn just before or just after the threshold. At the end of a batch or of a segment a
    neighbour is missing, and any entry that near counts, unless it is on the threshold.
    """
    n, h = z.shape
    found = np.zeros(n, np.bool_)
    for r in range(n):
        if _count_near(z[r], threshold, near) == 0:
            continue
        before = r - 1 if r > 0 and segment[r - 1] == segment[r] else r
        after = r + 1 if r + 1 < n and segment[r + 1] == segment[r] else r
        for u in range(h):
            if abs(z[r, u] - threshold) <= near:
                turns = before == r or after == r or (z[before, u] > threshold) == (z[after, u] > threshold)
                flat = (z[before, u] == threshold) & (z[after, u] == threshold)
                if turns and not flat:
                    found[r] = True
                    break
    return found


@compiled
def intervals_with_close_crossings(interval, s, t, near):
    """Which intervals hold two crossings nearer than `near` in t, (n,); `interval` is ascending."""
    found = np.zeros(len(t), np.bool_)
    m, k = len(s), 0
    while k < m:
        first, i = k, interval[k]
        while k < m and interval[k] == i:
            k += 1
        if k - first > 1:
            ordered = np.sort(s[first:k])
            for j in range(1, k - first):
                if (ordered[j] - ordered[j - 1]) * (t[i + 1] - t[i]) <= near:
                    found[i] = True
                    break
    return found


@compiled
def ordered(interval, s, n):
    """The order (m,) that sorts crossings by interval and s; and where each of n intervals starts, (n + 1,).

    `interval` is ascending already.
    """
    m = len(s)
    order, start = np.arange(m), np.zeros(n + 1, np.int64)
    k = 0
    for i in range(n):
        start[i] = k
        while k < m and interval[k] == i:
            k += 1
        first = start[i]
        if k - first > 16:
            order[first:k] = first + np.argsort(s[first:k])
        else:
            for a in range(first + 1, k):
                item, b = order[a], a
                while b > first and s[order[b - 1]] > s[item]:
                    order[b] = order[b - 1]
                    b -= 1
                order[b] = item
    start[n] = m
    return order, start


@compiled
def refined(start, s, t, segment, tolerance):
    """Rows after adding crossings: the old rows and, between them, the new ones in order.

    Crossings nearer than `tolerance[segment]` to a row or to each other are one row.

    Args:
        start: where the crossings of each interval start, (n + 1,).
        s: their positions in the interval, ascending in each, (m,).
        t: the parameter of each row, (n,).
        segment: (n,).
        tolerance: in t, one per segment.

    Returns:
        parent (r,), fraction (r,), t (r,), segment (r,): row i lies at `fraction[i]` of the interval that
        starts at old row `parent[i]`; an old row has fraction 0.
    """
    n, m = len(t), len(s)
    parent, fraction = np.empty(n + m, np.int64), np.empty(n + m)
    position, owner = np.empty(n + m), np.empty(n + m, segment.dtype)
    r = 0
    for i in range(n):
        parent[r], fraction[r], position[r], owner[r] = i, 0.0, t[i], segment[i]
        r += 1
        if start[i] == start[i + 1]:
            continue
        length = t[i + 1] - t[i]
        near = tolerance[segment[i]]
        for value in s[start[i] : start[i + 1]]:
            at = t[i] + value * length
            if at - position[r - 1] > near and t[i + 1] - at > near:
                parent[r], fraction[r], position[r], owner[r] = i, value, at, segment[i]
                r += 1
    return parent[:r], fraction[:r], position[:r], owner[:r]


@compiled
def interpolated(z, parent, fraction, out):
    """Rows of z (n, h) at the given places: out = z[p] + f (z[p + 1] - z[p])."""
    h = z.shape[1]
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        if f == 0:
            out[r] = z[p]
        else:
            for u in range(h):
                out[r, u] = z[p, u] + f * (z[p + 1, u] - z[p, u])


@compiled
def interpolated_leaky(z, parent, fraction, slope, out):
    """As `interpolated`, then y -> y if y > 0 else slope y; `slope` is (1,) or (h,)."""
    h = z.shape[1]
    zero = z.dtype.type(0)
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        if len(slope) == 1 and slope[0] == 0:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                out[r, u] = y if y > zero else zero
        elif len(slope) == 1:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                out[r, u] = y if y > zero else slope[0] * y
        else:
            for u in range(h):
                y = z[p, u] + f * (z[q, u] - z[p, u])
                out[r, u] = y if y > zero else slope[u] * y


@compiled
def interpolated_clip(z, parent, fraction, low, high, out):
    """As `interpolated`, then y -> min(max(y, low), high)."""
    h = z.shape[1]
    lo, hi = z.dtype.type(low), z.dtype.type(high)
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        for u in range(h):
            y = z[p, u] + f * (z[q, u] - z[p, u])
            out[r, u] = min(max(y, lo), hi)
