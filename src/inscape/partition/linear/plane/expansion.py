"""A linear map of a bent tensor at new vertices, without a product each.

On a straight line with ends a and b the bent tensor h has kinks at s_1 <= ... <= s_m, where entry u_k
changes its slope by c_k. A linear map W of it is then

    y(s) = (1 - s) y(a) + s y(b) - sum_k c_k G(s, s_k) W[:, u_k],   G(s, t) = min(s, t) (1 - max(s, t)),

so a new vertex costs a few columns of W. With many kinks on a line the sum is carried along instead.
"""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.bits import pack_row
from inscape.partition.linear.plane.compiled import kernel, part

_FEW = 4


@part
def _few(y, a, b, s, entry, change, i, out, columns):
    """The row of kink i on a line with few, by the formula above."""
    n_out = y.shape[1]
    first, last, t = (y[a], y[b], s[i]) if s[i] <= 0.5 else (y[b], y[a], 1.0 - s[i])
    weight, column = change[0] * min(s[i], s[0]) * (1.0 - max(s[i], s[0])), columns[entry[0]]
    for v in range(n_out):
        out[v] = first[v] + t * (last[v] - first[v]) - weight * column[v]
    for k in range(1, len(s)):
        weight, column = change[k] * min(s[i], s[k]) * (1.0 - max(s[i], s[k])), columns[entry[k]]
        for v in range(n_out):
            out[v] -= weight * column[v]


@part
def _start(y, a, b, s, entry, change, columns, base, slope):
    """Begin a line with many kinks: y = base + s slope up to the first."""
    first, last = y[a], y[b]
    for v in range(y.shape[1]):
        base[v] = first[v]
        slope[v] = last[v] - first[v]
    for k in range(len(s)):
        weight, column = change[k] * (1.0 - s[k]), columns[entry[k]]
        for v in range(y.shape[1]):
            slope[v] -= weight * column[v]


@part
def _pass(s, change, column, base, slope):
    """Pass a kink."""
    offset = change * s
    for v in range(len(base)):
        slope[v] += change * column[v]
        base[v] -= offset * column[v]


@kernel
def _each(y, lines, columns, done, base, slope, thresholds, cutoff, words, near):
    for line in range(len(lines.ends)):
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= 0 and not done[lines.vertex[k]]
        if not is_open:
            continue
        a, b, cut = lines.ends[line, 0], lines.ends[line, 1], slice(first, last)
        s, entry, change = lines.s[cut], lines.unit[cut], lines.change[cut]
        is_long = last - first > _FEW
        if is_long:
            _start(y, a, b, s, entry, change, columns, base, slope)
        for i in range(last - first):
            x = lines.vertex[first + i]
            if x >= 0 and not done[x]:
                out = y[x]
                if is_long:
                    for v in range(len(base)):
                        out[v] = base[v] + s[i] * slope[v]
                else:
                    _few(y, a, b, s, entry, change, i, out, columns)
                done[x] = True
                if len(words) > 0:
                    near[x] = pack_row(out, thresholds, cutoff, words[x])
            if is_long:
                _pass(s[i], change[i], columns[entry[i]], base, slope)


@njit(cache=True, nogil=True)
def expand(y, n_old, edges, chords, columns, thresholds, cutoff, words, near):
    """Fill the rows of y (v, out) at the kinks of lines, first those of edges, then those of chords.

    Args:
        y: the map at the vertices; the first n_old rows are known.
        n_old: how many.
        edges: `Lines` between known rows, whose units are entries.
        chords: `Lines` between rows that are known then.
        columns: W transposed, (in, out).
        thresholds: of the new rows' entries.
        cutoff: how near to a threshold an entry counts.
        words: the signs of the new rows are written there, see `pack_rows`; nothing is if it has no rows.
        near: the same for those that have an entry near to a threshold.
    """
    base, slope = np.empty(y.shape[1]), np.empty(y.shape[1])
    done = np.zeros(len(y), np.bool_)
    done[:n_old] = True
    _each(y, edges, columns, done, base, slope, thresholds, cutoff, words, near)
    _each(y, chords, columns, done, base, slope, thresholds, cutoff, words, near)
