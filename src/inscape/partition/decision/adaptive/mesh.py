"""A mesh of simplices on each of a block of probes, cut finer and finer without hanging vertices.

And bridges between components of one label that a band thinner than the finest simplices has fallen into.
Where scores are steps or there are only labels, nothing can be interpolated: a thin band falls into as many
components as samples happen to lie in it. Regions of trees, forests and nearest neighbours are unions of
convex sets, so that two samples of one band often see each other along a straight line. The model is
evaluated on that line, as densely as the finest simplices: it is a bridge if every answer is the label of its
ends.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from inscape.arrays import Array, Bools, Floats, Ints
from inscape.partition.decision.adaptive.answers import grown
from inscape.probes import Patch, Probe


class Mesh:
    """Conforming meshes of the unit domain, one per probe, by bisection (Maubach 1995).

    The domain is the unit square of a patch, or the simplex 1 >= x_1 >= ... >= x_d >= 0 of Kuhn, whose
    halves have the shapes of their ancestors again, however often they are cut.

    Attributes:
        depth: coordinates are multiples of 2^-depth.
        vertices: coordinates in units of 2^-depth, whole numbers until edges are cut, (capacity, d).
        probe: the probe of each vertex, (capacity,).
        cells: the vertices of each cell, (capacity, d + 1).
        level: how often each was cut, (capacity,).
        last: ends and middle of the last two edges that were cut to make it, -1 for none, (capacity, 2, 3).
        fresh: whether a cell has not been scanned, (capacity,).
        n_vertices: how many vertices there are.
        n_cells: how many cells there are.
    """

    def __init__(self, d: int, is_patch: bool, n_probes: int, depth: int) -> None:
        self.depth, self.side = depth, 2**depth + 1
        corners, shape = _first_cells(d, is_patch)
        b, p = n_probes, len(corners)
        self.vertices: Array = np.tile(corners * (self.side - 1), (b, 1))
        self.probe: Ints = np.repeat(np.arange(b), p)
        self.cells: Ints = np.concatenate([shape + p * i for i in range(b)])
        self.n_vertices, self.n_cells = len(self.vertices), len(self.cells)
        self.level: Ints = np.zeros(self.n_cells, np.int64)
        self.tag: Ints = np.full(self.n_cells, d)
        self.last: Ints = np.full((self.n_cells, 2, 3), -1)
        self.fresh: Bools = np.ones(self.n_cells, np.bool_)
        self._table()

    def cut(self, marked: Ints) -> None:
        """Cut the marked cells in two, and others as long as a vertex hangs on one of their edges."""
        from inscape.partition.decision.adaptive.mesh_kernels import cut, hanging

        touched = np.zeros(self.n_vertices, np.bool_)
        while len(marked):
            self._make_room(len(marked))
            touched = np.concatenate([touched, np.zeros(len(self.vertices) - len(touched), np.bool_)])
            self.n_cells, self.n_vertices = cut(
                marked,
                self.cells,
                self.tag,
                self.level,
                self.last,
                self.fresh,
                self.n_cells,
                self.vertices,
                self.probe,
                self.n_vertices,
                touched,
                self._keys,
                self._values,
                self.side,
            )
            marked = hanging(
                self.n_cells, self.cells, self.vertices, self.probe, touched, self._keys, self.side
            )

    def cut_edges(self, edges: Ints, where: Floats) -> Ints:
        """Cut edges, each at some fraction of it, and the cells at them; `cut` is not possible afterwards.

        Args:
            edges: pairs of vertices, each pair once and its smaller vertex first, (e, 2).
            where: the fraction of each at which its new vertex is, (e,).

        Returns:
            The cells that the new cells, behind all others, were cut off.
        """
        from inscape.partition.decision.adaptive.mesh_kernels import cut_at_edges

        n, (v, w) = self.n_vertices, edges.T
        x = self.vertices[:n].astype(np.float64)
        self.vertices = np.concatenate([x, x[v] + where[:, None] * (x[w] - x[v])])
        self.probe = np.concatenate([self.probe[:n], self.probe[v]])
        self.cells, parents = cut_at_edges(self.cells[: self.n_cells], edges, n)
        self.n_vertices, self.n_cells = len(self.vertices), len(self.cells)
        return np.asarray(parents)

    def state(self) -> dict[str, object]:
        """All that `cut` changes, to go back to."""
        return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}

    def restore(self, state: dict[str, object]) -> None:
        """Go back to an earlier state."""
        vars(self).update(state)

    def probe_of_cells(self) -> Ints:
        """The probe of each cell, (n_cells,)."""
        return np.asarray(self.probe[self.cells[: self.n_cells, 0]])

    def coordinates(self, some: slice) -> Floats:
        """The coordinates of some vertices in the unit cube."""
        return np.asarray(self.vertices[some] / (self.side - 1))

    def _table(self) -> None:
        from inscape.partition.decision.adaptive.mesh_kernels import table_of

        self._keys, self._values = table_of(self.vertices, self.n_vertices, self.probe, self.side)

    def _make_room(self, n: int) -> None:
        cells, vertices = self.n_cells + n, self.n_vertices + n
        if cells > len(self.cells):
            capacity = max(cells, 2 * len(self.cells))
            self.cells, self.tag, self.level = (
                grown(a, capacity) for a in (self.cells, self.tag, self.level)
            )
            self.last, self.fresh = grown(self.last, capacity), grown(self.fresh, capacity)
        if vertices > len(self.vertices):
            capacity = max(vertices, 2 * len(self.vertices))
            self.vertices, self.probe = grown(self.vertices, capacity), grown(self.probe, capacity)
        if 2 * vertices > len(self._keys):
            self._table()


def _first_cells(d: int, is_patch: bool) -> tuple[Ints, Ints]:
    """Corners (p, d) and cells of the unit domain, each cell a path 0, e_i, e_i + e_j, ... as Kuhn has it."""
    if not is_patch:
        return np.tri(d + 1, d, -1, dtype=np.int64), np.arange(d + 1)[None]
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return corners, np.array([[0, 1 + i, 3] for i, _ in permutations(range(2))])


def placed(probe: Probe) -> tuple[Floats, Ints]:
    """The generators in the order of the unit domain's corners, and which one of the probe's each is.

    Of a simplex, the two corners that are farthest apart come first and last, the others by their distance
    from the first, so that cells are as little skewed as possible and do not depend on the order in which
    corners are given.
    """
    generators = probe.generators
    if isinstance(probe, Patch):
        return generators, np.arange(3)
    flat = generators.reshape(len(generators), -1)
    names = np.lexsort(flat.T[::-1])
    squared = ((flat[names][:, None] - flat[names][None]) ** 2).sum(axis=2)
    first, last = np.unravel_index(np.argmax(squared), squared.shape)
    between = [i for i in np.argsort(squared[first], kind="stable") if i not in (first, last)]
    order = names[[int(first), *between, int(last)]]
    return generators[order], order


def weights_at(x: Floats, is_patch: bool) -> Floats:
    """The weights of the placed generators at coordinates x (m, d) of the unit domain, (m, k)."""
    if is_patch:
        return np.column_stack([np.ones(len(x)), x])
    padded = np.column_stack([np.ones(len(x)), x, np.zeros(len(x))])
    return np.asarray(padded[:, :-1] - padded[:, 1:])


BRIDGED_BELOW_SAMPLES = 12
"""A component with fewer samples than this may belong to a band."""
MOST_STEPS = 24
"""How many finest cells a bridge may span."""
BRIDGES_EACH = 3
"""On how many bridges from each such component, the shortest, the model is evaluated."""


class Bridges(NamedTuple):
    """Pairs of samples of one label and of different components, (m, 2), and the points between, (m,)."""

    ends: Ints
    """The two samples of each, (m, 2)."""
    n_points: Ints
    """How many points lie between them, (m,)."""


def possible_bridges(x: Floats, labels: Ints, roots: Ints, finest: float) -> Bridges:
    """The bridges on one probe, the shortest first.

    Args:
        x: the samples, (n, d).
        labels: their labels, (n,).
        roots: the component of each, named by one of its samples, (n,).
        finest: the size of the finest cells.

    >>> possible_bridges(np.array([[0.0], [0.1], [0.2]]), np.array([0, 1, 0]), np.arange(3), 0.05)
    Bridges(ends=array([[0, 2]]), n_points=array([3]))
    """
    sizes = np.bincount(roots, minlength=len(x))
    by_pair: dict[tuple[int, int], tuple[float, int, int]] = {}
    for root in np.flatnonzero((sizes > 0) & (sizes < BRIDGED_BELOW_SAMPLES)):
        own = np.flatnonzero(roots == root)
        others = np.flatnonzero((labels == labels[root]) & (roots != root))
        if not len(others):
            continue
        distance = np.linalg.norm(x[own][:, None] - x[others][None], axis=2)
        nearest = distance.argmin(axis=0)
        length = distance[nearest, np.arange(len(others))]
        order = np.argsort(length, kind="stable")
        _, first = np.unique(roots[others[order]], return_index=True)  # one bridge to each other component
        for k in order[np.sort(first)[:BRIDGES_EACH]]:
            if length[k] <= MOST_STEPS * finest:
                pair = tuple(sorted((int(root), int(roots[others[k]]))))
                bridge = float(length[k]), int(own[nearest[k]]), int(others[k])
                by_pair[pair[0], pair[1]] = min(by_pair.get((pair[0], pair[1]), bridge), bridge)
    shortest = sorted(by_pair.values())
    ends = np.array([sorted((i, j)) for _, i, j in shortest], dtype=np.int64).reshape(-1, 2)
    steps = np.ceil(np.array([length for length, _, _ in shortest]) / finest * (1 - 1e-9))
    return Bridges(ends, np.maximum(1, steps - 1).astype(np.int64))


def points_on(x: Floats, bridges: Bridges) -> tuple[Floats, Ints]:
    """The points strictly between the ends of all bridges, evenly spaced, (m, d), and the bridge of each."""
    owner = np.repeat(np.arange(len(bridges.ends)), bridges.n_points)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(bridges.n_points) - bridges.n_points, bridges.n_points)
    fraction = ((step + 1) / (bridges.n_points[owner] + 1))[:, None]
    start, end = x[bridges.ends[owner, 0]], x[bridges.ends[owner, 1]]
    return start + fraction * (end - start), owner


def joined_by(roots: Ints, ends: Ints) -> Ints:
    """The components after those at both ends of each bridge are made one, each named by its first sample."""
    roots = roots.copy()
    for i, j in ends:
        low, high = sorted((roots[i], roots[j]))
        roots[roots == high] = low
    return roots
