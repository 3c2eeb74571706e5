"""The chords of one face and the faces between them: an arrangement in general position, no three in a point.

Nodes are numbered along the face's boundary. A chord runs from its first end lo to its second hi, and the
nodes between them lie to its right. Chords are in order of lo, so that c < j intersect exactly if their ends
interleave, lo_j < hi_c < hi_j; then j passes from the right of c to its left, and c from the left of j to its
right. A chord with k intersections has k + 1 sections; where the boundary of a new face comes to an
intersection it turns left.

So the order of the nodes decides everything except the order of intersections along a chord. Floats decide
that, and matter only where two chords that intersect a third intersect each other, too; if such a decision is
close, the face is left to the slower path for ties.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from inscape.compiled import inlined
from inscape.partition.linear.planes.complex.half_edges import direction_of, edge_of, half_edge, twin
from inscape.partition.linear.planes.layer.edge_crossings import sort_along

ON_CHORD_WITHIN = 1e-9
"""A node this near to a chord, relative to the face's extent, may lie on it."""

BUCKET_SORT_ABOVE = 16
"""Chords with more intersections than this are put roughly in order by buckets first."""

LO, HI = range(2)
X, Y, DX, DY, END_X, END_Y, SQUARE, STEEPNESS = range(8)
"""Columns of a chord's line: first end, vector to the second, second end, squared length, `_steepness`."""


@inlined
def cross(ax, ay, bx, by):
    """The area spanned by two vectors."""
    return ax * by - ay * bx


@inlined
def count_intersections(m, chords, first_slot):
    """Write where the slots of each of m chords start, (m + 1,); returns the number of intersections."""
    for c in range(m + 1):
        first_slot[c] = 0
    n = 0
    for c in range(m):
        hi = chords[c, HI]
        for j in range(c + 1, m):
            if chords[j, LO] > hi:
                break
            interleave = chords[j, HI] > hi
            first_slot[c + 1] += interleave
            first_slot[j + 1] += interleave
            n += interleave
    for c in range(m):
        first_slot[c + 1] += first_slot[c]
    return n


@inlined
def _steepness(inputs, scratch, c, end, dx, dy):
    """The length of a unit's gradient over that of its chord d, from one end: |g . v| = steepness |d x v|.

    Returns also the area that chord and edge span there.
    """
    k, h = scratch.point[scratch.chords[c, end]], scratch.number[scratch.chords[c, end]]
    e = edge_of(h) - k - 1 + direction_of(h)
    a, b = inputs.ends[e, 0], inputs.ends[e, 1]
    area = abs(cross(dx, dy, inputs.xy[b, 0] - inputs.xy[a, 0], inputs.xy[b, 1] - inputs.xy[a, 1]))
    return (inputs.change[k] / area if area > 0.0 else 0.0), area


@inlined
def read_lines(m, inputs, scratch):
    """Write the line of each chord that intersects others, with its unit's steepness from the wider end."""
    for c in range(m):
        if scratch.first_slot[c] == scratch.first_slot[c + 1]:
            continue
        a, b = scratch.node[scratch.chords[c, LO]], scratch.node[scratch.chords[c, HI]]
        line = scratch.line[c]
        line[X], line[Y] = inputs.xy[a, 0], inputs.xy[a, 1]
        line[END_X], line[END_Y] = inputs.xy[b, 0], inputs.xy[b, 1]
        dx, dy = line[END_X] - line[X], line[END_Y] - line[Y]
        line[DX], line[DY] = dx, dy
        line[SQUARE] = dx * dx + dy * dy
        steep, wide = _steepness(inputs, scratch, c, LO, dx, dy)
        other, wider = _steepness(inputs, scratch, c, HI, dx, dy)
        line[STEEPNESS] = other if wider > wide else steep


@inlined
def intersect_chords(m, scratch, s, point, first, xy, first_point):
    """Write, from `first` on, how far along its chords each intersection is, and its number; unsorted.

    Coordinates are written from `first_point` on. False if two chords whose ends interleave do not seem to
    intersect.
    """
    line, chords, at, n = scratch.line, scratch.chords, scratch.first_slot, 0
    for c in range(m):
        hi = chords[c, HI]
        for j in range(c + 1, m):
            # (1) pairs of chords whose ends interleave
            if chords[j, LO] > hi:
                break
            if chords[j, HI] < hi:
                continue
            # (2) how far along each they intersect, from 0 to 1
            cx, cy, jx, jy = line[c, DX], line[c, DY], line[j, DX], line[j, DY]
            ox, oy = line[j, X] - line[c, X], line[j, Y] - line[c, Y]
            area = cross(cx, cy, jx, jy)
            if area == 0.0:
                return False
            s_c, s_j = cross(ox, oy, jx, jy) / area, cross(ox, oy, cx, cy) / area
            if not (0.0 < s_c < 1.0 and 0.0 < s_j < 1.0):
                return False
            # (3) the intersection, from the nearer end of j
            scratch.pair[n, 0], scratch.pair[n, 1], scratch.area[n] = c, j, abs(area)
            x, y, t = line[j, X], line[j, Y], s_j
            if t > 0.5:
                x, y, t = line[j, END_X], line[j, END_Y], s_j - 1.0
            xy[first_point + n, 0], xy[first_point + n, 1] = x + t * jx, y + t * jy
            # (4) among the slots of both chords; `at` is where the next of each goes
            s[first + at[c]], point[first + at[c]] = s_c, n
            s[first + at[j]], point[first + at[j]] = s_j, n
            at[c] += 1
            at[j] += 1
            n += 1
    # (5) every start has become that of the next chord: shift them back
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
def _other_chord(scratch, p, c):
    """The chord that intersects chord c at intersection p."""
    return np.int64(scratch.pair[p, 0]) + scratch.pair[p, 1] - c


@inlined
def _is_after(scratch, c, p, q, step, near):
    """Whether intersection q surely comes after p on chord c, `step` further on."""
    j, k = _other_chord(scratch, p, c), _other_chord(scratch, q, c)
    a, b = min(j, k), max(j, k)
    hi = scratch.chords[a, HI]
    if scratch.chords[b, LO] < hi and hi < scratch.chords[b, HI]:
        a_far, b_far = step * scratch.area[p], step * scratch.area[q]
        is_far = a_far * a_far > near * near * scratch.line[j, SQUARE]
        return is_far and b_far * b_far > near * near * scratch.line[k, SQUARE]
    return scratch.chords[j, LO if j > c else HI] < scratch.chords[k, LO if k > c else HI]


@inlined
def _bucket_sort(s, first, last, a, sort_s, sort_a, bucket):
    """Put s[first:last], numbers between 0 and 1, roughly in order, and the same range of `a` with it.

    Each number goes to the bucket that would be its own if they were evenly spread.
    """
    n = last - first
    # (1) how many numbers each bucket gets, and so where it starts
    for i in range(n + 1):
        bucket[i] = 0
    for k in range(first, last):
        sort_s[k - first], sort_a[k - first] = s[k], a[k]
        bucket[min(int(s[k] * n), n - 1) + 1] += 1
    for i in range(n):
        bucket[i + 1] += bucket[i]
    # (2) each goes to the next index of its bucket
    for i in range(n):
        b = min(int(sort_s[i] * n), n - 1)
        k = first + bucket[b]
        s[k], a[k] = sort_s[i], sort_a[i]
        bucket[b] += 1


@inlined
def sort_intersections(n, m, n_intersections, scratch, s, point, first, xy):
    """Sort the intersections along each chord, and link both slots of each; False if a decision is close."""
    first_slot = scratch.first_slot
    near = ON_CHORD_WITHIN * _extent(n, scratch.node, xy) if n_intersections > 2 else 0.0
    for c in range(m):
        # (1) sort them along the chord
        start, stop = first + first_slot[c], first + first_slot[c + 1]
        if stop - start > BUCKET_SORT_ABOVE:
            _bucket_sort(s, start, stop, point, scratch.sort_s, scratch.sort_point, scratch.bucket)
        if stop - start > 1:
            sort_along(s, start, stop, point, point)
        for k in range(np.int64(first_slot[c]), np.int64(first_slot[c + 1])):
            # (2) is the order certain?
            p = point[first + k]
            if k > first_slot[c]:
                before = point[first + k - 1]
                if not _is_after(scratch, c, before, p, s[first + k] - s[first + k - 1], near):
                    return False
            # (3) the slot on the other chord is known once both are sorted
            j = _other_chord(scratch, p, c)
            scratch.other[k] = j
            if c < j:
                scratch.first_of_pair[p] = k
            else:
                slot = scratch.first_of_pair[p]
                scratch.other_section[k], scratch.other_section[slot] = slot + j, k + c
    return True


@inlined
def link_ends(n, first, m, scratch):
    """Write the next local half-edge of those on the boundary, and of sections at the ends of their chord.

    The half-edges of the boundary come first; those of sections have their numbers from `first` on.
    """
    following, first_slot = scratch.next, scratch.first_slot
    for i in range(n):
        following[i] = i + 1
    following[n - 1] = 0
    for c in range(m):
        lo, hi = scratch.chords[c, LO], scratch.chords[c, HI]
        forward = first + half_edge(first_slot[c] + c, 0)  # along the first section
        last = first + half_edge(first_slot[c + 1] + c, 0)  # along the last one
        following[lo - 1], following[last] = forward, hi
        following[hi - 1], following[twin(forward)] = twin(last), lo


@inlined
def link_intersection(first, c, k, scratch):
    """Write the next half-edges of the two sections of chord c at its slot k: they turn left.

    `along` is the half-edge up to the intersection, `across` that of the other chord; the section after it
    has the next two half-edges, so that along + 3 comes back to the intersection.
    """
    along, across = first + half_edge(k + c, 0), first + half_edge(scratch.other_section[k], 0)
    from_left = scratch.other[k] > c
    scratch.next[along] = across + 1 + from_left
    scratch.next[along + 3] = across + 2 - from_left
