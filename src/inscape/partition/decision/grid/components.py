"""Connected components of equal labels on many grids at once, compiled."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np
import numpy.typing as npt

from inscape.arrays import Ints
from inscape.compiled import compiled


def components(
    labels: Ints, sites: Ints, neighbours: Ints, cells: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The component of each point (n, p), numbered from 0 by first appearance, and the counts (n,).

    Union-find over each of n grids: a point is joined with the neighbours before it that share its label.
    The cost is O(p) per neighbour and grid; memory is one bordered grid.

    Args:
        labels: the label of each of p points on each of n grids, (n, p).
        sites: the position of each point in a bordered grid of `cells` positions, (p,), increasing.
        neighbours: how far back each neighbour is, and the two corners that must not share another label
            (0, 0: no condition), (m, 3); see `Lattice.neighbours`.
        cells: the size of the bordered grid.

    >>> ids, counts = components(np.array([[7, 7, 3, 7]]), np.arange(1, 5), np.array([[1, 0, 0]]), 6)
    >>> ids.tolist(), counts.tolist()
    ([[0, 0, 1, 2]], [3])
    """
    ids, counts = _components(np.ascontiguousarray(labels), sites, neighbours, cells)
    return ids, counts


@compiled
def _components(labels, sites, neighbours, cells):  # pragma: no cover - compiled
    # (1) which point is at each position of the bordered grid
    n, p = labels.shape
    point_at = np.full(cells, -1, np.int32)
    for j in range(p):
        point_at[sites[j]] = j
    ids = np.empty((n, p), np.int32)
    counts = np.empty(n, np.int64)
    parent = np.empty(p, np.int32)
    for g in range(n):
        # (2) join each point with the neighbours before it
        for j in range(p):
            parent[j] = j
            root = j
            for m in range(len(neighbours)):
                k = point_at[sites[j] - neighbours[m, 0]]
                if k >= 0 and labels[g, k] == labels[g, j]:
                    if neighbours[m, 1] != 0 and _is_saddle(labels[g], j, k, sites, neighbours, m, point_at):
                        continue
                    while parent[k] != k:
                        parent[k] = parent[parent[k]]
                        k = parent[k]
                    if k < root:  # the smallest point of a component is its root
                        parent[root] = k
                        root = k
                    elif k > root:
                        parent[k] = root
        # (3) number the roots; parents come before their children
        count = 0
        for j in range(p):
            if parent[j] == j:
                ids[g, j] = count
                count += 1
            else:
                ids[g, j] = ids[g, parent[j]]
        counts[g] = count
    return ids, counts


@compiled
def _is_saddle(labels, j, k, sites, neighbours, m, point_at):  # pragma: no cover
    """Whether the step between j and k, which share a label, runs between two parts of another region."""
    inner = point_at[sites[j] + neighbours[m, 1]]
    outer = point_at[sites[j] + neighbours[m, 2]]
    if outer < 0:
        return _goes_inwards(labels, j, sites, neighbours, point_at) and _goes_inwards(
            labels, k, sites, neighbours, point_at
        )
    return labels[inner] == labels[outer] != labels[j]


@compiled
def _goes_inwards(labels, j, sites, neighbours, point_at):  # pragma: no cover
    """Whether a step back along an axis stays in the region of j."""
    for m in range(len(neighbours)):
        if neighbours[m, 1] == 0:
            k = point_at[sites[j] - neighbours[m, 0]]
            if k >= 0 and labels[k] == labels[j]:
                return True
    return False
