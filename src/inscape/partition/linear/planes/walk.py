"""Walk a network over a convex polygon of a plane: the planar complex of activation regions, layer by layer.

Every tensor is affine on each face. An affine node is one batched evaluation at the vertices; a
piecewise-linear node cuts the faces where its units change, and the tensors that later nodes need are
carried to the new vertices. A linear map right after an elementwise node is expanded along the cut lines
instead of multiplied out. When the tensors no longer fit into memory the faces are taken in chunks, each to
the end of the network before the next; chunks agree on where the edges between them are cut, so that they
fit together again.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph, flat
from inscape.models.graph.network import Fusion, evaluate_node
from inscape.models.graph.piecewise import Bend
from inscape.parallel import single_products
from inscape.partition.linear.planes.complex.half_edges import PlanarComplex, chunk, chunk_ranges, outward
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.layer.cut import Cut, cut
from inscape.partition.linear.planes.layer.edge_crossings import SharedEdges
from inscape.partition.linear.planes.layer.max_pool import cut_by_label, max_pool
from inscape.partition.linear.planes.layer.sign_vectors import Packed, hash_vectors
from inscape.partition.linear.planes.plan import Plan, Scratch
from inscape.partition.linear.planes.values.linear_map import LinearMap, restricted
from inscape.partition.linear.planes.values.values import Interpolation, Values
from inscape.partition.linear.rounding import PlaneRounding
from inscape.probes.plane import Plane


class Lineage:
    """For each layer so far, which of the layer's patterns belongs to each face.

    This is worked out when it is first read: counting faces does not need it.
    """

    def __init__(
        self, earliest: tuple[Ints, ...] = (), steps: tuple[tuple[Ints, int | None], ...] = ()
    ) -> None:
        """Pattern numbers in the first layers, then the steps since: see `cut` and `of`."""
        self._earliest, self._steps = earliest, steps

    def cut(self, parent: Ints, first: int) -> "Lineage":
        """After one more layer, whose patterns are numbered from `first` on, one for each face."""
        return Lineage(self._earliest, (*self._steps, (parent, first)))

    def of(self, faces: Ints) -> "Lineage":
        """The lineage of some of the faces."""
        return Lineage(self._earliest, (*self._steps, (faces, None)))

    def __len__(self) -> int:
        return len(self._earliest) + sum(first is not None for _, first in self._steps)

    @cached_property
    def pattern_numbers(self) -> tuple[Ints, ...]:
        """For each layer the number of the pattern of each face, (f,)."""
        numbers: list[Ints] = []
        ancestor: Ints | None = None  # of each face, among the faces after the step at hand
        for parent, first in reversed(self._steps):
            ancestor = np.arange(len(parent)) if ancestor is None else ancestor
            if first is not None:
                numbers.append(first + ancestor)
            ancestor = parent[ancestor]
        earliest = self._earliest if ancestor is None else tuple(k[ancestor] for k in self._earliest)
        return (*earliest, *reversed(numbers))


@dataclass(eq=False)
class Chunk:
    """A finished chunk of the complex.

    Attributes:
        planar: its vertices, edges and faces.
        lineage: for each layer which of its patterns belongs to each face.
        labels: the label of each face, (f,), if labels were asked for.
    """

    planar: PlanarComplex
    lineage: Lineage
    labels: Ints | None


@dataclass(eq=False)
class PlaneWalk:
    """The result of a walk over a plane.

    Attributes:
        chunks: the complex, in chunks that fit together.
        patterns: for each layer the blocks of packed patterns that `Chunk.lineage` points into; None for
            those that would take more than the memory.
        hashes: for each layer, instead of such a block, a number for each of its patterns.
        layers: the piecewise-linear nodes, in order.
        is_complete: whether all layers that were asked for were cut.
        has_tie: whether two scores are equal and largest on a whole face.
        is_tied: whether any face took the slower path for ties.
    """

    chunks: list[Chunk] = field(default_factory=list)
    patterns: list[list[Any]] = field(default_factory=list)
    hashes: list[list[Any]] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    is_complete: bool = True
    has_tie: bool = False
    is_tied: bool = False


def walk_plane(
    graph: Graph,
    plane: Plane,
    planar: PlanarComplex,
    *,
    memory: int,
    n_layers: int | None = None,
    max_faces: float = math.inf,
    with_labels: bool = False,
    sink: "PlaneSink | None" = None,
    done: Callable[[float], None] = lambda _: None,
) -> PlaneWalk:
    """Cut a complex that covers some of `plane` along every layer of `graph`.

    Args:
        graph: the network.
        plane: where the coordinates of the complex lie in the input space.
        planar: what to start from.
        memory: bytes that the tensors may take.
        n_layers: how many piecewise-linear nodes to take into account, None for all.
        max_faces: stop before a layer that would make more faces.
        with_labels: whether to cut the faces where the largest score changes, in the end.
        sink: takes the coordinates of all vertices, and the output there, before that.
        done: is told which fraction of the work is finished, from 0 to 1.
    """
    walker = _PlaneWalker(
        graph.cast(torch.float64), plane, memory, n_layers, max_faces, with_labels, sink, done
    )
    with single_products(), torch.no_grad():
        walker.run(planar)
    return walker.result


PlaneSink = Callable[[Floats, Tensor], None]
"""Receives the coordinates of the vertices of each finished chunk, (v, 2), and the output there, (v, c)."""


class _BudgetReachedError(Exception):
    """There would be too many faces."""


class Signed(NamedTuple):
    """The input of a piecewise-linear node, its signs being known."""

    values: Values
    """The input at the vertices."""
    packed: Packed
    """Its sign vectors there."""


class PlaneChunk(NamedTuple):
    """A chunk on its way through the network."""

    node: int
    """The node to evaluate next."""
    live: dict[int, Tensor]
    """The tensors at the vertices that it and later nodes read."""
    planar: PlanarComplex
    """The faces."""
    lineage: Lineage
    """Which patterns they have."""
    signed: Signed | None
    """The node's input, if its signs are known."""


class _PlaneWalker:
    def __init__(
        self,
        graph: Graph,
        plane: Plane,
        memory: int,
        n_layers: int | None,
        max_faces: float,
        with_labels: bool,
        sink: PlaneSink | None,
        done: Callable[[float], None],
    ) -> None:
        self.graph, self.plane, self.sink, self.done = graph, plane, sink, done
        layers = tuple(i for i in graph.bends if i <= graph.output)
        self.layers = layers if n_layers is None else layers[:n_layers]
        has_output = with_labels or sink is not None
        last = graph.output if has_output else max(self.layers, default=0)
        self.plan = Plan(graph, plane, self.layers, last, has_output, memory, Scratch(graph, memory))
        self.with_labels = with_labels
        self.max_faces, self.n_finished = max_faces, 0
        self.shared_edges = SharedEdges()
        self.result = PlaneWalk(
            layers=list(self.layers), patterns=[[] for _ in self.layers], hashes=[[] for _ in self.layers]
        )
        sizes = np.cumsum([math.prod(graph.shapes[i]) for i in self.layers])
        self.done_at = dict(zip(self.layers, (sizes / sizes.max(initial=1)) ** 2, strict=True))
        self.pattern_bytes = 0
        self.depth = 0
        self.offsets = [0] * len(self.layers)

    def run(self, planar: PlanarComplex) -> None:
        x = torch.from_numpy(self.plane.points(planar.xy)).reshape(-1, *self.graph.input_shape)
        self.advance(PlaneChunk(1, {0: x}, planar, Lineage(), None), (0.0, 1.0))
        self.plan.scratch.keep()

    def advance(self, state: PlaneChunk, work: tuple[float, float]) -> None:
        """Take a chunk to the end; `work` is the fraction of all work that is done before it and after it.

        After a layer the fraction of a chunk's work that is done is about the square of that of the units:
        there are about as many faces as crossings of lines.
        """
        graph, (begin, end) = self.graph, work
        before = max((self.done_at[i] for i in self.layers if i < state.node), default=0.0)
        while state.node <= self.plan.last:
            node = graph.go_on(state.live, state.node, evaluate_node, last=self.plan.last, before=self.layers)
            state = state._replace(node=node)
            if node > self.plan.last:
                break
            stage = self._cut(graph.bends[node], state)
            if stage is None:
                self.result.is_complete = False
                if self.depth:
                    raise _BudgetReachedError
                break
            state.live.clear()
            at = begin + (end - begin) * (self.done_at[node] - before) / max(1 - before, 1e-9)
            if len(stage) > 1:
                self._take_chunks(stage, (at, end))
                return
            self.done(at)
            state = next(iter(stage))
        self._finish(state, end)

    def _finish(self, state: PlaneChunk, end: float) -> None:
        """Keep a chunk that went through all layers; `end` is the fraction of all work that is done then."""
        planar, lineage, labels = state.planar, state.lineage, None
        if self.sink is not None and self.result.is_complete:
            self.sink(planar.xy, state.live[self.graph.output].reshape(len(planar.xy), -1))
        if self.with_labels and self.result.is_complete:
            scores = state.live[self.graph.output].reshape(len(planar.xy), -1)
            rounding = PlaneRounding(self.graph, self.plane, planar.xy, self.graph.output)
            layer = self.graph.output + 1
            planar, parent, labels, has_tie, is_tied = cut_by_label(
                planar, scores, rounding, layer, self.shared_edges
            )
            lineage = lineage.of(parent)
            self.result.has_tie |= has_tie
            self.result.is_tied |= is_tied
        self.n_finished += planar.n_faces
        self.result.chunks.append(Chunk(planar, lineage, labels))
        self.done(end)

    def _take_chunks(self, stage: "Stage", work: tuple[float, float]) -> None:
        """Take the chunks of a stage to the end; if the budget breaks, the outermost stage is the result."""
        begin, end = work
        self.depth += 1
        self.plan.scratch.hold()
        try:
            for k, state in enumerate(stage):
                first, last = (begin + (end - begin) * (k + i) / len(stage) for i in (0, 1))
                self.advance(state, (first, last))
                self.plan.scratch.release()
        except _BudgetReachedError:
            if self.depth > 1:
                raise
            self.result.chunks = [Chunk(stage.planar, stage.lineage, None)]
        finally:
            self.depth -= 1

    def _cut(self, op: Bend, state: PlaneChunk) -> "Stage | None":
        """Cut the faces where the units of a piecewise-linear node change; None if that makes too many."""
        (j,) = self.graph.nodes[state.node].inputs
        node, live, planar, lineage, signed = state
        layer = self.layers.index(node)
        most = self.max_faces - self.n_finished
        rounding = PlaneRounding(self.graph, self.plane, planar.xy, j)
        windows = op.windows(self.graph.shapes[j])
        if windows is not None:
            later = {k: live[k] for k in live if self.plan.is_needed(k, node)}
            pool = max_pool(
                planar, live[j], op, windows.entries, rounding, later, node, self.shared_edges, most
            )
            if pool is None:
                return None
            self.result.is_tied |= pool.is_tied
            lineage = lineage.cut(pool.parent, self._record(layer, pool.patterns))
            return AfterMaxPool(self.plan, node, pool.planar, lineage, pool.live | {node: pool.maxima})
        kinks = np.array(op.kinks)
        values = Values.stored(flat(live[j])) if signed is None else signed.values
        packed = None if signed is None else signed.packed
        agree = self.shared_edges.at(node) if self.depth else None
        after = cut(planar, values, kinks, rounding, node, agree, most, packed)
        if after is None:
            return None
        self.result.is_tied |= after.is_tied
        if self.plane.extent == 0.0:
            after = replace(after, planar=outward(after.planar))
        lineage = lineage.cut(after.parent, self._record(layer, after.signs))
        return AfterElementwise(self.plan, node, op, after, lineage, dict(live))

    def _record(self, layer: int, patterns: Any) -> int:
        """Keep the patterns of a layer; returns the number of the first."""
        first = self.offsets[layer]
        self.offsets[layer] += len(patterns)
        self.pattern_bytes += patterns.nbytes
        keeps = self.pattern_bytes <= self.plan.memory
        self.result.patterns[layer].append(patterns if keeps else None)
        self.result.hashes[layer].append(None if keeps else hash_vectors(patterns))
        return first


Continuation = tuple[int, dict[int, Tensor], Signed | None]
"""The node to evaluate next, the live tensors, and its input if its signs are known: see `PlaneChunk`."""


class Stage(ABC):
    """The faces after a piecewise-linear node, in one or several chunks, with tensors for one at a time."""

    def __init__(self, plan: Plan, node: int, planar: PlanarComplex, lineage: Lineage) -> None:
        self.plan, self.node, self.planar, self.lineage = plan, node, planar, lineage

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """The faces of each chunk: all in one if their tensors fit into memory."""
        if not self.plan.continues_after(self.node) or self.n_bytes() <= self.plan.memory:
            return [(0, self.planar.n_faces)]
        return chunk_ranges(self.planar, self.plan.chunk_vertices(self.node))

    def __len__(self) -> int:
        return len(self.ranges)

    def __iter__(self) -> Iterator[PlaneChunk]:
        for first, last in self.ranges:
            planar, lineage, vertices = self.planar, self.lineage, None
            if len(self) > 1:
                planar, vertices = chunk(self.planar, first, last)
                lineage = self.lineage.of(np.arange(first, last))
            if not self.plan.continues_after(self.node):
                yield PlaneChunk(self.node + 1, {}, planar, lineage, None)
                continue
            vertices = np.arange(len(planar.xy)) if vertices is None else vertices
            node, live, signed = self.continuation(vertices)
            yield PlaneChunk(node, live, planar, lineage, signed)

    def continuation(self, vertices: Ints) -> Continuation:
        """How the walk continues at some vertices."""
        return self.node + 1, self.tensors(vertices), None

    @abstractmethod
    def n_bytes(self) -> int:
        """Memory that all faces take in one chunk."""

    @abstractmethod
    def tensors(self, vertices: Ints) -> dict[int, Tensor]:
        """The live tensors at some vertices."""


class AfterMaxPool(Stage):
    """After a maximum over windows: all tensors are there."""

    def __init__(
        self, plan: Plan, node: int, planar: PlanarComplex, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        super().__init__(plan, node, planar, lineage)
        self.live = live

    def n_bytes(self) -> int:
        """Memory that all faces take in one chunk."""
        return self.plan.stage_bytes(self.node, list(self.live)) * len(self.planar.xy)

    def tensors(self, vertices: Ints) -> dict[int, Tensor]:
        """The live tensors at some vertices."""
        return {k: z if len(vertices) == len(z) else z[vertices] for k, z in self.live.items()}


class AfterElementwise(Stage):
    """After an elementwise node: tensors are carried to new vertices, a matrix product is expanded."""

    def __init__(
        self, plan: Plan, node: int, op: Bend, after: Cut, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        super().__init__(plan, node, after.planar, lineage)
        (self.input,) = plan.graph.nodes[node].inputs
        self.kept = [k for k in live if plan.is_needed(k, node)]
        self.op, self.cut, self.live = op, after, live
        self.matrix = plan.matrix_after(node)

    def n_bytes(self) -> int:
        """Memory that all faces take in one chunk: old tensors and new ones."""
        n, sizes = len(self.planar.xy), self.plan.sizes
        if self.matrix is None:
            return self.plan.stage_bytes(self.node, self.kept) * n
        new = self.matrix.columns.shape[1] + sum(sizes[k] for k in self.kept)
        return 8 * int(n * new + self.cut.n_old * sizes[self.input])

    def continuation(self, vertices: Ints) -> Continuation:
        """How the walk continues; a matrix product right after the node is expanded."""
        matrix = self.matrix
        if matrix is None:
            return super().continuation(vertices)
        needed = [k for k in (*self.kept, self.node) if self.plan.is_needed(k, matrix.last)]
        tensors = self.tensors(vertices) if needed else {}
        live = {k: tensors[k] for k in needed}
        vectors, values, packed = self._map_values(matrix, vertices)
        if values.is_stored:
            live[matrix.last] = vectors.reshape(-1, *self.plan.graph.shapes[matrix.last])
        return matrix.last + 1, live, None if packed is None else Signed(values, packed)

    def tensors(self, vertices: Ints) -> dict[int, Tensor]:
        """Live tensors carried over, and the node's own."""
        live = {k: self._interpolation.carry(self.live[k], vertices) for k in self.kept}
        kinks = np.array(self.op.kinks)
        live[self.node] = self.op(self._interpolation.carry_input(self.live[self.input], vertices, kinks))
        return live

    @cached_property
    def _interpolation(self) -> Interpolation:
        return Interpolation.of(self.cut.n_old, len(self.planar.xy), self.cut.edges, self.cut.chords)

    def _is_free(self) -> bool:
        """Whether the input's tensor is its own, and no other node reads it later."""
        graph = self.plan.graph
        return graph.nodes[self.input].op.owns_result and graph.last_use[self.input] == self.node

    def _map_values(self, matrix: Fusion, vertices: Ints) -> tuple[Tensor, Values, Packed | None]:
        """The linear map that reads the node, see `LinearMap.evaluate`."""
        n, h, after = len(self.planar.xy), self.plan.sizes[self.input], self.cut
        edges, chords = (_with_slope_jumps(line, self.op, h) for line in (after.edges, after.chords))
        is_whole = len(self) == 1
        z = self.live.pop(self.input) if is_whole else self.live[self.input]
        read = self.plan, matrix, self.op, z, is_whole and self._is_free(), after.above
        if is_whole:
            return LinearMap(*read, None, n, edges, chords, self.planar.xy).evaluate()
        old, n_needed, edges, chords, numbers = restricted(after.n_old, n, edges, chords, vertices)
        linear_map = LinearMap(*read, old, n_needed, edges, chords, self.planar.xy)
        vectors, values, packed = linear_map.evaluate()
        values = values.moved_to(numbers)
        return vectors[: len(numbers)], values, None if packed is None else packed.of(numbers)


def _with_slope_jumps(lines: Lines, op: Bend, h: int) -> Lines:
    """Lines with breakpoints of h entries, each with the change of the bent entry's slope."""
    factor = np.array(op.slope_jumps)
    if len(factor) == 1:
        return lines if factor[0] == 1.0 else lines._replace(change=lines.change * factor[0])
    change = lines.change * factor[lines.unit // h]
    return lines._replace(unit=lines.unit % np.int32(h), change=change)
