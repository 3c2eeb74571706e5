"""The whole subdivision of a convex polygon by a network: put together from its parts, tidied and checked."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import NonGenericError
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows
from inscape.partition.linear.bending import thresholds
from inscape.partition.linear.planes.complex import kernels
from inscape.partition.linear.planes.complex.chunks import joined
from inscape.partition.linear.planes.complex.dissolve import dissolve
from inscape.partition.linear.planes.complex.half_edges import BORDER, Cells, polygon_cells
from inscape.partition.linear.planes.layer.bits import hash_rows
from inscape.partition.linear.planes.lineage import Lineage
from inscape.partition.linear.planes.near_zero import centre_of, fan_cells
from inscape.partition.linear.planes.rounding import Plane
from inscape.partition.linear.planes.values.at_points import states_at
from inscape.partition.linear.planes.walk import PlaneWalk, walk_plane

AREA_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Subdivision:
    """A planar subdivision with what the network does on each face.

    Attributes:
        cells: vertices, edges and faces.
        lineage: for each layer the row of `patterns` that belongs to each face, see `rows`.
        plane: where coordinates lie in the input space.
        patterns: for each layer its packed patterns; None if they would have taken more than the memory:
            then they are found anew, by evaluating the network at the faces' centroids.
        hashes: for each layer a number for each of its patterns if those are not kept.
        layers: the graph's piecewise-linear nodes, in order.
        labels: the label of each face, if asked for.
        is_complete: whether all layers that were asked for were cut.
        has_tie: whether two scores are equal and largest on a whole face.
    """

    graph: Graph
    plane: Plane
    cells: Cells
    lineage: Lineage
    patterns: tuple[Any, ...]
    hashes: tuple[Any, ...]
    layers: tuple[int, ...]
    labels: Ints | None
    is_complete: bool
    has_tie: bool

    @property
    def rows(self) -> tuple[Ints, ...]:
        """For each layer the row of its patterns that belongs to each face, (f,)."""
        return self.lineage.rows

    @cached_property
    def birth(self) -> Ints:
        """The number of the last layer that cut each face out, 0 for none, (f,)."""
        found = np.zeros(self.cells.n_faces, np.int64)
        for k, rows in enumerate(self.rows):
            parent = np.zeros(self.cells.n_faces, np.int64) if k == 0 else self.rows[k - 1]
            pairs = np.unique(np.stack([parent, rows], axis=1), axis=0)
            n_children = np.bincount(pairs[:, 0])
            found[n_children[parent] > 1] = k + 1
        return found

    def layer_hashes(self, layer: int) -> Any:
        """A number for each pattern of a layer, uint64."""
        return self.hashes[layer] if self.patterns[layer] is None else hash_rows(self.patterns[layer])

    def face_hashes(self) -> Any:
        """A number for each face that depends on its pattern only, (f,), uint64.

        The lowest bit is the parity of all signs, which differs between neighbours where one unit changes.
        """
        if not self.layers:
            return np.zeros(self.cells.n_faces, np.uint64)
        every = np.stack([self.layer_hashes(k)[rows] for k, rows in enumerate(self.rows)], axis=1)
        odd = np.bitwise_xor.reduce(every, axis=1) & np.uint64(1)
        return (hash_rows(every) & ~np.uint64(1)) | odd

    def states(self, layer: int) -> Any:
        """The state of each unit of a layer on each face, (f, units), uint8 or uint16.

        0 and 1 for below and above the threshold; 0, 1, 2 for a unit with two; the winner's place in a
        window.
        """
        op = self.graph.nodes[self.layers[layer]].op
        assert isinstance(op, Bend)
        patterns = self.patterns[layer]
        if patterns is None:
            return states_at(self.graph, self.layers[layer], self.plane.points(self.cells.centroids()))
        rows = patterns[self.rows[layer]]
        if isinstance(op, Windows):
            return rows
        h = int(np.prod(self.graph.shapes[self.layers[layer]]))
        n_words = 8 * 8 * ((h + 63) // 64)
        bits = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little")
        parts = [bits[:, k * n_words : k * n_words + h] for k in range(len(thresholds(op)))]
        return sum(parts[1:], start=parts[0]) if parts else bits[:, :0]


def subdivide(
    graph: Graph,
    plane: Plane,
    corners: Floats,
    *,
    memory: int,
    n_layers: int | None = None,
    max_faces: float = np.inf,
    with_labels: bool = False,
    done: Callable[[float], None] = lambda _: None,
) -> Subdivision:
    """Cut a convex polygon with corners (k, 2), anticlockwise; the rest is as in `walk_plane`."""
    centre, given = centre_of(graph, plane, corners), plane
    if centre is None:
        start = polygon_cells(corners)
        extent = float(np.abs(corners).max())
        plane = replace(plane, extent=extent)
    else:
        start = fan_cells(corners - centre)
        plane = Plane(np.zeros_like(plane.origin), plane.axes)
    walk = walk_plane(
        graph,
        plane,
        start,
        memory=memory,
        n_layers=n_layers,
        max_faces=max_faces,
        with_labels=with_labels,
        done=done,
    )
    found = _assembled(graph, plane, walk)
    if centre is not None:
        found = _without_spokes(found)
        found = replace(found, cells=replace(found.cells, xy=found.cells.xy + centre), plane=given)
    check(found, corners, is_simple=centre is None and not walk.is_tied and len(walk.parts) == 1)
    return found


def _assembled(graph: Graph, plane: Plane, walk: PlaneWalk) -> Subdivision:
    """The parts of a walk as one; a walk that was stopped has the layers that all its parts went through."""
    n_layers = min(len(p.lineage) for p in walk.parts)
    lineage = _of_all([p.lineage for p in walk.parts], n_layers)
    layers = list(zip(walk.patterns[:n_layers], walk.hashes[:n_layers], strict=True))
    is_kept = [all(p is not None for p in blocks) for blocks, _ in layers]
    patterns = tuple(
        _one(blocks) if kept else None for kept, (blocks, _) in zip(is_kept, layers, strict=True)
    )
    hashes = tuple(
        None if kept else _one([h if p is None else hash_rows(p) for p, h in zip(*both, strict=True)])
        for kept, both in zip(is_kept, layers, strict=True)
    )
    labels = [p.labels for p in walk.parts if p.labels is not None]
    cells = joined([p.cells for p in walk.parts])
    found = Subdivision(
        graph=graph,
        plane=plane,
        cells=cells,
        lineage=lineage,
        patterns=patterns,
        hashes=hashes,
        layers=tuple(walk.layers[:n_layers]),
        labels=_one(labels) if len(labels) == len(walk.parts) else None,
        is_complete=walk.is_complete,
        has_tie=walk.has_tie,
    )
    if len(walk.parts) > 1:
        found = _without(found, np.zeros(len(cells.ends), bool))
    return found


def _of_all(parts: list[Lineage], n_layers: int) -> Lineage:
    """The lineage of the faces of all parts, in the first layers."""
    if len(parts) == 1:
        return parts[0]
    return Lineage(tuple(np.concatenate([p.rows[k] for p in parts]) for k in range(n_layers)))


def _one(blocks: list[Any]) -> Any:
    """Blocks of rows as one."""
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _without_spokes(found: Subdivision) -> Subdivision:
    """Take the edges of the first triangles away where nothing changes across them; date the others."""
    cells = found.cells
    left, right = cells.sides().T
    spokes = np.flatnonzero((cells.born == BORDER) & (left >= 0) & (right >= 0))
    born = cells.born.copy()
    for k in reversed(range(len(found.layers))):
        hashes, rows = found.layer_hashes(k), found.rows[k]
        a, b = (hashes[rows[side[spokes]]] for side in (left, right))
        born[spokes[a != b]] = found.layers[k]
    if found.labels is not None:
        differ = found.labels[left[spokes]] != found.labels[right[spokes]]
        fresh = spokes[differ & (born[spokes] == BORDER)]
        born[fresh] = found.graph.output + 1
    gone = (born == BORDER) & (left >= 0) & (right >= 0)
    return _without(replace(found, cells=replace(cells, born=born)), gone)


def _without(found: Subdivision, gone: Any) -> Subdivision:
    """The subdivision without some edges across which nothing changes."""
    cells, _, faces = dissolve(found.cells, gone)
    old = np.empty(cells.n_faces, np.int64)
    old[faces] = np.arange(len(faces))
    labels = None if found.labels is None else found.labels[old]
    return replace(found, cells=cells, lineage=found.lineage.of(old), labels=labels)


def check(found: Subdivision, corners: Floats, is_simple: bool) -> None:
    """Raise an error unless V - E + F = 1 and the faces' areas add up to the domain's.

    Where lines met in a point, or parts were joined, no edge may have the length 0, and no two faces the same
    pattern and label.
    """
    cells = found.cells
    v, e, f = len(cells.xy), len(cells.ends), cells.n_faces
    ways = (corners - corners[0]).tolist()
    domain = sum(a * d - b * c for (a, b), (c, d) in itertools.pairwise(ways)) / 2
    covered = kernels.total_area(cells.loop, cells.ends, cells.xy)
    fits = v - e + f == 1 and abs(covered - domain) <= AREA_TOLERANCE * domain
    if fits and not is_simple:
        has_length = (cells.xy[cells.ends[:, 0]] != cells.xy[cells.ends[:, 1]]).any(axis=1).all()
        fits = bool(has_length) and _n_distinct(found) == f
    if not fits:
        raise NonGenericError(
            f"the pieces do not fit together (V - E + F = {v - e + f}, area {covered} of {domain}): "
            "lines meet too closely for float64; move the probe a little"
        )


def _n_distinct(found: Subdivision) -> int:
    """How many different pairs of pattern and label the faces have."""
    names = found.face_hashes()
    if found.labels is not None:
        names = hash_rows(np.stack([names, found.labels.astype(np.uint64)], axis=1))
    names = np.sort(names)
    return len(names) - int((names[1:] == names[:-1]).sum())
