"""A linear map of a bent tensor at new vertices, without a product each, by the formula of `values`.

With many kinks on a line the sum over them is carried along instead.
"""

import numpy as np

from inscape.compiled import compiled, inlined, kernel
from inscape.partition.linear.planes.layer.bits import pack_row

_FEW = 4


@inlined
def _few(a, b, s, entry, change, i, out, columns):
    """The row of kink i on a line with few between rows a and b, by the formula."""
    n_out = len(out)
    first, last, t = (a, b, s[i]) if s[i] <= 0.5 else (b, a, 1.0 - s[i])
    weight, column = change[0] * min(s[i], s[0]) * (1.0 - max(s[i], s[0])), columns[entry[0]]
    for v in range(n_out):
        out[v] = first[v] + t * (last[v] - first[v]) - weight * column[v]
    for k in range(1, len(s)):
        weight, column = change[k] * min(s[i], s[k]) * (1.0 - max(s[i], s[k])), columns[entry[k]]
        for v in range(n_out):
            out[v] -= weight * column[v]


@inlined
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


@inlined
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
                    _few(y[a], y[b], s, entry, change, i, out, columns)
                done[x] = True
                if len(words) > 0:
                    near[x] = pack_row(out, thresholds, cutoff, words[x])
            if is_long:
                _pass(s[i], change[i], columns[entry[i]], base, slope)


@compiled
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


@inlined
def _row(values, v, out):
    """The row of a vertex: where it is stored, or found on its edge and written to `out`."""
    n, edges = len(values.rows), values.edges
    if v < n:
        return values.rows[v]
    line = values.line[v - n]
    cut, i = slice(edges.start[line], edges.start[line + 1]), values.kink[v - n] - edges.start[line]
    a, b = values.rows[edges.ends[line, 0]], values.rows[edges.ends[line, 1]]
    _few(a, b, edges.s[cut], edges.unit[cut], edges.change[cut], i, out, values.columns)
    return out


@kernel
def _place(values, lines, base_line):
    """Write where the vertices on lines lie; several kinks may be at one."""
    n = len(values.rows)
    for line in range(len(lines.ends)):
        for k in range(lines.start[line], lines.start[line + 1]):
            x = lines.vertex[k] - n
            if x >= 0 and values.kink[x] < 0:
                values.line[x], values.kink[x] = base_line + line, k


@inlined
def _sign(row, x, signs):
    """Write the signs of a vertex's row."""
    thresholds, cutoff, words, near = signs
    near[x] = pack_row(row, thresholds, cutoff, words[x])


@kernel
def _sign_each(values, lines, n_ends, done, room_a, room_b, row, signs):
    """Write the signs at the vertices on lines, and at the ends of these if n_ends = 2; each vertex once."""
    n = len(values.rows)
    for line in range(len(lines.ends)):
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= n and not done[lines.vertex[k] - n]
        if not is_open:
            continue
        a, b = _row(values, lines.ends[line, 0], room_a), _row(values, lines.ends[line, 1], room_b)
        for d in range(n_ends):
            x = lines.ends[line, d]
            if x >= n and not done[x - n]:
                done[x - n] = True
                _sign(a if d == 0 else b, x, signs)
        s, entry, change = lines.s[first:last], lines.unit[first:last], lines.change[first:last]
        for k in range(first, last):
            x = lines.vertex[k]
            if x >= n and not done[x - n]:
                done[x - n] = True
                _few(a, b, s, entry, change, k - first, row, values.columns)
                _sign(row, x, signs)


@compiled
def sign_lines(values, thresholds, cutoff, words, near):
    """Write where the vertices on the lines of `values` lie, and their signs; their rows are not stored.

    Chords come first: the rows at their ends, which lie on edges, are found once.

    Args:
        values: `Values` of which the first rows are stored; `kink` is -1 at the other vertices.
        thresholds: of the entries.
        cutoff: how near to a threshold an entry counts.
        words: written at the new rows, see `pack_rows`.
        near: the same for those that have an entry near to a threshold.
    """
    h, edges, chords = values.rows.shape[1], values.edges, values.chords
    room = np.zeros(len(values.line), np.bool_), np.empty(h), np.empty(h), np.empty(h)
    signs = thresholds, cutoff, words, near
    _place(values, edges, 0)
    _place(values, chords, len(edges.ends))
    _sign_each(values, chords, 2, *room, signs)
    _sign_each(values, edges, 0, *room, signs)


@compiled
def rows_of(values, vertices, out):
    """Write the rows of vertices of `values`, stored or not, (m, h)."""
    n, n_edges, chords = len(values.rows), len(values.edges.ends), values.chords
    room_a, room_b = np.empty(out.shape[1]), np.empty(out.shape[1])
    for i in range(len(vertices)):
        v = values.number[vertices[i]] if len(values.number) > 0 else vertices[i]
        if v < n or values.line[v - n] < n_edges:
            row = _row(values, v, out[i])
            for u in range(len(row)):
                out[i, u] = row[u]
            continue
        line = values.line[v - n] - n_edges
        a, b = _row(values, chords.ends[line, 0], room_a), _row(values, chords.ends[line, 1], room_b)
        first, last = chords.start[line], chords.start[line + 1]
        s, entry, change = chords.s[first:last], chords.unit[first:last], chords.change[first:last]
        _few(a, b, s, entry, change, values.kink[v - n] - first, out[i], values.columns)
