"""The arrays that cutting the faces of a complex reads, writes and works in, each with its name and type.

Three words in all of these. A *crossing point* is where units cross an edge: edge e with crossing points k =
point_start[e], ..., point_start[e + 1] - 1 becomes the edges e + point_start[e], ..., e + point_start[e + 1],
and point k becomes vertex v + k, v being the number of vertices before. A *node* is a vertex or a crossing
point on the boundary of a face, numbered along it. An *intersection* is where two chords meet inside a face;
a chord with k intersections has k + 1 *sections*.

Indices are unsigned where compiled loops read them, so that these need not look for negative ones, which
count from the end; two of them must not be subtracted as they are.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled, kernel
from inscape.partition.linear.planes.layer.sign_vectors import SignVectors

Int32s = npt.NDArray[np.int32]
Indices = npt.NDArray[np.uint32]

HUGE_PAGES_FROM_BYTES = 2**22
"""From this size on numpy asks the system for huge pages, which are quicker to get."""

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
    """Those of the faces, (f, words), bits of units that cut a face being void; (0, words) if each face has
    the signs of its first vertex."""


class Faces(NamedTuple):
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
    """Which unit changes its sign there."""
    change: Floats
    """|dz/ds| of that unit along the line."""
    vertex: Ints
    """The vertex there, -1 if its values are known from elsewhere."""


class CutOutput(NamedTuple):
    """Where the results go."""

    faces: Faces
    """The new faces."""
    inside: Inside
    """The new edges and vertices inside the old faces."""
    lines: Lines
    """The chords that meet others."""
    counts: Ints
    """How much is written, and how much is needed: see `FACES` and what follows it."""


FACES, HALF_EDGES, EDGES, VERTICES, LINES, FACES_DONE, NODES_NEEDED, INTERSECTIONS_NEEDED = range(8)
"""Places in `CutOutput.counts`: what is written; the old faces that are done; the most that one needs."""


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
    first_place: Indices
    """Where the places of each chord start, one for each of its intersections, (m + 1,)."""
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
    """The place of each intersection on the first of its chords."""
    sort_s: Floats
    """To sort along a chord: where its intersections are."""
    sort_name: Ints
    """To sort along a chord: which intersections those are."""
    bucket: Indices
    """To sort along a chord: where each bucket starts."""
    other: Indices
    """At each place of a chord the chord that it meets there."""
    other_section: Indices
    """The section of that chord that ends there."""
    chord_of_section: Indices
    """The chord of each section."""
    stack: Indices
    """Local half-edges from which to go on."""


@compiled
def face_scratch(n, n_intersections, n_units, n_words):
    """Memory for a face with n nodes on its boundary and some intersections."""
    # (1) how much there may be of everything
    m = n // 2 + 1
    n_sections = m + 2 * n_intersections
    n_half_edges = n + 1 + 2 * n_sections
    # (2) along the boundary, for each local half-edge, chord, unit, intersection, place and section
    return FaceScratch(
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
        first_place=np.empty(m + 1, np.uint32),
        word=np.empty(m, np.uint32),
        bit=np.empty(m, np.uint64),
        chord_of_unit=np.full(n_units, -1, np.int64),
        signs=np.empty(n_words, np.uint64),
        pair=np.empty((n_intersections, 2), np.uint32),
        area=np.empty(n_intersections),
        first_of_pair=np.empty(n_intersections, np.uint32),
        sort_s=np.empty(m),
        sort_name=np.empty(m, np.int64),
        bucket=np.empty(m + 1, np.uint32),
        other=np.empty(2 * n_intersections, np.uint32),
        other_section=np.empty(2 * n_intersections, np.uint32),
        chord_of_section=np.empty(n_sections, np.uint32),
        stack=np.empty(2 * n_sections + 2, np.uint32),
    )


@compiled
def cut_output(n_faces, n_half_edges, n_points, n_intersections, n_words):
    """Memory for what faces with so many half-edges, crossing points and intersections in all become.

    A crossing point is on the boundary of one or two faces, and every chord has two.
    """
    n_faces, n_edges = n_faces + n_points + n_intersections, n_points + 2 * n_intersections
    faces = Faces(
        start=np.zeros(n_faces + 1, np.int64),
        loop=np.empty(n_half_edges + 2 * n_points + 2 * n_edges, np.int32),
        parent=np.empty(n_faces, np.int64),
        signs=np.empty((n_faces, n_words), np.uint64),
    )
    inside = Inside(ends=np.empty((n_edges, 2), np.int32), xy=np.empty((n_intersections, 2)))
    lines = Lines(
        ends=np.empty((n_points, 2), np.int32),
        start=np.zeros(n_points + 1, np.int64),
        s=np.empty(2 * n_intersections),
        unit=np.empty(2 * n_intersections, np.int32),
        change=np.empty(2 * n_intersections),
        vertex=np.empty(2 * n_intersections, np.int64),
    )
    return CutOutput(faces, inside, lines, np.zeros(8, np.int64))


@kernel
def copy_output(old, new):
    """Copy what is written so far into larger memory."""
    # (1) faces and their loops
    n_faces, n_edges, n_lines = old.counts[FACES], old.counts[EDGES], old.counts[LINES]
    for i in range(n_faces):
        new.faces.start[i + 1], new.faces.parent[i] = old.faces.start[i + 1], old.faces.parent[i]
        for w in range(old.faces.signs.shape[1]):
            new.faces.signs[i, w] = old.faces.signs[i, w]
    for i in range(old.counts[HALF_EDGES]):
        new.faces.loop[i] = old.faces.loop[i]
    # (2) edges and vertices inside
    for i in range(n_edges):
        new.inside.ends[i, 0], new.inside.ends[i, 1] = old.inside.ends[i, 0], old.inside.ends[i, 1]
    for i in range(old.counts[VERTICES]):
        new.inside.xy[i, 0], new.inside.xy[i, 1] = old.inside.xy[i, 0], old.inside.xy[i, 1]
    # (3) lines and their breakpoints
    for i in range(n_lines):
        new.lines.ends[i, 0], new.lines.ends[i, 1] = old.lines.ends[i, 0], old.lines.ends[i, 1]
        new.lines.start[i + 1] = old.lines.start[i + 1]
    for i in range(old.lines.start[n_lines]):
        new.lines.s[i], new.lines.unit[i] = old.lines.s[i], old.lines.unit[i]
        new.lines.change[i], new.lines.vertex[i] = old.lines.change[i], old.lines.vertex[i]
    # (4) how much there is of all that
    for i in range(len(old.counts)):
        new.counts[i] = old.counts[i]


def in_one_block(arrays: list[Any]) -> list[Any]:
    """Arrays of the same shapes and types, with nothing in them, in one block of memory if that is large."""
    sizes = [-(-a.nbytes // _CACHE_LINE) * _CACHE_LINE for a in arrays]
    if sum(sizes) < HUGE_PAGES_FROM_BYTES:
        return arrays
    block, first, views = np.empty(sum(sizes), np.uint8), 0, []
    for a, size in zip(arrays, sizes, strict=True):
        views.append(block[first : first + a.nbytes].view(a.dtype).reshape(a.shape))
        first += size
    return views
