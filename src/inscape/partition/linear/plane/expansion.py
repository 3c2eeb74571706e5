"""A linear map of a bent tensor at new vertices, without a product each.

On a straight line with ends a and b the bent tensor h has kinks at s_1 <= ... <= s_m, where entry u_k
changes its slope by c_k. A linear map W of it is then

    y(s) = (1 - s) y(a) + s y(b) - sum_k c_k G(s, s_k) W[:, u_k],   G(s, t) = min(s, t) (1 - max(s, t)),

so a new vertex costs a few columns of W. With many kinks on a line the sum is carried along instead.
"""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.compiled import kernel, part

_FEW = 4


@part
def _few(y, a, b, s, entry, change, vertex, columns, done):
    """The rows of a line with few kinks, by the formula above."""
    n_out, m = y.shape[1], len(s)
    for i in range(m):
        if vertex[i] < 0 or done[vertex[i]]:
            continue
        out = y[vertex[i]]
        done[vertex[i]] = True
        first, last, t = (y[a], y[b], s[i]) if s[i] <= 0.5 else (y[b], y[a], 1.0 - s[i])
        weight, column = change[0] * min(s[i], s[0]) * (1.0 - max(s[i], s[0])), columns[entry[0]]
        for v in range(n_out):
            out[v] = first[v] + t * (last[v] - first[v]) - weight * column[v]
        for k in range(1, m):
            weight, column = change[k] * min(s[i], s[k]) * (1.0 - max(s[i], s[k])), columns[entry[k]]
            for v in range(n_out):
                out[v] -= weight * column[v]


@part
def _many(y, a, b, s, entry, change, vertex, columns, done, base, slope):
    """The rows of a line with many kinks: y = base + s slope, changed at each."""
    n_out, m = y.shape[1], len(s)
    first, last = y[a], y[b]
    for v in range(n_out):
        base[v] = first[v]
        slope[v] = last[v] - first[v]
    for k in range(m):
        weight, column = change[k] * (1.0 - s[k]), columns[entry[k]]
        for v in range(n_out):
            slope[v] -= weight * column[v]
    for k in range(m):
        if vertex[k] >= 0 and not done[vertex[k]]:
            out = y[vertex[k]]
            done[vertex[k]] = True
            for v in range(n_out):
                out[v] = base[v] + s[k] * slope[v]
        weight, column = change[k], columns[entry[k]]
        offset = weight * s[k]
        for v in range(n_out):
            slope[v] += weight * column[v]
            base[v] -= offset * column[v]


@kernel
def _each(y, ends, start, s, entry, change, vertex, columns, done, base, slope):
    for line in range(len(ends)):
        first, last = start[line], start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= vertex[k] >= 0 and not done[vertex[k]]
        if not is_open:
            continue
        a, b, cut = ends[line, 0], ends[line, 1], slice(first, last)
        if last - first <= _FEW:
            _few(y, a, b, s[cut], entry[cut], change[cut], vertex[cut], columns, done)
        else:
            _many(y, a, b, s[cut], entry[cut], change[cut], vertex[cut], columns, done, base, slope)


@njit(cache=True, nogil=True)
def expand(y, ends, start, s, entry, change, vertex, columns, done):
    """Fill the rows of y (v, out) at the kinks of lines whose ends are known.

    Args:
        y: the map at the vertices; rows not `done` are written.
        ends: the vertices at the ends of each line, (l, 2).
        start: where its kinks start, (l + 1,).
        s: where they are on the line, (m,).
        entry: which entry changes its slope.
        change: by how much.
        vertex: the vertex there, -1 if it is known from elsewhere.
        columns: W transposed, (in, out).
        done: which rows are known, (v,).
    """
    base, slope = np.empty(y.shape[1]), np.empty(y.shape[1])
    _each(y, ends, start, s, entry, change, vertex, columns, done, base, slope)
