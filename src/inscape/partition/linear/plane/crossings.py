"""Where units change their sign along the edges of a subdivision."""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.bits import count, lowest
from inscape.partition.linear.plane.compiled import kernel, part
from inscape.partition.linear.plane.ordering import sort_along


@part
def _changed(above, zero, a, b, w):
    """The bits of word w that differ between two vertices, and are zero at neither."""
    changed = above[a, w] ^ above[b, w]
    return changed & ~(zero[a, w] | zero[b, w]) if len(zero) > 0 else changed


@kernel
def _count(above, zero, ends, start):
    total = 0
    for e in range(len(ends)):
        start[e] = total
        for w in range(above.shape[1]):
            total += count(_changed(above, zero, ends[e, 0], ends[e, 1], w))
    start[len(ends)] = total


@kernel
def _fill(z, thresholds, above, zero, ends, start, unit, s, rise):
    h = z.shape[1]
    per = (h + 63) // 64
    for e in range(len(ends)):
        m = start[e]
        if m == start[e + 1]:
            continue
        a, b = ends[e, 0], ends[e, 1]
        for w in range(above.shape[1]):
            changed = _changed(above, zero, a, b, w)
            while changed:
                k = w // per
                u = 64 * (w - k * per) + lowest(changed)
                changed &= changed - np.uint64(1)
                first, last = z[a, u] - thresholds[k], z[b, u] - thresholds[k]
                unit[m], s[m], rise[m] = k * h + u, first / (first - last), last - first
                m += 1
        if m - start[e] > 1:
            sort_along(s, start[e], m, unit, rise)


@njit(cache=True, nogil=True)
def edge_crossings(z, thresholds, above, zero, ends):
    """The units that change sign between the ends of each edge, in order from its first end.

    Args:
        z: values at the vertices, (v, h).
        thresholds: (k,); unit number h k + u is entry u at threshold k.
        above: packed bits (v, words) of the units above their threshold.
        zero: packed bits of those on it, (v, words), or (0, words) if there are none.
        ends: of the edges, (e, 2).

    Returns:
        start (e + 1,), unit (m,), s (m,) on the way from the first end to the second, rise (m,): by how much
        the value grows on that way.
    """
    start = np.empty(len(ends) + 1, np.int64)
    _count(above, zero, ends, start)
    unit, s, rise = np.empty(start[-1], np.int32), np.empty(start[-1]), np.empty(start[-1])
    _fill(z, thresholds, above, zero, ends, start, unit, s, rise)
    return start, unit, s, rise
