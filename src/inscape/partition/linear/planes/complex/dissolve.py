"""Take edges away from a subdivision, and the vertices where only two edges are left."""

from dataclasses import replace

import numpy as np

from inscape.arrays import Bools, Ints
from inscape.compiled import compiled
from inscape.errors import NonGenericError
from inscape.partition.linear.planes.complex.half_edges import Cells

BROKEN = -2


@compiled
def successors(start, loop, n_half, gone):
    """The half-edge after each one that stays, around the union of the faces that gone edges joined.

    The first is `BROKEN` if the loops do not fit together.
    """
    after = np.full(n_half, -1, np.int64)
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            after[loop[i]] = loop[i + 1] if i + 1 < start[f + 1] else loop[start[f]]
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            h = loop[i]
            if not gone[h >> 1]:
                g, steps = after[h], 0
                while gone[g >> 1]:
                    g, steps = after[g ^ 1], steps + 1
                    if g < 0 or steps > n_half:
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
        start and loop of the faces; for each new edge its first old one and its ends; for each old face the
        new.
    """
    n_half = 2 * len(ends)
    after = successors(start, loop, n_half, gone)
    name = np.full(n_half, -1, np.int64)  # of the chain that starts with a half-edge
    old, new_ends = np.empty(len(ends), np.int64), np.empty((len(ends), 2), np.int32)
    new_start, new_loop = np.zeros(len(start), np.int64), np.empty(len(loop), np.int32)
    face_of = np.full(n_half, -1, np.int64)
    n_edges, n_faces, i_loop = 0, 0, 0
    if len(after) > 0 and after[0] == BROKEN:
        return new_start[:1], new_loop[:0], old[:0], new_ends[:0], face_of
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            h = loop[i]
            if gone[h >> 1] or face_of[h] >= 0 or not keep[ends[h >> 1, h & 1]]:
                continue
            g = h
            while True:
                first = g
                face_of[g] = n_faces
                while not keep[ends[g >> 1, 1 - (g & 1)]]:
                    g = after[g]
                    if g < 0 or face_of[g] == n_faces:
                        return new_start[:1], new_loop[:0], old[:0], new_ends[:0], face_of
                    face_of[g] = n_faces
                if name[first] < 0:
                    d = first & 1  # a chain runs as its edges did
                    name[first], name[g ^ 1] = 2 * n_edges + d, 2 * n_edges + 1 - d
                    old[n_edges] = first >> 1
                    new_ends[n_edges, d] = ends[first >> 1, d]
                    new_ends[n_edges, 1 - d] = ends[g >> 1, 1 - (g & 1)]
                    n_edges += 1
                new_loop[i_loop] = name[first]
                i_loop += 1
                g = after[g]
                if g == h:
                    break
                if g < 0 or i_loop == len(new_loop):
                    return new_start[:1], new_loop[:0], old[:0], new_ends[:0], face_of
            n_faces += 1
            new_start[n_faces] = i_loop
    return new_start[: n_faces + 1], new_loop[:i_loop], old[:n_edges], new_ends[:n_edges], face_of


@compiled
def _new_faces(start, loop, gone, face_of):
    """The new face of each old one: that of an edge that stayed, found across gone edges if need be."""
    n = len(start) - 1
    found = np.full(n, -1, np.int64)
    side = np.full(len(face_of), -1, np.int64)
    for f in range(n):
        for i in range(start[f], start[f + 1]):
            side[loop[i]] = f
            if not gone[loop[i] >> 1]:
                found[f] = face_of[loop[i]]
    for _ in range(n):
        is_open = False
        for f in range(n):
            if found[f] >= 0:
                continue
            for i in range(start[f], start[f + 1]):
                other = side[loop[i] ^ 1]
                if gone[loop[i] >> 1] and other >= 0 and found[other] >= 0:
                    found[f] = found[other]
            is_open |= found[f] < 0
        if not is_open:
            break
    return found


def dissolve(cells: Cells, gone: Bools) -> tuple[Cells, Ints, Ints]:
    """The subdivision without some edges, whose faces are joined and stay convex.

    A vertex where only two edges are left, in a straight line then, is taken away, unless it is a corner of
    the domain or lies on an edge that another part shares.

    Returns:
        the subdivision, the old vertices that are left, and the new face of each old one.
    """
    degree = _degrees(cells.ends, gone, len(cells.xy))
    held = cells.fixed.copy()
    held[cells.ends[cells.shared & ~gone].ravel()] = True
    keep = (degree > 2) | (held & (degree > 0))
    start, loop, old, ends, face_of = _rebuild(cells.start, cells.loop, cells.ends, gone, keep)
    if len(start) == 1:
        raise NonGenericError(
            "the pieces do not fit together: lines meet too closely for float64; move the probe a little"
        )
    kept = np.flatnonzero(keep)
    number = np.cumsum(keep) - 1
    new = replace(
        cells,
        xy=cells.xy[kept],
        ends=number[ends].astype(np.int32),
        born=cells.born[old],
        start=start,
        loop=loop,
        shared=cells.shared[old],
        fixed=cells.fixed[kept],
    )
    return new, kept, _new_faces(cells.start, cells.loop, gone, face_of)
