"""Small compiled loops over a subdivision.

Large results are written into arrays from numpy: these have large pages, which are quicker to get.
"""

from typing import Any

import numpy as np

from inscape.compiled import compiled, kernel
from inscape.partition.linear.planes.layer.blocks import in_one_block


def with_cut_points(xy: Any, ends: Any, edge: Any, s: Any) -> Any:
    """The vertices, then the points at s on edges, measured from the nearer end, (v + k, 2).

    There is room for half as many again after the latter, see `extended`.
    """
    n = len(xy) + len(s)
    out = np.empty((n + len(s) // 2, 2))
    _with_cut_points(xy, ends, edge, s, out)
    return out[:n]


def extended(xy: Any, more: Any) -> Any:
    """The points xy, then others, (n + k, 2): in the memory of the first if there is room."""
    n = len(xy) + len(more)
    if n > len(xy.base):
        return np.concatenate([xy, more])
    xy.base[len(xy) : n] = more
    return xy.base[:n]


@kernel
def _with_cut_points(xy, ends, edge, s, out):
    for v in range(len(xy)):
        out[v, 0], out[v, 1] = xy[v, 0], xy[v, 1]
    for k in range(len(s)):
        a, b, t = ends[edge[k], 0], ends[edge[k], 1], s[k]
        if t > 0.5:
            a, b, t = b, a, 1.0 - t
        for d in range(2):
            out[len(xy) + k, d] = xy[a, d] + t * (xy[b, d] - xy[a, d])


@kernel
def _divide(ends, born, shared, nstart, edge, n_vertices, inside, layer, new_ends, new_born, new_shared):
    for e in range(len(ends)):
        first = e + nstart[e]
        new_ends[first, 0], new_ends[e + nstart[e + 1], 1] = ends[e, 0], ends[e, 1]
        new_born[first], new_shared[first] = born[e], shared[e]
    for k in range(len(edge)):
        i = edge[k] + k
        new_ends[i, 1], new_ends[i + 1, 0] = n_vertices + k, n_vertices + k
        new_born[i + 1], new_shared[i + 1] = born[edge[k]], shared[edge[k]]
    n = len(ends) + len(edge)
    for i in range(len(inside)):
        new_ends[n + i, 0], new_ends[n + i, 1] = inside[i, 0], inside[i, 1]
        new_born[n + i], new_shared[n + i] = layer, False


def divided(
    ends: Any, born: Any, shared: Any, nstart: Any, edge: Any, n_vertices: int, inside: Any, layer: int
) -> Any:
    """The pieces of edges that were cut, then the new edges `inside` (k, 2): ends, layer of birth, shared.

    Cut point k lies on edge[k]; those of an edge start at nstart.
    """
    n = len(ends) + len(edge) + len(inside)
    found = in_one_block([np.empty((n, 2), np.int32), np.empty(n, np.int32), np.empty(n, bool)])
    _divide(ends, born, shared, nstart, edge, n_vertices, inside, layer, *found)
    return found


@kernel
def _areas(start, loop, ends, xy, out):
    for f in range(len(out)):
        first, last = start[f], start[f + 1]
        o, p = ends[loop[first] >> 1, loop[first] & 1], ends[loop[first + 1] >> 1, loop[first + 1] & 1]
        ax, ay = xy[p, 0] - xy[o, 0], xy[p, 1] - xy[o, 1]
        total = 0.0
        for i in range(first + 2, last):
            p = ends[loop[i] >> 1, loop[i] & 1]
            bx, by = xy[p, 0] - xy[o, 0], xy[p, 1] - xy[o, 1]
            total += ax * by - ay * bx
            ax, ay = bx, by
        out[f] = total / 2


@compiled
def areas(start, loop, ends, xy):
    """The area of each face, from triangles at its first corner."""
    out = np.empty(len(start) - 1)
    _areas(start, loop, ends, xy, out)
    return out


@compiled
def total_area(loop, ends, xy):
    """The sum of the areas of all faces, from triangles of their edges with the first vertex.

    An edge between two faces counts once in each direction, and cancels.
    """
    net = np.zeros(len(ends), np.int8)
    for i in range(len(loop)):
        net[loop[i] >> 1] += 1 - 2 * (loop[i] & 1)
    total, ox, oy = 0.0, xy[0, 0], xy[0, 1]
    for e in range(len(ends)):
        if net[e] != 0:
            a, b = ends[e, 0], ends[e, 1]
            cross = (xy[a, 0] - ox) * (xy[b, 1] - oy) - (xy[a, 1] - oy) * (xy[b, 0] - ox)
            total += net[e] * cross
    return total / 2


@compiled
def mark_zero(above, zero, rows, entries, k, h):
    """Set the zero bits, and clear the others, of entries at threshold number k."""
    per = (h + 63) // 64
    for i in range(len(rows)):
        word, bit = k * per + (entries[i] >> 6), np.uint64(1) << np.uint64(entries[i] & 63)
        zero[rows[i], word] |= bit
        above[rows[i], word] &= ~bit


@compiled
def close_pairs(start, s, near):
    """The crossings k whose successor on the same edge is at most `near` further on, (m,)."""
    is_close = np.zeros(len(s), np.bool_)
    for e in range(len(start) - 1):
        for k in range(start[e], start[e + 1] - 1):
            is_close[k] = s[k + 1] - s[k] <= near
    return np.flatnonzero(is_close)


@compiled
def signs_of_faces(start, corners, above, zero):
    """The units that are positive somewhere on each face, those with both signs, and its being tied.

    A face is tied if one of the latter is zero at a corner.
    """
    n, n_words = len(start) - 1, above.shape[1]
    plus, cutting = np.zeros((n, n_words), np.uint64), np.empty((n, n_words), np.uint64)
    through = np.zeros(n, np.bool_)
    for f in range(n):
        for w in range(n_words):
            p, m, o = np.uint64(0), np.uint64(0), np.uint64(0)
            for i in range(start[f], start[f + 1]):
                a, z = above[corners[i], w], zero[corners[i], w]
                p |= a
                m |= ~(a | z)
                o |= z
            plus[f, w], cutting[f, w] = p, p & m
            through[f] |= (p & m & o) != 0
    return plus, cutting, through


@compiled
def reordered(start, loop, order):
    """Loops in another order."""
    new_start, new_loop = np.zeros(len(start), start.dtype), np.empty_like(loop)
    i = 0
    for k in range(len(order)):
        f = order[k]
        for j in range(start[f], start[f + 1]):
            new_loop[i] = loop[j]
            i += 1
        new_start[k + 1] = i
    return new_start, new_loop
