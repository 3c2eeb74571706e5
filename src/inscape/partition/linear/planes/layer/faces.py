"""Cut faces of a subdivision along the chords of the units that cross them, one after the other."""

import numpy as np

from inscape.compiled import inlined, kernel
from inscape.partition.linear.planes.layer.arrangement import (
    HI,
    LO,
    STEEPNESS,
    count_crossings,
    link_crossing,
    link_ends,
    meet,
    read_lines,
    sort_crossings,
)
from inscape.partition.linear.planes.layer.boundary import find_chords, walk_boundary
from inscape.partition.linear.planes.layer.buffers import (
    CROSSINGS,
    DONE,
    EDGES,
    FACES,
    HALF_EDGES,
    LINES,
    NODES,
    VERTICES,
)


@inlined
def _place_of(unit, h):
    """The word and the bit of a unit: entry u of h at threshold k has number k h + u."""
    first, u = 0, np.int64(unit)
    while u >= h:
        first, u = first + ((h + 63) >> 6), u - h
    return first + (u >> 6), np.uint64(1) << np.uint64(u & 63)


@inlined
def _copy_words(source, i, target, j):
    for w in range(source.shape[1]):
        target[j, w] = source[i, w]


@inlined
def _face_words(job, f, target, i):
    """Write the packed signs of a face."""
    if len(job.words) > 0:
        _copy_words(job.words, f, target, i)
    else:
        h = job.loop[job.start[f]]
        _copy_words(job.above, job.ends[h >> 1, h & 1], target, i)


@inlined
def _keep(job, f, out):
    """Count a face that no unit cuts in: its half-edges are written."""
    i_face, i = out.at[FACES], out.at[HALF_EDGES] + job.start[f + 1] - job.start[f]
    _face_words(job, f, out.faces.words, i_face)
    out.faces.parent[i_face] = f
    out.faces.start[i_face + 1] = i
    out.at[FACES], out.at[HALF_EDGES] = i_face + 1, i


@inlined
def _halve(job, f, one, two, base_edge, out):
    """Write the two parts of a face that one unit cuts, in half-edges `one` and `two` of `loop`.

    First comes the part with the face's first vertex.
    """
    first, last = job.start[f], job.start[f + 1]
    i_face, i_loop, i_edge = out.at[FACES], out.at[HALF_EDGES], out.at[EDGES]
    k, other = job.nstart[job.loop[one] >> 1], job.nstart[job.loop[two] >> 1]
    out.inside.ends[i_edge, 0], out.inside.ends[i_edge, 1] = job.n_vertices + k, job.n_vertices + other
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
        _face_words(job, f, out.faces.words, i_face)
        own = (job.above[v, word] & bit) ^ (bit if side == 1 else np.uint64(0))
        out.faces.words[i_face, word] = (out.faces.words[i_face, word] & ~bit) | own
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    out.at[FACES], out.at[HALF_EDGES], out.at[EDGES] = i_face, i_loop, i_edge + 1


@inlined
def _write_pieces(job, m, face, first, first_half, first_edge, first_vertex, out):
    """Write the pieces of all chords as edges, and those chords that cross others as lines."""
    lines, slot, at, i = out.lines, face.slot, out.at, out.at[EDGES]
    for c in range(m):
        before, last = face.node[face.chords[c, LO]], face.node[face.chords[c, HI]]
        if slot[c] < slot[c + 1]:
            lines.ends[at[LINES], 0], lines.ends[at[LINES], 1] = before, last
            at[LINES] += 1
            lines.start[at[LINES]] = first + slot[c + 1]
        for k in range(np.int64(slot[c]), np.int64(slot[c + 1])):
            p, j = lines.vertex[first + k], face.other[k]
            v = first_vertex + p
            lines.unit[first + k] = job.unit[face.cut[face.chords[j, LO]]]
            lines.change[first + k], lines.vertex[first + k] = face.line[j, STEEPNESS] * face.area[p], v
            out.inside.ends[i, 0], out.inside.ends[i, 1] = before, v
            before = v
            i += 1
            link_crossing(first_half, c, k, face)
        out.inside.ends[i, 0], out.inside.ends[i, 1] = before, last
        i += 1
        for e in range(slot[c] + c, slot[c + 1] + c + 1):
            face.own[e] = c
            face.half[first_half + 2 * e] = 2 * (first_edge + e)
            face.half[first_half + 2 * e + 1] = 2 * (first_edge + e) + 1


@inlined
def _write_cells(f, first_half, n_half, face, out):
    """Trace the cells from that of half-edge 0, changing a unit's bit where its chord is crossed."""
    cell, stack, words, loop = face.cell, face.stack, out.faces.words, out.faces.loop
    for g in range(n_half):
        cell[g] = -1
    stack[0], top = 0, 0
    i_face, i_loop = out.at[FACES], out.at[HALF_EDGES]
    while top >= 0:
        h = stack[top]
        top -= 1
        if cell[h] >= 0:
            continue
        if h < first_half:
            for w in range(len(face.word)):
                words[i_face, w] = face.word[w]
        else:
            c = face.own[(h - first_half) >> 1]
            _copy_words(words, cell[h ^ 1], words, i_face)
            words[i_face, face.place[c]] ^= face.bit[c]
        g = h
        while True:
            cell[g] = i_face
            loop[i_loop] = face.half[g]
            i_loop += 1
            stack[top + 1] = g ^ 1
            top += g >= first_half and cell[g ^ 1] < 0
            g = face.follow[g]
            if g == h:
                break
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    return i_face, i_loop


@inlined
def _chord_signs(job, f, m, face):
    """Write the packed signs at a face's first node, and where the unit of each chord is among them."""
    for w in range(len(face.word)):
        face.word[w] = job.above[face.node[0], w] if len(job.words) == 0 else job.words[f, w]
    for c in range(m):
        word, bit = _place_of(job.unit[face.cut[face.chords[c, LO]]], job.h)
        face.place[c], face.bit[c] = word, bit
        face.word[word] = (face.word[word] & ~bit) | (job.above[face.node[0], word] & bit)


@inlined
def _write_apart(job, f, n, m, base_edge, face, out):
    """Write the cells of a face whose chords do not cross: one left of all, then that right of each."""
    at, words, loop = out.at, out.faces.words, out.faces.loop
    i_loop, i_edge = at[HALF_EDGES], at[EDGES]
    for i in range(m + 1):
        i_face, c = at[FACES] + i, i - 1
        start = 0 if i == 0 else face.chords[c, LO]
        if i == 0:
            for w in range(len(face.word)):
                words[i_face, w] = face.word[w]
        else:
            _copy_words(words, face.outer[c], words, i_face)
            words[i_face, face.place[c]] ^= face.bit[c]
            out.inside.ends[i_edge + c, 0] = face.node[start]
            out.inside.ends[i_edge + c, 1] = face.node[face.chords[c, HI]]
        g = start
        while True:
            loop[i_loop] = face.half[g]
            i_loop += 1
            g = g + 1 if g + 1 < n else 0
            if face.cut[g] >= 0:
                c = face.chord[g]
                d = HI if g == face.chords[c, LO] else LO  # where the chord leads
                loop[i_loop] = 2 * (base_edge + i_edge + c) + 1 - d
                i_loop += 1
                g = face.chords[c, d]
                if d == HI:
                    face.outer[c] = i_face
            if g == start:
                break
        out.faces.parent[i_face] = f
        out.faces.start[i_face + 1] = i_loop
    at[FACES] += m + 1
    at[HALF_EDGES], at[EDGES] = i_loop, i_edge + m


@inlined
def _arrange(job, f, n, m, n_cross, base_edge, base_vertex, face, out):
    """Write the cells of a face whose chords cross; False if that is left to the slower path for ties."""
    at, s, name = out.at, out.lines.s, out.lines.vertex
    first, n_lines, n_pieces = out.lines.start[at[LINES]], at[LINES], m + 2 * n_cross
    first_half = n + (n & 1)  # even, so that g ^ 1 is the other half of g
    read_lines(m, job, face)
    if not meet(m, face, s, name, first, out.inside.xy, at[VERTICES]):
        return False
    if not sort_crossings(n, m, n_cross, face, s, name, first, job.xy):
        return False
    link_ends(n, first_half, m, face)
    first_edge, first_vertex = base_edge + at[EDGES], base_vertex + at[VERTICES]
    _write_pieces(job, m, face, first, first_half, first_edge, first_vertex, out)
    i_face, i_loop = _write_cells(f, first_half, first_half + 2 * n_pieces, face, out)
    if i_face != at[FACES] + 1 + m + n_cross:
        at[LINES] = n_lines
        return False
    at[FACES], at[HALF_EDGES] = i_face, i_loop
    at[EDGES] += n_pieces
    at[VERTICES] += n_cross
    return True


@inlined
def _cut_several(job, f, n, base_edge, base_vertex, tied, face, out):
    """Cut a face of n nodes along several chords, or mark it as tied; False if there is no room for that."""
    at, first, last = out.at, job.start[f], job.start[f + 1]
    if n > at[NODES]:
        at[NODES] = n
        return False
    loop = job.loop[first:last]
    walk_boundary(loop, job.ends, job.nstart, job.n_vertices, face.node, face.half, face.cut, face.spot)
    n_cut = n - len(loop)
    m = find_chords(n_cut, face.spot, face.cut, job.unit, face.first_seen, face.chords, face.chord)
    if m < 0:
        tied[f] = True
        return True
    n_cross = count_crossings(m, face.chords, face.slot)
    if n_cross > at[CROSSINGS] or at[VERTICES] + n_cross > len(out.inside.xy):
        at[CROSSINGS] = max(n_cross, at[CROSSINGS])
        return False
    _chord_signs(job, f, m, face)
    if n_cross == 0:
        _write_apart(job, f, n, m, base_edge, face, out)
    else:
        tied[f] = not _arrange(job, f, n, m, n_cross, base_edge, base_vertex, face, out)
    return True


@kernel
def cut_each(job, most, tied, face, out):
    """Cut the faces that are not done; stops if there are too many, or at one for which there is no room.

    In that case `out.at` says how much it needs.
    """
    base_edge, base_vertex = len(job.ends) + len(job.unit), job.n_vertices + len(job.unit)
    at, f = out.at, out.at[DONE]
    while f < len(tied) and at[FACES] + len(tied) - f <= most:
        n_cut, one, two = 0, -1, -1  # the first and the last half-edge with a cut point
        if not tied[f]:
            to = at[HALF_EDGES] - job.start[f]
            for i in range(job.start[f], job.start[f + 1]):
                h = job.loop[i]
                k = job.nstart[h >> 1]
                own = np.int64(job.nstart[(h >> 1) + 1]) - k
                out.faces.loop[to + i] = h + 2 * k  # if no unit cuts the face
                n_cut += own
                one = i if own > 0 and one < 0 else one
                two = i if own > 0 else two
            if n_cut == 0:
                _keep(job, f, out)
            elif n_cut == 2 and one != two:
                _halve(job, f, one, two, base_edge, out)
            else:
                n = job.start[f + 1] - job.start[f] + n_cut
                if not _cut_several(job, f, n, base_edge, base_vertex, tied, face, out):
                    break
        f += 1
    at[DONE] = f
