"""Remove edges from a planar complex; join faces of one label, and trace the rings around such unions.

Vertices where only two edges are left are removed, too.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import replace

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.compiled import compiled
from inscape.errors import NonGenericError
from inscape.partition.linear.planes.complex.half_edges import (
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
    next_around,
    origin,
    target,
    twin,
)

BROKEN = -2
"""What `successors` begins with if the loops do not fit together."""


@compiled
def successors(start, loop, n_half_edges, gone):
    """The half-edge after each one that stays, around the union of the faces that gone edges joined.

    The first is `BROKEN` if the loops do not fit together.
    """
    after = np.full(n_half_edges, -1, np.int64)
    # (1) as the loops say
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            after[loop[i]] = loop[next_around(i, start[f], start[f + 1])]
    # (2) past gone edges: around their origin, from twin to twin, to the first edge that stays
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            h = loop[i]
            if not gone[edge_of(h)]:
                g, steps = after[h], 0
                while gone[edge_of(g)]:
                    g, steps = after[twin(g)], steps + 1
                    if g < 0 or steps > n_half_edges:
                        after[0] = BROKEN
                        return after
                after[h] = g
    return after


@compiled
def _degrees(ends, gone, n_vertices):
    """How many edges that stay meet at each vertex."""
    degree = np.zeros(n_vertices, np.int64)
    for e in range(len(ends)):
        if not gone[e]:
            degree[ends[e, 0]] += 1
            degree[ends[e, 1]] += 1
    return degree


@compiled
def _rebuild(start, loop, ends, gone, keep):
    """Loops of the faces that are left, with straight chains of edges made one.

    Returns:
        start and loop of the faces; for each new edge its first old one and its ends; for each old half-edge
        the new face. There are no faces if the loops do not fit together.
    """
    n_half_edges = 2 * len(ends)
    after = successors(start, loop, n_half_edges, gone)
    chain = np.full(n_half_edges, -1, np.int64)  # the new half-edge that starts with an old one
    old_edge, new_ends = np.empty(len(ends), np.int64), np.empty((len(ends), 2), np.int32)
    new_start, new_loop = np.zeros(len(start), np.int64), np.empty(len(loop), np.int32)
    new_face = np.full(n_half_edges, -1, np.int64)
    n_edges, n_faces, i_loop = 0, 0, 0
    if len(after) > 0 and after[0] == BROKEN:
        return new_start[:1], new_loop[:0], old_edge[:0], new_ends[:0], new_face
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            # (1) a new face starts at a half-edge that stays, has not been visited, and whose origin stays
            h = loop[i]
            if gone[edge_of(h)] or new_face[h] >= 0 or not keep[origin(ends, h)]:
                continue
            g = h
            while True:
                # (2) follow a chain of edges to the next vertex that stays
                first = g
                new_face[g] = n_faces
                while not keep[target(ends, g)]:
                    g = after[g]
                    if g < 0 or new_face[g] == n_faces:
                        return new_start[:1], new_loop[:0], old_edge[:0], new_ends[:0], new_face
                    new_face[g] = n_faces
                # (3) the chain becomes one edge, unless it was met from its other side; its direction stays
                if chain[first] < 0:
                    d = direction_of(first)
                    chain[first], chain[twin(g)] = half_edge(n_edges, d), half_edge(n_edges, 1 - d)
                    old_edge[n_edges] = edge_of(first)
                    new_ends[n_edges, d] = origin(ends, first)
                    new_ends[n_edges, 1 - d] = target(ends, g)
                    n_edges += 1
                new_loop[i_loop] = chain[first]
                i_loop += 1
                # (4) go on until the face is closed
                g = after[g]
                if g == h:
                    break
                if g < 0 or i_loop == len(new_loop):
                    return new_start[:1], new_loop[:0], old_edge[:0], new_ends[:0], new_face
            n_faces += 1
            new_start[n_faces] = i_loop
    return new_start[: n_faces + 1], new_loop[:i_loop], old_edge[:n_edges], new_ends[:n_edges], new_face


@compiled
def _new_faces(start, loop, gone, face_of):
    """The new face of each old one: that of an edge that stayed, or of a neighbour across a gone edge."""
    n = len(start) - 1
    new = np.full(n, -1, np.int64)
    left = np.full(len(face_of), -1, np.int64)  # the old face to the left of each half-edge
    # (1) old faces with an edge that stayed
    for f in range(n):
        for i in range(start[f], start[f + 1]):
            left[loop[i]] = f
            if not gone[edge_of(loop[i])]:
                new[f] = face_of[loop[i]]
    # (2) the others from their neighbours, until all are known
    for _ in range(n):
        is_open = False
        for f in range(n):
            if new[f] >= 0:
                continue
            for i in range(start[f], start[f + 1]):
                other = left[twin(loop[i])]
                if gone[edge_of(loop[i])] and other >= 0 and new[other] >= 0:
                    new[f] = new[other]
            is_open |= new[f] < 0
        if not is_open:
            break
    return new


def dissolve(planar: PlanarComplex, gone: Bools) -> tuple[PlanarComplex, Ints, Ints]:
    """The complex without some edges, whose faces are joined and stay convex.

    A vertex where only two edges are left, in a straight line then, is removed, unless it is a corner of the
    domain or lies on an edge that another chunk shares.

    Returns:
        the complex, the old vertices that are left, and the new face of each old one.
    """
    degree = _degrees(planar.ends, gone, len(planar.xy))
    fixed = planar.fixed.copy()
    fixed[planar.ends[planar.shared & ~gone].ravel()] = True
    keep = (degree > 2) | (fixed & (degree > 0))
    start, loop, old_edge, ends, face_of = _rebuild(planar.start, planar.loop, planar.ends, gone, keep)
    if len(start) == 1:
        raise NonGenericError(
            "the faces do not fit together",
            remedy="lines meet too closely for float64; move the probe a little",
        )
    kept = np.flatnonzero(keep)
    number = np.cumsum(keep) - 1
    new = replace(
        planar,
        xy=planar.xy[kept],
        ends=number[ends].astype(np.int32),
        born=planar.born[old_edge],
        start=start,
        loop=loop,
        shared=planar.shared[old_edge],
        fixed=planar.fixed[kept],
    )
    return new, kept, _new_faces(planar.start, planar.loop, gone, face_of)


def joined_faces(planar: PlanarComplex, labels: Ints, through: Bools | None = None) -> tuple[Ints, Ints]:
    """The region of each face, and the label of each region: faces of one label are joined across edges.

    With `through`, (e,), only across the edges where it is true.
    """
    through = np.ones(len(planar.ends), bool) if through is None else through
    region, count = _joined_through(planar.sides(), through, labels)
    labels_of = np.empty(count, np.int64)
    labels_of[region] = labels
    return region, labels_of


@compiled
def _joined_through(sides, through, labels):
    """The region of each face, (f,), and how many there are; regions are numbered by their first faces."""
    # (1) every face points to one of its region that comes before it; the first of a region to itself
    before = np.arange(len(labels))
    for e in range(len(sides)):
        f, g = sides[e, 0], sides[e, 1]
        if f < 0 or g < 0 or not through[e] or labels[f] != labels[g]:
            continue
        # (2) the first faces of the two regions; paths are halved on the way
        while before[f] != f:
            before[f] = before[before[f]]
            f = before[f]
        while before[g] != g:
            before[g] = before[before[g]]
            g = before[g]
        before[max(f, g)] = min(f, g)
    # (3) number the regions
    region, n = np.empty(len(labels), np.int64), 0
    for f in range(len(labels)):
        if before[f] == f:
            region[f], n = n, n + 1
        else:
            region[f] = region[before[f]]
    return region, n


@compiled
def _trace(start, loop, ends, gone, group):
    """All rings along edges that stay: vertices, where each ring starts, and the group that it bounds."""
    after = successors(start, loop, 2 * len(ends), gone)
    seen = np.zeros(2 * len(ends), np.bool_)
    vertices, first = np.empty(len(loop), np.int64), np.empty(len(loop) + 1, np.int64)
    owner = np.empty(len(loop), np.int64)
    n_rings, i = 0, 0
    first[0] = 0
    for f in range(len(start) - 1):
        for k in range(start[f], start[f + 1]):
            # (1) a ring starts at a half-edge that stays and has not been visited
            h = loop[k]
            if gone[edge_of(h)] or seen[h]:
                continue
            owner[n_rings] = group[f]
            # (2) follow it until it is closed
            g = h
            while not seen[g]:
                seen[g] = True
                vertices[i] = origin(ends, g)
                i += 1
                g = after[g]
            n_rings += 1
            first[n_rings] = i
    return vertices[:i], first[: n_rings + 1], owner[:n_rings]


def rings(planar: PlanarComplex, group: Ints, n_groups: int) -> list[tuple[Floats, ...]]:
    """For each group of faces (f,) its rings of coordinates, the outer one first."""
    left, right = planar.sides().T
    gone = (left >= 0) & (right >= 0)
    gone[gone] = group[left[gone]] == group[right[gone]]
    vertices, first, owner = _trace(planar.start, planar.loop, planar.ends, gone, group)
    of_groups: list[list[Floats]] = [[] for _ in range(n_groups)]
    for k, g in enumerate(owner):
        of_groups[g].append(planar.xy[vertices[first[k] : first[k + 1]]])
    return [tuple(sorted(r, key=_signed_area, reverse=True)) for r in of_groups]


def _signed_area(ring: Floats) -> float:
    x, y = (ring - ring[0]).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)
