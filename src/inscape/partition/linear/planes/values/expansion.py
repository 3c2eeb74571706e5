"""A linear map of a bent tensor at new vertices, without a product each, by the formula of `bent_line`."""

import numpy as np

from inscape.compiled import compiled, inlined, kernel
from inscape.partition.linear.bent_line import pass_breakpoint, sag, start_line
from inscape.partition.linear.planes.layer.sign_vectors import pack_row

_IN_ORDER_ABOVE = 4
"""On lines with more breakpoints than this the sum over them is carried along from point to point."""


@inlined
def _by_formula(a, b, s, entry, change, i, out, columns):
    """Write the row at breakpoint i of a line between rows a and b, summing over all its breakpoints."""
    n_out = len(out)
    first, last, t = (a, b, s[i]) if s[i] <= 0.5 else (b, a, 1.0 - s[i])
    weight, column = sag(s[i], s[0], change[0]), columns[entry[0]]
    for v in range(n_out):
        out[v] = first[v] + t * (last[v] - first[v]) - weight * column[v]
    for k in range(1, len(s)):
        weight, column = sag(s[i], s[k], change[k]), columns[entry[k]]
        for v in range(n_out):
            out[v] -= weight * column[v]


@kernel
def _expand_each(y, lines, columns, done, base, slope, kinks, cutoff, above, near):
    """Fill the rows at the breakpoints of lines; each vertex once."""
    for line in range(len(lines.ends)):
        # (1) is there anything to fill?
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= 0 and not done[lines.vertex[k]]
        if not is_open:
            continue
        # (2) with many breakpoints the line is followed from its first end
        a, b, own = lines.ends[line, 0], lines.ends[line, 1], slice(first, last)
        s, entry, change = lines.s[own], lines.unit[own], lines.change[own]
        is_long = last - first > _IN_ORDER_ABOVE
        if is_long:
            start_line(y[a], y[b], s, entry, change, 0, len(s), columns, base, slope)
        for i in range(last - first):
            x = lines.vertex[first + i]
            if x >= 0 and not done[x]:
                # (3) the row at a breakpoint, and its signs
                out = y[x]
                if is_long:
                    for v in range(len(base)):
                        out[v] = base[v] + s[i] * slope[v]
                else:
                    _by_formula(y[a], y[b], s, entry, change, i, out, columns)
                done[x] = True
                if len(above) > 0:
                    near[x] = pack_row(out, kinks, cutoff, above[x])
            if is_long:
                pass_breakpoint(s[i], change[i], columns[entry[i]], base, slope)


@compiled
def expand(y, n_old, edges, chords, columns, kinks, cutoff, above, near):
    """Fill the rows of y (v, out) at the breakpoints of lines, first those of edges, then those of chords.

    Args:
        y: the map at the vertices; the first n_old rows are known.
        n_old: how many.
        edges: `Lines` between known rows, whose units are entries.
        chords: `Lines` between rows that are known then.
        columns: the transpose of the map, (in, out).
        kinks: of the new rows' entries.
        cutoff: how near to a kink an entry counts.
        above: the signs of the new rows are written there, see `pack_rows`; nothing is if it is empty.
        near: the same for those that have an entry near to a kink.
    """
    base, slope = np.empty(y.shape[1]), np.empty(y.shape[1])
    done = np.zeros(len(y), np.bool_)
    done[:n_old] = True
    _expand_each(y, edges, columns, done, base, slope, kinks, cutoff, above, near)
    _expand_each(y, chords, columns, done, base, slope, kinks, cutoff, above, near)


@inlined
def _row(values, v, out):
    """The row of a vertex: where it is stored, or evaluated on its edge and written to `out`."""
    n, edges = len(values.rows), values.edges
    if v < n:
        return values.rows[v]
    line = values.line[v - n]
    own, i = slice(edges.start[line], edges.start[line + 1]), values.breakpoint[v - n] - edges.start[line]
    a, b = values.rows[edges.ends[line, 0]], values.rows[edges.ends[line, 1]]
    _by_formula(a, b, edges.s[own], edges.unit[own], edges.change[own], i, out, values.columns)
    return out


@kernel
def _place(values, lines, base_line):
    """Write where the vertices on lines lie; several breakpoints may be at one."""
    n = len(values.rows)
    for line in range(len(lines.ends)):
        for k in range(lines.start[line], lines.start[line + 1]):
            x = lines.vertex[k] - n
            if x >= 0 and values.breakpoint[x] < 0:
                values.line[x], values.breakpoint[x] = base_line + line, k


@inlined
def _sign(row, x, signs):
    """Write the sign vector of a vertex's row."""
    kinks, cutoff, above, near = signs
    near[x] = pack_row(row, kinks, cutoff, above[x])


@kernel
def _sign_each(values, lines, n_ends, done, row_a, row_b, row, signs):
    """Write the signs at the vertices on lines, and at the ends of these if n_ends = 2; each vertex once."""
    n = len(values.rows)
    for line in range(len(lines.ends)):
        # (1) is there anything to sign?
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= n and not done[lines.vertex[k] - n]
        if not is_open:
            continue
        # (2) the rows at the ends, and their signs
        a, b = _row(values, lines.ends[line, 0], row_a), _row(values, lines.ends[line, 1], row_b)
        for d in range(n_ends):
            x = lines.ends[line, d]
            if x >= n and not done[x - n]:
                done[x - n] = True
                _sign(a if d == 0 else b, x, signs)
        # (3) the rows at the breakpoints, and their signs
        s, entry, change = lines.s[first:last], lines.unit[first:last], lines.change[first:last]
        for k in range(first, last):
            x = lines.vertex[k]
            if x >= n and not done[x - n]:
                done[x - n] = True
                _by_formula(a, b, s, entry, change, k - first, row, values.columns)
                _sign(row, x, signs)


@compiled
def sign_lines(values, kinks, cutoff, above, near):
    """Write where the vertices on the lines of `values` lie, and their signs; their rows are not stored.

    Chords come first: the rows at their ends, which lie on edges, are evaluated once.

    Args:
        values: `Values` of which the first rows are stored; `breakpoint` is -1 at the other vertices.
        kinks: of the entries.
        cutoff: how near to a kink an entry counts.
        above: written at the new vertices, see `pack_rows`.
        near: the same for those that have an entry near to a kink.
    """
    h, edges, chords = values.rows.shape[1], values.edges, values.chords
    scratch = np.zeros(len(values.line), np.bool_), np.empty(h), np.empty(h), np.empty(h)
    signs = kinks, cutoff, above, near
    _place(values, edges, 0)
    _place(values, chords, len(edges.ends))
    _sign_each(values, chords, 2, *scratch, signs)
    _sign_each(values, edges, 0, *scratch, signs)


@compiled
def rows_of(values, vertices, out):
    """Write the rows of vertices of `values`, stored or not, (m, h)."""
    n, n_edges, chords = len(values.rows), len(values.edges.ends), values.chords
    row_a, row_b = np.empty(out.shape[1]), np.empty(out.shape[1])
    for i in range(len(vertices)):
        v = values.number[vertices[i]] if len(values.number) > 0 else vertices[i]
        # (1) stored, or on an edge
        if v < n or values.line[v - n] < n_edges:
            row = _row(values, v, out[i])
            for u in range(len(row)):
                out[i, u] = row[u]
            continue
        # (2) on a chord, whose ends are stored or on edges
        line = values.line[v - n] - n_edges
        a, b = _row(values, chords.ends[line, 0], row_a), _row(values, chords.ends[line, 1], row_b)
        first, last = chords.start[line], chords.start[line + 1]
        s, entry, change = chords.s[first:last], chords.unit[first:last], chords.change[first:last]
        _by_formula(a, b, s, entry, change, values.breakpoint[v - n] - first, out[i], values.columns)
