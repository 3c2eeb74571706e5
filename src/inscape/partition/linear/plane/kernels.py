"""Small compiled loops over a subdivision."""

import numpy as np
from numba import njit

from inscape.partition.linear.plane.compiled import kernel


@njit(cache=True, nogil=True)
def with_cut_points(xy, ends, nstart, s):
    """The vertices, then the points at s on the edges, measured from the nearer end, (v + k, 2)."""
    out = np.empty((len(xy) + len(s), 2))
    out[: len(xy)] = xy
    for e in range(len(ends)):
        for k in range(nstart[e], nstart[e + 1]):
            a, b, t = ends[e, 0], ends[e, 1], s[k]
            if t > 0.5:
                a, b, t = b, a, 1.0 - t
            for d in range(2):
                out[len(xy) + k, d] = xy[a, d] + t * (xy[b, d] - xy[a, d])
    return out


@kernel
def _divide(ends, born, shared, nstart, n_vertices, new_ends, new_born, new_shared):
    i = 0
    for e in range(len(ends)):
        new_ends[i, 0] = ends[e, 0]
        for k in range(nstart[e], nstart[e + 1]):
            new_ends[i, 1] = n_vertices + k
            new_born[i], new_shared[i] = born[e], shared[e]
            i += 1
            new_ends[i, 0] = n_vertices + k
        new_ends[i, 1] = ends[e, 1]
        new_born[i], new_shared[i] = born[e], shared[e]
        i += 1


@njit(cache=True, nogil=True)
def divided(ends, born, shared, nstart, n_vertices, inside, layer):
    """The pieces of edges that were cut, then the new edges `inside` (k, 2): ends, layer of birth, shared."""
    n = len(ends) + nstart[len(ends)]
    new_ends = np.empty((n + len(inside), 2), np.int32)
    new_born, new_shared = np.full(len(new_ends), layer, np.int32), np.zeros(len(new_ends), np.bool_)
    _divide(ends, born, shared, nstart, n_vertices, new_ends, new_born, new_shared)
    new_ends[n:] = inside
    return new_ends, new_born, new_shared


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


@njit(cache=True, nogil=True)
def areas(start, loop, ends, xy):
    """The area of each face, from triangles at its first corner."""
    out = np.empty(len(start) - 1)
    _areas(start, loop, ends, xy, out)
    return out


@njit(cache=True, nogil=True)
def mark_zero(above, zero, rows, entries, k, h):
    """Set the zero bits, and clear the others, of entries at threshold number k."""
    per = (h + 63) // 64
    for i in range(len(rows)):
        word, bit = k * per + (entries[i] >> 6), np.uint64(1) << np.uint64(entries[i] & 63)
        zero[rows[i], word] |= bit
        above[rows[i], word] &= ~bit


@njit(cache=True, nogil=True)
def close_pairs(start, s, near):
    """The crossings k whose successor on the same edge is at most `near` further on, (m,)."""
    is_close = np.zeros(len(s), np.bool_)
    for e in range(len(start) - 1):
        for k in range(start[e], start[e + 1] - 1):
            is_close[k] = s[k + 1] - s[k] <= near
    return np.flatnonzero(is_close)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
