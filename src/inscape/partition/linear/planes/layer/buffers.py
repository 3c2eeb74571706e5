"""The arrays that cutting the faces of a complex reads, writes and works in, each with its name and type.

Four words throughout. A *crossing point* is where units cross an edge: edge e with crossing points k =
point_start[e], ..., point_start[e + 1] - 1 becomes the edges e + point_start[e], ..., e + point_start[e + 1],
and point k becomes vertex v + k, v being the number of vertices before. A *node* is a vertex or a crossing
point on the boundary of a face, numbered along it. An *intersection* is where two chords meet inside a face;
a chord with k intersections has k + 1 *sections*, and k *slots*, one for what is known of each.

Indices that compiled loops read are unsigned, so that they need no check for negative ones, which would count
from the end; the difference of two of them has to be taken of signed numbers.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats, Indices, Int32s, Ints, SignVectors
from inscape.compiled import kernel
from inscape.parallel import spread
from inscape.partition.linear.planes.complex.half_edges import edge_of

HUGE_PAGES_FROM_BYTES = 2**22
"""From this size on numpy requests huge pages from the system, which come sooner."""

_CACHE_LINE = 64


class CutInput(NamedTuple):
    """A complex, the points where its edges are crossed, and the signs of the units."""

    start: Ints
    """Where the loop of each face starts, (f + 1,)."""
    loop: Indices
    """The half-edges of the loops."""
    ends: Indices
    """The vertices of each edge, (e, 2)."""
    point_start: Indices
    """Where the crossing points of each edge start, (e + 1,)."""
    n_vertices: int
    """How many vertices there are before the cut."""
    xy: Floats
    """Coordinates of the vertices, then of the crossing points."""
    unit: Indices
    """The unit that crosses at each crossing point."""
    change: Floats
    """By how much that unit changes along the edge."""
    h: int
    """How many entries the layer has: unit k h + u is entry u at kink k."""
    above: SignVectors
    """The sign vectors at the vertices, (v, words)."""
    face_signs: SignVectors
    """Those of the faces, (f, words), where bits of units that cut the face mean nothing; (0, words) if each
    face has the signs of its first vertex."""


class CutFaces(NamedTuple):
    """Faces after the cut."""

    start: Ints
    """Where the loop of each face starts, (f + 1,)."""
    loop: Int32s
    """The half-edges of the loops."""
    parent: Ints
    """The old face that each face was cut from, (f,)."""
    signs: SignVectors
    """Its sign vector, (f, words)."""


class Inside(NamedTuple):
    """What is new inside the faces."""

    ends: Int32s
    """The vertices of each new edge, (e, 2)."""
    xy: Floats
    """Coordinates of the new vertices, (v, 2)."""


class Lines(NamedTuple):
    """Straight lines between vertices, with breakpoints on them where units change sign, in order."""

    ends: Int32s
    """The vertices at both ends of each line, (l, 2)."""
    start: Ints
    """Where the breakpoints of each line start, (l + 1,)."""
    s: Floats
    """How far each breakpoint is on the way from the first end to the second, from 0 to 1."""
    unit: Int32s
    """The unit that changes sign there."""
    change: Floats
    """|dz/ds| of that unit along the line."""
    vertex: Ints
    """The vertex there, -1 if its values are known from another line."""


class CutOutput(NamedTuple):
    """Where the results go."""

    faces: CutFaces
    """The new faces."""
    inside: Inside
    """The new edges and vertices inside the old faces."""
    lines: Lines
    """The chords that meet others."""
    counts: Ints
    """How much is written, and how much is needed: see `FACES` and the constants beside it."""


FACES, HALF_EDGES, EDGES, VERTICES, LINES, FACES_DONE, NODES_NEEDED, INTERSECTIONS_NEEDED = range(8)
"""Indices into `CutOutput.counts`: how many of each are written; the old faces that are done; the most nodes
and intersections that one of them needs memory for."""


class FaceScratch(NamedTuple):
    """Memory for one old face at a time.

    Its *local half-edges* are those of the boundary, one after each node, then two for each section of a
    chord: `first + half_edge(section, direction)`.
    """

    node: Indices
    """The vertex at each node of the boundary, crossing points being vertices already."""
    point: Ints
    """The crossing point at each node, -1 at an old vertex."""
    point_node: Indices
    """The nodes that are crossing points, in order."""
    chord: Indices
    """The chord that ends at each of these nodes."""
    number: Indices
    """The half-edge of the new complex that each local half-edge is."""
    next: Indices
    """The local half-edge after each local half-edge."""
    face: Ints
    """The new face to the left of each local half-edge, -1 as long as it is not traced."""
    chords: Indices
    """The nodes at the ends of each chord, `LO` and `HI`, (m, 2)."""
    left_face: Indices
    """The new face to the left of each chord, if no two intersect."""
    line: Floats
    """The line of each chord, see `arrangement.X`, (m, 8)."""
    first_slot: Indices
    """Where the slots of each chord start, (m + 1,)."""
    word: Indices
    """The word of the sign vector in which each chord's unit is."""
    bit: SignVectors
    """Its bit there, (m,)."""
    chord_of_unit: Ints
    """The chord of each unit, -1 for none."""
    signs: SignVectors
    """The sign vector of the first new face, (words,)."""
    pair: Indices
    """The two chords of each intersection, (i, 2)."""
    area: Floats
    """The area that these two span."""
    first_of_pair: Indices
    """The slot of each intersection on the first of its chords."""
    sort_s: Floats
    """To sort along a chord: how far along it its intersections are."""
    sort_point: Ints
    """To sort along a chord: which intersections these are."""
    bucket: Indices
    """To sort along a chord: where each bucket starts."""
    other: Indices
    """At each slot the chord that intersects there."""
    other_section: Indices
    """The section of that chord that ends there."""
    chord_of_section: Indices
    """The chord of each section."""
    stack: Indices
    """Local half-edges whose faces may not be traced yet."""


def face_scratch(n: int, n_intersections: int, n_units: int, n_words: int) -> FaceScratch:
    """Memory for a face with n nodes on its boundary and some intersections."""
    m = n // 2 + 1
    n_sections = m + 2 * n_intersections
    n_half_edges = n + 1 + 2 * n_sections
    scratch = FaceScratch(
        node=np.empty(n, np.uint32),
        point=np.empty(n, np.int64),
        point_node=np.empty(n, np.uint32),
        chord=np.empty(n, np.uint32),
        number=np.empty(n_half_edges, np.uint32),
        next=np.empty(n_half_edges, np.uint32),
        face=np.empty(n_half_edges, np.int64),
        chords=np.empty((n, 2), np.uint32),
        left_face=np.empty(m, np.uint32),
        line=np.empty((m, 8)),
        first_slot=np.empty(m + 1, np.uint32),
        word=np.empty(m, np.uint32),
        bit=np.empty(m, np.uint64),
        chord_of_unit=np.empty(n_units, np.int64),
        signs=np.empty(n_words, np.uint64),
        pair=np.empty((n_intersections, 2), np.uint32),
        area=np.empty(n_intersections),
        first_of_pair=np.empty(n_intersections, np.uint32),
        sort_s=np.empty(m),
        sort_point=np.empty(m, np.int64),
        bucket=np.empty(m + 1, np.uint32),
        other=np.empty(2 * n_intersections, np.uint32),
        other_section=np.empty(2 * n_intersections, np.uint32),
        chord_of_section=np.empty(n_sections, np.uint32),
        stack=np.empty(2 * n_sections + 2, np.uint32),
    )
    scratch.chord_of_unit.fill(-1)
    return scratch


class Sizes(NamedTuple):
    """How much the memory for results must hold: how many of each, and the words of a sign vector."""

    faces: int
    half_edges: int
    edges: int
    vertices: int
    lines: int
    breakpoints: int
    words: int


def most_chords(inputs: CutInput) -> int:
    """An upper bound for the number of chords in the faces.

    Every chord has two crossing points, and each of these is on the boundary of one or two faces.
    """
    if int(inputs.start[-1] - inputs.start[0]) == len(inputs.loop):
        return len(inputs.unit)
    return min(len(inputs.unit), int(n_points_on(inputs.loop, inputs.start, inputs.point_start)) // 2)


def sizes_of(inputs: CutInput, n_chords: int, n_intersections: int) -> Sizes:
    """The largest sizes that results can have, given the numbers of chords and of their intersections."""
    n_edges = n_chords + 2 * n_intersections
    return Sizes(
        faces=len(inputs.start) - 1 + n_chords + n_intersections,
        half_edges=int(inputs.start[-1] - inputs.start[0]) + 2 * n_chords + 2 * n_edges,
        edges=n_edges,
        vertices=n_intersections,
        lines=n_chords,
        breakpoints=2 * n_intersections,
        words=inputs.above.shape[1],
    )


@kernel
def n_points_on(loop, start, point_start):
    """How many crossing points are on the boundaries of faces; those between two faces count twice."""
    n = np.int64(0)
    for i in range(start[0], start[len(start) - 1]):
        e = edge_of(loop[i])
        n += np.int64(point_start[e + 1]) - np.int64(point_start[e])
    return n


def cut_output(sizes: Sizes) -> CutOutput:
    """Memory for results."""
    start, loop, parent, signs, ends, xy, line_ends, line_start, s, unit, change, vertex = allocated_together(
        [
            np.empty(sizes.faces + 1, np.int64),
            np.empty(sizes.half_edges, np.int32),
            np.empty(sizes.faces, np.int64),
            np.empty((sizes.faces, sizes.words), np.uint64),
            np.empty((sizes.edges, 2), np.int32),
            np.empty((sizes.vertices, 2)),
            np.empty((sizes.lines, 2), np.int32),
            np.empty(sizes.lines + 1, np.int64),
            np.empty(sizes.breakpoints),
            np.empty(sizes.breakpoints, np.int32),
            np.empty(sizes.breakpoints),
            np.empty(sizes.breakpoints, np.int64),
        ]
    )
    start[0], line_start[0] = 0, 0
    lines = Lines(line_ends, line_start, s, unit, change, vertex)
    return CutOutput(CutFaces(start, loop, parent, signs), Inside(ends, xy), lines, np.zeros(8, np.int64))


def written(out: CutOutput) -> CutOutput:
    """The results that are written so far."""
    (start, loop, parent, signs), (ends, xy), lines, counts = out
    n_faces, n_half_edges, n_edges, n_vertices, n_lines = counts[: LINES + 1].tolist()
    k = int(lines.start[n_lines])
    return CutOutput(
        CutFaces(start[: n_faces + 1], loop[:n_half_edges], parent[:n_faces], signs[:n_faces]),
        Inside(ends[:n_edges], xy[:n_vertices]),
        Lines(
            lines.ends[:n_lines],
            lines.start[: n_lines + 1],
            lines.s[:k],
            lines.unit[:k],
            lines.change[:k],
            lines.vertex[:k],
        ),
        counts,
    )


def copy_output(old: CutOutput, new: CutOutput) -> None:
    """Copy the results that are written so far into larger memory."""
    for kind in range(3):
        for source, target in zip(written(old)[kind], new[kind], strict=True):
            target[: len(source)] = source
    new.counts[:] = old.counts


def joined(stretches: Sequence[CutOutput], first_faces: Sequence[int], inputs: CutInput) -> CutOutput:
    """The results of stretches of faces, each counted from 0, as if all faces had been cut at once.

    Args:
        stretches: what is written of each stretch, in order.
        first_faces: the old face with which each begins.
        inputs: of all faces.
    """
    counts = np.array([[*p.counts[: LINES + 1], len(p.lines.s)] for p in stretches])
    n_faces, n_half_edges, n_edges, n_vertices, n_lines, n_breakpoints = counts.sum(axis=0).tolist()
    words = inputs.above.shape[1]
    out = cut_output(Sizes(n_faces, n_half_edges, n_edges, n_vertices, n_lines, n_breakpoints, words))
    before = np.cumsum(counts, axis=0) - counts
    numbers = np.column_stack([before, first_faces])
    base = np.array(
        [len(inputs.ends) + len(inputs.unit), inputs.n_vertices + len(inputs.unit)]
    )  # the first edge and the first vertex inside a face
    spread(
        partial(append, *stretch[:3], base, n_before, *out[:3])
        for stretch, n_before in zip(stretches, numbers, strict=True)
    )
    out.counts[: LINES + 1] = counts.sum(axis=0)[: LINES + 1]
    return out


@kernel
def append(faces, inside, lines, base, before, all_faces, all_inside, all_lines):
    """Write the results of a stretch after those of the stretches before it.

    `before` is how many these have: faces, half-edges, edges, vertices, lines, breakpoints on those, and old
    faces.
    """
    face, half, edge, vertex, line, on_line, parent = before
    # (1) faces; edges inside them are numbered from base[0] on
    for i in range(len(faces.parent)):
        all_faces.parent[face + i] = faces.parent[i] + parent
        all_faces.start[face + i + 1] = faces.start[i + 1] + half
        for w in range(faces.signs.shape[1]):
            all_faces.signs[face + i, w] = faces.signs[i, w]
    for i in range(len(faces.loop)):
        h = faces.loop[i]
        all_faces.loop[half + i] = h + (2 * edge if edge_of(h) >= base[0] else 0)
    # (2) edges and vertices inside, the latter numbered from base[1] on
    for i in range(len(inside.ends)):
        for d in range(2):
            v = inside.ends[i, d]
            all_inside.ends[edge + i, d] = v + (vertex if v >= base[1] else 0)
    for i in range(len(inside.xy)):
        all_inside.xy[vertex + i, 0], all_inside.xy[vertex + i, 1] = inside.xy[i, 0], inside.xy[i, 1]
    # (3) lines, which end on the boundary
    for i in range(len(lines.ends)):
        all_lines.ends[line + i, 0], all_lines.ends[line + i, 1] = lines.ends[i, 0], lines.ends[i, 1]
        all_lines.start[line + i + 1] = lines.start[i + 1] + on_line
    for i in range(len(lines.s)):
        all_lines.s[on_line + i], all_lines.unit[on_line + i] = lines.s[i], lines.unit[i]
        all_lines.change[on_line + i], all_lines.vertex[on_line + i] = (
            lines.change[i],
            lines.vertex[i] + vertex,
        )


def allocated_together(arrays: list[Any]) -> list[Any]:
    """Empty arrays of the same shapes and types, side by side in one allocation if that is large."""
    sizes = [-(-a.nbytes // _CACHE_LINE) * _CACHE_LINE for a in arrays]
    if sum(sizes) < HUGE_PAGES_FROM_BYTES:
        return arrays
    memory, first, views = np.empty(sum(sizes), np.uint8), 0, []
    for a, size in zip(arrays, sizes, strict=True):
        views.append(memory[first : first + a.nbytes].view(a.dtype).reshape(a.shape))
        first += size
    return views
