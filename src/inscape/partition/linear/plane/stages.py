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
from inscape.partition.linear.plane.noise import NodeNoise
from inscape.partition.linear.plane.parts import faces_between, parts
from inscape.partition.linear.plane.pieces import Lines
from inscape.partition.linear.plane.plan import Plan
from inscape.partition.linear.plane.restriction import restricted
from inscape.partition.linear.plane.rows import Interpolation, empty
from inscape.partition.linear.plane.signs import Packed, cutoff_of
from inscape.partition.linear.plane.split import Split

_AT_ONCE = 2**20
"""How many numbers are bent, multiplied and packed at once: as much as stays in the nearer caches."""

_ENOUGH = 256
"""So many old vertices tell the scale of a layer."""

Lineage = tuple[Ints, ...]
"""For each layer so far, which row of the layer's patterns belongs to each face."""

Values = tuple[int, dict[int, Tensor], Packed | None]

Next = tuple[int, dict[int, Tensor], Cells, Lineage, Packed | None]
"""The node to go on with, the live tensors, the faces; the signs of that node's input if they are known."""


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
            goes_on = self.plan.goes_on(self.node)
            node, live, packed = self.values(wanted) if goes_on else (self.node + 1, {}, None)
            yield node, live, cells, lineage, packed

    def values(self, wanted: Ints) -> Values:
        """What `Next` holds, at some vertices."""
        return self.node + 1, self.tensors(wanted), None

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

    def values(self, wanted: Ints) -> Values:
        """What `Next` holds; a matrix product right after the node is expanded."""
        matrix = self.matrix
        if matrix is None:
            return super().values(wanted)
        names = [k for k in (*self.kept, self.node) if self.plan.is_needed(k, matrix.last)]
        every = self.tensors(wanted) if names else {}
        live = {k: every[k] for k in names}
        live[matrix.last], packed = self._expanded(matrix, wanted)
        return matrix.last + 1, live, packed

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
        return own and graph.last_use[self.input] == self.node and len(self) == 1

    def _expanded(self, matrix: Fusion, wanted: Ints) -> tuple[Tensor, Packed | None]:
        """The linear map that reads the node, and its signs if a piecewise-linear node follows."""
        n_old, n, h = self.split.n_old, len(self.cells.xy), self.plan.sizes[self.input]
        edges, chords = (_bent(line, self.op, h) for line in (self.split.edges, self.split.chords))
        part = None if len(self) == 1 else restricted(n_old, n, edges, chords, wanted)
        if part is not None:
            n_old, n, edges, chords = len(part.rows), part.n_rows, part.edges, part.chords
        y = empty((n, matrix.columns.shape[1]))
        packed = self._multiplied(matrix, y[:n_old], n, None if part is None else part.rows)
        into = packed or Packed.room(0, y.shape[1], np.zeros(0), 0.0)
        signs = into.thresholds, into.cutoff, into.words, into.near
        expand(y.numpy(), n_old, edges, chords, matrix.columns, *signs)
        if part is not None:
            y, packed = y[torch.from_numpy(part.wanted)], packed and packed.of(part.wanted)
        return y.reshape(len(y), *self.plan.graph.shapes[matrix.last]), packed

    def _multiplied(self, matrix: Fusion, y: Tensor, n: int, rows: Ints | None) -> Packed | None:
        """Write the products at old vertices, and their signs into room for n if they tell their scale.

        `rows` are the old vertices, all of them if None.
        """
        z = self.live[self.input] if len(self) > 1 else self.live.pop(self.input)
        may_overwrite, following = self._may_overwrite(), self.plan.bend_after(matrix.last)
        op: Any = self.plan.graph.nodes[matrix.last].op
        weight, *bias = op.constants
        step, packed = max(1, _AT_ONCE // self.plan.sizes[self.input]), None
        for first in range(0, len(y), step):
            out = y[first : first + step]
            own = z[first : first + len(out)] if rows is None else z[rows[first : first + len(out)]]
            bent = (overwrite(self.op, own) if may_overwrite else self.op(own)).reshape(len(out), -1)
            if bias:
                torch.addmm(bias[0], bent, weight.mT, out=out)
            else:
                torch.mm(bent, weight.mT, out=out)
            if following is None or len(y) < _ENOUGH:
                continue
            if packed is None:
                theta = np.array(thresholds(following))
                noise = NodeNoise(self.plan.graph, self.plan.plane, self.cells.xy, matrix.last)
                packed = Packed.room(n, y.shape[1], theta, cutoff_of(out.numpy(), theta, noise))
            packed.pack(out.numpy(), first)
        return packed


def _bent(lines: Lines, op: Bend, h: int) -> Lines:
    """Lines with kinks of h entries, each with the change of the bent entry's slope."""
    factor = _bends(op)
    if len(factor) == 1:
        return lines if factor[0] == 1.0 else lines._replace(change=lines.change * factor[0])
    change = lines.change * factor[lines.unit // h]
    return lines._replace(unit=lines.unit % np.int32(h), change=change)


def _bends(op: Bend) -> Floats:
    """By how much the slope of an elementwise node changes at each threshold, moving up."""
    if isinstance(op, Clip):
        return np.array([1.0] * math.isfinite(op.low) + [-1.0] * math.isfinite(op.high))
    assert isinstance(op, Leaky)
    return np.array([1.0 - float(op.slope)])
