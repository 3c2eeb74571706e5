"""Near numbers for what lies near each other: new numbers for the inside of a face that was cut.

The faces inside a large face come in the order in which they were traced, along chords from side to side.
Later loops go through vertices, edges and faces in the order of their numbers, so that caches hold what lies
near if it has near numbers. The faces inside a small face lie near each other anyway.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import replace
from functools import partial

import numpy as np

from inscape.arrays import Ints
from inscape.compiled import compiled, kernel
from inscape.parallel import spread
from inscape.partition.linear.planes.complex.half_edges import (
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
    reorder_loops,
)

_POINTS_PER_SQUARE = 32
"""About how many points share a square of the grid whose squares are ordered along Morton's curve."""


def renumbered(planar: PlanarComplex, n_vertices: int, n_edges: int) -> tuple[PlanarComplex, Ints, Ints]:
    """A complex with new numbers, except for its first vertices and edges.

    Returns:
        the complex; the new number of each vertex; the order of the faces.
    """
    points = (
        (planar.xy, n_vertices),
        (_middles(planar.ends, planar.xy), n_edges),
        (planar.xy[planar.first_corners], 0),
    )
    vertices, edges, faces = spread(partial(near_order, *each, _POINTS_PER_SQUARE) for each in points)
    start, loop = reorder_loops(planar.start, planar.loop, faces)
    number = _inverse(vertices)
    ends = planar.ends[edges]
    _rename(ends, number, loop, _inverse(edges))
    new = replace(
        planar,
        xy=planar.xy[vertices],
        ends=ends,
        born=planar.born[edges],
        start=start,
        loop=loop,
        shared=planar.shared[edges],
        fixed=planar.fixed[vertices],
    )
    return new, number, faces


@compiled
def _middles(ends, xy):
    """Twice the middle of each edge, (e, 2)."""
    out = np.empty((len(ends), 2))
    for e in range(len(ends)):
        for d in range(2):
            out[e, d] = xy[ends[e, 0], d] + xy[ends[e, 1], d]
    return out


@compiled
def _inverse(order):
    """Where each number is in an order."""
    number = np.empty(len(order), np.int64)
    for i in range(len(order)):
        number[order[i]] = i
    return number


@kernel
def _rename(ends, vertex, loop, edge):
    """Write new numbers of vertices and edges into the ends of edges and the half-edges of loops."""
    for e in range(len(ends)):
        ends[e, 0], ends[e, 1] = vertex[ends[e, 0]], vertex[ends[e, 1]]
    for i in range(len(loop)):
        loop[i] = half_edge(edge[edge_of(loop[i])], direction_of(loop[i]))


@compiled
def near_order(points, n_first, per_square):
    """An order of points (n, 2) in which neighbours lie near each other, (n,).

    The first n_first stay where they are. The others follow by the squares of a grid along Morton's curve,
    about `per_square` in each.
    """
    # (1) a grid of 2^n_bits squares a side over the box around the points
    n, n_bits = len(points), 0
    while per_square << (2 * n_bits) < 2 * n:
        n_bits += 1
    side, low, high = 1 << n_bits, np.full(2, np.inf), np.full(2, -np.inf)
    for i in range(n):
        for d in range(2):
            low[d], high[d] = min(low[d], points[i, d]), max(high[d], points[i, d])
    # (2) the square of each point: the bits of its two grid coordinates, interleaved
    square, start = np.zeros(n, np.int64), np.zeros(side * side + 1, np.int64)
    for i in range(n_first, n):
        for d in range(2):
            fraction = (points[i, d] - low[d]) / (high[d] - low[d]) if high[d] > low[d] else 0.0
            column = min(int(fraction * side), side - 1)
            for b in range(n_bits):
                square[i] |= (column >> b & 1) << (2 * b + d)
        start[square[i] + 1] += 1
    # (3) counting sort by squares
    for c in range(side * side):
        start[c + 1] += start[c]
    order = np.empty(n, np.int64)
    for i in range(n_first):
        order[i] = i
    for i in range(n_first, n):
        order[n_first + start[square[i]]] = i
        start[square[i]] += 1
    return order
