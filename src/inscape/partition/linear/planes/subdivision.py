"""The whole subdivision of a convex polygon by a network: joined from chunks, cleared of seams and checked.

A domain that contains the input 0, near which a network with small biases has kinks in many directions, is
first cut into triangles around that point, a fan: there every line passes near one point, what happens around
it is as small as the biases, and coordinates have to be known to relative accuracy. Where faces are crowded,
the domain is cut into tiles. These edges are seams: in the end they go where nothing changes across them.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from inscape.arguments import whole_number
from inscape.arrays import ActivationPatterns, Bools, Floats, Ints
from inscape.errors import NonGenericError, PartitionError
from inscape.models import Model
from inscape.models.graph import Graph
from inscape.models.graph.trace import graph_of
from inscape.partition.linear.planes.complex.dissolve import dissolve
from inscape.partition.linear.planes.complex.half_edges import (
    BORDER,
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
    joined,
    outward,
    polygon_complex,
)
from inscape.partition.linear.planes.layer.cut import cut
from inscape.partition.linear.planes.layer.sign_vectors import hash_vectors
from inscape.partition.linear.planes.layer.ties import CrowdedFacesError
from inscape.partition.linear.planes.values.values import Values
from inscape.partition.linear.planes.walk import Lineage, PlaneSink, PlaneWalk, walk_plane
from inscape.partition.linear.regions import LinearPlane
from inscape.partition.linear.rounding import ROUNDING, evaluated
from inscape.probes import Probe
from inscape.probes.plane import Domain, Plane, domain_of
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import BUDGET, COMPLETE

AREA_TOLERANCE = 1e-10
"""How far the sum of the faces' areas may be from the area of the domain, relative to it."""

MOST_TILINGS = 6
"""How often crowded faces are cut into smaller tiles before they are given up."""

LINES_OF_A_TILE = 50
"""About how many of the lines that crowd a face one of its tiles is to have."""


@dataclass(frozen=True, eq=False)
class Subdivision:
    """A planar complex with what the network does on each face.

    Attributes:
        graph: the network.
        plane: where coordinates lie in the input space.
        planar: vertices, edges and faces.
        lineage: for each layer which of `patterns` belongs to each face.
        patterns: for each layer its packed patterns; None if they would have taken more than the memory:
            then they are computed again, by evaluating the network at the faces' centroids.
        hashes: for each layer a hash of each of its patterns if those are not kept.
        layers: the graph's piecewise-linear nodes, in order.
        labels: the label of each face, if asked for.
        is_complete: whether all layers that were asked for were cut.
        has_tie: whether two scores are equal and largest on a whole face.
    """

    graph: Graph
    plane: Plane
    planar: PlanarComplex
    lineage: Lineage
    patterns: tuple[Any, ...]
    hashes: tuple[Any, ...]
    layers: tuple[int, ...]
    labels: Ints | None
    is_complete: bool
    has_tie: bool

    @property
    def pattern_numbers(self) -> tuple[Ints, ...]:
        """For each layer the number of the pattern of each face, (f,)."""
        return self.lineage.pattern_numbers

    @cached_property
    def birth(self) -> Ints:
        """The number of the last layer that cut each face out, 0 for none, (f,)."""
        birth = np.zeros(self.planar.n_faces, np.int64)
        for k, pattern in enumerate(self.pattern_numbers):
            parent = np.zeros(self.planar.n_faces, np.int64) if k == 0 else self.pattern_numbers[k - 1]
            pairs = np.unique(np.stack([parent, pattern], axis=1), axis=0)
            n_children = np.bincount(pairs[:, 0])
            birth[n_children[parent] > 1] = k + 1
        return birth

    def layer_hashes(self, layer: int) -> Any:
        """A hash of each pattern of a layer, uint64."""
        return self.hashes[layer] if self.patterns[layer] is None else hash_vectors(self.patterns[layer])

    def face_hashes(self) -> Any:
        """A hash of each face's activation pattern, (f,), uint64.

        The lowest bit is the parity of all signs, which differs between neighbours where one unit changes.
        """
        if not self.layers:
            return np.zeros(self.planar.n_faces, np.uint64)
        by_layer = [self.layer_hashes(k)[pattern] for k, pattern in enumerate(self.pattern_numbers)]
        hashes = np.stack(by_layer, axis=1)
        odd = np.bitwise_xor.reduce(hashes, axis=1) & np.uint64(1)
        return (hash_vectors(hashes) & ~np.uint64(1)) | odd

    def states(self, layer: int) -> ActivationPatterns:
        """The state of each unit of a layer on each face, (f, units), uint8 or uint16.

        0 and 1 for below and above the kink; 0, 1, 2 for a unit with two; the winner's number in a window.
        """
        op = self.graph.nodes[self.layers[layer]].op
        patterns = self.patterns[layer]
        if patterns is None:
            points = torch.from_numpy(self.plane.points(self.planar.centroids()))
            return states_at(self.graph, self.layers[layer], points)
        of_faces: ActivationPatterns = patterns[self.pattern_numbers[layer]]
        if not op.is_elementwise:
            return of_faces
        h = int(np.prod(self.graph.shapes[self.layers[layer]]))
        n_bits = 64 * ((h + 63) // 64)
        bits = np.unpackbits(np.ascontiguousarray(of_faces).view(np.uint8), axis=1, bitorder="little")
        per_kink = [bits[:, k * n_bits : k * n_bits + h] for k in range(len(op.kinks))]
        return sum(per_kink, start=np.zeros((len(of_faces), h), np.uint8))


def plane_regions(
    model: Model,
    graph: Graph,
    probe: Probe,
    *,
    n_layers: int | None,
    max_regions: int | None,
    memory: int,
    meter: Meter,
) -> LinearPlane:
    """The linear regions of a model on one plane, by its graph; see `linear_regions` for the arguments."""
    if n_layers is not None:
        n_layers = whole_number(n_layers, "n_layers", 1, PartitionError)
    if max_regions is not None:
        max_regions = whole_number(max_regions, "max_regions", 1, PartitionError)
    subdivision, domain = subdivision_on(
        graph, probe, n_layers=n_layers, max_faces=max_regions or math.inf, memory=memory, meter=meter
    )
    return LinearPlane(
        probe=probe,
        status=COMPLETE if subdivision.is_complete else BUDGET,
        n_layers=len(subdivision.layers),
        tolerance=ROUNDING * float(np.finfo(np.float64).eps),
        provenance=Provenance.of(model, dtype="float64"),
        domain=domain,
        subdivision=subdivision,
        class_names=model.classes,
    )


def subdivision_on(
    graph: Graph, probe: Probe, *, meter: Meter, **settings: Any
) -> tuple[Subdivision, Domain]:
    """The subdivision of a probe by a network, and the probe's domain; for settings see `subdivide`."""
    domain = domain_of(probe)
    subdivision = subdivide(
        graph,
        domain.plane,
        domain.corners,
        done=lambda fraction: meter(round(1000 * fraction), 1000),
        **settings,
    )
    return subdivision, domain


def confirmed_on(model: Model, probe: Probe) -> Graph:
    """The model's graph, compared with the model at a few points of a probe if that was not done before."""
    domain = domain_of(probe)
    return graph_of(model, probe.input_shape, lambda: _a_few_points(domain).reshape(-1, *probe.input_shape))


def _a_few_points(domain: Domain) -> Floats:
    """Points inside, one near each corner, (k, d)."""
    return domain.plane.points((domain.corners + domain.corners.mean(axis=0)) / 2)


def subdivide(
    graph: Graph,
    plane: Plane,
    corners: Floats,
    *,
    memory: int,
    n_layers: int | None = None,
    max_faces: float = np.inf,
    with_labels: bool = False,
    sink: PlaneSink | None = None,
    done: Callable[[float], None] = lambda _: None,
) -> Subdivision:
    """Cut a convex polygon with corners (k, 2), anticlockwise; the rest is as in `walk_plane`.

    A sink may be called for the same vertices more than once.
    """
    centre, original_plane = centre_of(graph, plane, corners), plane
    if centre is None:
        start = polygon_complex(corners)
        plane = replace(plane, extent=float(np.abs(corners).max()))
    else:
        start = fan(corners - centre)
        plane = Plane(np.zeros_like(plane.origin), plane.axes)
    walk, n_tilings = _walk_in_tiles(
        graph,
        plane,
        start,
        memory=memory,
        n_layers=n_layers,
        max_faces=max_faces,
        with_labels=with_labels,
        sink=None if sink is None else _from_centre(sink, centre),
        done=done,
    )
    whole = _assembled(graph, plane, walk)
    if centre is not None or n_tilings:
        whole = _without_seams(whole)
    if centre is not None:
        planar = replace(whole.planar, xy=whole.planar.xy + centre)
        whole = replace(whole, planar=planar, plane=original_plane)
    is_simple = centre is None and not walk.is_tied and len(walk.chunks) == 1
    check(whole, corners, is_simple=is_simple and not n_tilings)
    return whole


def _walk_in_tiles(
    graph: Graph, plane: Plane, start: PlanarComplex, **settings: Any
) -> tuple[PlaneWalk, int]:
    """The walk over a complex, which is cut into tiles where faces are crowded, and how often that was done.

    The faces of such a walk end at the edges of the tiles, until these seams are dissolved.
    """
    n_tilings = 0
    while True:
        try:
            return walk_plane(graph, plane, start, **settings), n_tilings
        except CrowdedFacesError as error:
            if n_tilings == MOST_TILINGS:
                raise
            n_tilings += 1
            for box in error.boxes[:MOST_TILINGS]:
                start = tiled(start, box, -(-error.n_units // LINES_OF_A_TILE), n_tilings)
        if plane.extent == 0.0:
            start = outward(start)


def tiled(start: PlanarComplex, box: Floats, n: int, angle: float) -> PlanarComplex:
    """A complex cut by a grid of n lines each way through a box (2, 2), turned by an angle in radians.

    Hardly any unit has its kink along one of them.
    """
    normals = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    reach = np.abs(normals) @ (box[1] - box[0]) / 2
    offsets = (normals @ box.mean(axis=0))[:, None] + reach[:, None] * np.linspace(-1, 1, n + 2)[1:-1]
    heights = (start.xy @ normals.T)[:, :, None] - offsets
    values = Values.stored(heights.reshape(len(start.xy), -1))
    after = cut(start, values, np.zeros(1), _Unrounded(), BORDER)
    assert after is not None
    return after.planar


class _Unrounded:
    """Rounding bounds of tiles, all zero: it does not matter where exactly their lines are."""

    def may_be_zero(self, scale: float) -> bool:
        """Only a value of exactly 0 is zero."""
        return False

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Zero for each pair."""
        return np.zeros(len(vertices))


def _from_centre(sink: PlaneSink, centre: Floats | None) -> PlaneSink:
    """A sink of the original coordinates, where a walk counts them from a centre."""
    return sink if centre is None else lambda xy, output: sink(xy + centre, output)


def _assembled(graph: Graph, plane: Plane, walk: PlaneWalk) -> Subdivision:
    """The chunks of a walk as one; a walk that was stopped has the layers that all of them went through."""
    n_layers = min(len(c.lineage) for c in walk.chunks)
    lineage = _joined_lineage([c.lineage for c in walk.chunks], n_layers)
    layers = list(zip(walk.patterns[:n_layers], walk.hashes[:n_layers], strict=True))
    is_kept = [all(p is not None for p in patterns) for patterns, _ in layers]
    patterns = tuple(
        _joined_arrays(patterns) if kept else None
        for kept, (patterns, _) in zip(is_kept, layers, strict=True)
    )
    hashes = tuple(
        None
        if kept
        else _joined_arrays([h if p is None else hash_vectors(p) for p, h in zip(*layer, strict=True)])
        for kept, layer in zip(is_kept, layers, strict=True)
    )
    labels = [c.labels for c in walk.chunks if c.labels is not None]
    planar = joined([c.planar for c in walk.chunks])
    whole = Subdivision(
        graph=graph,
        plane=plane,
        planar=planar,
        lineage=lineage,
        patterns=patterns,
        hashes=hashes,
        layers=tuple(walk.layers[:n_layers]),
        labels=_joined_arrays(labels) if len(labels) == len(walk.chunks) else None,
        is_complete=walk.is_complete,
        has_tie=walk.has_tie,
    )
    if len(walk.chunks) > 1:
        whole = _without(whole, np.zeros(len(planar.ends), bool))
    return whole


def _joined_lineage(chunks: list[Lineage], n_layers: int) -> Lineage:
    """The lineage of the faces of all chunks, in the first layers."""
    if len(chunks) == 1:
        return chunks[0]
    return Lineage(tuple(np.concatenate([c.pattern_numbers[k] for c in chunks]) for k in range(n_layers)))


def _joined_arrays(arrays: list[Any]) -> Any:
    """Arrays as one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _without_seams(whole: Subdivision) -> Subdivision:
    """Remove the edges of fan and tiles across which nothing changes; the others get the layer that does."""
    planar = whole.planar
    left, right = planar.sides().T
    seams = np.flatnonzero((planar.born == BORDER) & (left >= 0) & (right >= 0))
    born = planar.born.copy()
    for k in reversed(range(len(whole.layers))):
        hashes, numbers = whole.layer_hashes(k), whole.pattern_numbers[k]
        a, b = (hashes[numbers[side[seams]]] for side in (left, right))
        born[seams[a != b]] = whole.layers[k]
    if whole.labels is not None:
        differ = whole.labels[left[seams]] != whole.labels[right[seams]]
        by_label = seams[differ & (born[seams] == BORDER)]
        born[by_label] = whole.graph.output + 1
    gone = (born == BORDER) & (left >= 0) & (right >= 0)
    return _without(replace(whole, planar=replace(planar, born=born)), gone)


def _without(whole: Subdivision, gone: Bools) -> Subdivision:
    """The subdivision without some edges across which nothing changes."""
    planar, _, faces = dissolve(whole.planar, gone)
    old = np.empty(planar.n_faces, np.int64)
    old[faces] = np.arange(len(faces))
    labels = None if whole.labels is None else whole.labels[old]
    return replace(whole, planar=planar, lineage=whole.lineage.of(old), labels=labels)


def check(whole: Subdivision, corners: Floats, is_simple: bool) -> None:
    """Raise an error unless V - E + F = 1 and the faces' areas add up to the domain's.

    Where lines met in a point, or chunks were joined, no edge may have the length 0, and no two faces the
    same pattern and label.
    """
    planar = whole.planar
    v, e, f = len(planar.xy), len(planar.ends), planar.n_faces
    spokes = (corners - corners[0]).tolist()
    domain = sum(a * d - b * c for (a, b), (c, d) in itertools.pairwise(spokes)) / 2
    covered = planar.total_area()
    fits = v - e + f == 1 and abs(covered - domain) <= AREA_TOLERANCE * domain
    if fits and not is_simple:
        has_length = (planar.xy[planar.ends[:, 0]] != planar.xy[planar.ends[:, 1]]).any(axis=1).all()
        fits = bool(has_length) and _n_distinct(whole) == f
    if not fits:
        raise NonGenericError(
            f"the faces do not fit together (V - E + F = {v - e + f}, area {covered} of {domain})",
            remedy="lines meet too closely for float64; move the probe a little",
        )


def _n_distinct(whole: Subdivision) -> int:
    """How many different pairs of pattern and label the faces have."""
    hashes = whole.face_hashes()
    if whole.labels is not None:
        hashes = hash_vectors(np.stack([hashes, whole.labels.astype(np.uint64)], axis=1))
    hashes = np.sort(hashes)
    return len(hashes) - int((hashes[1:] == hashes[:-1]).sum())


_NUMBERS_AT_ONCE = 2**21
"""How many numbers the largest tensor of a forward pass may have."""


def states_at(graph: Graph, node: int, x: Tensor) -> ActivationPatterns:
    """The state of every unit of a node at points x (n, d), as in `Subdivision.states`, (n, units)."""
    (j,) = graph.nodes[node].inputs
    op = graph.bends[node]
    states = []
    for batch in _batches(graph, len(x)):
        z = graph.evaluate(x[batch].reshape(-1, *graph.input_shape), until=j)
        states.append(op.states(z))
    return np.concatenate(states)


def affine_maps(graph: Graph, plane: Plane, points: Floats) -> tuple[Floats, Floats]:
    """Slopes (n, c, 2) and offsets (n, c) of the outputs in the coordinates, around points (n, 2)."""
    n_out = int(np.prod(graph.shapes[graph.output]))
    slopes, offsets = np.empty((len(points), n_out, 2)), np.empty((len(points), n_out))
    axes = [torch.tensor(a).reshape(1, *graph.input_shape) for a in plane.axes]
    for batch in _batches(graph, len(points)):
        x = torch.from_numpy(plane.points(points[batch])).reshape(-1, *graph.input_shape)
        for d in (0, 1):
            value, slope = graph.derivative(x, axes[d].expand_as(x))
            slopes[batch, :, d] = slope.reshape(len(x), -1).numpy()
        offsets[batch] = value.reshape(len(x), -1).numpy()
        offsets[batch] -= np.einsum("ncd,nd->nc", slopes[batch], points[batch])
    return slopes, offsets


def _batches(graph: Graph, n: int) -> Iterator[slice]:
    """Ranges of n points that are evaluated at once, so that tensors are not too large."""
    most = max(1, _NUMBERS_AT_ONCE // max(int(np.prod(s)) for s in graph.shapes))
    return (slice(first, first + most) for first in range(0, n, most))


_NEARLY_ZERO = 1e-6
"""A unit nearly vanishes at the input 0 if it is this small there, relative to its size at the corners."""

_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def centre_of(graph: Graph, plane: Plane, corners: Floats) -> Floats | None:
    """The coordinates of the input 0, if it lies in the domain and the first layer nearly vanishes there."""
    centre = _zero_of(plane, corners)
    if centre is None or not _contains(corners, centre):
        return None
    first, least = _at_zero(graph)
    points = plane.origin + corners @ plane.axes
    if least > _NEARLY_ZERO * max(1.0, float(np.abs(points).max())):
        return None
    x = torch.from_numpy(np.concatenate([np.zeros((1, len(plane.origin))), points]))
    z = graph.evaluate(x.reshape(-1, *graph.input_shape), until=first).reshape(len(x), -1).numpy()
    vanish = np.abs(z[0]) <= _NEARLY_ZERO * np.abs(z[1:]).max(axis=0)
    return centre if vanish.sum() > 1 else None


_KNOWN: WeakKeyDictionary[Graph, tuple[int, float]] = WeakKeyDictionary()


def _at_zero(graph: Graph) -> tuple[int, float]:
    """The node before the first piecewise-linear one, and its second smallest entry at the input 0.

    Each entry is divided by a bound for its size at points with coordinates up to 1.
    """
    if graph not in _KNOWN:
        layer = next((i for i in graph.bends if i <= graph.output), None)
        first = 0 if layer is None else graph.nodes[layer].inputs[0]
        x = torch.zeros((1, *graph.input_shape), dtype=torch.float64)
        with torch.no_grad():
            double = graph.cast(torch.float64)
            size = evaluated(double, x, first, torch.ones_like(x)).sizes.numpy().reshape(-1)
        z = np.abs(graph.evaluate(x, until=first).numpy().reshape(-1))
        relative = np.sort(np.divide(z, size, out=np.zeros_like(z), where=size > 0))
        _KNOWN[graph] = first, float(relative[1]) if layer is not None and len(relative) > 1 else np.inf
    return _KNOWN[graph]


def _zero_of(plane: Plane, corners: Floats) -> Floats | None:
    """The coordinates of the input 0, if it lies in the plane up to rounding."""
    if not plane.origin.any():
        return np.zeros(2)
    gram = plane.axes @ plane.axes.T
    centre = np.asarray(np.linalg.solve(gram, -plane.axes @ plane.origin), np.float64)
    extent = np.abs(plane.axes).max(axis=1) @ np.abs(corners - centre).max(axis=0)
    scale = max(extent, float(np.abs(plane.origin).max()))
    return centre if np.abs(plane.origin + centre @ plane.axes).max() <= _ROUNDING * scale else None


def _contains(corners: Floats, point: Floats) -> bool:
    """Whether a point lies in a convex polygon."""
    x, y = point.tolist()
    spokes = [(a - x, b - y) for a, b in corners.tolist()]
    return all(a * d - b * c >= 0 for (a, b), (c, d) in zip(spokes, spokes[1:] + spokes[:1], strict=True))


def fan(corners: Floats) -> PlanarComplex:
    """A convex polygon (k, 2) around or beside (0, 0), cut into triangles there."""
    middles = (corners + _next_corners(corners)) / 2
    ring = np.stack([corners, middles], axis=1).reshape(-1, 2)
    n = len(ring)
    after = _next_corners(ring)
    area = ring[:, 0] * after[:, 1] - ring[:, 1] * after[:, 0]
    is_flat = area <= _ROUNDING * area.sum()
    k = np.arange(n)
    spokes = np.stack([np.zeros(n, np.int64), k + 1], axis=1)  # edge i: centre to ring point i
    rim = np.stack([k + 1, (k + 1) % n + 1], axis=1)  # edge n + i: ring point i to the next
    triangles = np.stack([half_edge(k, 0), half_edge(n + k, 0), half_edge((k + 1) % n, 1)], axis=1)
    at_corner = bool((np.abs(corners).max(axis=1) == 0).any())
    fixed = np.concatenate([[at_corner], np.arange(n) % 2 == 0])
    xy, ends = np.concatenate([np.zeros((1, 2)), ring]), np.concatenate([spokes, rim])
    return _complex_of_triangles(xy, ends, triangles[~is_flat], fixed)


def _next_corners(corners: Floats) -> Floats:
    """The corner after each corner of a polygon, (k, 2)."""
    return np.concatenate([corners[1:], corners[:1]])


def _complex_of_triangles(xy: Floats, ends: Ints, loops: Any, fixed: Bools) -> PlanarComplex:
    """Triangles, three half-edges each, (t, 3), with those of the edges and vertices that they have."""
    edges, new_edge = np.unique(edge_of(loops), return_inverse=True)
    vertices, new_vertex = np.unique(ends[edges], return_inverse=True)
    loop = half_edge(new_edge.reshape(-1), direction_of(loops.reshape(-1)))
    return PlanarComplex(
        xy=xy[vertices],
        ends=new_vertex.reshape(-1, 2).astype(np.int32),
        born=np.full(len(edges), BORDER, np.int32),
        start=np.arange(0, loops.size + 1, 3),
        loop=loop.astype(np.int32),
        shared=np.zeros(len(edges), bool),
        fixed=fixed[vertices],
    )
