"""The upper envelope of lines: which is the largest along the way, for scores and for max-pool windows.

Windows are followed along the positions of a batch: `segments.breakpoints` says what these are.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled, grown, inlined, kernel


@inlined
def _first_of_steepest(first, last, line, s, bound):
    """Of the lines that meet `line` at s, up to the bound, the steepest; of those along it, the first."""
    steepest = line
    height = first[line] + s * (last[line] - first[line])
    for j in range(len(first)):
        at = first[j] + s * (last[j] - first[j])
        if at >= height - bound and last[j] > last[steepest] + bound:
            steepest = j
    for j in range(steepest):
        if abs(first[j] - first[steepest]) <= bound and abs(last[j] - last[steepest]) <= bound:
            return j
    return steepest


def envelope(first: Floats, last: Floats, bound: float) -> tuple[Floats, Ints]:
    """The upper envelope of k lines on [0, 1], given their values at both ends, (k,) each.

    Returns:
        s (m,) of the changes, strictly inside, and the lines that lead, (m + 1,).
    """
    changes, leads = np.empty(len(first)), np.empty(len(first), np.int64)
    m = _envelope(first, last, bound, changes, leads)
    return changes[:m], leads[: m + 1]


@kernel
def _envelope(first, last, bound, changes, leads):
    return walk_envelope(first, last, bound, changes, leads)


@inlined
def walk_envelope(first, last, bound, changes, leads):
    """Write the changes of the upper envelope, strictly inside, (k,), and the lines that lead, (k,).

    `bound` is how far two values may differ by rounding. The walk starts at 0: the line that leads just after
    it is the largest, then the steepest, then the first; the next is the one that overtakes it soonest, the
    steepest of those. Two lines that differ by at most `bound` at both ends are one line, the first of them.
    If one line leads at both ends it leads between, since the envelope is convex.

    Returns:
        m, how many changes there are; m + 1 lines lead.
    """
    # (1) who leads just after 0
    k = len(first)
    lead = 0
    for j in range(1, k):
        gap = first[j] - first[lead]
        if gap > bound or (abs(gap) <= bound and last[j] > last[lead] + bound):
            lead = j
    leads[0] = lead
    m, s = 0, 0.0
    while m < k - 1:
        # (2) who overtakes soonest, the steepest of those
        soonest, following = 1.0, np.int64(-1)  # a literal would be a type of its own
        rise = last[lead] - first[lead]
        for j in range(k):
            end = last[j] - last[lead]
            if j == lead or end <= bound:
                continue  # it does not overtake before the end
            behind = first[lead] - first[j]
            at = max(behind / (behind + end), s)
            tied = following >= 0 and at == soonest
            if at < soonest or (tied and last[j] - first[j] > last[following] - first[following]):
                soonest, following = at, np.int64(j)
        # (3) the new leader, unless nobody is steeper
        if following < 0 or last[following] - first[following] <= rise:
            break
        lead, s = _first_of_steepest(first, last, following, soonest, bound), soonest
        if s > 0.0:
            changes[m] = s
            m += 1
        leads[m] = lead
    return m


@compiled
def _best_of_windows(values, gather, best, winner):
    """Write the largest entry of each window and its index in the window, the first of equal ones.

    `gather` (size, windows) holds entry numbers; padding is the number of an entry after the last, minus
    infinity. The inner loops run over windows, so that they become vector gathers.
    """
    size, n_windows = gather.shape
    for w in range(n_windows):
        best[w], winner[w] = values[gather[0, w]], 0
    for k in range(1, size):
        number, position = gather[k], np.int32(k)
        for w in range(n_windows):
            value = values[number[w]]
            winner[w] = position if value > best[w] else winner[w]
            best[w] = max(value, best[w])


@compiled
def window_winners(z, gather):
    """The first largest entry of each window, by its index there, (positions, windows); a size, (positions,).

    The size is that of the windows' largest entries, so that a pad with a huge negative number is left out.
    """
    n, h = z.shape
    size = np.zeros(n)
    winner, best = np.empty((n, gather.shape[1]), np.int32), np.empty(gather.shape[1], z.dtype)
    values = np.empty(h + 1, z.dtype)
    values[h] = -np.inf
    for r in range(n):
        for u in range(h):
            values[u] = z[r, u]
        _best_of_windows(values, gather, best, winner[r])
        for w in range(len(best)):
            size[r] = max(size[r], abs(best[w]))
    return winner, size


@compiled
def window_breakpoints(z, segment, table, gather, relative):
    """Where the winner of a window changes between neighbouring positions.

    Args:
        z: values (positions, h).
        segment: (positions,).
        table: entries of each window (windows, size), -1 for padding.
        gather: the same turned, (size, windows), h for padding.
        relative: how far two entries may differ and count as one, as a fraction of the largest entry there.

    Returns:
        interval (m,) and s (m,), in order of intervals; the entries that win at its ends, (m,) and (m,); and
        the larger of their differences there, (m,).
    """
    n, size = len(z), table.shape[1]
    winner, scale = window_winners(z, gather)
    capacity = 4 * n + 256
    interval, position = np.empty(capacity, np.int64), np.empty(capacity)
    before, after, gap = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
    first, last = np.empty(size), np.empty(size)
    changes, leads = np.empty(size), np.empty(size, np.int64)
    m = 0
    for i in range(n - 1):
        if segment[i] != segment[i + 1]:
            continue
        for w in range(table.shape[0]):
            # (1) a window that has one winner at both ends has it between
            if winner[i, w] == winner[i + 1, w]:
                continue
            # (2) its entries as lines, and where their envelope changes
            k = 0
            for j in range(size):
                u = table[w, j]
                if u >= 0:
                    first[k], last[k] = z[i, u], z[i + 1, u]
                    k += 1
            bound = relative * max(scale[i], scale[i + 1])
            n_changes = walk_envelope(first[:k], last[:k], bound, changes, leads)
            # (3) keep the changes
            if m + n_changes > capacity:
                capacity = 2 * capacity + n_changes
                interval, position = grown(interval, capacity), grown(position, capacity)
                before, after, gap = grown(before, capacity), grown(after, capacity), grown(gap, capacity)
            a, b = table[w, winner[i, w]], table[w, winner[i + 1, w]]
            for c in range(n_changes):
                interval[m], position[m] = i, changes[c]
                before[m], after[m] = a, b
                gap[m] = max(abs(z[i, a] - z[i, b]), abs(z[i + 1, a] - z[i + 1, b]))
                m += 1
    return interval[:m], position[:m], before[:m], after[:m], gap[:m]


@compiled
def positions_touching_tie(z, segment, table, gather, near):
    """Where a window's largest entries differ by at most `near`, with one winner around, (positions,)."""
    touching = np.zeros(len(z), np.bool_)
    winner, _ = window_winners(z, gather)
    for r in range(1, len(z) - 1):
        if segment[r - 1] != segment[r] or segment[r + 1] != segment[r]:
            continue
        for w in range(table.shape[0]):
            if winner[r - 1, w] != winner[r + 1, w]:
                continue
            best = z[r, table[w, winner[r, w]]]
            for k in range(table.shape[1]):
                if table[w, k] >= 0 and z[r, table[w, k]] < best and best - z[r, table[w, k]] <= near:
                    touching[r] = True
    return touching


@compiled
def interpolated_windows(z, parent, fraction, gather, out):
    """As `interpolated`, then the maximum over each window of `gather` (size, windows)."""
    h = z.shape[1]
    size, n_windows = gather.shape
    values = np.empty(h + 1, z.dtype)
    values[h] = -np.inf
    for r in range(len(parent)):
        p, f = parent[r], z.dtype.type(fraction[r])
        q = p if f == 0 else p + 1
        for u in range(h):
            values[u] = z[p, u] + f * (z[q, u] - z[p, u])
        best = out[r]
        for w in range(n_windows):
            best[w] = values[gather[0, w]]
        for k in range(1, size):
            number = gather[k]
            for w in range(n_windows):
                best[w] = max(values[number[w]], best[w])
