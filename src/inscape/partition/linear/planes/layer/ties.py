"""Cut faces where lines meet in one point, run through a vertex or coincide: signs with three values.

A unit is positive, negative or zero at each node of a face; zero means within the rounding error of float64.
"""

import numpy as np

from inscape.compiled import compiled
from inscape.partition.linear.planes.layer.boundary import walk_boundary
from inscape.partition.linear.planes.layer.division import changes, divide


@compiled
def tied_pairs(faces, fstart, floop, ends, cutting, h):
    """For each tied face the units that cut it, and every pair of one of its vertices with one of them.

    Args:
        faces: numbers of the tied faces, (t,).
        fstart: where the loop of each face starts.
        floop: half-edges of the loops.
        ends: of the edges.
        cutting: packed bits of the units with both signs on each tied face, (t, words).
        h: the number of entries; units are entries at thresholds.

    Returns:
        start (t + 1,) and units of each face; vertex and unit of each pair, units first.
    """
    per = (h + 63) // 64
    start = np.zeros(len(faces) + 1, np.int64)
    n_pairs = 0
    for t in range(len(faces)):
        n = 0
        for w in range(cutting.shape[1]):
            for bit in range(64):
                n += (cutting[t, w] >> np.uint64(bit)) & np.uint64(1) != 0
        start[t + 1] = start[t] + n
        n_pairs += n * (fstart[faces[t] + 1] - fstart[faces[t]])
    units = np.empty(start[-1], np.int64)
    vertex, unit = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    i, j = 0, 0
    for t in range(len(faces)):
        for w in range(cutting.shape[1]):
            for bit in range(64):
                if (cutting[t, w] >> np.uint64(bit)) & np.uint64(1) != 0:
                    units[i] = w // per * h + (w % per) * 64 + bit
                    i += 1
        for g in range(fstart[faces[t]], fstart[faces[t] + 1]):
            for k in range(start[t], start[t + 1]):
                vertex[j], unit[j] = ends[floop[g] >> 1, floop[g] & 1], units[k]
                j += 1
    return start, units, vertex, unit


@compiled
def _is_zero(zero, v, u, h):
    per = (h + 63) // 64
    k = u // h
    e = u - k * h
    return len(zero) > 0 and (zero[v, k * per + (e >> 6)] >> np.uint64(e & 63)) & np.uint64(1) != 0


@compiled
def _fill_vertices(half_edges, ends, units, h, values_of, errors_of, zero, values, errors, signs):
    """Values, errors and signs of the units at a face's vertices, in the order of its half-edges."""
    for i in range(len(half_edges)):
        v = ends[half_edges[i] >> 1, half_edges[i] & 1]
        for j in range(len(units)):
            u = units[j]
            value = values_of[i * len(units) + j]
            is_zero = _is_zero(zero, v, u, h)
            values[i, j] = 0.0 if is_zero else value
            errors[i, j] = errors_of[i * len(units) + j]
            signs[i, j] = 0 if is_zero else (1 if value > 0.0 else -1)


@compiled
def _fill_cut(k, s, a, b, units, cunit, cnode, first, last, corner, values, errors, signs, i):
    """The same at cut point k of an edge between corners a and b (rows of `corner`), written to row i."""
    cv, ce, cs = corner
    for j in range(len(units)):
        if s <= 0.5:
            values[i, j] = cv[a, j] + s * (cv[b, j] - cv[a, j])
        else:
            values[i, j] = cv[b, j] + (1.0 - s) * (cv[a, j] - cv[b, j])
        errors[i, j] = ce[a, j] + s * (ce[b, j] - ce[a, j])
        sign = cs[a, j] if cs[a, j] != 0 else cs[b, j]
        if cs[a, j] * cs[b, j] < 0:
            for c in range(first, last):
                if cunit[c] == units[j]:
                    sign = 0 if cnode[c] == k else (cs[a, j] if k < cnode[c] else cs[b, j])
        signs[i, j] = sign
        if sign == 0:
            values[i, j] = 0.0
        elif values[i, j] * sign <= 0.0:
            values[i, j] = sign * 1e-300


@compiled
def _start(
    half_edges, ends, nstart, node_s, cstart, cunit, cnode, units, h, values_of, errors_of, zero, n, xy
):
    """Values, errors and signs of the units at all nodes around a face."""
    n_corners, m = len(half_edges), len(units)
    corner = np.empty((n_corners, m)), np.empty((n_corners, m)), np.empty((n_corners, m), np.int8)
    _fill_vertices(half_edges, ends, units, h, values_of, errors_of, zero, *corner)
    values, errors, signs = np.empty((n, m)), np.empty((n, m)), np.empty((n, m), np.int8)
    row = 0
    for i in range(n_corners):
        values[row], errors[row], signs[row] = corner[0][i], corner[1][i], corner[2][i]
        row += 1
        e, d = half_edges[i] >> 1, half_edges[i] & 1
        a, b = (i, (i + 1) % n_corners) if d == 0 else ((i + 1) % n_corners, i)
        for step in range(nstart[e + 1] - nstart[e]):
            k = nstart[e] + step if d == 0 else nstart[e + 1] - 1 - step
            first, last = cstart[e], cstart[e + 1]
            _fill_cut(
                k, node_s[k], a, b, units, cunit, cnode, first, last, corner, values, errors, signs, row
            )
            row += 1
    return divide(n, values, errors, signs, xy)


@compiled
def _loops(cells, n, half):
    """The cells as loops of half-edges: the subdivision's on the boundary, -1 - (2 l + d) for own edge l."""
    sizes, total = np.empty(len(cells), np.int64), 0
    for c in range(len(cells)):
        sizes[c] = len(cells[c])
        total += sizes[c]
    loop, ends = np.empty(total, np.int64), np.empty((total, 2), np.int64)
    known = {(np.int64(-1), np.int64(-1)): np.int64(0)}
    i, n_edges = 0, 0
    for cell in cells:
        for at in range(len(cell)):
            p, q = cell[at], cell[(at + 1) % len(cell)]
            if p < n and q < n and q == (p + 1) % n:
                loop[i] = half[p]
            elif (q, p) in known:
                loop[i] = -2 - 2 * known[(q, p)]
            else:
                known[(p, q)] = np.int64(n_edges)
                ends[n_edges, 0], ends[n_edges, 1] = p, q
                loop[i] = -1 - 2 * n_edges
                n_edges += 1
            i += 1
    return sizes, loop, ends[:n_edges]


@compiled
def _cell_words(cells, signs, units, h, word):
    """The packed signs of each cell: those of its face, with the units that cut the face as they are here."""
    per = (h + 63) // 64
    words = np.empty((len(cells), len(word)), np.uint64)
    for c in range(len(cells)):
        words[c] = word
        for k in range(len(units)):
            place = units[k] // h * per + ((units[k] % h) >> 6)
            bit = np.uint64(1) << np.uint64((units[k] % h) & 63)
            words[c, place] &= ~bit
            for v in cells[c]:
                if signs[v, k] > 0:
                    words[c, place] |= bit
    return words


@compiled
def _lines(n, values, signs, units, xy):
    """Each unit's chord, with the nodes inside where other units cross it; see `pieces.Lines`.

    A chord starts at its end nearer to (0, 0), around which positions may be exact to a part of themselves.
    """
    m, n_nodes = len(units), len(values)
    ends, start = np.empty((m, 2), np.int64), np.zeros(m + 1, np.int64)
    s, unit, change = np.empty(m * m), np.empty(m * m, np.int64), np.empty(m * m)
    vertex = np.empty(m * m, np.int64)
    ring = np.arange(n)
    i = 0
    for k in range(m):
        a, b = changes(ring, signs, k)
        if np.hypot(xy[b, 0], xy[b, 1]) < np.hypot(xy[a, 0], xy[a, 1]):
            a, b = b, a
        ends[k, 0], ends[k, 1] = a, b
        first = i
        for j in range(m):
            if signs[a, j] * signs[b, j] >= 0:
                continue
            at = values[a, j] / (values[a, j] - values[b, j])
            here = -1
            for v in range(n, n_nodes):
                if signs[v, k] == 0 and signs[v, j] == 0:
                    here = v
                    break
            q = i
            while q > first and s[q - 1] > at:
                s[q], unit[q], change[q], vertex[q] = s[q - 1], unit[q - 1], change[q - 1], vertex[q - 1]
                q -= 1
            s[q], unit[q], change[q], vertex[q] = at, units[j], abs(values[b, j] - values[a, j]), here
            i += 1
        start[k + 1] = i
    return ends, start, s[:i], unit[:i], change[:i], vertex[:i]


@compiled
def cut_tied_face(
    half_edges,
    ends,
    nstart,
    node_s,
    cstart,
    cunit,
    cnode,
    units,
    h,
    values_of,
    errors_of,
    zero,
    n_vertices,
    p,
    word,
):
    """Divide one face along `units`, whose signs at its vertices may be zero.

    Args:
        half_edges: of the face.
        ends: of the edges, (e, 2).
        nstart: where the cut points of each edge start, (e + 1,).
        node_s: where each cut point is on its edge.
        cstart: where the crossings of each edge start, (e + 1,).
        cunit: the unit of each crossing.
        cnode: the cut point that it belongs to.
        units: those with both signs on the face.
        h: how many entries a row has, units being entries at thresholds.
        values_of: by how much the units are above their thresholds, for each half-edge's first vertex and
            each unit.
        errors_of: rounding errors, in the same order.
        zero: packed bits of the units that count as zero at the vertices.
        n_vertices: the number of vertices before the cut.
        p: coordinates of the vertices and cut points.
        word: the face's packed signs.

    Returns:
        is_clear: whether the signs fit together; the nodes of the boundary; sizes and loops of the cells,
            their words; ends of the face's own edges; coordinates of the nodes inside; the lines.
    """
    n = 0
    for i in range(len(half_edges)):
        e = half_edges[i] >> 1
        n += 1 + nstart[e + 1] - nstart[e]
    node, half = np.empty(n, np.int64), np.empty(n, np.int64)
    cut, spot = np.empty(n, np.int64), np.empty(n, np.int64)
    walk_boundary(half_edges, ends, nstart, n_vertices, node, half, cut, spot)
    xy = np.empty((n, 2))
    for i in range(n):
        xy[i] = p[node[i]]
    is_clear, cells, values, _, signs, xy = _start(
        half_edges, ends, nstart, node_s, cstart, cunit, cnode, units, h, values_of, errors_of, zero, n, xy
    )
    sizes, loop, own_ends = _loops(cells, n, half)
    words = _cell_words(cells, signs, units, h, word)
    lines = _lines(n, values, signs, units, xy)
    return is_clear, node, sizes, loop, words, own_ends, xy[n:], lines
