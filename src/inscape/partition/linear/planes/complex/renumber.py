"""Numbers for what is inside a face that was cut: things near to each other get near numbers.

The pieces of a large face come in the order in which they were traced, along chords from side to side. All
that comes later goes through vertices, edges and faces in the order of their numbers, and caches hold what is
near. The pieces of small faces are near to each other anyway.
"""

from dataclasses import replace

import numpy as np

from inscape.arrays import Ints
from inscape.compiled import compiled, kernel
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.complex.kernels import reordered

_TOGETHER = 32
"""So many numbers in sequence stand for things that are near to each other."""


def nearby(cells: Cells, n_vertices: int, n_edges: int) -> tuple[Cells, Ints, Ints]:
    """A subdivision with new numbers, but for its first vertices and edges.

    Returns:
        the subdivision; the new number of each vertex; the order of the faces.
    """
    vertices = near_order(cells.xy, n_vertices, _TOGETHER)
    edges = near_order(_middles(cells.ends, cells.xy), n_edges, _TOGETHER)
    faces = near_order(cells.xy[cells.first_corners], 0, _TOGETHER)
    start, loop = reordered(cells.start, cells.loop, faces)
    name = _places(vertices)
    ends = cells.ends[edges]
    _rename(ends, name, loop, _places(edges))
    found = replace(
        cells,
        xy=cells.xy[vertices],
        ends=ends,
        born=cells.born[edges],
        start=start,
        loop=loop,
        shared=cells.shared[edges],
        fixed=cells.fixed[vertices],
    )
    return found, name, faces


@compiled
def _middles(ends, xy):
    """Twice the middle of each edge, (e, 2)."""
    out = np.empty((len(ends), 2))
    for e in range(len(ends)):
        for d in range(2):
            out[e, d] = xy[ends[e, 0], d] + xy[ends[e, 1], d]
    return out


@compiled
def _places(order):
    """Where each number is in an order."""
    place = np.empty(len(order), np.int64)
    for i in range(len(order)):
        place[order[i]] = i
    return place


@kernel
def _rename(ends, vertex, loop, edge):
    """Write new numbers of vertices and edges into the ends of edges and the half-edges of loops."""
    for e in range(len(ends)):
        ends[e, 0], ends[e, 1] = vertex[ends[e, 0]], vertex[ends[e, 1]]
    for i in range(len(loop)):
        loop[i] = 2 * edge[loop[i] >> 1] + (loop[i] & 1)


@compiled
def near_order(points, n_first, together):
    """An order of points (n, 2) in which so many in sequence are near to each other, (n,).

    The first n_first stay where they are. The others follow by the cells of a grid along Morton's curve.
    """
    n, n_bits = len(points), 0
    while together << (2 * n_bits) < 2 * n:
        n_bits += 1
    side, low, high = 1 << n_bits, np.full(2, np.inf), np.full(2, -np.inf)
    for i in range(n):
        for d in range(2):
            low[d], high[d] = min(low[d], points[i, d]), max(high[d], points[i, d])
    cell, start = np.zeros(n, np.int64), np.zeros(side * side + 1, np.int64)
    for i in range(n_first, n):
        for d in range(2):
            part = (points[i, d] - low[d]) / (high[d] - low[d]) if high[d] > low[d] else 0.0
            place = min(int(part * side), side - 1)
            for b in range(n_bits):
                cell[i] |= (place >> b & 1) << (2 * b + d)
        start[cell[i] + 1] += 1
    for c in range(side * side):
        start[c + 1] += start[c]
    order = np.empty(n, np.int64)
    for i in range(n_first):
        order[i] = i
    for i in range(n_first, n):
        order[n_first + start[cell[i]]] = i
        start[cell[i]] += 1
    return order
