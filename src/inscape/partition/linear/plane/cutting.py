"""Cut every face of a subdivision along the chords of the units that cross it."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from inscape.partition.linear.plane.arrangement import CHORD, NAME, NEXT, TWIN, arrange, cross, start_ring
from inscape.partition.linear.plane.boundary import find_chords, walk_boundary
from inscape.partition.linear.plane.compiled import kernel, part
from inscape.partition.linear.plane.ordering import sort_along


class Job(NamedTuple):
    """A subdivision, the points where its edges are cut, and the signs of the units.

    start: where the loop of each face starts, (f + 1,); loop: its half-edges; ends: of the edges, (e, 2);
    nstart: where the cut points of each edge start, (e + 1,); n_vertices: before the cut; xy: of the
    vertices and cut points; unit,
    edge, rise: of each cut point, with its unit's growth along the edge; h: the number of entries, units
    being entries at thresholds; above: packed signs at the vertices, (v, words); words: packed signs of
    each face, in which bits of units that cut it do not matter, (f, words).
    """

    start: Any
    loop: Any
    ends: Any
    nstart: Any
    n_vertices: Any
    xy: Any
    unit: Any
    edge: Any
    rise: Any
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
    """What is new inside the faces: edges (ends, unit) and vertices (coordinates)."""

    ends: Any
    unit: Any
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


class _Written(NamedTuple):
    """Where the results go, and how many faces, half-edges, edges, vertices and lines there are (`at`)."""

    faces: Any
    inside: Any
    lines: Any
    at: Any


class _Face(NamedTuple):
    """Room for one face at a time."""

    node: Any
    half: Any
    cut: Any
    chords: Any
    first_seen: Any
    table: Any
    xy: Any
    edge_ends: Any
    pair: Any
    pair_s: Any
    cell: Any
    stack: Any
    steep: Any
    place: Any
    bit: Any
    word: Any
    slot: Any


@njit(cache=True, nogil=True)
def _room(lengths, found, n_words):
    """Arrays of the right size, given for each face its boundary's length and its chords and crossings."""
    n_chords, n_cross = found[:, 0].sum(), found[:, 1].sum()
    n_edges, n_faces = n_chords + 2 * n_cross, len(found) + n_chords + n_cross
    faces = Faces(
        np.zeros(n_faces + 1, np.int64),
        np.empty(lengths.sum() + 2 * n_edges, np.int32),
        np.empty(n_faces, np.int64),
        np.empty((n_faces, n_words), np.uint64),
    )
    inside = Inside(np.empty((n_edges, 2), np.int32), np.empty(n_edges, np.int32), np.empty((n_cross, 2)))
    lines = Lines(
        np.empty((n_chords, 2), np.int64),
        np.zeros(n_chords + 1, np.int64),
        np.empty(2 * n_cross),
        np.empty(2 * n_cross, np.int32),
        np.empty(2 * n_cross),
        np.empty(2 * n_cross, np.int64),
    )
    return _Written(faces, inside, lines, np.zeros(5, np.int64))


@njit(cache=True, nogil=True)
def _room_for_face(lengths, found, n_units, n_words):
    """Room for the largest face."""
    longest, most, most_cross = max(1, lengths.max()), found[:, 0].max() + 1, found[:, 1].max() + 1
    room = longest + 2 * (most + 2 * most_cross)
    return _Face(
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty((longest, 2), np.int64),
        np.full(n_units, -1, np.int64),
        np.empty((6, room), np.int64),
        np.empty((longest + most_cross, 2)),
        np.empty((most + 2 * most_cross, 2), np.int64),
        np.empty((most_cross, 2), np.int64),
        np.empty((most_cross, 2)),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
        np.empty(n_words, np.uint64),
        np.empty(most + 1, np.int64),
    )


@part
def _place_of(unit, h):
    """The word and the bit of a unit: entry u of h at threshold k has number k h + u."""
    k = unit // h
    u = unit - k * h
    return k * ((h + 63) // 64) + (u >> 6), np.uint64(1) << np.uint64(u & 63)


@part
def _copy_words(source, i, target, j):
    for w in range(source.shape[1]):
        target[j, w] = source[i, w]


@part
def _keep(job, f, out):
    """Write a face that no unit cuts."""
    i_face, i = out.at[0], out.at[1]
    for k in range(job.start[f], job.start[f + 1]):
        h = job.loop[k]
        out.faces.loop[i] = h + 2 * job.nstart[h >> 1]
        i += 1
    _copy_words(job.words, f, out.faces.words, i_face)
    out.faces.parent[i_face] = f
    out.faces.start[i_face + 1] = i
    out.at[0], out.at[1] = i_face + 1, i


@part
def _halve(job, f, base_edge, out):
    """Write the two parts of a face that one unit cuts: first that with the face's first vertex."""
    first, last = job.start[f], job.start[f + 1]
    one, two = -1, -1  # the half-edges with a cut point
    for i in range(first, last):
        e = job.loop[i] >> 1
        if job.nstart[e] < job.nstart[e + 1]:
            one, two = (i, two) if one < 0 else (one, i)
    i_face, i_loop, i_edge = out.at[0], out.at[1], out.at[2]
    k, other = job.nstart[job.loop[one] >> 1], job.nstart[job.loop[two] >> 1]
    out.inside.ends[i_edge, 0], out.inside.ends[i_edge, 1] = job.n_vertices + k, job.n_vertices + other
    out.inside.unit[i_edge] = job.unit[k]
    word, bit = _place_of(job.unit[k], job.h)
    v = job.ends[job.loop[first] >> 1, job.loop[first] & 1]
    for side in range(2):
        start, stop = (two, one) if side == 0 else (one, two)
        e, d = job.loop[start] >> 1, job.loop[start] & 1
        out.faces.loop[i_loop] = 2 * (e + job.nstart[e] + 1 - d) + d
        i_loop += 1
        i = start + 1 if start + 1 < last else first
        while i != stop:
            h = job.loop[i]
            out.faces.loop[i_loop] = h + 2 * job.nstart[h >> 1]
            i_loop += 1
            i = i + 1 if i + 1 < last else first
        e, d = job.loop[stop] >> 1, job.loop[stop] & 1
        out.faces.loop[i_loop] = 2 * (e + job.nstart[e] + d) + d
        out.faces.loop[i_loop + 1] = 2 * (base_edge + i_edge) + side
        i_loop += 2
        _copy_words(job.words, f, out.faces.words, i_face)
        own = (job.above[v, word] & bit) ^ (bit if side == 1 else np.uint64(0))
        out.faces.words[i_face, word] = (out.faces.words[i_face, word] & ~bit) | own
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    out.at[0], out.at[1], out.at[2] = i_face, i_loop, i_edge + 1


@part
def _steepness(job, face, c):
    """The length of a unit's gradient over that of its chord d: |g . v| = steepness |d x v|."""
    p, widest, result = job.xy, 0.0, 0.0
    a, b = face.node[face.chords[c, 0]], face.node[face.chords[c, 1]]
    dx, dy = p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]
    for end in range(2):
        k = face.cut[face.chords[c, end]]
        a, b = job.ends[job.edge[k], 0], job.ends[job.edge[k], 1]
        area = abs(cross(dx, dy, p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]))
        if area > widest:
            widest, result = area, abs(job.rise[k]) / area
    return result


@part
def _write_cells(face, n_half, first_edge, f, out):
    """Trace the cells from that of half-edge 0, changing a unit's bit where its chord is crossed."""
    table, cell, stack = face.table, face.cell, face.stack
    for h in range(n_half):
        cell[h] = -1
    stack[0], top = 0, 0
    i_face, i_loop = out.at[0], out.at[1]
    root = i_face
    while top >= 0:
        h = stack[top]
        top -= 1
        if cell[h] >= 0:
            continue
        if i_face == root:
            for w in range(len(face.word)):
                out.faces.words[i_face, w] = face.word[w]
        else:
            c = table[CHORD, h]
            _copy_words(out.faces.words, cell[table[TWIN, h]], out.faces.words, i_face)
            out.faces.words[i_face, face.place[c]] ^= face.bit[c]
        g = h
        while True:
            cell[g] = i_face
            t = table[TWIN, g]
            out.faces.loop[i_loop] = table[NAME, g] if t < 0 else table[NAME, g] + 2 * first_edge
            i_loop += 1
            if t >= 0 and cell[t] < 0:
                top += 1
                stack[top] = t
            g = table[NEXT, g]
            if g == h:
                break
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    out.at[0], out.at[1] = i_face, i_loop


@part
def _write_lines(job, face, m, n_cross, first_vertex, out):
    """Write the chords that cross others, with their crossings in order."""
    lines, slot, at, p = out.lines, face.slot, out.at, job.xy
    first_line = at[4]
    for c in range(m):
        face.steep[c] = _steepness(job, face, c)
    for c in range(m + 1):
        slot[c] = 0
    for k in range(n_cross):
        slot[face.pair[k, 0] + 1] += 1
        slot[face.pair[k, 1] + 1] += 1
    slot[0] = lines.start[first_line]
    for c in range(m):
        slot[c + 1] += slot[c]
        if slot[c + 1] > slot[c]:
            lines.ends[at[4], 0] = face.node[face.chords[c, 0]]
            lines.ends[at[4], 1] = face.node[face.chords[c, 1]]
            at[4] += 1
            lines.start[at[4]] = slot[c + 1]
    for k in range(n_cross):  # each chord's crossings are filled in from the back
        for side in range(2):
            c, j = face.pair[k, side], face.pair[k, 1 - side]
            a, b = face.node[face.chords[c, 0]], face.node[face.chords[c, 1]]
            e, f = face.node[face.chords[j, 0]], face.node[face.chords[j, 1]]
            area = abs(cross(p[f, 0] - p[e, 0], p[f, 1] - p[e, 1], p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]))
            slot[c + 1] -= 1
            i = slot[c + 1]
            lines.s[i], lines.unit[i] = face.pair_s[k, side], job.unit[face.cut[face.chords[j, 0]]]
            lines.change[i], lines.vertex[i] = face.steep[j] * area, first_vertex + k
    for line in range(first_line, at[4]):
        sort_along(lines.s, lines.start[line], lines.start[line + 1], lines.unit, lines.change, lines.vertex)


@part
def _arrange(job, f, found, base_edge, base_vertex, face, out):
    """Write the cells of a face that several units cut; False if that is left to the slower path for ties."""
    n = walk_boundary(
        job.loop[job.start[f] : job.start[f + 1]],
        job.ends,
        job.nstart,
        job.n_vertices,
        face.node,
        face.half,
        face.cut,
    )
    m = find_chords(n, face.cut, job.unit, face.first_seen, face.chords)
    for w in range(len(face.word)):
        face.word[w] = job.words[f, w]
    for c in range(m):
        word, bit = _place_of(job.unit[face.cut[face.chords[c, 0]]], job.h)
        face.place[c], face.bit[c] = word, bit
        face.word[word] = (face.word[word] & ~bit) | (job.above[face.node[0], word] & bit)
    start_ring(n, face.half, face.table)
    for i in range(n):
        face.xy[i, 0], face.xy[i, 1] = job.xy[face.node[i], 0], job.xy[face.node[i], 1]
    n_half, n_edges, n_cross = arrange(
        n, m, face.chords, face.xy, face.table, face.edge_ends, face.pair, face.pair_s, found[f, 1]
    )
    if n_cross < 0:
        return False
    at, i_edge, i_inside = out.at, out.at[2], out.at[3]
    first_vertex = base_vertex + i_inside
    _write_cells(face, n_half, base_edge + i_edge, f, out)
    for i in range(n, n_half):
        unit = job.unit[face.cut[face.chords[face.table[CHORD, i], 0]]]
        out.inside.unit[i_edge + (face.table[NAME, i] >> 1)] = unit
    for i in range(n_edges):
        for d in range(2):
            v = face.edge_ends[i, d]
            out.inside.ends[i_edge + i, d] = face.node[v] if v < n else first_vertex + v - n
    for i in range(n_cross):
        out.inside.xy[i_inside + i, 0], out.inside.xy[i_inside + i, 1] = face.xy[n + i, 0], face.xy[n + i, 1]
    at[2], at[3] = i_edge + n_edges, i_inside + n_cross
    if n_cross > 0:
        _write_lines(job, face, m, n_cross, first_vertex, out)
    return True


@kernel
def _cut_each(job, found, tied, face, out):
    base_edge, base_vertex = len(job.ends) + job.nstart[-1], job.n_vertices + job.nstart[-1]
    for f in range(len(found)):
        if tied[f]:
            continue
        if found[f, 0] == 0:
            _keep(job, f, out)
        elif found[f, 0] == 1:
            _halve(job, f, base_edge, out)
        elif not _arrange(job, f, found, base_edge, base_vertex, face, out):
            tied[f] = True


@njit(cache=True, nogil=True)
def cut_faces(job, lengths, found, tied):
    """Cut every face that is not tied along its chords.

    Args:
        job: the subdivision and its cut points.
        lengths: the number of boundary half-edges of each face after the cut, (f,).
        found: the number of chords and of crossings of each face, (f, 2).
        tied: the faces to leave out, (f,); a face that turns out to be tied is marked.

    Returns:
        `Faces`, `Inside` and `Lines`; an edge inside is numbered after the pieces of the old ones.
    """
    n_words = job.above.shape[1]
    out = _room(lengths, found, n_words)
    _cut_each(job, found, tied, _room_for_face(lengths, found, 64 * n_words, n_words), out)
    (start, loop, parent, words), (ends, unit, xy), lines, at = out
    k = lines.start[at[4]]
    return (
        Faces(start[: at[0] + 1], loop[: at[1]], parent[: at[0]], words[: at[0]]),
        Inside(ends[: at[2]], unit[: at[2]], xy[: at[3]]),
        Lines(
            lines.ends[: at[4]],
            lines.start[: at[4] + 1],
            lines.s[:k],
            lines.unit[:k],
            lines.change[:k],
            lines.vertex[:k],
        ),
    )
