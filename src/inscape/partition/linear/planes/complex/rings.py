"""The boundary rings of unions of faces."""

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled
from inscape.partition.linear.planes.complex.dissolve import successors
from inscape.partition.linear.planes.complex.half_edges import PlanarComplex, edge_of, origin


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
            # (1) a ring starts at a half-edge that stays and was not seen so far
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
    around: list[list[Floats]] = [[] for _ in range(n_groups)]
    for k, own in enumerate(owner):
        around[own].append(planar.xy[vertices[first[k] : first[k + 1]]])
    return [tuple(sorted(r, key=_signed_area, reverse=True)) for r in around]


def _signed_area(ring: Floats) -> float:
    x, y = (ring - ring[0]).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)
