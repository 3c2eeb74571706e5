"""Cut the faces of a complex along the chords of the units that cross them, one face after the other.

For each face: walk its boundary; pair the crossing points of each unit to a chord; intersect the chords;
trace the new faces between them. Faces with no chord or one, which are most, take shorter paths, and faces
that are tied are marked and left out.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from inscape.compiled import inlined, kernel
from inscape.partition.linear.planes.complex.half_edges import (
    direction_of,
    edge_of,
    half_edge,
    next_around,
    origin,
    twin,
)
from inscape.partition.linear.planes.layer.arrangement import (
    HI,
    LO,
    STEEPNESS,
    count_intersections,
    intersect_chords,
    link_ends,
    link_intersection,
    read_lines,
    sort_intersections,
)
from inscape.partition.linear.planes.layer.buffers import (
    EDGES,
    FACES,
    FACES_DONE,
    HALF_EDGES,
    INTERSECTIONS_NEEDED,
    LINES,
    NODES_NEEDED,
    VERTICES,
)
from inscape.partition.linear.planes.layer.sign_vectors import word_and_bit


@inlined
def _uncut(h, k):
    """The number after the cut of a half-edge that is not crossed; k crossing points are on edges before."""
    return h + 2 * k


@inlined
def _up_to(h, k):
    """The half-edge along h that ends at crossing point k."""
    return half_edge(edge_of(h) + k + direction_of(h), direction_of(h))


@inlined
def _onward(h, k):
    """The half-edge along h that starts at crossing point k."""
    return half_edge(edge_of(h) + k + 1 - direction_of(h), direction_of(h))


@inlined
def walk_boundary(loop, ends, point_start, n_vertices, node, number, point, point_node):
    """Write a face's vertices and crossing points in order, with the half-edges after them.

    `point` is -1 at a vertex; `point_node` is where the crossing points are.
    """
    n, n_points = 0, 0
    for i in range(len(loop)):
        h = loop[i]
        e, d = edge_of(h), direction_of(h)
        first, last = np.int64(point_start[e]), np.int64(point_start[e + 1])
        node[n], point[n], number[n] = ends[e, d], -1, half_edge(e + (last if d == 1 else first), d)
        n += 1
        for j in range(last - first):
            k = last - 1 - j if d == 1 else first + j
            node[n], point[n], number[n] = n_vertices + k, k, _onward(h, k)
            point_node[n_points] = n
            n += 1
            n_points += 1


@inlined
def find_chords(n_points, point_node, point, unit, chord_of_unit, chords, chord):
    """Write the nodes at the two ends of each chord, (m, 2), in order of the first.

    `chord` becomes the chord that ends at each crossing point. `chord_of_unit` (units,) is -1 before and
    after. Returns m, or -1 if a unit does not have two crossing points.
    """
    m, is_complete = 0, True
    # (1) the first crossing point of a unit starts a chord, the second ends it
    for j in range(n_points):
        i = point_node[j]
        u = unit[point[i]]
        c = chord_of_unit[u]
        is_new = c < 0
        c = m if is_new else c
        chord_of_unit[u], chord[i] = c, c
        chords[c, 0] = i if is_new else chords[c, 0]
        chords[c, 1] = 0 if is_new else i
        m += is_new
    # (2) has each unit two of them?
    for c in range(m):
        chord_of_unit[unit[point[chords[c, 0]]]] = -1
        is_complete &= chords[c, 1] > 0
    return m if is_complete and 2 * m == n_points else -1


@inlined
def _copy_signs(source, i, target, j):
    """Copy sign vector i of one array to sign vector j of another."""
    for w in range(source.shape[1]):
        target[j, w] = source[i, w]


@inlined
def _copy_face_signs(inputs, f, target, i):
    """Write the sign vector of a face."""
    if len(inputs.face_signs) > 0:
        _copy_signs(inputs.face_signs, f, target, i)
    else:
        _copy_signs(inputs.above, origin(inputs.ends, inputs.loop[inputs.start[f]]), target, i)


@inlined
def _copy_face(inputs, f, out):
    """Count a face that no unit cuts: its half-edges are written already."""
    i_face, i = out.counts[FACES], out.counts[HALF_EDGES] + inputs.start[f + 1] - inputs.start[f]
    _copy_face_signs(inputs, f, out.faces.signs, i_face)
    out.faces.parent[i_face] = f
    out.faces.start[i_face + 1] = i
    out.counts[FACES], out.counts[HALF_EDGES] = i_face + 1, i


@inlined
def _bisect_face(inputs, f, one, two, base_edge, out):
    """Write the two subfaces of a face that one unit cuts, at indices `one` and `two` of `loop`.

    The subface with the first vertex of the face comes first.
    """
    # (1) the chord
    first, last = inputs.start[f], inputs.start[f + 1]
    i_face, i_loop, i_edge = out.counts[FACES], out.counts[HALF_EDGES], out.counts[EDGES]
    k, other = inputs.point_start[edge_of(inputs.loop[one])], inputs.point_start[edge_of(inputs.loop[two])]
    out.inside.ends[i_edge, 0], out.inside.ends[i_edge, 1] = inputs.n_vertices + k, inputs.n_vertices + other
    word, bit = word_and_bit(inputs.unit[k], inputs.h)
    v = origin(inputs.ends, inputs.loop[first])
    for side in range(2):
        # (2) from one crossing point along the boundary to the other, and back along the chord
        start, stop = (two, one) if side == 0 else (one, two)
        h = inputs.loop[start]
        out.faces.loop[i_loop] = _onward(h, inputs.point_start[edge_of(h)])
        i_loop += 1
        i = next_around(start, first, last)
        while i != stop:
            h = inputs.loop[i]
            out.faces.loop[i_loop] = _uncut(h, inputs.point_start[edge_of(h)])
            i_loop += 1
            i = next_around(i, first, last)
        h = inputs.loop[stop]
        out.faces.loop[i_loop] = _up_to(h, inputs.point_start[edge_of(h)])
        out.faces.loop[i_loop + 1] = half_edge(base_edge + i_edge, side)
        i_loop += 2
        # (3) the signs of the face, with the bit of the unit as it is at the first vertex or flipped
        _copy_face_signs(inputs, f, out.faces.signs, i_face)
        sign = (inputs.above[v, word] & bit) ^ (bit if side == 1 else np.uint64(0))
        out.faces.signs[i_face, word] = (out.faces.signs[i_face, word] & ~bit) | sign
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    out.counts[FACES], out.counts[HALF_EDGES], out.counts[EDGES] = i_face, i_loop, i_edge + 1


@inlined
def _write_sections(inputs, m, scratch, first, first_half, first_edge, first_vertex, out):
    """Write the sections of all chords as edges, and the chords that intersect others as lines."""
    lines, first_slot, counts, i = out.lines, scratch.first_slot, out.counts, out.counts[EDGES]
    for c in range(m):
        before, last = scratch.node[scratch.chords[c, LO]], scratch.node[scratch.chords[c, HI]]
        # (1) the chord as a line
        if first_slot[c] < first_slot[c + 1]:
            lines.ends[counts[LINES], 0], lines.ends[counts[LINES], 1] = before, last
            counts[LINES] += 1
            lines.start[counts[LINES]] = first + first_slot[c + 1]
        # (2) a breakpoint and an edge for each intersection, and the last edge
        for k in range(np.int64(first_slot[c]), np.int64(first_slot[c + 1])):
            p, j = lines.vertex[first + k], scratch.other[k]
            v = first_vertex + p
            lines.unit[first + k] = inputs.unit[scratch.point[scratch.chords[j, LO]]]
            lines.change[first + k] = scratch.line[j, STEEPNESS] * scratch.area[p]
            lines.vertex[first + k] = v
            out.inside.ends[i, 0], out.inside.ends[i, 1] = before, v
            before = v
            i += 1
            link_intersection(first_half, c, k, scratch)
        out.inside.ends[i, 0], out.inside.ends[i, 1] = before, last
        i += 1
        # (3) the local half-edges of the sections
        for e in range(first_slot[c] + c, first_slot[c + 1] + c + 1):
            scratch.chord_of_section[e] = c
            scratch.number[first_half + half_edge(e, 0)] = half_edge(first_edge + e, 0)
            scratch.number[first_half + half_edge(e, 1)] = half_edge(first_edge + e, 1)


@inlined
def _trace_faces(f, first_half, n_half_edges, scratch, out):
    """Trace the new faces from that of local half-edge 0; a unit's bit flips where its chord is crossed."""
    face, stack, signs, loop = scratch.face, scratch.stack, out.faces.signs, out.faces.loop
    for g in range(n_half_edges):
        face[g] = -1
    stack[0], top = 0, 0
    i_face, i_loop = out.counts[FACES], out.counts[HALF_EDGES]
    while top >= 0:
        # (1) a half-edge whose face is not traced yet
        h = stack[top]
        top -= 1
        if face[h] >= 0:
            continue
        # (2) its signs: those of the first face, or of the one across the chord with the chord's bit flipped
        if h < first_half:
            for w in range(len(scratch.signs)):
                signs[i_face, w] = scratch.signs[w]
        else:
            c = scratch.chord_of_section[edge_of(h - first_half)]
            _copy_signs(signs, face[twin(h)], signs, i_face)
            signs[i_face, scratch.word[c]] ^= scratch.bit[c]
        # (3) around the face; the faces across its chords are traced later
        g = h
        while True:
            face[g] = i_face
            loop[i_loop] = scratch.number[g]
            i_loop += 1
            stack[top + 1] = twin(g)
            top += g >= first_half and face[twin(g)] < 0
            g = scratch.next[g]
            if g == h:
                break
        out.faces.parent[i_face] = f
        i_face += 1
        out.faces.start[i_face] = i_loop
    return i_face, i_loop


@inlined
def _chord_signs(inputs, f, m, scratch):
    """Write the sign vector at a face's first node, and the word and bit of each chord's unit in it."""
    first = scratch.node[0]
    for w in range(len(scratch.signs)):
        has_face_signs = len(inputs.face_signs) > 0
        scratch.signs[w] = inputs.face_signs[f, w] if has_face_signs else inputs.above[first, w]
    for c in range(m):
        word, bit = word_and_bit(inputs.unit[scratch.point[scratch.chords[c, LO]]], inputs.h)
        scratch.word[c], scratch.bit[c] = word, bit
        scratch.signs[word] = (scratch.signs[word] & ~bit) | (inputs.above[first, word] & bit)


@inlined
def _trace_disjoint_chords(inputs, f, n, m, base_edge, scratch, out):
    """Write the new faces of a face whose chords are disjoint: that left of all, then that right of each."""
    counts, signs, loop = out.counts, out.faces.signs, out.faces.loop
    i_loop, i_edge = counts[HALF_EDGES], counts[EDGES]
    for i in range(m + 1):
        i_face, c = counts[FACES] + i, i - 1
        start = 0 if i == 0 else scratch.chords[c, LO]
        # (1) signs: those of the first face, or of the one left of the chord with the chord's bit flipped
        if i == 0:
            for w in range(len(scratch.signs)):
                signs[i_face, w] = scratch.signs[w]
        else:
            _copy_signs(signs, scratch.left_face[c], signs, i_face)
            signs[i_face, scratch.word[c]] ^= scratch.bit[c]
            out.inside.ends[i_edge + c, 0] = scratch.node[start]
            out.inside.ends[i_edge + c, 1] = scratch.node[scratch.chords[c, HI]]
        # (2) along the boundary, and along each chord that starts there to its other end
        g = start
        while True:
            loop[i_loop] = scratch.number[g]
            i_loop += 1
            g = next_around(g, 0, n)
            if scratch.point[g] >= 0:
                c = scratch.chord[g]
                end = HI if g == scratch.chords[c, LO] else LO  # where the chord leads
                loop[i_loop] = half_edge(base_edge + i_edge + c, 1 - end)
                i_loop += 1
                g = scratch.chords[c, end]
                if end == HI:
                    scratch.left_face[c] = i_face
            if g == start:
                break
        out.faces.parent[i_face] = f
        out.faces.start[i_face + 1] = i_loop
    counts[FACES] += m + 1
    counts[HALF_EDGES], counts[EDGES] = i_loop, i_edge + m


@inlined
def _trace_arrangement(inputs, f, n, m, n_intersections, base_edge, base_vertex, scratch, out):
    """Write the new faces of a face whose chords intersect; False if that is left to the path for ties."""
    counts, s, point = out.counts, out.lines.s, out.lines.vertex  # of intersections, for now
    first, n_lines, n_sections = out.lines.start[counts[LINES]], counts[LINES], m + 2 * n_intersections
    first_half = n + (n & 1)  # even, so that sections have twins as edges have
    # (1) the intersections, in order along each chord
    read_lines(m, inputs, scratch)
    if not intersect_chords(m, scratch, s, point, first, out.inside.xy, counts[VERTICES]):
        return False
    if not sort_intersections(n, m, n_intersections, scratch, s, point, first, inputs.xy):
        return False
    # (2) the sections, and the half-edge after each half-edge
    link_ends(n, first_half, m, scratch)
    first_edge, first_vertex = base_edge + counts[EDGES], base_vertex + counts[VERTICES]
    _write_sections(inputs, m, scratch, first, first_half, first_edge, first_vertex, out)
    # (3) the faces, as many as Euler's formula says
    i_face, i_loop = _trace_faces(f, first_half, first_half + 2 * n_sections, scratch, out)
    if i_face != counts[FACES] + 1 + m + n_intersections:
        counts[LINES] = n_lines
        return False
    counts[FACES], counts[HALF_EDGES] = i_face, i_loop
    counts[EDGES] += n_sections
    counts[VERTICES] += n_intersections
    return True


@inlined
def _cut_face(inputs, f, n, base_edge, base_vertex, tied, scratch, out):
    """Cut a face of n nodes along several chords, or mark it as tied; False if it needs more memory."""
    counts, first, last = out.counts, inputs.start[f], inputs.start[f + 1]
    # (1) the boundary
    if n > counts[NODES_NEEDED]:
        counts[NODES_NEEDED] = n
        return False
    loop = inputs.loop[first:last]
    walk_boundary(
        loop,
        inputs.ends,
        inputs.point_start,
        inputs.n_vertices,
        scratch.node,
        scratch.number,
        scratch.point,
        scratch.point_node,
    )
    # (2) the chords
    m = find_chords(
        n - len(loop),
        scratch.point_node,
        scratch.point,
        inputs.unit,
        scratch.chord_of_unit,
        scratch.chords,
        scratch.chord,
    )
    if m < 0:
        tied[f] = True
        return True
    # (3) how many intersections they have
    n_intersections = count_intersections(m, scratch.chords, scratch.first_slot)
    is_large = counts[VERTICES] + n_intersections > len(out.inside.xy)
    if n_intersections > counts[INTERSECTIONS_NEEDED] or is_large:
        counts[INTERSECTIONS_NEEDED] = max(n_intersections, counts[INTERSECTIONS_NEEDED])
        return False
    # (4) the new faces
    _chord_signs(inputs, f, m, scratch)
    if n_intersections == 0:
        _trace_disjoint_chords(inputs, f, n, m, base_edge, scratch, out)
    else:
        tied[f] = not _trace_arrangement(
            inputs, f, n, m, n_intersections, base_edge, base_vertex, scratch, out
        )
    return True


@kernel
def cut_each(inputs, most, tied, scratch, out):
    """Cut the faces that are not done; stops if there are too many, or at one that needs more memory.

    In the latter case `out.counts` says how much.
    """
    base_edge, base_vertex = len(inputs.ends) + len(inputs.unit), inputs.n_vertices + len(inputs.unit)
    counts, f = out.counts, out.counts[FACES_DONE]
    while f < len(tied) and counts[FACES] + len(tied) - f <= most:
        n_points = 0
        one, two = np.int64(-1), np.int64(-1)  # the first and the last half-edge with a crossing point
        if not tied[f]:
            # (1) write the face as if no unit cut it, and count crossing points
            to = counts[HALF_EDGES] - inputs.start[f]
            for i in range(inputs.start[f], inputs.start[f + 1]):
                h = inputs.loop[i]
                k = inputs.point_start[edge_of(h)]
                n_on_edge = np.int64(inputs.point_start[edge_of(h) + 1]) - k
                out.faces.loop[to + i] = _uncut(h, k)
                n_points += n_on_edge
                one = np.int64(i) if n_on_edge > 0 and one < 0 else one
                two = np.int64(i) if n_on_edge > 0 else two
            # (2) no chord, one, or several
            if n_points == 0:
                _copy_face(inputs, f, out)
            elif n_points == 2 and one != two:
                _bisect_face(inputs, f, one, two, base_edge, out)
            else:
                n = inputs.start[f + 1] - inputs.start[f] + n_points
                if not _cut_face(inputs, f, n, base_edge, base_vertex, tied, scratch, out):
                    break
        f += 1
    counts[FACES_DONE] = f
