"""The chords of one face, put in one after the other: the generic case, where no three of them meet.

A new chord is followed from cell to cell, from its first end on the boundary to its second; it leaves a cell
through the edge whose ends lie on either side of it. On the boundary sides are known by position: an end of
another chord lies between the two ends of this one, or not. Floats decide only inside, where three chords
cross pairwise; if such a decision is close, the face is left to the slower path for ties.

Nodes of the face are numbered along its boundary first (0, ..., n - 1), then as chords cross.
"""

import numpy as np

from inscape.partition.linear.plane.compiled import part

NEXT, BEFORE, ORIGIN, TWIN, CHORD, NAME = range(6)
"""Rows of the table of half-edges. A name is the half-edge's number in the subdivision on the boundary,
else 2 l + d for the face's own edge l."""

CLOSE = 1e-9
"""A node this near to a chord, as a part of the face's extent, may lie on it."""


@part
def cross(ax, ay, bx, by):
    """The area spanned by two vectors."""
    return ax * by - ay * bx


@part
def start_ring(n, half, table):
    """Begin with one cell: the face and its n boundary half-edges."""
    for i in range(n):
        table[NEXT, i], table[BEFORE, i], table[ORIGIN, i] = i + 1, i - 1, i
        table[TWIN, i], table[CHORD, i], table[NAME, i] = -1, -1, half[i]
    table[NEXT, n - 1], table[BEFORE, 0] = 0, n - 1


@part
def _link(table, a, b):
    table[NEXT, a], table[BEFORE, b] = b, a


@part
def _divide_edge(table, n_half, g, x, edge):
    """Put node x on half-edge g and its twin; the second part of g becomes the face's edge number `edge`.

    Afterwards g ends at x and its twin starts there.
    """
    t = table[TWIN, g]
    g2, t2 = n_half, n_half + 1  # from x on; and the twin's first part, up to x
    direction = table[NAME, g] & 1
    table[ORIGIN, g2], table[ORIGIN, t2] = x, table[ORIGIN, t]
    table[ORIGIN, t] = x
    table[TWIN, g2], table[TWIN, t2] = t2, g2
    table[CHORD, g2], table[CHORD, t2] = table[CHORD, g], table[CHORD, g]
    table[NAME, g2], table[NAME, t2] = 2 * edge + direction, 2 * edge + 1 - direction
    _link(table, g2, table[NEXT, g])
    _link(table, g, g2)
    _link(table, table[BEFORE, t], t2)
    _link(table, t2, t)
    return n_half + 2


@part
def _divide_cell(table, n_half, start, last, chord, edge):
    """Join the origin of half-edge `start` to the end of `last`; what lies between is on the right."""
    forth, back = n_half, n_half + 1
    after, previous = table[NEXT, last], table[BEFORE, start]
    table[ORIGIN, forth], table[ORIGIN, back] = table[ORIGIN, start], table[ORIGIN, after]
    table[TWIN, forth], table[TWIN, back] = back, forth
    table[CHORD, forth], table[CHORD, back] = chord, chord
    table[NAME, forth], table[NAME, back] = 2 * edge, 2 * edge + 1
    _link(table, previous, forth)
    _link(table, forth, after)
    _link(table, last, back)
    _link(table, back, start)
    return n_half + 2


@part
def _exit(table, n, xy, lo, hi, start, tolerance):
    """The half-edge through which chord (lo, hi) leaves the cell that it entered at the origin of `start`.

    Returns the half-edge, whether it ends at the chord's end, and whether a decision was close.
    """
    ax, ay = xy[lo, 0], xy[lo, 1]
    dx, dy = xy[hi, 0] - ax, xy[hi, 1] - ay
    g = start
    while True:
        v = table[ORIGIN, table[NEXT, g]]
        if v == hi:
            return g, True, False
        if v < n:
            is_left = v < lo or v > hi
        else:
            side = cross(dx, dy, xy[v, 0] - ax, xy[v, 1] - ay)
            if abs(side) <= tolerance:
                return g, False, True
            is_left = side > 0.0
        if is_left:
            return g, False, False
        g = table[NEXT, g]
        if g == start:
            return g, False, True


@part
def _meet(xy, chords, c, j):
    """Where chords c and j cross, as a part of each."""
    a, b, e, f = chords[c, 0], chords[c, 1], chords[j, 0], chords[j, 1]
    cx, cy, jx, jy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1], xy[f, 0] - xy[e, 0], xy[f, 1] - xy[e, 1]
    ox, oy = xy[e, 0] - xy[a, 0], xy[e, 1] - xy[a, 1]
    area = cross(cx, cy, jx, jy)
    if area == 0.0:
        return -1.0, -1.0
    return cross(ox, oy, jx, jy) / area, cross(ox, oy, cx, cy) / area


@part
def _place(xy, a, b, s, x):
    """Put node x at s on the way from a to b, measured from the nearer end."""
    if s > 0.5:
        a, b, s = b, a, 1.0 - s
    for i in range(2):
        xy[x, i] = xy[a, i] + s * (xy[b, i] - xy[a, i])


@part
def arrange(n, m, chords, xy, table, edge_ends, pair, pair_s, n_expected):
    """Put m chords into a face of n boundary nodes.

    Args:
        n: the number of boundary nodes; `start_ring` has been called.
        m: the number of chords.
        chords: their ends along the boundary, (m, 2).
        xy: coordinates of the nodes; those of the crossings are added.
        table: half-edges.
        edge_ends: the ends (nodes) of the face's own edges.
        pair: the chords that cross at each node inside.
        pair_s: where, as a part of either chord.
        n_expected: how many crossings there must be.

    Returns:
        the numbers of half-edges, of own edges and of crossings; -1 crossings if a decision was close.
    """
    low_x, low_y = xy[0, 0], xy[0, 1]
    high_x, high_y = low_x, low_y
    for v in range(1, n):
        low_x, high_x = min(low_x, xy[v, 0]), max(high_x, xy[v, 0])
        low_y, high_y = min(low_y, xy[v, 1]), max(high_y, xy[v, 1])
    near = CLOSE * max(high_x - low_x, high_y - low_y)
    n_half, n_edges, n_inside = n, 0, 0
    for c in range(m):
        lo, hi = chords[c, 0], chords[c, 1]
        tolerance = near * np.sqrt((xy[hi, 0] - xy[lo, 0]) ** 2 + (xy[hi, 1] - xy[lo, 1]) ** 2)
        start = lo
        while True:
            g, is_end, is_close = _exit(table, n, xy, lo, hi, start, tolerance)
            if is_close:
                return n_half, n_edges, -1
            x = hi
            if not is_end:
                j = table[CHORD, g]
                if j < 0 or n_inside == n_expected:
                    return n_half, n_edges, -1
                s_c, s_j = _meet(xy, chords, c, j)
                if not (0.0 < s_c < 1.0 and 0.0 < s_j < 1.0):
                    return n_half, n_edges, -1
                x = n + n_inside
                _place(xy, lo, hi, s_c, x)
                pair[n_inside, 0], pair[n_inside, 1] = c, j
                pair_s[n_inside, 0], pair_s[n_inside, 1] = s_c, s_j
                n_inside += 1
                divided = table[NAME, g] >> 1
                first = table[NAME, g] & 1  # edge l keeps the part that g keeps
                edge_ends[n_edges, 0], edge_ends[n_edges, 1] = edge_ends[divided, 0], edge_ends[divided, 1]
                edge_ends[divided, 1 - first], edge_ends[n_edges, first] = x, x
                n_half = _divide_edge(table, n_half, g, x, n_edges)
                n_edges += 1
            edge_ends[n_edges, 0], edge_ends[n_edges, 1] = table[ORIGIN, start], x
            n_half = _divide_cell(table, n_half, start, g, c, n_edges)
            n_edges += 1
            if is_end:
                break
            start = table[TWIN, g]
    return n_half, n_edges, n_inside if n_inside == n_expected else -1
