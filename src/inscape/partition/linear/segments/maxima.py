"""Compiled loops for maxima: the windows of a max-pool along the rows of a batch."""

import numpy as np

from inscape.compiled import compiled
from inscape.partition.linear.envelope import envelope
from inscape.partition.linear.segments.kernels import grown


@compiled
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


@compiled
def window_winners(z, gather):
    """The position in its window of the first largest entry, (rows, windows), and each row's size, (rows,).

    The size is that of the windows' largest entries, so that a pad with a huge negative number is left out.
    """
    n, h = z.shape
    size = np.zeros(n)
    winner, best = np.empty((n, gather.shape[1]), np.int32), np.empty(gather.shape[1], z.dtype)
    row = np.empty(h + 1, z.dtype)
    row[h] = -np.inf
    for r in range(n):
        row[:h] = z[r]
        _best_of_windows(row, gather, best, winner[r])
        for w in range(len(best)):
            size[r] = max(size[r], abs(best[w]))
    return winner, size


@compiled
def window_crossings(z, segment, table, gather, relative):
    """Where the winner of a window changes between neighbouring rows.

    Args:
        z: values (rows, h).
        segment: (rows,).
        table: entries of each window (windows, size), -1 for padding.
        gather: the same turned, (size, windows), the row's length for padding.
        relative: how far two entries may differ and count as one, as a fraction of the size of their rows.

    Returns:
        interval (m,) and s (m,), in order of intervals; the entries that win at its ends, (m,) and (m,); and
        the larger of their differences there, (m,).
    """
    n, size = len(z), table.shape[1]
    winner, scale = window_winners(z, gather)
    room = 4 * n + 256
    interval, position = np.empty(room, np.int64), np.empty(room)
    before, after, gap = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    first, last = np.empty(size), np.empty(size)
    m = 0
    for i in range(n - 1):
        if segment[i] != segment[i + 1]:
            continue
        for w in range(table.shape[0]):
            # 1. a window that has one winner at both ends has it between
            if winner[i, w] == winner[i + 1, w]:
                continue
            # 2. its entries as lines, and where their envelope changes
            k = 0
            for j in range(size):
                u = table[w, j]
                if u >= 0:
                    first[k], last[k] = z[i, u], z[i + 1, u]
                    k += 1
            changes, _ = envelope(first[:k], last[:k], relative * max(scale[i], scale[i + 1]))
            # 3. keep the changes
            if m + len(changes) > room:
                room = 2 * room + len(changes)
                interval, position = grown(interval, room), grown(position, room)
                before, after, gap = grown(before, room), grown(after, room), grown(gap, room)
            a, b = table[w, winner[i, w]], table[w, winner[i + 1, w]]
            for s in changes:
                interval[m], position[m] = i, s
                before[m], after[m] = a, b
                gap[m] = max(abs(z[i, a] - z[i, b]), abs(z[i + 1, a] - z[i + 1, b]))
                m += 1
    return interval[:m], position[:m], before[:m], after[:m], gap[:m]


@compiled
def rows_touching_tie(z, segment, table, gather, near):
    """Which rows hold a window whose largest entries differ by at most `near`, one winner around, (n,)."""
    found = np.zeros(len(z), np.bool_)
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
                    found[r] = True
    return found


@compiled
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
