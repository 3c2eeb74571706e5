"""Cut faces where lines meet in one point, run through a vertex or coincide: signs with three values.

A unit is positive, negative or zero at each node of a face; zero means within the rounding bound of float64.
Units are taken one after the other: a subface with nodes on both sides of a unit is cut, through its zero
nodes or through new nodes on its edges. A unit whose line is there already cuts nothing.

The signs of every unit are kept at every node, so that this is for faces with few lines. A tied face with
many is refused (`CrowdedFacesError`): once it is cut into tiles, only a few of those are tied.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints, SignVectors
from inscape.compiled import compiled
from inscape.errors import NonGenericError
from inscape.partition.linear.planes.complex.half_edges import (
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
    origin,
    reorder_loops,
)
from inscape.partition.linear.planes.layer.buffers import CutFaces, Inside, Lines
from inscape.partition.linear.planes.layer.edge_crossings import Crossings
from inscape.partition.linear.planes.layer.faces import walk_boundary
from inscape.partition.linear.planes.values.values import Values
from inscape.partition.linear.rounding import RoundingBounds

MOST_SIGNS = 2**20
"""Nodes inside a tied face times its units, at most."""

_INCONSISTENT, _CUT, _CROWDED = range(3)
"""How cutting a face ended: its signs do not fit together, it is cut, or it would have too many nodes."""

Subfaces = tuple[CutFaces, Inside, Lines]
"""What one or more old faces were cut into."""


class CrowdedFacesError(NonGenericError):
    """Tied faces have too many lines.

    Attributes:
        boxes: the least and greatest coordinates of each of them, (k, 2, 2).
        n_units: the largest number of units that cut one.
    """

    def __init__(self, boxes: list[Floats], n_units: int) -> None:
        super().__init__(
            f"{n_units} lines cross near {boxes[0].mean(axis=0).tolist()} (in the probe's coordinates), and "
            "some of them so closely that float64 cannot order them",
            remedy="move the probe a little",
        )
        self.boxes, self.n_units = np.stack(boxes), n_units


def with_tied_faces(
    planar: PlanarComplex,
    values: Values,
    kinks: Floats,
    zero: SignVectors,
    rounding: RoundingBounds,
    crossed: Crossings,
    xy: Floats,
    face_signs: SignVectors,
    both: SignVectors,
    tied: Ints,
    of_others: Subfaces,
) -> Subfaces:
    """The subfaces of the tied faces joined to those of the others, in order of the old faces.

    Args:
        planar: the complex before the cut.
        values: of the layer at the vertices.
        kinks: of the layer's entries.
        zero: packed bits of the units that count as zero at the vertices.
        rounding: bounds for rounding errors of the values.
        crossed: the crossings on the edges.
        xy: coordinates of the vertices and crossing points.
        face_signs: the sign vector of each face.
        both: packed bits of the units with both signs on each face.
        tied: the faces that are tied.
        of_others: what the others were cut into.
    """
    inside = of_others[1]
    h, n_old = values.h, len(planar.xy)
    start, units, vertex, unit = _tied_pairs(tied, planar.start, planar.loop, planar.ends, both[tied], h)
    errors, heights = rounding(vertex, unit % h), values.at(vertex, unit % h) - kinks[unit // h]
    n_points = crossed.point_start[-1]
    n_edges, n_inside = len(planar.ends) + n_points + len(inside.ends), n_old + n_points + len(inside.xy)
    points = crossed.point_start, crossed.of_points(crossed.s)
    edges = planar.ends, *points, crossed.start, crossed.unit, crossed.point
    subfaces: list[Subfaces] = []
    crowded: list[Floats] = []
    first_pair, n_units = 0, 0
    for t, f in enumerate(tied):
        loop = planar.loop[planar.start[f] : planar.start[f + 1]]
        of_face = units[start[t] : start[t + 1]]
        pairs = slice(first_pair, first_pair + len(loop) * len(of_face))
        end, node, *cut = _cut_tied_face(
            loop,
            *edges,
            of_face,
            h,
            heights[pairs],
            errors[pairs],
            zero,
            n_old,
            xy,
            face_signs[f],
            MOST_SIGNS,
        )
        first_pair = pairs.stop
        if end == _CROWDED:
            crowded.append(np.stack([xy[node].min(axis=0), xy[node].max(axis=0)]))
            n_units = max(n_units, len(of_face))
            continue
        if end == _INCONSISTENT:
            near = xy[node].mean(axis=0).tolist()
            raise NonGenericError(
                f"the zero lines of {len(of_face)} units meet so closely near {near} "
                "(in the probe's coordinates) that float64 cannot order them",
                remedy="move the probe a little",
            )
        subfaces.append(_numbered(int(f), node, cut, n_edges, n_inside))
        n_edges += len(subfaces[-1][1].ends)
        n_inside += len(subfaces[-1][1].xy)
    if crowded:
        raise CrowdedFacesError(crowded, n_units)
    return _joined(of_others, subfaces)


def _numbered(face: int, node: Ints, cut: Any, n_edges: int, n_vertices: int) -> Subfaces:
    """The subfaces of one face, its new edges and vertices numbered from `n_edges` and `n_vertices` on."""
    sizes, loop, signs, ends, xy, (line_ends, start, s, unit, change, vertex) = cut
    new_half_edges = half_edge(n_edges, -1 - loop)
    number = np.concatenate([node, n_vertices + np.arange(len(xy))])
    new_vertex = np.where(vertex >= 0, number[vertex], -1)
    loop = np.where(loop >= 0, loop, new_half_edges).astype(np.int32)
    return (
        CutFaces(np.cumsum(sizes), loop, np.full(len(sizes), face), signs),
        Inside(number[ends].astype(np.int32), xy),
        Lines(number[line_ends].astype(np.int32), start[1:], s, unit.astype(np.int32), change, new_vertex),
    )


def _joined(of_others: Subfaces, of_tied: list[Subfaces]) -> Subfaces:
    """Subfaces of tied faces put after those of the others; then in order of the old faces."""
    faces, _inside, lines = of_others
    subfaces = [of_others, *of_tied]
    start = _offsets([faces.start, *(f.start for f, _, _ in of_tied)])
    loop, parent, signs = (
        np.concatenate([getattr(f, name) for f, _, _ in subfaces]) for name in ("loop", "parent", "signs")
    )
    order = np.argsort(parent, kind="stable")
    start, loop = reorder_loops(start, loop, order)
    return (
        CutFaces(start, loop, parent[order], signs[order]),
        Inside(*(np.concatenate([i[k] for _, i, _ in subfaces]) for k in range(2))),
        Lines(
            np.concatenate([line.ends for _, _, line in subfaces]),
            _offsets([lines.start, *(line.start for _, _, line in of_tied)]),
            *(np.concatenate([line[k] for _, _, line in subfaces]) for k in range(2, 6)),
        ),
    )


def _offsets(starts: list[Ints]) -> Ints:
    """Offsets of ranges one after the other; the first begins with 0, the others with their first end."""
    shift = np.cumsum([0, *(s[-1] if len(s) else 0 for s in starts[:-1])])
    return np.concatenate([s + by for s, by in zip(starts, shift, strict=True)])


@compiled
def _tied_pairs(faces, start, loop, ends, both, h):
    """For each tied face the units that cut it, and every pair of one of its vertices with one of them.

    Args:
        faces: numbers of the tied faces, (t,).
        start: where the loop of each face starts.
        loop: half-edges of the loops.
        ends: of the edges.
        both: packed bits of the units with both signs on each tied face, (t, words).
        h: the number of entries; units are entries at kinks.

    Returns:
        start (t + 1,) and units of each face; vertex and unit of each pair, units first.
    """
    per = (h + 63) // 64
    # (1) how many units and pairs there are
    unit_start = np.zeros(len(faces) + 1, np.int64)
    n_pairs = 0
    for t in range(len(faces)):
        n = 0
        for w in range(both.shape[1]):
            for bit in range(64):
                n += (both[t, w] >> np.uint64(bit)) & np.uint64(1) != 0
        unit_start[t + 1] = unit_start[t] + n
        n_pairs += n * (start[faces[t] + 1] - start[faces[t]])
    units = np.empty(unit_start[-1], np.int64)
    vertex, unit = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    i, j = 0, 0
    for t in range(len(faces)):
        # (2) the units of a face
        for w in range(both.shape[1]):
            for bit in range(64):
                if (both[t, w] >> np.uint64(bit)) & np.uint64(1) != 0:
                    units[i] = w // per * h + (w % per) * 64 + bit
                    i += 1
        # (3) each with each of its vertices
        for g in range(start[faces[t]], start[faces[t] + 1]):
            for k in range(unit_start[t], unit_start[t + 1]):
                vertex[j], unit[j] = origin(ends, loop[g]), units[k]
                j += 1
    return unit_start, units, vertex, unit


@compiled
def _is_zero(zero, v, u, h):
    """Whether unit u counts as zero at vertex v."""
    per = (h + 63) // 64
    k = u // h
    e = u - k * h
    return len(zero) > 0 and (zero[v, k * per + (e >> 6)] >> np.uint64(e & 63)) & np.uint64(1) != 0


@compiled
def _fill_vertices(loop, ends, units, h, values_of, errors_of, zero, values, errors, signs):
    """Write values, errors and signs of the units at a face's vertices, in the order of its half-edges."""
    for i in range(len(loop)):
        v = origin(ends, loop[i])
        for j in range(len(units)):
            u = units[j]
            value = values_of[i * len(units) + j]
            is_zero = _is_zero(zero, v, u, h)
            values[i, j] = 0.0 if is_zero else value
            errors[i, j] = errors_of[i * len(units) + j]
            signs[i, j] = 0 if is_zero else (1 if value > 0.0 else -1)


@compiled
def _fill_point(k, s, a, b, units, unit, point, first, last, corner, values, errors, signs, i):
    """Write those at node i, crossing point k of an edge between corners a and b, where `corner` has them."""
    at, error_at, sign_at = corner
    for j in range(len(units)):
        # (1) the value, from the nearer corner, and its error
        if s <= 0.5:
            values[i, j] = at[a, j] + s * (at[b, j] - at[a, j])
        else:
            values[i, j] = at[b, j] + (1.0 - s) * (at[a, j] - at[b, j])
        errors[i, j] = error_at[a, j] + s * (error_at[b, j] - error_at[a, j])
        # (2) the sign is that of a corner, by the side of the unit's own crossing if the corners differ
        sign = sign_at[a, j] if sign_at[a, j] != 0 else sign_at[b, j]
        if sign_at[a, j] * sign_at[b, j] < 0:
            for c in range(first, last):
                if unit[c] == units[j]:
                    sign = 0 if point[c] == k else (sign_at[a, j] if k < point[c] else sign_at[b, j])
        signs[i, j] = sign
        # (3) the value has the sign that was decided
        if sign == 0:
            values[i, j] = 0.0
        elif values[i, j] * sign <= 0.0:
            values[i, j] = sign * 1e-300


@compiled
def _at_nodes(loop, ends, point_start, point_s, start, unit, point, units, h, values_of, errors_of, zero, n):
    """Values, errors and signs of the units at all n nodes around a face, (n, units) each."""
    # (1) at its corners
    n_corners, m = len(loop), len(units)
    corner = np.empty((n_corners, m)), np.empty((n_corners, m)), np.empty((n_corners, m), np.int8)
    _fill_vertices(loop, ends, units, h, values_of, errors_of, zero, *corner)
    # (2) in order along the boundary, with the crossing points between them
    values, errors, signs = np.empty((n, m)), np.empty((n, m)), np.empty((n, m), np.int8)
    i_node = 0
    for i in range(n_corners):
        for j in range(m):
            values[i_node, j], errors[i_node, j] = corner[0][i, j], corner[1][i, j]
            signs[i_node, j] = corner[2][i, j]
        i_node += 1
        e, d = edge_of(loop[i]), direction_of(loop[i])
        a, b = (i, (i + 1) % n_corners) if d == 0 else ((i + 1) % n_corners, i)
        for step in range(point_start[e + 1] - point_start[e]):
            k = point_start[e] + step if d == 0 else point_start[e + 1] - 1 - step
            first, last = start[e], start[e + 1]
            _fill_point(
                k, point_s[k], a, b, units, unit, point, first, last, corner, values, errors, signs, i_node
            )
            i_node += 1
    return values, errors, signs


@compiled
def _sign(value, error):
    """The sign of a value with a rounding bound: -1, 0 or 1."""
    if abs(value) <= error:
        return 0
    return 1 if value > 0.0 else -1


@compiled
def _place_node(values, errors, xy, signs, p, q, k, x):
    """Write node x, where unit k is zero between nodes p and q; units that are zero at both are zero, too."""
    s = values[p, k] / (values[p, k] - values[q, k])
    a, b = p, q
    if s > 0.5:
        a, b, s = q, p, values[q, k] / (values[q, k] - values[p, k])
    for i in range(2):
        xy[x, i] = xy[a, i] + s * (xy[b, i] - xy[a, i])
    for j in range(values.shape[1]):
        values[x, j] = values[a, j] + s * (values[b, j] - values[a, j])
        errors[x, j] = errors[a, j] + s * (errors[b, j] - errors[a, j])
        signs[x, j] = _sign(values[x, j], errors[x, j])
        if j == k or (signs[p, j] == 0 and signs[q, j] == 0):
            values[x, j], signs[x, j] = 0.0, 0
        elif signs[p, j] == signs[q, j]:
            signs[x, j] = signs[p, j]


@compiled
def _larger(old, n):
    """A matrix with n rows, the first of which are those of a smaller one."""
    new = np.empty((n, old.shape[1]), old.dtype)
    for i in range(len(old)):  # entry by entry: numba compiles a slice for seconds
        for j in range(old.shape[1]):
            new[i, j] = old[i, j]
    return new


@compiled
def _passages(nodes, signs, k):
    """Where around a subface unit k passes from positive to negative and back.

    Returns, as indices into `nodes`, the last node before each passage that is not on its far side; -1 if the
    subface is not cut, -2 if the signs around it alternate more than once.
    """
    n = len(nodes)
    # (1) are there both signs?
    out, back, n_changes = -1, -1, 0
    has_plus, has_minus = False, False
    for i in range(n):
        s = signs[nodes[i], k]
        has_plus |= s > 0
        has_minus |= s < 0
    if not (has_plus and has_minus):
        return -1, -1
    # (2) once around from a positive node
    start = 0
    while signs[nodes[start], k] <= 0:
        start += 1
    previous = 1
    for step in range(1, n + 1):
        i = (start + step) % n
        s = signs[nodes[i], k]
        if s != 0 and s != previous:
            n_changes += 1
            if s < 0:
                out = (i - 1) % n
            else:
                back = (i - 1) % n
            previous = s
    return (out, back) if n_changes == 2 else (-2, -2)


@compiled
def _one_side(nodes, start, stop, gate, other, is_new):
    """The subface on one side of a cut: a gate, the nodes from index `start` to `stop`, the other if new."""
    side, n, i = np.empty(len(nodes) + 2, np.int64), 1, start
    side[0] = gate
    while True:
        side[n] = nodes[i]
        n += 1
        if i == stop:
            break
        i = (i + 1) % len(nodes)
    if is_new:
        side[n] = other
        n += 1
    return side[:n].copy()


@compiled
def _cut_along_units(n, values, errors, signs, xy, most):
    """Cut a face of n boundary nodes along every unit.

    Args:
        n: the number of boundary nodes.
        values: of the units at the nodes, (n, m).
        errors: rounding bounds of the values.
        signs: -1, 0 or 1.
        xy: coordinates of the nodes.
        most: nodes inside times units, at most.

    Returns:
        how it ended, the subfaces as lists of nodes, and the four arrays with the new nodes added.
    """
    m = values.shape[1]
    subfaces = [np.arange(n)]
    n_nodes = n
    fresh = np.empty((4 * m + 16, 3), np.int64)  # edges cut by the unit at hand: both ends and the new node
    for k in range(m):
        n_fresh = 0
        for c in range(len(subfaces)):
            # (1) where the unit passes through the subface
            nodes = subfaces[c]
            out, back = _passages(nodes, signs, k)
            if out == -1:
                continue
            if out == -2:
                return _INCONSISTENT, subfaces, values, errors, signs, xy
            # (2) the gates, where its line enters and leaves: nodes where it is zero, or new ones on edges
            gates = np.empty(2, np.int64)
            is_new = np.zeros(2, np.bool_)
            for g in range(2):
                i = out if g == 0 else back
                p, q = nodes[i], nodes[(i + 1) % len(nodes)]
                if signs[p, k] == 0:
                    gates[g] = p
                    continue
                is_new[g] = True
                gates[g] = -1
                # (3) the subface across the edge may have made the node already
                for t in range(n_fresh):
                    if fresh[t, 0] == q and fresh[t, 1] == p:
                        gates[g] = fresh[t, 2]
                if gates[g] < 0:
                    if (n_nodes - n) * m > most:
                        return _CROWDED, subfaces, values, errors, signs, xy
                    if n_nodes == len(xy):
                        size = 2 * n_nodes + 16
                        values, errors = _larger(values, size), _larger(errors, size)
                        signs, xy = _larger(signs, size), _larger(xy, size)
                    if n_fresh == len(fresh):
                        fresh = _larger(fresh, 2 * n_fresh)
                    if p < n and q < n and (abs(p - q) == 1 or abs(p - q) == n - 1):
                        # the edges of the boundary are cut at all crossings already
                        return _INCONSISTENT, subfaces, values, errors, signs, xy
                    _place_node(values, errors, xy, signs, p, q, k, n_nodes)
                    fresh[n_fresh, 0], fresh[n_fresh, 1], fresh[n_fresh, 2] = p, q, n_nodes
                    gates[g] = n_nodes
                    n_fresh += 1
                    n_nodes += 1
            # (4) the two subfaces
            ahead, behind = (out + 1) % len(nodes), (back + 1) % len(nodes)
            subfaces[c] = _one_side(nodes, ahead, back, gates[0], gates[1], is_new[1])
            subfaces.append(_one_side(nodes, behind, out, gates[1], gates[0], is_new[0]))
    return _CUT, subfaces, values[:n_nodes], errors[:n_nodes], signs[:n_nodes], xy[:n_nodes]


@compiled
def _loops(subfaces, n, number):
    """Subfaces as loops of half-edges: on the boundary those of the complex, inside -1 - h for half-edge h.

    Half-edges inside are numbered within the face.
    """
    # (1) how many half-edges there are
    sizes, total = np.empty(len(subfaces), np.int64), 0
    for c in range(len(subfaces)):
        sizes[c] = len(subfaces[c])
        total += sizes[c]
    loop, ends = np.empty(total, np.int64), np.empty((total, 2), np.int64)
    # (2) around each subface
    edge_between = {(np.int64(-1), np.int64(-1)): np.int64(0)}  # two nodes
    i, n_edges = 0, 0
    for subface in subfaces:
        for at in range(len(subface)):
            p, q = subface[at], subface[(at + 1) % len(subface)]
            if p < n and q < n and q == (p + 1) % n:  # on the boundary
                loop[i] = number[p]
            elif (q, p) in edge_between:  # met from the other side
                loop[i] = -1 - half_edge(edge_between[(q, p)], 1)
            else:
                edge_between[(p, q)] = np.int64(n_edges)
                ends[n_edges, 0], ends[n_edges, 1] = p, q
                loop[i] = -1 - half_edge(n_edges, 0)
                n_edges += 1
            i += 1
    return sizes, loop, ends[:n_edges]


@compiled
def _subface_signs(subfaces, signs, units, h, face_signs):
    """The sign vector of each subface: that of its face, except for the units that cut the face."""
    per = (h + 63) // 64
    vectors = np.empty((len(subfaces), len(face_signs)), np.uint64)
    for c in range(len(subfaces)):
        for i in range(len(face_signs)):
            vectors[c, i] = face_signs[i]
        for k in range(len(units)):
            word = units[k] // h * per + ((units[k] % h) >> 6)
            bit = np.uint64(1) << np.uint64((units[k] % h) & 63)
            vectors[c, word] &= ~bit
            for v in subfaces[c]:
                if signs[v, k] > 0:
                    vectors[c, word] |= bit
    return vectors


@compiled
def _lines(n, values, signs, units, xy):
    """Each unit's chord, with the nodes inside where other units cross it; see `Lines`.

    A chord starts at its end nearer to (0, 0), around which coordinates may be known to relative accuracy.
    """
    m, n_nodes = len(units), len(values)
    ends, start = np.empty((m, 2), np.int64), np.zeros(m + 1, np.int64)
    s, unit, change = np.empty(m * m), np.empty(m * m, np.int64), np.empty(m * m)
    vertex = np.empty(m * m, np.int64)
    boundary = np.arange(n)
    i = 0
    for k in range(m):
        # (1) the ends of the chord
        a, b = _passages(boundary, signs, k)
        if np.hypot(xy[b, 0], xy[b, 1]) < np.hypot(xy[a, 0], xy[a, 1]):
            a, b = b, a
        ends[k, 0], ends[k, 1] = a, b
        first = i
        for j in range(m):
            # (2) another unit that changes sign along it, and the node where both are zero
            if signs[a, j] * signs[b, j] >= 0:
                continue
            at = values[a, j] / (values[a, j] - values[b, j])
            node = -1
            for v in range(n, n_nodes):
                if signs[v, k] == 0 and signs[v, j] == 0:
                    node = v
                    break
            # (3) inserted in order
            q = i
            while q > first and s[q - 1] > at:
                s[q], unit[q], change[q], vertex[q] = s[q - 1], unit[q - 1], change[q - 1], vertex[q - 1]
                q -= 1
            s[q], unit[q], change[q], vertex[q] = at, units[j], abs(values[b, j] - values[a, j]), node
            i += 1
        start[k + 1] = i
    return ends, start, s[:i], unit[:i], change[:i], vertex[:i]


def work_on_tied_face(loop: Ints, *rest: Any) -> float:
    """The work of cutting a face along m units: the signs of all at 2 m boundary nodes and those inside.

    >>> work_on_tied_face(np.arange(4), *[None] * 6, np.arange(10), *[None] * 7, 10**6)
    740.0
    """
    m, most = len(rest[6]), rest[-1]
    return float(m * (len(loop) + 2 * m) + min(m**3 // 2, most))


@compiled(work=work_on_tied_face)
def _cut_tied_face(
    loop,
    ends,
    point_start,
    point_s,
    start,
    unit,
    point,
    units,
    h,
    values_of,
    errors_of,
    zero,
    n_vertices,
    xy_of,
    face_signs,
    most,
):
    """Cut one face along `units`, whose signs at its vertices may be zero.

    Args:
        loop: half-edges of the face.
        ends: of the edges, (e, 2).
        point_start: where the crossing points of each edge start, (e + 1,).
        point_s: where each crossing point is on its edge.
        start: where the crossings of each edge start, (e + 1,).
        unit: the unit of each crossing.
        point: the crossing point that it belongs to.
        units: those with both signs on the face.
        h: how many entries the layer has, units being entries at kinks.
        values_of: by how much the units are above their kinks, for each half-edge's origin and each unit.
        errors_of: rounding bounds, in the same order.
        zero: packed bits of the units that count as zero at the vertices.
        n_vertices: the number of vertices before the cut.
        xy_of: coordinates of the vertices and crossing points.
        face_signs: the face's sign vector.
        most: nodes inside times units, at most.

    Returns:
        how it ended; the nodes of the boundary; sizes and loops of the subfaces, their sign vectors; ends of
            the edges inside; coordinates of the nodes inside; the lines.
    """
    # (1) the boundary
    n = len(loop)
    for i in range(len(loop)):
        e = edge_of(loop[i])
        n += point_start[e + 1] - point_start[e]
    node, number = np.empty(n, np.int64), np.empty(n, np.int64)
    at_point, point_node = np.empty(n, np.int64), np.empty(n, np.int64)
    walk_boundary(loop, ends, point_start, n_vertices, node, number, at_point, point_node)
    xy = np.empty((n, 2))
    for i in range(n):
        xy[i, 0], xy[i, 1] = xy_of[node[i], 0], xy_of[node[i], 1]
    # (2) what the units are there
    values, errors, signs = _at_nodes(
        loop, ends, point_start, point_s, start, unit, point, units, h, values_of, errors_of, zero, n
    )
    # (3) the subfaces
    end, subfaces, values, _, signs, xy = _cut_along_units(n, values, errors, signs, xy, most)
    if end != _CUT:
        subfaces, values, signs, xy, units = subfaces[:0], values[:n], signs[:n], xy[:n], units[:0]
    sizes, loops, inside = _loops(subfaces, n, number)
    subface_signs = _subface_signs(subfaces, signs, units, h, face_signs)
    return end, node, sizes, loops, subface_signs, inside, xy[n:], _lines(n, values, signs, units, xy)
