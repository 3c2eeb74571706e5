"""What follows a cut: the faces in one or several parts, each with its tensors, made one at a time."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph.piecewise import Bend, Clip, Leaky
from inscape.partition.linear.bending import thresholds
from inscape.partition.linear.fusing import Fusion
from inscape.partition.linear.planes.complex.chunks import faces_between, parts
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.layer.cut import Split
from inscape.partition.linear.planes.layer.sign_vectors import Packed, Signed
from inscape.partition.linear.planes.lineage import Lineage
from inscape.partition.linear.planes.plan import Plan
from inscape.partition.linear.planes.values.linear_map import LinearMap
from inscape.partition.linear.planes.values.restriction import restricted
from inscape.partition.linear.planes.values.rows import Interpolation
from inscape.partition.linear.planes.values.values import Values

Live = tuple[int, dict[int, Tensor], Signed | None]

Next = tuple[int, dict[int, Tensor], Cells, Lineage, Signed | None]
"""The node to go on with, the live tensors, the faces; that node's input if its signs are known."""


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
            cells, lineage, vertices = self.cells, self.lineage, None
            if len(self) > 1:
                cells, vertices = faces_between(self.cells, first, last)
                lineage = self.lineage.of(np.arange(first, last))
            if not self.plan.goes_on(self.node):
                yield self.node + 1, {}, cells, lineage, None
                continue
            node, live, signed = self.values(np.arange(len(cells.xy)) if vertices is None else vertices)
            yield node, live, cells, lineage, signed

    def values(self, wanted: Ints) -> Live:
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

    def values(self, wanted: Ints) -> Live:
        """What `Next` holds; a matrix product right after the node is expanded."""
        matrix = self.matrix
        if matrix is None:
            return super().values(wanted)
        names = [k for k in (*self.kept, self.node) if self.plan.is_needed(k, matrix.last)]
        every = self.tensors(wanted) if names else {}
        live = {k: every[k] for k in names}
        rows, values, packed = self._mapped(matrix, wanted)
        if values.is_stored:
            live[matrix.last] = rows.reshape(-1, *self.plan.graph.shapes[matrix.last])
        return matrix.last + 1, live, None if packed is None else Signed(values, packed)

    def tensors(self, wanted: Ints) -> dict[int, Tensor]:
        """Live tensors carried over, and the node's own."""
        found = {k: self._carry.carry(self.live[k], wanted) for k in self.kept}
        theta = np.array(thresholds(self.op))
        found[self.node] = self.op(self._carry.carry_input(self.live[self.input], wanted, theta))
        return found

    @cached_property
    def _carry(self) -> Interpolation:
        return Interpolation.of(self.split)

    def _is_free(self) -> bool:
        """Whether the input's tensor is its own, and nobody else needs it."""
        graph = self.plan.graph
        op = graph.nodes[self.input].op
        own = op is not None and op.name in ("linear", "conv", "batch_norm", "add", "subtract")
        return own and graph.last_use[self.input] == self.node

    def _mapped(self, matrix: Fusion, wanted: Ints) -> tuple[Tensor, Values, Packed | None]:
        """The linear map that reads the node, see `LinearMap.found`."""
        n, h = len(self.cells.xy), self.plan.sizes[self.input]
        edges, chords = (_bent(line, self.op, h) for line in (self.split.edges, self.split.chords))
        is_whole = len(self) == 1
        z = self.live.pop(self.input) if is_whole else self.live[self.input]
        of = self.plan, matrix, self.op, z, is_whole and self._is_free(), self.split.above
        if is_whole:
            return LinearMap(*of, None, n, edges, chords, self.cells.xy).found()
        part = restricted(self.split.n_old, n, edges, chords, wanted)
        lines = part.edges, part.chords
        rows, values, packed = LinearMap(*of, part.rows, part.n_rows, *lines, self.cells.xy).found()
        values, k = values.moved_to(part.wanted), len(part.wanted)
        return rows[:k], values, None if packed is None else packed.of(part.wanted)


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
