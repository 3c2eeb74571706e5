"""The grid on a probe: which points are evaluated, and which of them are neighbours."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import PartitionError
from inscape.probes import Patch, Probe

DEFAULT_RESOLUTION = {1: 200, 2: 30}
DEFAULT_BUDGET = 4096
"""Most grid points per probe, by default, in three dimensions and more."""
MOST_GRID_POINTS = 2**24
"""Of the grid on one probe: about a gigabyte of memory."""
CONNECTIVITIES = ("face", "full", "axes")


@dataclass(frozen=True, eq=False)
class Lattice:
    """p grid points on every probe of one kind.

    The points have integer coordinates 0..r-1 along d axes (with sum at most r-1 on a simplex, so that
    the grid covers the hull only, corners included). They are stored as flat positions in a grid with
    a border, so that a neighbour is a fixed offset away and never outside.

    Attributes:
        weights: what combines a probe's generators into the points, (p, k).
        coordinates: the integer coordinates, (p, d).
        resolution: points per axis r.
        is_patch: whether the grid fills a square, not a simplex.
        bordered_size: the number of positions in the bordered grid.
        sites: the position of each point there, (p,).
    """

    weights: Floats
    coordinates: Ints
    resolution: int
    is_patch: bool
    bordered_size: int
    sites: Ints

    def __len__(self) -> int:
        return len(self.weights)

    def neighbours(self, connectivity: str) -> Ints:
        """The neighbours that come before a point, (m, 3): how far back, and two corners to look at.

        "face" joins points one step apart along an axis (4 neighbours in 2D). On a simplex that alone would
        shatter a thin slab along the face where all axes end into single points. So there the step from one
        axis to another, e_i - e_j, joins as well, except at a saddle: where the other two corners of its
        square share another label, or where one of them is outside and both ends also go on inwards.
        So a half-space is always connected (of its square's corners, the complement cannot hold the other
        two), and a checkerboard still is not. The corners are given as offsets from the point; (0, 0)
        stands for no condition.

        "full" also joins along diagonals (8 neighbours in 2D), saddle or not. On a simplex the first
        barycentric weight changes by the sum of the steps; diagonals that change it by more than two
        would lead across whole regions and are left out.

        "axes" joins along axes alone, on a simplex too: thin slabs shatter there. It is for comparison with
        counts that were made so (Li et al. 2025, in three dimensions and more).
        """
        d = self.coordinates.shape[1]
        strides = _strides(self.resolution, d)
        if connectivity == "full":
            steps = np.array(list(product((-1, 0, 1), repeat=d)))
            flat = steps[np.abs(steps.sum(axis=1)) <= 2] @ strides
            return np.array([(o, 0, 0) for o in np.sort(flat[flat > 0])])
        along = [(o, 0, 0) for o in strides[::-1]]
        if self.is_patch or connectivity == "axes":
            return np.array(along)
        i, j = np.triu_indices(d, 1)
        return np.array([*along, *zip(strides[i] - strides[j], -strides[i], strides[j], strict=True)])

    def corners(self) -> Ints:
        """The points that are generators themselves: on a simplex, its vertices."""
        return np.flatnonzero((self.weights == 1).any(axis=1) & ((self.weights != 0).sum(axis=1) == 1))

    def every_second(self) -> Ints:
        """The points with even coordinates: the same grid at half the resolution."""
        return np.flatnonzero((self.coordinates % 2 == 0).all(axis=1))


def lattice_on(probe: Probe, resolution: int | None) -> Lattice:
    """The grid with `resolution` points per axis on `probe`; None takes the default for its dimension."""
    return _lattice_of(probe, resolution_for(probe, resolution))


def kind_of(probe: Probe) -> tuple[object, ...]:
    """What probes have in common that share a lattice."""
    polygon = None if not isinstance(probe, Patch) or probe.is_rectangle else probe.corners.tobytes()
    return isinstance(probe, Patch), probe.dim, probe.input_shape, polygon


def _lattice_of(probe: Probe, r: int) -> Lattice:
    whole = _lattice(isinstance(probe, Patch), probe.dim, r)
    if not isinstance(probe, Patch) or probe.is_rectangle:
        return whole
    (s0, s1), (t0, t1) = probe.bounds
    points = np.array([s0, t0]) + whole.coordinates / (r - 1) * np.array([s1 - s0, t1 - t0])
    sides = np.roll(probe.corners, -1, axis=0) - probe.corners
    way = points[:, None] - probe.corners
    inside = (sides[:, 0] * way[..., 1] - sides[:, 1] * way[..., 0] >= 0).all(axis=1)
    if not inside.any():
        raise PartitionError(f"resolution={r} puts no grid point into {probe!r}: raise the resolution")
    return replace(
        whole,
        weights=whole.weights[inside],
        coordinates=whole.coordinates[inside],
        sites=whole.sites[inside],
    )


def resolution_for(probe: Probe, resolution: int | None) -> int:
    """The checked number of points per axis: 200 in 1D, 30 in 2D, at most 4,096 points in all above."""
    d = probe.dim
    usual = DEFAULT_RESOLUTION.get(d) or _largest_within(DEFAULT_BUDGET, d)
    r = (
        usual
        if resolution is None
        else whole_number(resolution, "resolution", 2, PartitionError, f" per axis; try resolution={usual}")
    )
    if d * math.log(r + 2) > math.log(MOST_GRID_POINTS):
        less = "dimension" if resolution is None else "resolution"
        raise PartitionError(
            f"resolution={r} in {d} dimensions is a grid of 10^{d * math.log10(r + 2):.0f} points per probe, "
            f"over the limit of 10^{math.log10(MOST_GRID_POINTS):.0f}: lower the {less}"
        )
    return r


def half(lattice: Lattice) -> Lattice | None:
    """The lattice of `lattice.every_second()`, or None if that has a single point per axis or none at all."""
    r = (lattice.resolution - 1) // 2 + 1
    keep = lattice.every_second()
    if r < 2 or not len(keep):
        return None
    coordinates = lattice.coordinates[keep] // 2
    d = coordinates.shape[1]
    sites = (coordinates + 1) @ _strides(r, d)
    return Lattice(lattice.weights[keep], coordinates, r, lattice.is_patch, (r + 2) ** d, sites)


def _largest_within(budget: int, d: int) -> int:
    r = 2
    while math.comb(r + d, d) <= budget:  # points of the simplex grid with r + 1 per axis
        r += 1
    return r


def _strides(resolution: int, d: int) -> Ints:
    return (resolution + 2) ** np.arange(d - 1, -1, -1)


@lru_cache(maxsize=32)
def _lattice(is_patch: bool, d: int, r: int) -> Lattice:
    coordinates = _grid(r, d) if is_patch else _simplex_grid(r, d)
    u = coordinates / (r - 1)
    first = np.ones(len(u)) if is_patch else (r - 1 - coordinates.sum(axis=1)) / (r - 1)
    weights = np.column_stack([first, u])
    return Lattice(weights, coordinates, r, is_patch, (r + 2) ** d, (coordinates + 1) @ _strides(r, d))


def _grid(r: int, d: int) -> Ints:
    return np.stack(np.meshgrid(*[np.arange(r)] * d, indexing="ij"), axis=-1).reshape(-1, d)


def _simplex_grid(r: int, d: int) -> Ints:
    """All coordinates (i_1, ..., i_d) >= 0 with sum at most r - 1, in lexicographic order."""
    points = np.zeros((1, 0), dtype=np.int64)
    for _ in range(d):
        left = r - points.sum(axis=1)
        last = np.arange(left.sum()) - np.repeat(np.cumsum(left) - left, left)
        points = np.column_stack([np.repeat(points, left, axis=0), last])
    return points
