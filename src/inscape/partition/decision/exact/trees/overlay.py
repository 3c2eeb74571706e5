# mypy: disallow-untyped-decorators=False
"""The planar complex of the faces that `space_partition` cut out of a polygon, and which edges are contact.

Along each chord the vertices that were made on it, from either side, are put in order; those at one place are
one. Between neighbours lies an edge, with one face on either side of the chord.
"""

from typing import Any

import numpy as np

from inscape.arrays import Bools
from inscape.compiled import compiled
from inscape.partition.decision.exact.trees.space_partition import Partition, displacement
from inscape.partition.linear.planes.complex.half_edges import BORDER, PlanarComplex


def overlaid(state: Partition, line: Any, n_sides: int) -> tuple[PlanarComplex, Bools]:
    """The complex of the faces; for each edge, whether it is longer than its ends may be displaced, (e,).

    The first `n_sides` vertices and chords are the corners and sides of the domain.
    """
    vertices, chords, faces = state.vertices, state.chords, state.faces
    # (1) vertices in the order of chords, and along each chord; those at one place are one
    order = n_sides + np.lexsort((vertices.place[n_sides:], vertices.chord[n_sides:]))
    chord, place = vertices.chord[order], vertices.place[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (chord[1:] != chord[:-1]) | (place[1:] != place[:-1])
    number = np.concatenate([np.arange(n_sides), np.empty(len(order), np.int64)])
    number[order] = n_sides + np.cumsum(is_new) - 1
    own = np.concatenate([np.arange(n_sides), order[is_new]])
    # (2) the edges of each chord, one more than there are vertices between its ends
    n_between = np.bincount(chord[is_new], minlength=len(chords.line))
    first_edge = np.concatenate([[0], np.cumsum(n_between + 1)])
    first_between = n_sides + np.concatenate([[0], np.cumsum(n_between)])
    ends, born = chord_edges(first_edge, first_between, number[chords.ends], n_sides)
    # (3) around each face, side by side
    rank = number - first_between[np.maximum(vertices.chord, 0)] + 1  # of a vertex on its chord
    start, loop = face_loops(faces.start, faces.vertex, faces.chord, chords.ends, first_edge, rank)
    planar = PlanarComplex(
        xy=vertices.xy[own],
        ends=ends,
        born=born,
        start=start,
        loop=loop,
        shared=np.zeros(len(ends), bool),
        fixed=np.arange(len(own)) < n_sides,
    )
    return planar, is_long(planar.xy, ends, own, vertices, line)


@compiled
def chord_edges(first_edge: Any, first_between: Any, chord_ends: Any, n_sides: int) -> Any:
    """The two vertices of each edge, in the direction of its chord, and where each edge was born."""
    n = first_edge[-1]
    ends, born = np.empty((n, 2), np.int32), np.zeros(n, np.int32)
    for c in range(len(chord_ends)):
        before = chord_ends[c, 0]
        for e in range(first_edge[c], first_edge[c + 1]):
            is_last = e + 1 == first_edge[c + 1]
            after = chord_ends[c, 1] if is_last else first_between[c] + e - first_edge[c]
            ends[e, 0], ends[e, 1] = before, after
            before = after
            if c < n_sides:
                born[e] = BORDER
    return ends, born


@compiled
def face_loops(start: Any, vertex: Any, chord: Any, chord_ends: Any, first_edge: Any, rank: Any) -> Any:
    """The loops of all faces: half-edge 2 e runs along the chord of edge e, 2 e + 1 against it."""
    # (1) from which edge to which each side of a face goes
    n_corners = len(vertex)
    low, high = np.empty(n_corners, np.int64), np.empty(n_corners, np.int64)
    new_start = np.zeros(len(start), np.int64)
    for f in range(len(start) - 1):
        new_start[f + 1] = new_start[f]
        for i in range(start[f], start[f + 1]):
            j = i + 1 if i + 1 < start[f + 1] else start[f]
            c = chord[i]
            low[i] = place_on(vertex[i], c, chord_ends, first_edge, rank)
            high[i] = place_on(vertex[j], c, chord_ends, first_edge, rank)
            new_start[f + 1] += abs(high[i] - low[i])
    # (2) its half-edges, one after the other
    loop, k = np.empty(new_start[-1], np.int32), 0
    for i in range(n_corners):
        e = low[i]
        while e < high[i]:
            loop[k] = 2 * e
            e, k = e + 1, k + 1
        while e > high[i]:
            loop[k] = 2 * (e - 1) + 1
            e, k = e - 1, k + 1
    return new_start, loop


@compiled
def place_on(v: int, c: int, chord_ends: Any, first_edge: Any, rank: Any) -> Any:
    """The edge of a chord that starts at one of its vertices; that behind the last one for its end."""
    if v == chord_ends[c, 0]:
        return first_edge[c]
    return first_edge[c + 1] if v == chord_ends[c, 1] else first_edge[c] + rank[v]


@compiled
def is_long(xy: Any, ends: Any, own: Any, vertices: Any, line: Any) -> Any:
    """Whether each edge is longer than its ends may be displaced along it: else it is a point of contact."""
    longer = np.ones(len(ends), np.bool_)
    for e in range(len(ends)):
        a, b = ends[e, 0], ends[e, 1]
        x, y = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
        length = np.hypot(x, y)
        if length <= vertices.error[own[a]] + vertices.error[own[b]]:
            x, y = (x / length, y / length) if length > 0.0 else (0.0, 0.0)
            moved = displacement(own[a], x, y, vertices, line) + displacement(own[b], x, y, vertices, line)
            longer[e] = length > moved
    return longer
