"""Where units change their sign along the edges of a subdivision."""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.bits import count, lowest


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
    n, h = len(ends), z.shape[1]
    per = (h + 63) // 64
    n_words = above.shape[1]
    tied = len(zero) > 0
    start = np.empty(n + 1, np.int64)
    total = 0
    for e in range(n):
        start[e] = total
        a, b = ends[e, 0], ends[e, 1]
        for w in range(n_words):
            changed = above[a, w] ^ above[b, w]
            if tied:
                changed &= ~(zero[a, w] | zero[b, w])
            total += count(changed)
    start[n] = total
    unit, s, rise = np.empty(total, np.int32), np.empty(total), np.empty(total)
    for e in range(n):
        if start[e] == start[e + 1]:
            continue
        a, b = ends[e, 0], ends[e, 1]
        m = start[e]
        for w in range(n_words):
            changed = above[a, w] ^ above[b, w]
            if tied:
                changed &= ~(zero[a, w] | zero[b, w])
            while changed:
                k = w // per
                u = 64 * (w - k * per) + lowest(changed)
                changed &= changed - np.uint64(1)
                first, last = z[a, u] - thresholds[k], z[b, u] - thresholds[k]
                unit[m], s[m], rise[m] = k * h + u, first / (first - last), last - first
                m += 1
        _sort(s, unit, rise, start[e], m)
    return start, unit, s, rise


@njit(cache=True, nogil=True)
def _sort(s, unit, rise, first, last):
    if last - first > 24:
        order = first + np.argsort(s[first:last])
        s[first:last], unit[first:last], rise[first:last] = s[order], unit[order], rise[order]
        return
    for i in range(first + 1, last):
        value, number, growth, j = s[i], unit[i], rise[i], i
        while j > first and s[j - 1] > value:
            s[j], unit[j], rise[j] = s[j - 1], unit[j - 1], rise[j - 1]
            j -= 1
        s[j], unit[j], rise[j] = value, number, growth
