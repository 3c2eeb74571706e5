"""Where units change their sign along the edges of a subdivision."""

import numpy as np

from inscape.compiled import compiled, inlined, kernel
from inscape.partition.linear.planes.layer.bits import count, lowest
from inscape.partition.linear.planes.layer.ordering import sort_along
from inscape.partition.linear.planes.values.values import value


@inlined
def _changed(above, zero, a, b, w):
    """The bits of word w that differ between two vertices, and are zero at neither."""
    changed = above[a, w] ^ above[b, w]
    return changed & ~(zero[a, w] | zero[b, w]) if len(zero) > 0 else changed


@kernel
def _count(above, zero, ends, start, cut):
    """Write where the crossings of each edge start, and which edges have any; returns how many those are."""
    n, total = 0, 0
    for e in range(len(ends)):
        start[e] = total
        for w in range(above.shape[1]):
            total += count(_changed(above, zero, ends[e, 0], ends[e, 1], w))
        cut[n] = e
        n += total > start[e]
    start[len(ends)] = total
    return n


@kernel
def _fill(values, thresholds, above, zero, ends, cut, near, start, edge, unit, s, change):
    """Write the crossings of the edges `cut`; returns whether any two on an edge are close."""
    rows, h, is_stored, is_close = values.rows, values.rows.shape[1], len(values.line) == 0, False
    per = (h + 63) // 64
    for i in range(len(cut)):
        e = cut[i]
        a, b, m = ends[e, 0], ends[e, 1], start[e]
        for k in range(len(thresholds)):
            for w in range(per):
                changed = _changed(above, zero, a, b, k * per + w)
                while changed:
                    u = 64 * w + lowest(changed)
                    changed &= changed - np.uint64(1)
                    first = (rows[a, u] if is_stored else value(values, a, u)) - thresholds[k]
                    last = (rows[b, u] if is_stored else value(values, b, u)) - thresholds[k]
                    edge[m], unit[m] = e, k * h + u
                    s[m], change[m] = first / (first - last), abs(last - first)
                    m += 1
        if m - start[e] > 1:
            sort_along(s, start[e], m, unit, change)
            for k in range(start[e] + 1, m):
                is_close |= s[k] - s[k - 1] <= near
    return is_close


@compiled
def edge_crossings(values, thresholds, above, zero, ends, near):
    """The units that change sign between the ends of each edge, in order from its first end.

    Args:
        values: `Values` at the vertices, (v, h).
        thresholds: (k,); unit number h k + u is entry u at threshold k.
        above: packed bits (v, words) of the units above their threshold.
        zero: packed bits of those on it, (v, words), or (0, words) if there are none.
        ends: of the edges, (e, 2).
        near: how far on an edge two crossings are close.

    Returns:
        start (e + 1,), edge (m,), unit (m,), s (m,) on the way from the first end to the second, change (m,):
        by how much the value grows or falls on that way; whether any two crossings of an edge are close.
    """
    start, cut = np.empty(len(ends) + 1, np.int64), np.empty(len(ends) + 1, np.int32)
    n_cut = _count(above, zero, ends, start, cut)
    m = start[len(ends)]
    edge, unit, s, change = np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m), np.empty(m)
    is_close = _fill(values, thresholds, above, zero, ends, cut[:n_cut], near, start, edge, unit, s, change)
    return start, edge, unit, s, change, is_close
