"""One layer: cut the faces of a complex along the lines where its units change sign.

The steps: the sign vectors at the vertices; the crossings on the edges; in every face the chords between
crossings of one unit, and the faces between the chords; the edges and vertices of the new complex.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inscape.arrays import Bools, Floats, Ints, SignVectors
from inscape.compiled import kernel
from inscape.parallel import are_shared, in_stretches
from inscape.partition.linear.planes.complex.half_edges import PlanarComplex
from inscape.partition.linear.planes.complex.renumber import renumbered
from inscape.partition.linear.planes.layer.buffers import (
    INTERSECTIONS_NEEDED,
    NODES_NEEDED,
    CutFaces,
    CutInput,
    CutOutput,
    Inside,
    Lines,
    allocated_together,
    copy_output,
    cut_output,
    face_scratch,
    joined,
    most_chords,
    sizes_of,
    written,
)
from inscape.partition.linear.planes.layer.edge_crossings import Crossings, crossings
from inscape.partition.linear.planes.layer.faces import cut_each
from inscape.partition.linear.planes.layer.sign_vectors import (
    Packed,
    signs_at_vertices,
    signs_of_faces,
)
from inscape.partition.linear.planes.layer.ties import with_tied_faces
from inscape.partition.linear.planes.values.values import Values
from inscape.partition.linear.rounding import RoundingBounds

RENUMBER_FROM_FACES = 2**14
"""From this many faces on, more than the nearest caches hold, what lies near gets near numbers ..."""

RENUMBER_FROM_GROWTH = 256
"""... if there are this many times as many faces as before: those inside a small face lie near anyway."""

SHARED_FROM_FACES = 2**12
"""From this many faces on, several threads share the cutting of faces ..."""

SHARED_FROM_ITEMS = 2**16
"""... and from this many edges or crossing points on that of edges."""

NODES_AT_FIRST, INTERSECTIONS_AT_FIRST = 128, 512
"""How many a face may have in the memory that is made at first, until one has more ..."""

CHORDS_OF_ONE_FACE = 256
"""... but a single face, as before the first layer, gets memory for all that it can have if its chords are
at most this many: else that layer would be started again, twice."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A complex after one layer.

    Attributes:
        planar: the new complex; old vertices come first, then crossing points, then vertices inside faces.
        n_old: the number of old vertices.
        parent: the old face from which each new one was cut, (f,).
        signs: the sign vectors of the layer's units on each face, (f, words).
        above: those at the old vertices, (n_old, words).
        edges: the old edges as lines with breakpoints.
        chords: the chords that intersect others, as lines with breakpoints.
        is_tied: whether any face took the slower path for ties.
    """

    planar: PlanarComplex
    n_old: int
    parent: Ints
    signs: SignVectors
    above: SignVectors
    edges: Lines
    chords: Lines
    is_tied: bool


def cut(
    planar: PlanarComplex,
    values: Values,
    kinks: Floats,
    rounding: RoundingBounds,
    layer: int,
    agree: Any = None,
    most: float = np.inf,
    packed: Packed | None = None,
) -> Cut | None:
    """Cut the faces where the units of a layer change sign; None if that makes more than `most` faces.

    Args:
        planar: the complex; the values are affine on each face.
        values: of the units' entries at the vertices, (v, h).
        kinks: where the units change sign; entry u at kink k is unit k h + u.
        rounding: bounds for rounding errors of the values.
        layer: a number for the new edges.
        agree: makes crossings on shared edges the same in all chunks.
        most: the largest number of faces.
        packed: the signs of the values, if they are known.
    """
    above, zero = signs_at_vertices(values, kinks, rounding, packed)
    crossed = crossings(planar, values, kinks, above, zero, rounding)
    if agree is not None:
        crossed = agree(planar, crossed)
    face_signs, both, tied = _signs_on_faces(planar, crossed, above, zero)
    inputs = _cut_input(planar, crossed, values.h, above, face_signs)
    is_complete, faces, inside, lines = cut_faces(inputs, most, tied)
    is_tied = bool(tied.any())
    if is_complete and is_tied:
        if both is None:
            none = zero if len(zero) else np.zeros_like(above)
            both = np.asarray(signs_of_faces(planar.start, planar.corners, above, none)[1])
            face_signs = above[planar.first_corners]
        layer_values = values, kinks, zero, rounding
        faces, inside, lines = with_tied_faces(
            planar,
            *layer_values,
            crossed,
            inputs.xy,
            face_signs,
            both,
            np.flatnonzero(tied),
            (faces, inside, lines),
        )
    if not is_complete or len(faces.parent) > most:
        return None
    after = _complex_after(planar, crossed, inputs.xy, faces, inside, layer)
    n_old = len(planar.xy)
    edges = Lines(planar.ends, crossed.start, crossed.s, crossed.unit, crossed.change, n_old + crossed.point)
    result = Cut(after, n_old, faces.parent, faces.signs, above, edges, lines, is_tied)
    if after.n_faces >= max(RENUMBER_FROM_FACES, RENUMBER_FROM_GROWTH * planar.n_faces):
        return _renumbered(result, len(inputs.xy), len(after.ends) - len(inside.ends))
    return result


def _signs_on_faces(
    planar: PlanarComplex, crossed: Crossings, above: SignVectors, zero: SignVectors
) -> tuple[SignVectors, SignVectors | None, Bools]:
    """The sign vector of each face, the units with both signs on it, and whether it is tied.

    Where no unit is zero at any vertex, a face has the signs of its first one: none are given.
    """
    tied = np.zeros(planar.n_faces, bool)
    if not crossed.is_simple:
        merged = np.diff(crossed.start) > np.diff(crossed.point_start)
        tied |= np.logical_or.reduceat(merged[planar.loop_edges], planar.start[:-1])
    if not len(zero):
        return np.zeros((0, above.shape[1]), np.uint64), None, tied
    signs, both, through = signs_of_faces(planar.start, planar.corners, above, zero)
    return signs, both, tied | through


def _cut_input(
    planar: PlanarComplex, crossed: Crossings, h: int, above: SignVectors, face_signs: SignVectors
) -> CutInput:
    """What cutting the faces reads."""
    edge, s, unit, change = (
        crossed.of_points(a) for a in (crossed.edge, crossed.s, crossed.unit, crossed.change)
    )
    return CutInput(
        start=planar.start,
        loop=planar.loop.view(np.uint32),
        ends=planar.ends.view(np.uint32),
        point_start=crossed.point_start.astype(np.uint32),
        n_vertices=len(planar.xy),
        xy=_with_crossing_points(planar.xy, planar.ends, edge, s),
        unit=unit.view(np.uint32),
        change=change,
        h=h,
        above=above,
        face_signs=face_signs,
    )


def _complex_after(
    planar: PlanarComplex, crossed: Crossings, xy: Floats, faces: CutFaces, inside: Inside, layer: int
) -> PlanarComplex:
    """The complex after the cut; `xy` are its vertices without those inside old faces."""
    n_edges, n = len(planar.ends), len(planar.ends) + len(crossed.first)
    m = n + len(inside.ends)
    ends, born, shared = allocated_together(
        [np.empty((m, 2), np.int32), np.empty(m, np.int32), np.empty(m, bool)]
    )
    n_old, point_start, edge = len(planar.xy), crossed.point_start, crossed.of_points(crossed.edge)

    def write(begin: int, stop: int) -> None:
        """What a stretch of the old edges becomes, and the same fraction of the new ones."""
        i, j = int(point_start[begin]), int(point_start[stop])
        old, new = slice(begin, stop), slice(begin + i, stop + j)
        read = planar.ends[old], planar.born[old], planar.shared[old]
        points = point_start[begin : stop + 1], edge[i:j], begin, n_old + i
        _cut_edges(*read, *points, ends[new], born[new], shared[new])
        i, j = begin * len(inside.ends) // n_edges, stop * len(inside.ends) // n_edges
        ends[n + i : n + j], born[n + i : n + j], shared[n + i : n + j] = inside.ends[i:j], layer, False

    in_stretches(n_edges, SHARED_FROM_ITEMS, write)
    fixed = np.zeros(len(xy) + len(inside.xy), bool)
    fixed[: len(planar.xy)] = planar.fixed
    return PlanarComplex(
        xy=_extended(xy, inside.xy),
        ends=ends,
        born=born,
        start=faces.start,
        loop=faces.loop,
        shared=shared,
        fixed=fixed,
    )


def _renumbered(result: Cut, n_vertices: int, n_edges: int) -> Cut:
    """The same with near numbers for what lies near, except for vertices and edges that are not inside."""
    planar, number, order = renumbered(result.planar, n_vertices, n_edges)
    lines = result.chords
    ends, vertex = number[lines.ends].astype(np.int32), np.where(lines.vertex < 0, -1, number[lines.vertex])
    chords = lines._replace(ends=ends, vertex=vertex)
    return replace(
        result, planar=planar, parent=result.parent[order], signs=result.signs[order], chords=chords
    )


def _with_crossing_points(xy: Any, ends: Any, edge: Any, s: Any) -> Any:
    """The vertices, then the points at s on edges, measured from the nearer end, (v + k, 2).

    There is memory for half as many again after the latter, see `_extended`.
    """
    n = len(xy) + len(s)
    out = np.empty((n + len(s) // 2, 2))
    read = xy, ends, edge, s
    in_stretches(len(s), SHARED_FROM_ITEMS, lambda a, b: _place_crossing_points(*read, a, b, out))
    return out[:n]


def _extended(xy: Any, more: Any) -> Any:
    """The points xy, then others, (n + k, 2): in the memory of the first if it is large enough."""
    n = len(xy) + len(more)
    if n > len(xy.base):
        return np.concatenate([xy, more])
    xy.base[len(xy) : n] = more
    return xy.base[:n]


@kernel
def _place_crossing_points(xy, ends, edge, s, begin, stop, out):
    """Write crossing points begin, ..., stop - 1 after the vertices, which are copied with the first."""
    for v in range(len(xy) if begin == 0 else 0):
        out[v, 0], out[v, 1] = xy[v, 0], xy[v, 1]
    for k in range(begin, stop):
        a, b, t = ends[edge[k], 0], ends[edge[k], 1], s[k]
        if t > 0.5:
            a, b, t = b, a, 1.0 - t
        for d in range(2):
            out[len(xy) + k, d] = xy[a, d] + t * (xy[b, d] - xy[a, d])


@kernel
def _cut_edges(
    ends, born, shared, point_start, edge, first_edge, first_vertex, new_ends, new_born, new_shared
):
    """Write what a stretch of edges becomes, of which `first_edge` is the first.

    Crossing point k lies on edge[k] and is vertex first_vertex + k. Those of each edge start at
    `point_start`, which counts those of earlier stretches, too.
    """
    # (1) of the edges that an edge becomes the first begins where it did, and the last ends where it did
    for e in range(len(ends)):
        first, last = e + point_start[e] - point_start[0], e + point_start[e + 1] - point_start[0]
        new_ends[first, 0], new_ends[last, 1] = ends[e, 0], ends[e, 1]
        new_born[first], new_shared[first] = born[e], shared[e]
    # (2) at a crossing point one of them ends and the next begins
    for k in range(len(edge)):
        e = edge[k] - first_edge
        new_ends[e + k, 1], new_ends[e + k + 1, 0] = first_vertex + k, first_vertex + k
        new_born[e + k + 1], new_shared[e + k + 1] = born[e], shared[e]


def cut_faces(inputs: CutInput, most: float, tied: Bools) -> tuple[bool, CutFaces, Inside, Lines]:
    """Cut every face that is not tied along its chords.

    Args:
        inputs: the complex and its crossing points.
        most: stop if there are more faces than this.
        tied: the faces to leave out, (f,); a face that turns out to be tied is marked.

    Returns:
        is_complete, `CutFaces`, `Inside` and `Lines`; an edge inside is numbered after those of the old
        ones.
    """
    if not are_shared(len(tied), SHARED_FROM_FACES):
        is_complete, out = _cut_stretch(inputs, float(most), tied)
        return is_complete and len(out.faces.parent) <= most, out.faces, out.inside, out.lines

    def cut_stretch(begin: int, stop: int) -> tuple[int, bool, CutOutput]:
        start, face_signs = inputs.start[begin : stop + 1], inputs.face_signs[begin:stop]
        stretch = inputs._replace(start=start, face_signs=face_signs)
        return begin, *_cut_stretch(stretch, float(most), tied[begin:stop])

    first_faces, are_done, cuts = zip(*in_stretches(len(tied), SHARED_FROM_FACES, cut_stretch), strict=True)
    out = joined(cuts, first_faces, inputs)
    return all(are_done) and len(out.faces.parent) <= most, out.faces, out.inside, out.lines


def _cut_stretch(inputs: CutInput, most: float, tied: Bools) -> tuple[bool, CutOutput]:
    """Cut the faces of a stretch; returns whether all were cut, and what is written."""
    n_words, n = inputs.above.shape[1], len(tied)
    n_chords = most_chords(inputs)
    n_nodes, n_intersections, n_vertices = NODES_AT_FIRST, INTERSECTIONS_AT_FIRST, 0
    if n == 1 and len(inputs.unit) <= 2 * CHORDS_OF_ONE_FACE:
        n_nodes, m = len(inputs.loop) + len(inputs.unit), len(inputs.unit) // 2
        n_intersections = m * (m - 1) // 2
    out = cut_output(sizes_of(inputs, n_chords, max(n_chords // 2, n_intersections)))
    while True:
        # (1) more memory for the results if the next face needs it
        if n_vertices + n_intersections > len(out.inside.xy):
            more = cut_output(sizes_of(inputs, n_chords, 2 * n_vertices + n_intersections))
            copy_output(out, more)
            out = more
        # (2) cut faces, until all are done, or too many, or one needs more memory
        out.counts[NODES_NEEDED], out.counts[INTERSECTIONS_NEEDED] = n_nodes, n_intersections
        cut_each(inputs, most, tied, face_scratch(n_nodes, n_intersections, 64 * n_words, n_words), out)
        n_faces, _, _, n_vertices, _, n_done, n_nodes, n_intersections = out.counts.tolist()
        if n_done == n or n_faces + n - n_done > most:
            return n_done == n, written(out)
