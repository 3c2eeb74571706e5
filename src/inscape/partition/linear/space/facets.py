"""Which halfspaces of a polytope are its facets, with a point inside each of them.

A facet is a face of one dimension less than the polytope: at some point of its hyperplane all other rows are
slack. Up to `HULL_DIMENSIONS` the vertices are enumerated (Qhull: the dual of a convex hull), and the mean of
those on a hyperplane is such a point; above, rays find most facets, and a linear program (HiGHS) for each
other row finds the point at which the least slack is largest. Either way the slack is computed afterwards,
from the rows themselves, and decides.
"""

from dataclasses import dataclass

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.errors import PartitionError
from inscape.partition.linear.space.polytope import rays_to_rows

HULL_DIMENSIONS = 5
"""Vertices are enumerated up to this dimension; above, a polytope may have too many of them."""
EQUAL = 1e-12
"""Rows of unit length that differ by no more, offsets relative to the extent, are one, up to rounding."""


@dataclass(frozen=True, eq=False)
class Facets:
    """The facets of a polytope rows u <= offsets, rows of unit length.

    Attributes:
        row: the row of each facet, (f,); of rows on one hyperplane the first.
        points: a point inside each facet, (f, d).
        slack: how far that point is from the next other hyperplane, (f,).
        group: for each row the first row that is on the same hyperplane, (m,).
        vertices: of the polytope, (v, d); None if they were not enumerated.
    """

    row: Ints
    points: Floats
    slack: Floats
    group: Ints
    vertices: Floats | None


def facets(rows: Floats, offsets: Floats, inside: Floats, extent: float) -> Facets:
    """The facets of a bounded polytope with a point inside it; `extent` says how large it may be.

    >>> square = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8]])
    >>> found = facets(square, np.array([1.0, 1.0, 1.0, 1.0, 9.0]), np.zeros(2), 2.0)
    >>> found.row.tolist(), found.slack.round(9).tolist(), len(found.vertices)
    ([0, 1, 2, 3], [1.0, 1.0, 1.0, 1.0], 4)
    """
    group = _groups(rows, offsets / extent)
    first = np.flatnonzero(group == np.arange(len(group)))
    a, b = rows[first], (offsets[first] - rows[first] @ inside) / extent
    vertices = None
    if a.shape[1] == 1:
        points, known, vertices = _of_interval(a, b)
    elif a.shape[1] <= HULL_DIMENSIONS:
        points, known, vertices = _by_vertices(a, b)
    else:
        points, known = _by_programs(a, b)
    slack = _slack(a, b, points, known)
    return Facets(
        row=first[known],
        points=inside + extent * points[known],
        slack=extent * slack[known],
        group=group,
        vertices=None if vertices is None else inside + extent * vertices,
    )


def _groups(rows: Floats, offsets: Floats) -> Ints:
    """For each row the first one that is on the same hyperplane, its sides the same too."""
    group = np.arange(len(rows))
    near = np.abs(rows @ rows.T) > 1 - EQUAL
    for i, j in np.argwhere(np.triu(near, 1)).tolist():
        same = np.abs(rows[i] - rows[j]).max() <= EQUAL and abs(offsets[i] - offsets[j]) <= EQUAL
        if same and group[j] == j:
            group[j] = group[i]
    return group


def _of_interval(a: Floats, b: Floats) -> tuple[Floats, Bools, Floats]:
    """The two ends of an interval."""
    ends = (b / a[:, 0])[:, None]
    above = a[:, 0] > 0
    high, low = np.where(above, ends[:, 0], np.inf).argmin(), np.where(above, -np.inf, ends[:, 0]).argmax()
    known = np.zeros(len(b), dtype=bool)
    known[[high, low]] = True
    return ends, known, ends[[low, high]]


def _by_vertices(a: Floats, b: Floats) -> tuple[Floats, Bools, Floats]:
    """For each row the mean of the vertices on it, whether there are any, and all vertices."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    scale = float(b.min())  # of what is seen from inside, the nearest hyperplane
    try:
        hull = HalfspaceIntersection(np.column_stack([a, -b / scale]), np.zeros(a.shape[1]))
    except (QhullError, ValueError) as error:
        raise PartitionError(
            f"the vertices of a linear region could not be found: {str(error).splitlines()[0]}"
        ) from error
    sums, n = np.zeros_like(a), np.zeros(len(a))
    vertices = scale * hull.intersections
    for vertex, own in zip(vertices, hull.dual_facets, strict=True):
        sums[own] += vertex
        n[own] += 1
    return sums / np.maximum(n, 1)[:, None], n > 0, vertices


def _by_programs(a: Floats, b: Floats) -> tuple[Floats, Bools]:
    """For each row the point on it with the largest least slack of the others, and whether there is one."""
    from scipy.optimize import linprog

    points, known = rays_to_rows(a, b)
    for i in np.flatnonzero(~known):
        others = np.arange(len(b)) != i
        table = np.column_stack([a[others], np.ones(int(others.sum()))])
        d = a.shape[1]
        found = linprog(
            np.append(np.zeros(d), -1.0),
            table,
            b[others],
            np.append(a[i], 0.0)[None],
            b[[i]],
            bounds=[(None, None)] * d + [(0.0, 1.0)],
        )
        if found.status not in (0, 2):
            raise PartitionError(f"the linear program of a facet failed: {found.message}")
        if found.status == 0:
            points[i], known[i] = found.x[:-1], True
    return points, known


def _slack(a: Floats, b: Floats, points: Floats, known: Bools) -> Floats:
    """How far each point, moved onto the hyperplane of its row in place, is from all others, (m,)."""
    points += (b - (a * points).sum(axis=1))[:, None] * a
    slack = b - points @ a.T
    np.fill_diagonal(slack, np.inf)
    return np.where(known, slack.min(axis=1, initial=np.inf), 0.0)
