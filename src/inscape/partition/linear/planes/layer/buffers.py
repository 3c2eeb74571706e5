"""What cutting the faces of a subdivision needs and gives, and the room for it."""

from typing import Any, NamedTuple

import numpy as np

from inscape.compiled import compiled, kernel


class Job(NamedTuple):
    """A subdivision, the points where its edges are cut, and the signs of the units.

    start: where the loop of each face starts, (f + 1,); loop: its half-edges; ends: of the edges, (e, 2);
    nstart: where the cut points of each edge start, (e + 1,); n_vertices: before the cut; xy: of the
    vertices and cut points; unit, change: of each cut point, with its unit's change along the edge; h: the
    number of entries, units being entries at thresholds; above: packed signs at the vertices, (v, words);
    words: packed signs of each face, in which bits of units that cut it do not matter, (f, words), or
    (0, words) if its first vertex has them. Numbers of things are unsigned, here and in `Room`, which spares
    the compiled code a look at their sign; two of them must not be subtracted as they are.
    """

    start: Any
    loop: Any
    ends: Any
    nstart: Any
    n_vertices: Any
    xy: Any
    unit: Any
    change: Any
    h: Any
    above: Any
    words: Any


class Faces(NamedTuple):
    """Loops of half-edges, each with the face that it came from and its packed signs."""

    start: Any
    loop: Any
    parent: Any
    words: Any


class Inside(NamedTuple):
    """What is new inside the faces: edges (ends) and vertices (coordinates)."""

    ends: Any
    xy: Any


class Lines(NamedTuple):
    """Straight lines with kinks on them, in order: on line l those from start[l] to start[l + 1].

    ends: (l, 2) vertices; s: how far from the first end; unit: which unit changes its sign; change: |dz/ds|
    of that unit along the line; vertex: the vertex there, -1 if it is known from elsewhere.
    """

    ends: Any
    start: Any
    s: Any
    unit: Any
    change: Any
    vertex: Any


class Written(NamedTuple):
    """Where the results go, and how many there are (`at`): see `FACES` and what follows it."""

    faces: Any
    inside: Any
    lines: Any
    at: Any


FACES, HALF_EDGES, EDGES, VERTICES, LINES, DONE, NODES, CROSSINGS = range(8)
"""What `Written.at` counts: what is written, the old faces that are done, and the most that one needs."""


class Room(NamedTuple):
    """Room for one face at a time.

    node, cut, spot, chord: along the boundary, see `walk_boundary` and `find_chords`; half: the same, then
    half-edges 2 e + d of piece e of a chord; follow, cell: what comes after each of these, and the cell to
    its left; chords: their ends; outer: the cell to the left of each chord if none crosses another;
    line: see `arrangement.X`; slot: where the crossings of each chord start; place, bit: where a chord's
    unit is among the packed signs; first_seen: the chord of each unit; word: packed signs; pair, area,
    where: of each crossing its chords, the area that they span, its place on the first; room_s, room_name,
    bucket: to sort those of one chord; other, jump: at each place the other chord, and its piece that ends
    there; own: the chord of each piece; stack: half-edges to go on from.
    """

    node: Any
    cut: Any
    spot: Any
    chord: Any
    half: Any
    follow: Any
    cell: Any
    chords: Any
    outer: Any
    line: Any
    slot: Any
    place: Any
    bit: Any
    first_seen: Any
    word: Any
    pair: Any
    area: Any
    where: Any
    room_s: Any
    room_name: Any
    bucket: Any
    other: Any
    jump: Any
    own: Any
    stack: Any


@compiled
def room_for_face(n, n_cross, n_units, n_words):
    """Room for a face with n nodes on its boundary and some crossings."""
    m = n // 2 + 1
    n_pieces = m + 2 * n_cross
    n_half = n + 1 + 2 * n_pieces
    return Room(
        np.empty(n, np.uint32),
        np.empty(n, np.int64),
        np.empty(n, np.uint32),
        np.empty(n, np.uint32),
        np.empty(n_half, np.uint32),
        np.empty(n_half, np.uint32),
        np.empty(n_half, np.int64),
        np.empty((n, 2), np.uint32),
        np.empty(m, np.uint32),
        np.empty((m, 8)),
        np.empty(m + 1, np.uint32),
        np.empty(m, np.uint32),
        np.empty(m, np.uint64),
        np.full(n_units, -1, np.int64),
        np.empty(n_words, np.uint64),
        np.empty((n_cross, 2), np.uint32),
        np.empty(n_cross),
        np.empty(n_cross, np.uint32),
        np.empty(m),
        np.empty(m, np.int64),
        np.empty(m + 1, np.uint32),
        np.empty(2 * n_cross, np.uint32),
        np.empty(2 * n_cross, np.uint32),
        np.empty(n_pieces, np.uint32),
        np.empty(2 * n_pieces + 2, np.uint32),
    )


@compiled
def room_for_all(n_faces, n_half, n_cut, n_cross, n_words):
    """Room for the pieces of faces with n_half half-edges, n_cut cut points and n_cross crossings in all.

    A cut point is on the boundary of one or two faces, and every chord has two.
    """
    n_faces, n_edges = n_faces + n_cut + n_cross, n_cut + 2 * n_cross
    faces = Faces(
        np.zeros(n_faces + 1, np.int64),
        np.empty(n_half + 2 * n_cut + 2 * n_edges, np.int32),
        np.empty(n_faces, np.int64),
        np.empty((n_faces, n_words), np.uint64),
    )
    inside = Inside(np.empty((n_edges, 2), np.int32), np.empty((n_cross, 2)))
    lines = Lines(
        np.empty((n_cut, 2), np.int32),
        np.zeros(n_cut + 1, np.int64),
        np.empty(2 * n_cross),
        np.empty(2 * n_cross, np.int32),
        np.empty(2 * n_cross),
        np.empty(2 * n_cross, np.int64),
    )
    return Written(faces, inside, lines, np.zeros(8, np.int64))


@kernel
def move(old, new):
    """Copy what is written so far into another room."""
    n_faces, n_edges, n_lines = old.at[FACES], old.at[EDGES], old.at[LINES]
    for i in range(n_faces):
        new.faces.start[i + 1], new.faces.parent[i] = old.faces.start[i + 1], old.faces.parent[i]
        for w in range(old.faces.words.shape[1]):
            new.faces.words[i, w] = old.faces.words[i, w]
    for i in range(old.at[HALF_EDGES]):
        new.faces.loop[i] = old.faces.loop[i]
    for i in range(n_edges):
        new.inside.ends[i, 0], new.inside.ends[i, 1] = old.inside.ends[i, 0], old.inside.ends[i, 1]
    for i in range(old.at[VERTICES]):
        new.inside.xy[i, 0], new.inside.xy[i, 1] = old.inside.xy[i, 0], old.inside.xy[i, 1]
    for i in range(n_lines):
        new.lines.ends[i, 0], new.lines.ends[i, 1] = old.lines.ends[i, 0], old.lines.ends[i, 1]
        new.lines.start[i + 1] = old.lines.start[i + 1]
    for i in range(old.lines.start[n_lines]):
        new.lines.s[i], new.lines.unit[i] = old.lines.s[i], old.lines.unit[i]
        new.lines.change[i], new.lines.vertex[i] = old.lines.change[i], old.lines.vertex[i]
    for i in range(len(old.at)):
        new.at[i] = old.at[i]
