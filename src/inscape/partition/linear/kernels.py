"""Compiled loops of the segment engine: find crossings, order them, fill in the rows between.

A batch holds rows (points of the segments, in order); `segment[r]` says to which segment row r belongs, and
two neighbouring rows of one segment bound an interval on which every tensor is linear.
"""

import numpy as np
from numba import njit

_BLOCK = 256  # entries whose changes are counted at once, before any is looked for


@njit(cache=True, nogil=True)
def grown(array, n):
    """A copy with room for n entries."""
    out = np.empty(n, dtype=array.dtype)
    out[: len(array)] = array
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
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


@njit(cache=True, nogil=True)
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
        for start in range(0, h, _BLOCK):
            stop = min(start + _BLOCK, h)
            changes, on = _counts(z[i, start:stop], z[i + 1, start:stop], threshold)
            n_flat[i] += on
            if changes == 0:
                continue
            if m + changes > room:
                room = 2 * room + changes
                interval, entry = grown(interval, room), grown(entry, room)
                s, size = grown(s, room), grown(size, room)
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


@njit(cache=True, nogil=True)
def _best_of_windows(row, gather, best, winner):
    """Write the largest entry of each window and, first come, its position in the window.

    `gather` (size, windows) holds entry numbers; padding is the number of an entry after the row, minus
    infinity. The inner loops run over windows, so that they become vector gathers.
    """
    size, n_windows = gather.shape
    for w in range(n_windows):
        best[w], winner[w] = row[gather[0, w]], 0
    for k in range(1, size):
        number, position = gather[k], np.int32(k)
        for w in range(n_windows):
            value = row[number[w]]
            winner[w] = position if value > best[w] else winner[w]
            best[w] = max(value, best[w])


@njit(cache=True, nogil=True)
def window_winners(z, gather):
    """The position in its window of the first largest entry, (rows, windows)."""
    n, h = z.shape
    winner, best = np.empty((n, gather.shape[1]), np.int32), np.empty(gather.shape[1], z.dtype)
    row = np.empty(h + 1, z.dtype)
    row[h] = -np.inf
    for r in range(n):
        row[:h] = z[r]
        _best_of_windows(row, gather, best, winner[r])
    return winner


@njit(cache=True, nogil=True)
def envelope(first, last, noise):
    """The upper envelope of k lines on [0, 1], given their values at both ends, (k,) each.

    Walks from 0: the line that leads just after 0 is the largest, then the steepest, then the first; the next
    is the one that overtakes it soonest, the steepest of those. Two lines that differ by at most `noise` at
    both ends are one line. If one line leads at both ends it leads between, since the envelope is convex.

    Returns:
        s (m,) of the changes, strictly inside, and the lines that lead, (m + 1,).
    """
    k = len(first)
    lead = 0
    for j in range(1, k):
        gap = first[j] - first[lead]
        if gap > noise or (abs(gap) <= noise and last[j] > last[lead] + noise):
            lead = j
    changes, leads = np.empty(k), np.empty(k, np.int64)
    leads[0] = lead
    m, s = 0, 0.0
    while m < k - 1:
        soonest, following = 1.0, -1
        rise = last[lead] - first[lead]
        for j in range(k):
            end = last[j] - last[lead]
            if j == lead or end <= noise:
                continue  # it does not overtake before the end
            behind = first[lead] - first[j]
            at = max(behind / (behind + end), s)
            tied = following >= 0 and at == soonest
            if at < soonest or (tied and last[j] - first[j] > last[following] - first[following]):
                soonest, following = at, j
        if following < 0 or last[following] - first[following] <= rise:
            break
        lead, s = following, soonest
        if s > 0.0:
            changes[m] = s
            m += 1
        leads[m] = lead
    return changes[:m], leads[: m + 1]


@njit(cache=True, nogil=True)
def window_crossings(z, segment, table, gather, noise):
    """Where the winner of a window changes between neighbouring rows.

    Args:
        z: values (rows, h).
        segment: (rows,).
        table: entries of each window (windows, size), -1 for padding.
        gather: the same turned, (size, windows), the row's length for padding.
        noise: how far two entries may differ and count as one, (windows,).

    Returns:
        interval (m,) and s (m,), in order of intervals.
    """
    n, size = len(z), table.shape[1]
    winner = window_winners(z, gather)
    room = 4 * n + 256
    interval, position = np.empty(room, np.int64), np.empty(room)
    first, last = np.empty(size), np.empty(size)
    m = 0
    for i in range(n - 1):
        if segment[i] != segment[i + 1]:
            continue
        for w in range(table.shape[0]):
            if winner[i, w] == winner[i + 1, w]:
                continue
            k = 0
            for j in range(size):
                u = table[w, j]
                if u >= 0:
                    first[k], last[k] = z[i, u], z[i + 1, u]
                    k += 1
            changes, _ = envelope(first[:k], last[:k], noise[w])
            if m + len(changes) > room:
                room = 2 * room + len(changes)
                interval, position = grown(interval, room), grown(position, room)
            for s in changes:
                interval[m], position[m] = i, s
                m += 1
    return interval[:m], position[:m]


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _count_near(a, threshold, near):
    """How many entries of a row lie within `near` of a threshold."""
    one, nought = a.dtype.type(1), a.dtype.type(0)
    count = nought
    for u in range(len(a)):
        count += one if abs(a[u] - threshold) <= near else nought
    return int(count)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def rows_touching_tie(z, segment, table, gather, near):
    """Which rows hold a window whose two largest entries differ by at most `near`, one winner around, (n,)."""
    found = np.zeros(len(z), np.bool_)
    winner = window_winners(z, gather)
    for r in range(1, len(z) - 1):
        if segment[r - 1] != segment[r] or segment[r + 1] != segment[r]:
            continue
        for w in range(table.shape[0]):
            if winner[r - 1, w] != winner[r + 1, w]:
                continue
            best = z[r, table[w, winner[r, w]]]
            for k in range(table.shape[1]):
                if table[w, k] >= 0 and z[r, table[w, k]] < best and best - z[r, table[w, k]] <= near:
                    found[r] = True
    return found


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def ordered(interval, s, n):
    """The order (m,) that sorts crossings by interval, then s; and where each of n intervals starts, (n + 1,).

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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def interpolated_windows(z, parent, fraction, gather, out):
    """As `interpolated`, then the maximum over each window of `gather` (size, windows)."""
    h = z.shape[1]
    size, n_windows = gather.shape
    row = np.empty(h + 1, z.dtype)
    row[h] = -np.inf
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        for u in range(h):
            row[u] = z[p, u] + f * (z[q, u] - z[p, u])
        best = out[r]
        for w in range(n_windows):
            best[w] = row[gather[0, w]]
        for k in range(1, size):
            number = gather[k]
            for w in range(n_windows):
                best[w] = max(row[number[w]], best[w])
