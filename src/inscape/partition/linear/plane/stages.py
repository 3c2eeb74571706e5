"""What follows a cut: the faces in one or several parts, each with its tensors, made one at a time."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.models.graph.piecewise import Bend, Clip, Leaky
from inscape.partition.linear.bending import overwrite, thresholds
from inscape.partition.linear.fusing import Fusion
from inscape.partition.linear.plane.cells import Cells, Floats, Ints
from inscape.partition.linear.plane.expansion import expand
from inscape.partition.linear.plane.parts import faces_between, parts
from inscape.partition.linear.plane.plan import Plan
from inscape.partition.linear.plane.rows import Interpolation, empty
from inscape.partition.linear.plane.split import Split

Lineage = tuple[Ints, ...]
"""For each layer so far, which row of the layer's patterns belongs to each face."""

Next = tuple[int, dict[int, Tensor], Cells, Lineage]
"""The node to go on with, the live tensors, the faces."""


class Stage(ABC):
    """The faces after a piecewise-linear node."""

    def __init__(self, plan: Plan, node: int, cells: Cells, lineage: Lineage) -> None:
        self.plan, self.node, self.cells, self.lineage = plan, node, cells, lineage

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """The faces of each part: all in one if their tensors fit into memory."""
        if not self.plan.goes_on(self.node) or self.n_bytes() <= self.plan.memory:
            return [(0, self.cells.n_faces)]
        return parts(self.cells, self.plan.most_rows(self.node))

    def __len__(self) -> int:
        return len(self.ranges)

    def __iter__(self) -> Iterator[Next]:
        for first, last in self.ranges:
            lineage = tuple(r[first:last] for r in self.lineage)
            if len(self) == 1:
                cells, wanted = self.cells, np.arange(len(self.cells.xy))
            else:
                cells, wanted = faces_between(self.cells, first, last)
            live = self.tensors(wanted) if self.plan.goes_on(self.node) else {}
            yield self.node + 1, live, cells, lineage

    @abstractmethod
    def n_bytes(self) -> int:
        """Memory that all faces take in one part."""

    @abstractmethod
    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """The live tensors at some vertices."""


class Pooled(Stage):
    """After a maximum over windows: all tensors are there."""

    def __init__(
        self, plan: Plan, node: int, cells: Cells, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        super().__init__(plan, node, cells, lineage)
        self.live = live

    def n_bytes(self) -> int:
        """Memory that all faces take in one part."""
        return self.plan.stage_bytes(self.node, list(self.live)) * len(self.cells.xy)

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """Rows of the tensors."""
        return {k: v if len(wanted) == len(v) else v[wanted] for k, v in self.live.items()}


class Bent(Stage):
    """After an elementwise node: tensors are carried to new vertices, a matrix product is expanded."""

    def __init__(
        self, plan: Plan, node: int, op: Bend, part: Split, lineage: Lineage, live: dict[int, Tensor]
    ) -> None:
        super().__init__(plan, node, part.cells, lineage)
        (self.input,) = plan.graph.nodes[node].inputs
        self.kept = [k for k in live if plan.is_needed(k, node)]
        self.op, self.split, self.live = op, part, live
        self.matrix = plan.matrix_after(node)

    def n_bytes(self) -> int:
        """Memory that all faces take in one part: old tensors and new ones."""
        n, sizes = len(self.cells.xy), self.plan.sizes
        if self.matrix is None:
            return self.plan.stage_bytes(self.node, self.kept) * n
        new = self.matrix.columns.shape[1] + sum(sizes[k] for k in self.kept)
        return 8 * int(n * new + self.split.n_old * sizes[self.input])

    def __iter__(self) -> Iterator[Next]:
        matrix = self.matrix
        if matrix is None or len(self) > 1:
            yield from super().__iter__()
            return
        names = [k for k in (*self.kept, self.node) if self.plan.is_needed(k, matrix.last)]
        live = {}
        if names:
            every = self.tensors(np.arange(len(self.cells.xy)))
            live = {k: every[k] for k in names}
        live[matrix.last] = self._expanded(matrix)
        yield matrix.last + 1, live, self.cells, self.lineage

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """Live tensors carried over, and the node's own."""
        found = {k: self._carry.carry(self.live[k], wanted) for k in self.kept}
        theta = np.array(thresholds(self.op))
        found[self.node] = self.op(self._carry.carry_input(self.live[self.input], wanted, theta))
        return found

    @cached_property
    def _carry(self) -> Interpolation:
        return Interpolation.of(self.split)

    def _may_overwrite(self) -> bool:
        """Whether the input's tensor is its own, and nobody else needs it."""
        graph = self.plan.graph
        op = graph.nodes[self.input].op
        own = op is not None and op.name in ("linear", "conv", "batch_norm", "add", "subtract")
        return own and graph.last_use[self.input] == self.node

    def _expanded(self, matrix: Fusion) -> Tensor:
        """The linear map that reads the node, at all vertices."""
        n_old, n = self.split.n_old, len(self.cells.xy)
        z = self.live.pop(self.input)
        bent = (overwrite(self.op, z) if self._may_overwrite() else self.op(z)).reshape(n_old, -1)
        op: Any = self.plan.graph.nodes[matrix.last].op
        weight, *bias = op.constants
        y = empty((n, len(weight)))
        if bias:
            torch.addmm(bias[0], bent, weight.mT, out=y[:n_old])
        else:
            torch.mm(bent, weight.mT, out=y[:n_old])
        known = np.zeros(n, bool)
        known[:n_old] = True
        factor, h = _bends(self.op), bent.shape[1]
        del z, bent  # as large as y
        for line in (self.split.edges, self.split.chords):
            entry, change = line.unit, line.change * factor[0]
            if len(factor) > 1:
                entry, change = line.unit % h, line.change * factor[line.unit // h]
            expand(
                y.numpy(), line.ends, line.start, line.s, entry, change, line.vertex, matrix.columns, known
            )
        return y.reshape(n, *self.plan.graph.shapes[matrix.last])


def _bends(op: Bend) -> Floats:
    """By how much the slope of an elementwise node changes at each threshold, moving up."""
    if isinstance(op, Clip):
        return np.array([1.0] * math.isfinite(op.low) + [-1.0] * math.isfinite(op.high))
    assert isinstance(op, Leaky)
    return np.array([1.0 - float(op.slope)])
