"""Where units change their sign along the edges of a subdivision."""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.bits import lowest
from inscape.partition.linear.plane.compiled import kernel
from inscape.partition.linear.plane.ordering import sort_along


@kernel
def _fill(z, thresholds, above, zero, ends, e, near, start, edge, unit, s, change):
    """Write the crossings from edge e on; returns the first edge without room, and whether any are close."""
    h, n_words, has_zero, is_close = z.shape[1], above.shape[1], len(zero) > 0, False
    per = (h + 63) // 64
    m = start[e]
    while e < len(ends) and m + 64 * n_words <= len(s):
        a, b = ends[e, 0], ends[e, 1]
        for w in range(n_words):
            changed = above[a, w] ^ above[b, w]
            if has_zero:
                changed &= ~(zero[a, w] | zero[b, w])
            while changed:
                k = w // per
                u = 64 * (w - k * per) + lowest(changed)
                changed &= changed - np.uint64(1)
                first, last = z[a, u] - thresholds[k], z[b, u] - thresholds[k]
                edge[m], unit[m] = e, k * h + u
                s[m], change[m] = first / (first - last), abs(last - first)
                m += 1
        if m - start[e] > 1:
            sort_along(s, start[e], m, unit, change)
            for k in range(start[e] + 1, m):
                is_close |= s[k] - s[k - 1] <= near
        e += 1
        start[e] = m
    return e, is_close


@njit(cache=True, nogil=True)
def edge_crossings(z, thresholds, above, zero, ends, near):
    """The units that change sign between the ends of each edge, in order from its first end.

    Args:
        z: values at the vertices, (v, h).
        thresholds: (k,); unit number h k + u is entry u at threshold k.
        above: packed bits (v, words) of the units above their threshold.
        zero: packed bits of those on it, (v, words), or (0, words) if there are none.
        ends: of the edges, (e, 2).
        near: how far on an edge two crossings are close.

    Returns:
        start (e + 1,), edge (m,), unit (m,), s (m,) on the way from the first end to the second, change (m,):
        by how much the value grows or falls on that way; whether any two crossings of an edge are close.
    """
    start = np.empty(len(ends) + 1, np.int64)
    start[0], e, is_close = 0, 0, False
    room = len(ends) + 1024 + 64 * above.shape[1]
    edge, unit = np.empty(room, np.int32), np.empty(room, np.int32)
    s, change = np.empty(room), np.empty(room)
    while True:
        e, found = _fill(z, thresholds, above, zero, ends, e, near, start, edge, unit, s, change)
        is_close |= found
        m = start[e]
        if e == len(ends):
            return start, edge[:m], unit[:m], s[:m], change[:m], is_close
        edge, unit, s, change = _longer(edge, m), _longer(unit, m), _longer(s, m), _longer(change, m)


@njit(cache=True, nogil=True)
def _longer(old, m):
    """An array of twice the length that begins with m entries."""
    new = np.empty(2 * len(old), old.dtype)
    new[:m] = old[:m]
    return new
