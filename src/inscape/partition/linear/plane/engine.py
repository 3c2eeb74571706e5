"""Walk a network over a convex polygon of a plane: the subdivision into activation regions, layer by layer.

Every tensor is affine on each face. An affine node is one batched evaluation at the vertices; a piecewise-linear
node cuts the faces where its units change, and the tensors that later nodes need are carried to the new vertices.
A linear map right after an elementwise node is expanded along the cut lines instead of multiplied out. When the
tensors no longer fit into memory the faces are taken in parts, each to the end of the network before the next;
parts agree on where the edges between them are cut, so that they fit together again.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Clip, Leaky, Windows
from inscape.partition.linear.bending import thresholds
from inscape.partition.linear.fusing import Fusion, fusions
from inscape.partition.linear.plane.cells import Cells, Floats, Ints, oriented
from inscape.partition.linear.plane.contest import contest, decide
from inscape.partition.linear.plane.expansion import expand
from inscape.partition.linear.plane.noise import NodeNoise, Plane
from inscape.partition.linear.plane.parts import Agreement, faces_between, parts
from inscape.partition.linear.plane.rows import Interpolation, flat
from inscape.partition.linear.plane.split import Split, split

Lineage = tuple[Ints, ...]
"""For each layer so far, which row of the layer's patterns belongs to each face."""


@dataclass(eq=False)
class Part:
    """A finished part of the subdivision, with the label of each face if labels were asked for."""

    cells: Cells
    lineage: Lineage
    labels: Ints | None


@dataclass(eq=False)
class PlaneWalk:
    """What a walk over a plane found.

    Attributes:
        parts: the subdivision, in parts that fit together.
        patterns: for each layer the blocks of packed patterns that `Part.lineage` points into.
        layers: the piecewise-linear nodes, in order.
        is_complete: whether all layers that were asked for were cut.
        has_tie: whether two scores are equal and largest on a whole face.
    """

    parts: list[Part] = field(default_factory=list)
    patterns: list[list[Any]] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    is_complete: bool = True
    has_tie: bool = False


def walk_plane(
    graph: Graph,
    plane: Plane,
    cells: Cells,
    *,
    memory: int,
    n_layers: int | None = None,
    max_faces: float = math.inf,
    with_labels: bool = False,
    done: Callable[[float], None] = lambda _: None,
) -> PlaneWalk:
    """Cut `cells`, a subdivision of a part of `plane`, along every layer of `graph`.

    Args:
        graph: the network.
        plane: where the coordinates of the cells lie in the input space.
        cells: what to start from.
        memory: bytes that the tensors may take.
        n_layers: how many piecewise-linear nodes to take into account, None for all.
        max_faces: stop before a layer that would make more faces.
        with_labels: whether to cut the faces where the largest score changes, in the end.
        done: told which part of the work is finished, from 0 to 1.
    """
    walker = _Walker(graph.cast(torch.float64), plane, memory, n_layers, max_faces, with_labels, done)
    with torch.no_grad():
        walker.run(cells)
    return walker.result


class _Walker:
    def __init__(
        self,
        graph: Graph,
        plane: Plane,
        memory: int,
        n_layers: int | None,
        max_faces: float,
        with_labels: bool,
        done: Callable[[float], None],
    ) -> None:
        self.graph, self.plane, self.memory, self.done = graph, plane, memory, done
        bends = [i for i in range(1, graph.output + 1) if not graph.nodes[i].is_affine]
        self.bends = bends if n_layers is None else bends[:n_layers]
        self.last = graph.output if with_labels else max(self.bends, default=0)
        self.with_labels = with_labels
        self.fusions = fusions(graph)
        self.max_faces, self.n_finished = max_faces, 0
        self.agreement = Agreement()
        self.sizes = [max(1, math.prod(s)) for s in graph.shapes]
        self.result = PlaneWalk(layers=list(self.bends), patterns=[[] for _ in self.bends])
        self.offsets = [0] * len(self.bends)

    def run(self, cells: Cells) -> None:
        x = self.plane.points(cells.xy).reshape(-1, *self.graph.input_shape)
        self.advance(1, {0: x}, cells, (), (0.0, 1.0))

    def advance(self, node: int, live: dict[int, Tensor], cells: Cells, lineage: Lineage, share: Any) -> None:
        """Evaluate from `node` on; `share` is where in the whole work this part begins and ends."""
        graph = self.graph
        while node <= self.last:
            op, inputs = graph.nodes[node].op, graph.nodes[node].inputs
            if isinstance(op, Bend) and node in self.bends:
                stage = self._cut(node, op, live, cells, lineage)
                if stage is None:
                    self.result.is_complete = False
                    break
                live.clear()
                if len(stage) > 1:
                    self._recurse(stage, share)
                    return
                node, live, cells, lineage = next(iter(stage))
                continue
            assert op is not None
            live[node] = op(*(live[j] for j in inputs))
            for j in inputs:
                if graph.last_use[j] <= node:
                    live.pop(j, None)
            node += 1
        self._finish(live, cells, lineage, share)

    def _finish(self, live: dict[int, Tensor], cells: Cells, lineage: Lineage, share: Any) -> None:
        labels = None
        if self.with_labels and self.result.is_complete:
            scores = live[self.graph.output].reshape(len(cells.xy), -1)
            noise = NodeNoise(self.graph, self.plane, cells.xy, self.graph.output)
            layer = self.graph.output + 1
            cells, parent, labels, has_tie = decide(cells, scores, noise, layer, self.agreement)
            lineage = tuple(r[parent] for r in lineage)
            self.result.has_tie |= has_tie
        self.n_finished += cells.n_faces
        self.result.parts.append(Part(cells, lineage, labels))
        self.done(share[1])

    def _recurse(self, stage: "_Stage", share: Any) -> None:
        low, high = share
        for k, (node, live, cells, lineage) in enumerate(stage):
            ends = (low + (high - low) * (k + i) / len(stage) for i in (0, 1))
            self.advance(node, live, cells, lineage, tuple(ends))

    def _cut(
        self, node: int, op: Bend, live: dict[int, Tensor], cells: Cells, lineage: Lineage
    ) -> "_Stage | None":
        """Cut the faces where a piecewise-linear node bends; None if there would be too many."""
        (j,) = self.graph.nodes[node].inputs
        layer = self.bends.index(node)
        most = self.max_faces - self.n_finished
        noise = NodeNoise(self.graph, self.plane, cells.xy, j)
        if isinstance(op, Windows):
            later = {k: live[k] for k in live if self._is_needed(k, node)}
            won = contest(cells, live[j], op, noise, later, node, self.agreement, most)
            if won is None:
                return None
            lineage = self._record(layer, won.patterns, tuple(r[won.parent] for r in lineage))
            return _Pooled(self, node, won.cells, lineage, won.live | {node: won.value})
        theta = np.array(thresholds(op))
        part = split(cells, flat(live[j]), theta, noise, node, self.agreement.at(node), most)
        if part is None:
            return None
        if self.plane.extent == 0.0:
            part = replace(part, cells=oriented(part.cells))
        lineage = self._record(layer, part.words, tuple(r[part.parent] for r in lineage))
        return _Bent(self, node, op, part, lineage, dict(live))

    def _record(self, layer: int, patterns: Any, before: Lineage) -> Lineage:
        """Keep the patterns of a layer, and say where those of each face are."""
        first = self.offsets[layer]
        self.offsets[layer] += len(patterns)
        self.result.patterns[layer].append(patterns)
        return (*before, np.arange(first, first + len(patterns)))

    def _is_needed(self, k: int, after: int) -> bool:
        """Whether a node's tensor is read by a node after the one given."""
        return self.last > after and self.graph.last_use[k] > after

    def most_rows(self, node: int) -> int:
        """How many vertices a part may have from a piecewise-linear node on."""
        graph, each = self.graph, 0
        largest = self.sizes[node]
        for k in range(node, self.last + 1):
            largest = max(largest, self.sizes[k])
            if k == self.last or not graph.nodes[k + 1].is_affine:
                each, largest = each + 3 * largest, 0
        return max(64, self.memory // (8 * max(1, each)))

    def stage_bytes(self, node: int, kept: list[int]) -> int:
        """Bytes per vertex from a piecewise-linear node to the next: its tensors and those kept for later."""
        largest, k = self.sizes[node], node + 1
        while k <= self.last and self.graph.nodes[k].is_affine:
            largest, k = max(largest, self.sizes[k]), k + 1
        return 8 * (sum(self.sizes[k] for k in kept) + 3 * largest)


class _Stage:
    """What follows a cut: the faces in one or several parts, each with its tensors, made one at a time."""

    def __init__(self, walker: _Walker, node: int, cells: Cells, lineage: Lineage, kept: list[int]) -> None:
        self.walker, self.node, self.cells, self.lineage = walker, node, cells, lineage
        fits = walker.last == node or walker.stage_bytes(node, kept) * len(cells.xy) <= walker.memory
        self.ranges = [(0, cells.n_faces)] if fits else parts(cells, walker.most_rows(node))

    def __len__(self) -> int:
        return len(self.ranges)

    def __iter__(self) -> Any:
        for first, last in self.ranges:
            lineage = tuple(r[first:last] for r in self.lineage)
            if len(self) == 1:
                cells, wanted = self.cells, np.arange(len(self.cells.xy))
            else:
                cells, wanted = faces_between(self.cells, first, last)
            live = self.tensors(wanted) if self.walker.last > self.node else {}
            yield self.node + 1, live, cells, lineage

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """The live tensors at some vertices."""
        raise NotImplementedError


class _Pooled(_Stage):
    """After a maximum over windows: all tensors are there."""

    def __init__(
        self, walker: _Walker, node: int, cells: Cells, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        super().__init__(walker, node, cells, lineage, list(live))
        self.live = live

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """Rows of the tensors."""
        return {k: v if len(wanted) == len(v) else v[wanted] for k, v in self.live.items()}


class _Bent(_Stage):
    """After an elementwise node: tensors are carried to the new vertices."""

    def __init__(
        self, walker: _Walker, node: int, op: Bend, part: Split, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        (self.input,) = walker.graph.nodes[node].inputs
        self.kept = [k for k in live if walker._is_needed(k, node)]
        super().__init__(walker, node, part.cells, lineage, self.kept)
        self.op, self.split, self.live = op, part, live

    def __iter__(self) -> Any:
        fusion = self.walker.fusions.get(self.node)
        if fusion is None or fusion.geometry is not None or len(self) > 1 or fusion.last > self.walker.last:
            yield from super().__iter__()
            return
        is_read = self.walker._is_needed(self.node, fusion.last)
        live = {}
        kept = [k for k in self.kept if self.walker._is_needed(k, fusion.last)]
        if kept or is_read:
            every = np.arange(len(self.cells.xy))
            live = {k: v for k, v in self.tensors(every).items() if k in kept or (k == self.node and is_read)}
        live[fusion.last] = self._expanded(fusion)
        yield fusion.last + 1, live, self.cells, self.lineage

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """Live tensors carried over, and the node's own."""
        carry = Interpolation.of(self.split)
        found = {k: carry.carry(self.live[k], wanted) for k in self.kept}
        theta = np.array(thresholds(self.op))
        found[self.node] = self.op(carry.carry_input(self.live[self.input], wanted, theta))
        return found

    def _expanded(self, fusion: Fusion) -> Tensor:
        """The linear map that reads the node, at all vertices."""
        n_old, n = self.split.n_old, len(self.cells.xy)
        bent = self.op(self.live.pop(self.input).reshape(n_old, -1))
        op: Any = self.walker.graph.nodes[fusion.last].op
        y = torch.empty((n, fusion.columns.shape[1]), dtype=torch.float64)
        weight, *bias = op.constants
        if bias:
            torch.addmm(bias[0], bent, weight.mT, out=y[:n_old])
        else:
            torch.mm(bent, weight.mT, out=y[:n_old])
        known = np.zeros(n, bool)
        known[:n_old] = True
        factor = _bends(self.op)
        h = bent.shape[1]
        for line in (self.split.edges, self.split.chords):
            change = line.change * factor[line.unit // h] if len(factor) > 1 else line.change * factor[0]
            expand(
                y.numpy(), line.ends, line.start, line.s, line.unit % h, change, line.vertex, fusion.columns, known
            )
        return y.reshape(n, *self.walker.graph.shapes[fusion.last])


def _bends(op: Bend) -> Floats:
    """By how much the slope of an elementwise node changes at each threshold, moving up."""
    if isinstance(op, Clip):
        return np.array([1.0] * math.isfinite(op.low) + [-1.0] * math.isfinite(op.high))
    assert isinstance(op, Leaky)
    return np.array([1.0 - float(op.slope)])
