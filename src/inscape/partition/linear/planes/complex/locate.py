"""Which face of a planar complex a point lies in: point location by walking from face to face."""

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled
from inscape.partition.linear.planes.complex.half_edges import (
    PlanarComplex,
    direction_of,
    edge_of,
    origin,
    target,
)


@compiled
def _walk(points, xy, ends, start, loop, sides, first, near):
    """Walk from face to face towards each point; -1 if it is outside, by more than `near`."""
    face = np.empty(len(points), np.int64)
    f = first
    for i in range(len(points)):
        for _ in range(4 * len(start)):
            # (1) the edge of the face to whose right the point lies furthest
            worst, through = 0.0, -1
            for k in range(start[f], start[f + 1]):
                a, b = origin(ends, loop[k]), target(ends, loop[k])
                dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                length = np.hypot(dx, dy)
                if length == 0.0:
                    continue
                side = (dx * (points[i, 1] - xy[a, 1]) - dy * (points[i, 0] - xy[a, 0])) / length
                if side < worst:
                    worst, through = side, loop[k]
            if through < 0:
                break
            # (2) across that edge, unless nothing is there
            neighbour = sides[edge_of(through), 1 - direction_of(through)]
            if neighbour < 0:
                through = -1 if worst > -near else through
                break
            f = neighbour
        face[i] = f if through < 0 else -1
    return face


def locate(planar: PlanarComplex, points: Floats) -> Ints:
    """The face of each point (n, 2), -1 outside."""
    order = np.lexsort(np.round(points / np.ptp(planar.xy, axis=0) * 64).T)
    near = 1e-12 * float(np.abs(planar.xy).max())
    faces = np.empty(len(points), np.int64)
    faces[order] = _walk(
        points[order], planar.xy, planar.ends, planar.start, planar.loop, planar.sides(), 0, near
    )
    return faces
