"""Decision regions by evaluating a grid: works for every model, exact for none.

A region is a connected component of equal labels; a compiled flood fill finds those of many grids at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np

from inscape.arrays import Array, Floats, Int32s, Ints
from inscape.budget import check_evaluations
from inscape.compiled import compiled
from inscape.errors import NonFiniteScoresError
from inscape.models import Model
from inscape.partition.decision.grid.lattice import Lattice, half, kind_of, lattice_on
from inscape.partition.decision.regions import (
    DecisionGrid,
    DecisionRegions,
    DecisionSegment,
    TopScores,
    top_two,
)
from inscape.probes import Probe, Segment
from inscape.probes.sampling import of_every_kind
from inscape.probes.segment import as_segment
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import CONVERGED, NOT_CONVERGED, NOT_DETERMINISTIC, Status, not_shown

MOST_POINTS_IN_BLOCK = 2**16
MOST_NUMBERS_IN_BLOCK = 2**22
EQUAL_NEIGHBOURS = 0.2
"""Scores that are the same at this share of neighbouring grid points are taken to be piecewise constant."""


@dataclass(frozen=True, eq=False)
class LabelledBlock:
    """The labels on some probes: memory is bounded by this many points, however many probes there are.

    Attributes:
        probes: the probes of the block, all of one kind.
        lattice: the grid on each of them.
        labels: the label of each grid point, (b, p).
        top_scores: the two highest scores there, (b, p, 2), if asked for and known.
        top_labels: whose they are, (b, p, 2).
    """

    probes: Sequence[Probe]
    lattice: Lattice
    labels: Ints
    top_scores: Array | None
    top_labels: Ints | None

    @property
    def not_shown(self) -> Status | None:
        """Why equal counts on the grid and on every second point show nothing: the model has steps only."""
        if self.top_scores is None:
            return not_shown("the model has no scores")
        equal = (self.top_scores[:, 1:] == self.top_scores[:, :-1]).all(axis=2)
        is_constant = equal.mean() > EQUAL_NEIGHBOURS
        return not_shown("the scores are piecewise constant") if is_constant else None

    def components(self, connectivity: str) -> tuple[Int32s, Ints]:
        """The region of each grid point (b, p), and the number of regions of each probe (b,)."""
        grid = self.lattice
        return components(self.labels, grid.sites, grid.neighbours(connectivity), grid.bordered_size)

    def coarse_counts(self, connectivity: str) -> Ints | None:
        """The number of regions of each probe on every second grid point, from the same evaluations."""
        grid = half(self.lattice)
        if grid is None:
            return None
        labels = self.labels[:, self.lattice.every_second()]
        return components(labels, grid.sites, grid.neighbours(connectivity), grid.bordered_size)[1]


def labelled_blocks(
    model: Model,
    probes: Sequence[Probe],
    resolution: int | None,
    *,
    meter: Meter,
    with_scores: bool = False,
) -> Iterator[LabelledBlock]:
    """Evaluate the grid on every probe, in a stream of batches that run across probes."""
    some = of_every_kind(probes)
    total = len(probes) * sum(len(lattice_on(p, resolution)) for p in some) // len(some)
    check_evaluations(len(probes), -(-total // len(probes)), "lower the resolution or the number of probes")
    done = first = 0

    def advance(n: int) -> None:
        nonlocal done
        done += n
        meter(done, total)

    meter(0, total)
    with model.session():
        for _, group in groupby(probes, key=kind_of):
            for some in _blocks(group, resolution):
                lattice = lattice_on(some[0], resolution)
                yield _evaluate(model, some, lattice, with_scores, advance, first)
                first += len(some)


def _blocks(probes: Iterator[Probe], resolution: int | None) -> Iterator[list[Probe]]:
    """Probes of one kind, as many at a time as have 65,536 grid points and 32 MB of generators together."""
    for probe in probes:
        size = max(
            1,
            min(
                MOST_POINTS_IN_BLOCK // len(lattice_on(probe, resolution)),
                MOST_NUMBERS_IN_BLOCK // probe.generators.size,
            ),
        )
        yield [probe, *islice(probes, size - 1)]


def _evaluate(
    model: Model,
    probes: Sequence[Probe],
    lattice: Lattice,
    with_scores: bool,
    advance: Callable[[int], None],
    first: int,
) -> LabelledBlock:
    p, n = len(lattice), len(probes) * len(lattice)
    labels = np.empty(n, dtype=np.int64)
    top_scores: Array | None = None
    top_labels: Ints | None = None
    size = model.batch_length(probes[0].generators[0].size)
    start = 0
    for points in _batches(probes, lattice, size):
        stop = start + len(points)
        try:
            prediction = model.predict_batch(points, with_scores)
        except NonFiniteScoresError as error:
            raise _located(error, start, probes, lattice, first) from error
        labels[start:stop] = prediction.labels
        if prediction.scores is not None:
            if top_scores is None or top_labels is None:
                top_scores, top_labels = np.empty((n, 2)), np.empty((n, 2), dtype=np.int64)
            top_scores[start:stop], top_labels[start:stop] = top_two(prediction.scores)
        advance(len(points))
        start = stop
    shape = (len(probes), p)
    return LabelledBlock(
        probes,
        lattice,
        labels.reshape(shape),
        None if top_scores is None else top_scores.reshape(*shape, 2),
        None if top_labels is None else top_labels.reshape(*shape, 2),
    )


def _batches(probes: Sequence[Probe], lattice: Lattice, size: int) -> Iterator[Floats]:
    """The grid points of all probes in order, `size` at a time: one small product per probe and batch."""
    p = len(lattice)
    shape = probes[0].input_shape
    current, generators = -1, np.empty((0, 0))
    for start in range(0, len(probes) * p, size):
        stop = min(start + size, len(probes) * p)
        points = np.empty((stop - start, int(np.prod(shape))))
        i = start
        while i < stop:
            probe, first = divmod(i, p)
            if probe != current:
                current, generators = probe, probes[probe].generators.reshape(lattice.weights.shape[1], -1)
            n = min(p - first, stop - i)
            np.matmul(lattice.weights[first : first + n], generators, out=points[i - start : i - start + n])
            i += n
        yield points.reshape(-1, *shape)


def _located(
    error: NonFiniteScoresError, start: int, probes: Sequence[Probe], lattice: Lattice, first: int
) -> NonFiniteScoresError:
    probe, point = divmod(start + error.rows[0], len(lattice))
    where = f"grid point {lattice.coordinates[point].tolist()}"
    if isinstance(probes[probe], Segment):
        low, high = probes[probe].span  # type: ignore[attr-defined]
        where = f"t={low + lattice.weights[point, 1] * (high - low):.6g}"
    return NonFiniteScoresError(f"{error} (there: probe {first + probe} at {where})", error.rows)


def grid_regions(
    model: Model, probes: Sequence[Probe], *, resolution: int | None, connectivity: str, meter: Meter
) -> list[DecisionRegions]:
    """The decision regions on the grid of each probe."""
    provenance: Provenance | None = None
    results: list[DecisionRegions] = []
    for block in labelled_blocks(model, probes, resolution, meter=meter, with_scores=True):
        provenance = provenance or Provenance.of(model)  # how it was evaluated is known now
        ids, counts = block.components(connectivity)
        coarse = block.coarse_counts(connectivity)
        for i, probe in enumerate(block.probes):
            common = {
                "probe": probe,
                "method": "grid",
                "is_exact": False,
                "status": _status(model, coarse is not None and coarse[i] == counts[i], block.not_shown),
                "n_evaluations": len(block.lattice),
                "resolution": block.lattice.resolution,
                "connectivity": connectivity,
                "class_names": model.classes,
                "provenance": provenance,
            }
            make = _segment_result if probe.dim == 1 else _grid_result
            results.append(make(block, i, ids[i], common))
    return results


def _status(model: Model, is_stable: bool, not_shown: Status | None) -> Status:
    """`not_shown` says why a stable count shows nothing, if it does not."""
    if model.is_random:
        return NOT_DETERMINISTIC
    return (not_shown or CONVERGED) if is_stable else NOT_CONVERGED


def _segment_result(block: LabelledBlock, i: int, ids: Int32s, common: dict[str, object]) -> DecisionSegment:
    probe = block.probes[i]
    low, high = as_segment(probe).span
    t = low + block.lattice.weights[:, 1] * (high - low)
    changes = np.flatnonzero(np.diff(ids))
    return DecisionSegment(
        labels=block.labels[i, np.concatenate([[0], changes + 1])],
        boundaries=(t[changes] + t[changes + 1]) / 2,
        span=(low, high),
        samples=t,
        top=None
        if block.top_scores is None or block.top_labels is None
        else TopScores(t, block.top_scores[i], block.top_labels[i]),
        **common,  # type: ignore[arg-type]
    )


def _grid_result(block: LabelledBlock, i: int, ids: Int32s, common: dict[str, object]) -> DecisionGrid:
    first = np.unique(ids, return_index=True)[1]
    return DecisionGrid(
        labels=block.labels[i, first],
        coordinates=block.lattice.coordinates,
        sample_labels=block.labels[i].copy(),
        sample_regions=ids.copy(),
        **common,  # type: ignore[arg-type]
    )


def components(labels: Ints, sites: Ints, neighbours: Ints, bordered_size: int) -> tuple[Int32s, Ints]:
    """The component of each point (n, p), numbered from 0 by first appearance, and the counts (n,).

    Union-find over each of n grids: a point is joined with the neighbours before it that share its label.
    The cost is O(p) per neighbour and grid; memory is one bordered grid.

    Args:
        labels: the label of each of p points on each of n grids, (n, p).
        sites: the position of each point in a bordered grid of `bordered_size` positions, (p,), increasing.
        neighbours: how far back each neighbour is, and the two corners that must not share another label
            (0, 0: no condition), (m, 3); see `Lattice.neighbours`.
        bordered_size: how many positions it has.

    >>> ids, counts = components(np.array([[7, 7, 3, 7]]), np.arange(1, 5), np.array([[1, 0, 0]]), 6)
    >>> ids.tolist(), counts.tolist()
    ([[0, 0, 1, 2]], [3])
    """
    ids, counts = _components(np.ascontiguousarray(labels), sites, neighbours, bordered_size)
    return ids, counts


@compiled
def _components(labels: Any, sites: Any, neighbours: Any, bordered_size: int) -> Any:
    # (1) which point is at each position of the bordered grid
    n, p = labels.shape
    point_at = np.full(bordered_size, -1, np.int32)
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
def _is_saddle(labels: Any, j: Any, k: Any, sites: Any, neighbours: Any, m: Any, point_at: Any) -> Any:
    """Whether the step between j and k, which share a label, runs between two stretches of another region."""
    inner = point_at[sites[j] + neighbours[m, 1]]
    outer = point_at[sites[j] + neighbours[m, 2]]
    if outer < 0:
        return _goes_inwards(labels, j, sites, neighbours, point_at) and _goes_inwards(
            labels, k, sites, neighbours, point_at
        )
    return labels[inner] == labels[outer] != labels[j]


@compiled
def _goes_inwards(labels: Any, j: int, sites: Any, neighbours: Any, point_at: Any) -> Any:
    """Whether a step back along an axis stays in the region of j."""
    for m in range(len(neighbours)):
        if neighbours[m, 1] == 0:
            k = point_at[sites[j] - neighbours[m, 0]]
            if k >= 0 and labels[k] == labels[j]:
                return True
    return False
