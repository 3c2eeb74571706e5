"""Walk a network over a convex polygon of a plane: the subdivision into activation regions, layer by layer.

Every tensor is affine on each face. An affine node is one batched evaluation at the vertices; a
piecewise-linear node cuts the faces where its units change, and the tensors that later nodes need are
carried to the new vertices. A linear map right after an elementwise node is expanded along the cut lines
instead of multiplied out. When the tensors no longer fit into memory the faces are taken in parts, each to
the end of the network before the next; parts agree on where the edges between them are cut, so that they
fit together again.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Ints
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows
from inscape.partition.linear.bending import thresholds
from inscape.partition.linear.planes.complex.chunks import Agreement
from inscape.partition.linear.planes.complex.half_edges import Cells, oriented
from inscape.partition.linear.planes.layer.bits import hash_rows
from inscape.partition.linear.planes.layer.cut import split
from inscape.partition.linear.planes.layer.max_pool import contest, decide
from inscape.partition.linear.planes.layer.sign_vectors import Signed
from inscape.partition.linear.planes.lineage import Lineage
from inscape.partition.linear.planes.plan import Plan
from inscape.partition.linear.planes.rounding import NodeNoise, Plane
from inscape.partition.linear.planes.stages import Bent, Next, Pooled, Stage
from inscape.partition.linear.planes.values.rows import flat
from inscape.partition.linear.planes.values.scratch import Reserve
from inscape.partition.linear.planes.values.values import Values


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
        patterns: for each layer the blocks of packed patterns that `Part.lineage` points into; None for
            those that would take more than the memory.
        hashes: for each layer, instead of such a block, a number for each of its patterns.
        layers: the piecewise-linear nodes, in order.
        is_complete: whether all layers that were asked for were cut.
        has_tie: whether two scores are equal and largest on a whole face.
        is_tied: whether any face went the slower way for ties.
    """

    parts: list[Part] = field(default_factory=list)
    patterns: list[list[Any]] = field(default_factory=list)
    hashes: list[list[Any]] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    is_complete: bool = True
    has_tie: bool = False
    is_tied: bool = False


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


class _BudgetReachedError(Exception):
    """There would be too many faces."""


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
        self.graph, self.plane, self.done = graph, plane, done
        bends = tuple(i for i in range(1, graph.output + 1) if not graph.nodes[i].is_affine)
        self.bends = bends if n_layers is None else bends[:n_layers]
        last = graph.output if with_labels else max(self.bends, default=0)
        self.plan = Plan(graph, plane, self.bends, last, with_labels, memory, Reserve(graph, memory))
        self.with_labels = with_labels
        self.max_faces, self.n_finished = max_faces, 0
        self.agreement = Agreement()
        self.result = PlaneWalk(
            layers=list(self.bends), patterns=[[] for _ in self.bends], hashes=[[] for _ in self.bends]
        )
        self.pattern_bytes = 0
        self.depth = 0
        self.offsets = [0] * len(self.bends)

    def run(self, cells: Cells) -> None:
        x = self.plane.points(cells.xy).reshape(-1, *self.graph.input_shape)
        self.advance((1, {0: x}, cells, Lineage(), None), (0.0, 1.0))
        self.plan.reserve.keep()

    def advance(self, at: Next, share: Any) -> None:
        """Evaluate from a node on; `share` is where in the whole work this part begins and ends."""
        node, live, cells, lineage, signed = at
        graph = self.graph
        while node <= self.plan.last:
            op, inputs = graph.nodes[node].op, graph.nodes[node].inputs
            if isinstance(op, Bend) and node in self.bends:
                stage = self._cut(node, op, live, cells, lineage, signed)
                if stage is None:
                    self.result.is_complete = False
                    if self.depth:
                        raise _BudgetReachedError
                    break
                live.clear()
                if len(stage) > 1:
                    self._take_apart(stage, share)
                    return
                node, live, cells, lineage, signed = next(iter(stage))
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
            cells, parent, labels, has_tie, is_tied = decide(cells, scores, noise, layer, self.agreement)
            lineage = lineage.of(parent)
            self.result.has_tie |= has_tie
            self.result.is_tied |= is_tied
        self.n_finished += cells.n_faces
        self.result.parts.append(Part(cells, lineage, labels))
        self.done(share[1])

    def _take_apart(self, stage: Stage, share: Any) -> None:
        """Take the parts of a stage to the end; if the budget breaks, the outermost stage is the result."""
        low, high = share
        self.depth += 1
        self.plan.reserve.hold()
        try:
            for k, at in enumerate(stage):
                ends = (low + (high - low) * (k + i) / len(stage) for i in (0, 1))
                self.advance(at, tuple(ends))
                self.plan.reserve.release()
        except _BudgetReachedError:
            if self.depth > 1:
                raise
            self.result.parts = [Part(stage.cells, stage.lineage, None)]
        finally:
            self.depth -= 1

    def _cut(
        self,
        node: int,
        op: Bend,
        live: dict[int, Tensor],
        cells: Cells,
        lineage: Lineage,
        signed: Signed | None,
    ) -> Stage | None:
        """Cut the faces where a piecewise-linear node bends; None if there would be too many."""
        (j,) = self.graph.nodes[node].inputs
        layer = self.bends.index(node)
        most = self.max_faces - self.n_finished
        noise = NodeNoise(self.graph, self.plane, cells.xy, j)
        if isinstance(op, Windows):
            later = {k: live[k] for k in live if self.plan.is_needed(k, node)}
            won = contest(cells, live[j], op, noise, later, node, self.agreement, most)
            if won is None:
                return None
            self.result.is_tied |= won.is_tied
            lineage = lineage.cut(won.parent, self._record(layer, won.patterns))
            return Pooled(self.plan, node, won.cells, lineage, won.live | {node: won.value})
        theta = np.array(thresholds(op))
        values = Values.stored(flat(live[j])) if signed is None else signed.values
        packed = None if signed is None else signed.packed
        agree = self.agreement.at(node) if self.depth else None
        part = split(cells, values, theta, noise, node, agree, most, packed)
        if part is None:
            return None
        self.result.is_tied |= part.is_tied
        if self.plane.extent == 0.0:
            part = replace(part, cells=oriented(part.cells))
        lineage = lineage.cut(part.parent, self._record(layer, part.words))
        return Bent(self.plan, node, op, part, lineage, dict(live))

    def _record(self, layer: int, patterns: Any) -> int:
        """Keep the patterns of a layer, and say where they start."""
        first = self.offsets[layer]
        self.offsets[layer] += len(patterns)
        self.pattern_bytes += patterns.nbytes
        keeps = self.pattern_bytes <= self.plan.memory
        self.result.patterns[layer].append(patterns if keeps else None)
        self.result.hashes[layer].append(None if keeps else hash_rows(patterns))
        return first
