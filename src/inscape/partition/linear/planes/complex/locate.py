"""Which face a point lies in."""

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled
from inscape.partition.linear.planes.complex.half_edges import Cells


@compiled
def _find(points, xy, ends, start, loop, sides, first, near):
    """Walk from face to face towards each point; -1 if it is outside, by more than `near`."""
    found = np.empty(len(points), np.int64)
    f = first
    for i in range(len(points)):
        for _ in range(4 * len(start)):
            worst, through = 0.0, -1
            for k in range(start[f], start[f + 1]):
                e, d = loop[k] >> 1, loop[k] & 1
                a, b = ends[e, d], ends[e, 1 - d]
                dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                length = np.hypot(dx, dy)
                if length == 0.0:
                    continue
                side = (dx * (points[i, 1] - xy[a, 1]) - dy * (points[i, 0] - xy[a, 0])) / length
                if side < worst:
                    worst, through = side, loop[k]
            if through < 0:
                break
            other = sides[through >> 1, 1 - (through & 1)]
            if other < 0:
                through = -1 if worst > -near else through
                break
            f = other
        found[i] = f if through < 0 else -1
    return found


def locate(cells: Cells, points: Floats) -> Ints:
    """The face of each point (n, 2), -1 outside."""
    order = np.lexsort(np.round(points / np.ptp(cells.xy, axis=0) * 64).T)
    found = np.empty(len(points), np.int64)
    near = 1e-12 * float(np.abs(cells.xy).max())
    found[order] = _find(points[order], cells.xy, cells.ends, cells.start, cells.loop, cells.sides(), 0, near)
    return found
