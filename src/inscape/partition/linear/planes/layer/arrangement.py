"""The chords of one face and the cells between them: the generic case, where no three chords meet.

Nodes are numbered along the face's boundary. A chord runs from its first end lo to its second hi, and the
nodes between them lie to its right. Chords are in order of lo, so that c < j cross exactly when
lo_j < hi_c < hi_j; then j passes from the right of c to its left, and c from the left of j to its right. A
chord with k crossings has k + 1 pieces; where the boundary of a cell meets a crossing it turns left.

So all is known by position but for the order of crossings along a chord. Floats decide that, and have a say
only where two chords that cross a third cross each other too; if such a decision is close, the face is left
to the slower path for ties.
"""

import numpy as np

from inscape.compiled import inlined
from inscape.partition.linear.planes.layer.ordering import sort_along, spread

CLOSE = 1e-9
"""A node this near to a chord, as a part of the face's extent, may lie on it."""

MANY = 16
"""More crossings than this on a chord are put about in order first."""

LO, HI = range(2)
X, Y, DX, DY, END_X, END_Y, SQUARE, STEEPNESS = range(8)
"""Columns of a chord's line: its first end, the way to its second, that one, squared length, `_steepness`."""


@inlined
def cross(ax, ay, bx, by):
    """The area spanned by two vectors."""
    return ax * by - ay * bx


@inlined
def count_crossings(m, chords, slot):
    """Write where the crossings of each chord start, (m + 1,); returns how many points that are."""
    for c in range(m + 1):
        slot[c] = 0
    n_cross = 0
    for c in range(m):
        hi = chords[c, HI]
        for j in range(c + 1, m):
            if chords[j, LO] > hi:
                break
            crosses = chords[j, HI] > hi
            slot[c + 1] += crosses
            slot[j + 1] += crosses
            n_cross += crosses
    for c in range(m):
        slot[c + 1] += slot[c]
    return n_cross


@inlined
def _steepness(job, face, c, end, dx, dy):
    """The length of a unit's gradient over that of its chord d, from one end: |g . v| = steepness |d x v|.

    Returns also the area that chord and edge span there.
    """
    k, h = face.cut[face.chords[c, end]], face.half[face.chords[c, end]]
    e = (h >> 1) - k - 1 + (h & 1)
    a, b = job.ends[e, 0], job.ends[e, 1]
    area = abs(cross(dx, dy, job.xy[b, 0] - job.xy[a, 0], job.xy[b, 1] - job.xy[a, 1]))
    return (job.change[k] / area if area > 0.0 else 0.0), area


@inlined
def read_lines(m, job, face):
    """Write the line of each chord that crosses others, with the steepness of its unit from the wider end."""
    for c in range(m):
        if face.slot[c] == face.slot[c + 1]:
            continue
        a, b = face.node[face.chords[c, LO]], face.node[face.chords[c, HI]]
        line = face.line[c]
        line[X], line[Y], line[END_X], line[END_Y] = job.xy[a, 0], job.xy[a, 1], job.xy[b, 0], job.xy[b, 1]
        dx, dy = line[END_X] - line[X], line[END_Y] - line[Y]
        line[DX], line[DY] = dx, dy
        line[SQUARE] = dx * dx + dy * dy
        steep, wide = _steepness(job, face, c, LO, dx, dy)
        other, wider = _steepness(job, face, c, HI, dx, dy)
        line[STEEPNESS] = other if wider > wide else steep


@inlined
def meet(m, face, s, name, first, xy, first_point):
    """Write where crossings are: from `first` on their places on the chords, with their numbers, unsorted.

    Coordinates are written from `first_point` on. False if two chords that cross do not seem to.
    """
    line, chords, at, n_cross = face.line, face.chords, face.slot, 0
    for c in range(m):
        hi = chords[c, HI]
        for j in range(c + 1, m):
            if chords[j, LO] > hi:
                break
            if chords[j, HI] < hi:
                continue
            cx, cy, jx, jy = line[c, DX], line[c, DY], line[j, DX], line[j, DY]
            ox, oy = line[j, X] - line[c, X], line[j, Y] - line[c, Y]
            area = cross(cx, cy, jx, jy)
            if area == 0.0:
                return False
            s_c, s_j = cross(ox, oy, jx, jy) / area, cross(ox, oy, cx, cy) / area
            if not (0.0 < s_c < 1.0 and 0.0 < s_j < 1.0):
                return False
            face.pair[n_cross, 0], face.pair[n_cross, 1], face.area[n_cross] = c, j, abs(area)
            x, y, t = line[j, X], line[j, Y], s_j
            if t > 0.5:  # from the nearer end
                x, y, t = line[j, END_X], line[j, END_Y], s_j - 1.0
            xy[first_point + n_cross, 0], xy[first_point + n_cross, 1] = x + t * jx, y + t * jy
            s[first + at[c]], name[first + at[c]] = s_c, n_cross
            s[first + at[j]], name[first + at[j]] = s_j, n_cross
            at[c] += 1
            at[j] += 1
            n_cross += 1
    for c in range(m, 0, -1):
        at[c] = at[c - 1]
    at[0] = 0
    return True


@inlined
def _extent(n, node, xy):
    """The larger side of the box around the nodes."""
    low_x, low_y = xy[node[0], 0], xy[node[0], 1]
    high_x, high_y = low_x, low_y
    for i in range(1, n):
        x, y = xy[node[i], 0], xy[node[i], 1]
        low_x, high_x, low_y, high_y = min(low_x, x), max(high_x, x), min(low_y, y), max(high_y, y)
    return max(high_x - low_x, high_y - low_y)


@inlined
def _other(face, p, c):
    """The chord that crosses chord c in p."""
    return np.int64(face.pair[p, 0]) + face.pair[p, 1] - c


@inlined
def _follows(face, c, p, q, step, near):
    """Whether crossing q surely comes after p on chord c, `step` further on."""
    j, k = _other(face, p, c), _other(face, q, c)
    a, b = min(j, k), max(j, k)
    hi = face.chords[a, HI]
    if face.chords[b, LO] < hi and hi < face.chords[b, HI]:
        a_far, b_far = step * face.area[p], step * face.area[q]
        is_far = a_far * a_far > near * near * face.line[j, SQUARE]
        return is_far and b_far * b_far > near * near * face.line[k, SQUARE]
    return face.chords[j, LO if j > c else HI] < face.chords[k, LO if k > c else HI]


@inlined
def sort_crossings(n, m, n_cross, face, s, name, first, xy):
    """Sort the crossings along each chord, and link both sides of each; False if a decision is close."""
    slot = face.slot
    near = CLOSE * _extent(n, face.node, xy) if n_cross > 2 else 0.0
    for c in range(m):
        start, stop = first + slot[c], first + slot[c + 1]
        if stop - start > MANY:
            spread(s, start, stop, name, face.room_s, face.room_name, face.bucket)
        if stop - start > 1:
            sort_along(s, start, stop, name, name)
        for k in range(np.int64(slot[c]), np.int64(slot[c + 1])):
            p = name[first + k]
            if k > slot[c]:
                before = name[first + k - 1]
                if not _follows(face, c, before, p, s[first + k] - s[first + k - 1], near):
                    return False
            j = _other(face, p, c)
            face.other[k] = j
            if c < j:
                face.where[p] = k
            else:
                face.jump[k], face.jump[face.where[p]] = face.where[p] + j, k + c
    return True


@inlined
def link_ends(n, first, m, face):
    """Write what follows the half-edges of the boundary, and chords where they end.

    The half-edges of the boundary come first; 2 e + d of piece e has the number `first` more.
    """
    follow, slot = face.follow, face.slot
    for i in range(n):
        follow[i] = i + 1
    follow[n - 1] = 0
    for c in range(m):
        lo, hi = face.chords[c, LO], face.chords[c, HI]
        one, last = first + 2 * (slot[c] + c), first + 2 * (slot[c + 1] + c)
        follow[lo - 1], follow[last] = one, hi
        follow[hi - 1], follow[one + 1] = last + 1, lo


@inlined
def link_crossing(first, c, k, face):
    """Write what follows the pieces of chord c at its k-th crossing: they turn left."""
    here, there = first + 2 * (k + c), first + 2 * face.jump[k]
    forth = face.other[k] > c
    face.follow[here] = there + 1 + forth
    face.follow[here + 3] = there + 2 - forth
