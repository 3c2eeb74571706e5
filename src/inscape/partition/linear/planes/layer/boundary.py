"""The boundary of a face after its edges were cut, and the chords that join its cut points.

A half-edge is numbered 2 e + d: edge e from its first end to its second if d = 0, back if d = 1. A face
lies to the left of its half-edges. Edge e with cut points k = nstart[e], ..., nstart[e + 1] - 1 becomes the
edges e + nstart[e], ..., e + nstart[e + 1]; cut point k becomes vertex v + k, v being the number of
vertices before.
"""

import numpy as np

from inscape.compiled import inlined


@inlined
def walk_boundary(half_edges, ends, nstart, n_vertices, node, half, cut, spot):
    """Write a face's vertices and cut points in order, with the half-edges after them.

    `cut` is -1 at a vertex; `spot` is where the cut points are.
    """
    n, n_cut = 0, 0
    for i in range(len(half_edges)):
        e, d = half_edges[i] >> 1, half_edges[i] & 1
        first, last = np.int64(nstart[e]), np.int64(nstart[e + 1])
        node[n], cut[n], half[n] = ends[e, d], -1, 2 * (e + (last if d == 1 else first)) + d
        n += 1
        for j in range(last - first):
            k = last - 1 - j if d == 1 else first + j
            node[n], cut[n], half[n] = n_vertices + k, k, 2 * (e + k + 1 - d) + d
            spot[n_cut] = n
            n += 1
            n_cut += 1


@inlined
def find_chords(n_cut, spot, cut, unit, first_seen, chords, chord):
    """Write where the two ends of each chord are along the boundary, (m, 2), in order of the first.

    `chord` becomes the chord that ends at each cut point. `first_seen` (units,) is -1 before and after.
    Returns m, or -1 if a unit has not two cut points.
    """
    m, is_complete = 0, True
    for j in range(n_cut):
        i = spot[j]
        u = unit[cut[i]]
        c = first_seen[u]
        is_new = c < 0
        c = m if is_new else c
        first_seen[u], chord[i] = c, c
        chords[c, 0] = i if is_new else chords[c, 0]
        chords[c, 1] = 0 if is_new else i
        m += is_new
    for c in range(m):
        first_seen[unit[cut[chords[c, 0]]]] = -1
        is_complete &= chords[c, 1] > 0
    return m if is_complete and 2 * m == n_cut else -1
