"""Cut every face of a subdivision along the chords of the units that cross it."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from inscape.partition.linear.plane.arrangement import CHORD, NAME, NEXT, TWIN, arrange, cross, start_ring
from inscape.partition.linear.plane.boundary import find_chords, walk_boundary


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

    ends: (l, 2) vertices; s: how far from the first end; unit: which unit changes its sign; change: |dz/ds| of that
    unit along the line; vertex: the vertex there.
    """

    ends: Any
    start: Any
    s: Any
    unit: Any
    change: Any
    vertex: Any


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
    return faces, inside, lines


@njit(cache=True, nogil=True, inline="always")
def _place_of(unit, h, per):
    """The word and the bit of a unit: entry u of h at threshold k has number k h + u."""
    k = unit // h
    u = unit - k * h
    return k * per + (u >> 6), np.uint64(1) << np.uint64(u & 63)


@njit(cache=True, nogil=True)
def _steepness(p, line, cuts, edge_of, ends, rise):
    """The length of a unit's gradient over that of its chord: |g . v| = steepness |d x v|, d being the chord."""
    widest, result = 0.0, 0.0
    dx, dy = p[line[1], 0] - p[line[0], 0], p[line[1], 1] - p[line[0], 1]
    for k in cuts:
        a, b = ends[edge_of[k], 0], ends[edge_of[k], 1]
        area = abs(cross(dx, dy, p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]))
        if area > widest:
            widest, result = area, abs(rise[k]) / area
    return result


@njit(cache=True, nogil=True)
def _write_cells(table, n_half, first_edge, root_word, chord_bits, faces, f, at, cell, stack):
    """Trace the cells of a face from that of half-edge 0, changing a unit's bit where its chord is crossed."""
    cell[:n_half] = -1
    stack[0], top = 0, 0
    i_face, i_loop = at[0], at[1]
    root = i_face
    while top >= 0:
        h = stack[top]
        top -= 1
        if cell[h] >= 0:
            continue
        if i_face == root:
            faces.words[i_face] = root_word
        else:
            faces.words[i_face] = faces.words[cell[table[TWIN, h]]]
            word, bit = chord_bits[table[CHORD, h]]
            faces.words[i_face, word] ^= bit
        g = h
        while True:
            cell[g] = i_face
            t = table[TWIN, g]
            faces.loop[i_loop] = table[NAME, g] if t < 0 else table[NAME, g] + 2 * first_edge
            i_loop += 1
            if t >= 0 and cell[t] < 0:
                top += 1
                stack[top] = t
            g = table[NEXT, g]
            if g == h:
                break
        faces.parent[i_face] = f
        i_face += 1
        faces.start[i_face] = i_loop
    at[0], at[1] = i_face, i_loop


@njit(cache=True, nogil=True)
def _write_lines(m, chords, node, cut, unit, steep, p, pair, pair_s, n_cross, first_vertex, lines, at):
    """Write the chords that cross others, with their crossings in order."""
    for c in range(m):
        a, b = node[chords[c, 0]], node[chords[c, 1]]
        first = lines.start[at[4]]
        last = first
        for k in range(n_cross):
            if pair[k, 0] != c and pair[k, 1] != c:
                continue
            side = 0 if pair[k, 0] == c else 1
            j = pair[k, 1 - side]
            e, f = node[chords[j, 0]], node[chords[j, 1]]
            area = abs(cross(p[f, 0] - p[e, 0], p[f, 1] - p[e, 1], p[b, 0] - p[a, 0], p[b, 1] - p[a, 1]))
            s, i = pair_s[k, side], last
            while i > first and lines.s[i - 1] > s:
                lines.s[i], lines.unit[i] = lines.s[i - 1], lines.unit[i - 1]
                lines.change[i], lines.vertex[i] = lines.change[i - 1], lines.vertex[i - 1]
                i -= 1
            lines.s[i], lines.unit[i] = s, unit[cut[chords[j, 0]]]
            lines.change[i], lines.vertex[i] = steep[j] * area, first_vertex + k
            last += 1
        if last > first:
            lines.ends[at[4], 0], lines.ends[at[4], 1] = a, b
            at[4] += 1
            lines.start[at[4]] = last


@njit(cache=True, nogil=True)
def cut_faces(fstart, floop, ends, nstart, n_vertices, p, unit, edge_of, rise, h, above, words, lengths, found, tied):
    """Cut every face that is not tied along its chords.

    Args:
        fstart: where the loop of each face starts, (f + 1,).
        floop: half-edges of the loops.
        ends: of the edges, (e, 2).
        nstart: where the cut points of each edge start, (e + 1,).
        n_vertices: the number of vertices before the cut.
        p: coordinates of the vertices and of the cut points, (v, 2).
        unit: of each cut point, (m,).
        edge_of: the edge of each cut point, (m,).
        rise: the growth of its unit along that edge, (m,).
        h: the number of entries; units are entries at thresholds.
        above: packed signs at the vertices, (v, words).
        words: packed signs of each face; bits of units that cut it do not matter, (f, words).
        lengths: the number of boundary half-edges of each face, (f,).
        found: the number of chords and of crossings of each face, (f, 2).
        tied: the faces to leave out, (f,); a face that turns out to be tied is marked.

    Returns:
        `Faces`, `Inside` and `Lines`; an edge inside is numbered after the pieces of the old ones.
    """
    n_faces, n_words = len(fstart) - 1, above.shape[1]
    per = (h + 63) // 64
    base_edge, base_vertex = len(ends) + nstart[-1], n_vertices + nstart[-1]
    faces, inside, lines = _room(lengths, found, n_words)
    longest, most = max(1, lengths.max()), found[:, 0].max() + 1
    most_cross = found[:, 1].max() + 1
    room = longest + 2 * (most + 2 * most_cross)
    node, half = np.empty(longest, np.int64), np.empty(longest, np.int64)
    cut, chords = np.empty(longest, np.int64), np.empty((longest, 2), np.int64)
    first_seen = np.full(per * 64 * n_words, -1, np.int64)
    table, xy = np.empty((6, room), np.int64), np.empty((longest + most_cross, 2))
    edge_ends = np.empty((most + 2 * most_cross, 2), np.int64)
    pair, pair_s = np.empty((most_cross, 2), np.int64), np.empty((most_cross, 2))
    cell, stack = np.empty(room, np.int64), np.empty(room, np.int64)
    steep, chord_bits = np.empty(most), [(0, np.uint64(0))] * most
    root_word = np.empty(n_words, np.uint64)
    at = np.zeros(5, np.int64)  # faces, loops, edges, vertices, lines written so far
    for f in range(n_faces):
        if tied[f]:
            continue
        m = found[f, 0]
        n = walk_boundary(floop[fstart[f] : fstart[f + 1]], ends, nstart, n_vertices, node, half, cut)
        if m == 0:
            for i in range(n):
                faces.loop[at[1] + i] = half[i]
            faces.words[at[0]], faces.parent[at[0]] = words[f], f
            at[0] += 1
            at[1] += n
            faces.start[at[0]] = at[1]
            continue
        find_chords(n, cut, unit, first_seen, chords)
        root_word[:] = words[f]
        for c in range(m):
            word, bit = _place_of(unit[cut[chords[c, 0]]], h, per)
            chord_bits[c] = (word, bit)
            root_word[word] = (root_word[word] & ~bit) | (above[node[0], word] & bit)
        start_ring(n, half, table)
        for i in range(n):
            xy[i] = p[node[i]]
        n_half, n_edges, n_cross = arrange(n, m, chords, xy, table, edge_ends, pair, pair_s, found[f, 1])
        if n_cross < 0:
            tied[f] = True
            continue
        first_edge, first_vertex = base_edge + at[2], base_vertex + at[3]
        _write_cells(table, n_half, first_edge, root_word, chord_bits, faces, f, at, cell, stack)
        for i in range(n, n_half):
            edge = table[NAME, i] >> 1
            inside.unit[at[2] + edge] = unit[cut[chords[table[CHORD, i], 0]]]
        for i in range(n_edges):
            for d in range(2):
                v = edge_ends[i, d]
                inside.ends[at[2] + i, d] = node[v] if v < n else first_vertex + v - n
        for i in range(n_cross):
            inside.xy[at[3] + i] = xy[n + i]
        at[2] += n_edges
        at[3] += n_cross
        if n_cross > 0:
            for c in range(m):
                line, cuts = node[chords[c]], cut[chords[c]]
                steep[c] = _steepness(p, line, cuts, edge_of, ends, rise)
            _write_lines(m, chords, node, cut, unit, steep, p, pair, pair_s, n_cross, first_vertex, lines, at)
    faces = Faces(faces.start[: at[0] + 1], faces.loop[: at[1]], faces.parent[: at[0]], faces.words[: at[0]])
    inside = Inside(inside.ends[: at[2]], inside.unit[: at[2]], inside.xy[: at[3]])
    k = lines.start[at[4]]
    lines = Lines(
        lines.ends[: at[4]], lines.start[: at[4] + 1], lines.s[:k], lines.unit[:k], lines.change[:k], lines.vertex[:k]
    )
    return faces, inside, lines
