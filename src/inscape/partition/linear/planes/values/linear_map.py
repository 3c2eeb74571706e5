"""The linear map right after an elementwise node, at the vertices after a cut.

At old vertices it is multiplied out, at new ones expanded along lines. If all that is wanted is on which side
of their thresholds its entries are, the rows at new vertices are not stored.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph.piecewise import Bend
from inscape.partition.linear.bending import thresholds
from inscape.partition.linear.fusing import Fusion
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.layer.sign_vectors import Packed, Words, cutoff_of
from inscape.partition.linear.planes.plan import Plan
from inscape.partition.linear.planes.rounding import NodeNoise
from inscape.partition.linear.planes.values.expansion import expand, sign_lines
from inscape.partition.linear.planes.values.products import Product, multiply
from inscape.partition.linear.planes.values.rows import empty, flat
from inscape.partition.linear.planes.values.values import Values

_ENOUGH = 256
"""So many old vertices tell the scale of a layer; else the bends on the lines have a say."""

_MANY = 2**22
"""So many numbers at new vertices are better found where they are needed than stored."""

_FEW = 8
"""Lines have few kinks if they have so many on the average."""

_LARGE = 2**22
"""So many numbers take new memory whenever they are asked for."""


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A map at n vertices.

    Attributes:
        plan: of the network.
        matrix: the map.
        op: the elementwise node before it.
        z: that node's input at the old vertices before the cut, (v, ...).
        is_free: whether the memory of z may be overwritten.
        above: packed bits of the units that are on there, (v, words).
        rows: which of these are wanted, None for all; they are the first of the n vertices.
        n: how many vertices are wanted.
        edges: lines between wanted old vertices; chords: lines between these and vertices on edges.
        xy: coordinates of a vertex.
    """

    plan: Plan
    matrix: Fusion
    op: Bend
    z: Tensor
    is_free: bool
    above: Words
    rows: Ints | None
    n: int
    edges: Lines
    chords: Lines
    xy: Floats

    @property
    def n_old(self) -> int:
        """How many of the vertices are old."""
        return len(self.z) if self.rows is None else len(self.rows)

    @property
    def h(self) -> int:
        """How many entries the map has."""
        return int(self.matrix.columns.shape[1])

    def found(self) -> tuple[Tensor, Values, Packed | None]:
        """The rows that are stored, the map's values, and its signs if a piecewise-linear node follows.

        The memory of the rows may be larger than they are.
        """
        is_sparing = self._is_sparing()
        y = self._room(self.n_old if is_sparing else self.n)
        packed = self._multiply(y[: self.n_old])
        into = packed or Packed.room(0, self.h, np.zeros(0), 0.0)
        signs = into.thresholds, into.cutoff, into.words, into.near
        lines = self.edges, self.chords, self.matrix.columns
        if not is_sparing:
            expand(y.numpy(), self.n_old, *lines, *signs)
            return y, Values.stored(y.numpy()), packed
        values = Values.on_lines(y.numpy(), *lines, self.n - self.n_old)
        sign_lines(values, *signs)
        return y, values, packed

    def _multiply(self, y: Tensor) -> Packed | None:
        """Write the map at the old vertices, and its signs."""
        op: Any = self.plan.graph.nodes[self.matrix.last].op
        _, *bias = op.constants
        is_free = self.is_free and y.data_ptr() != self.z.data_ptr()
        product = Product(self.op, self.matrix.columns, bias[0] if bias else None, len(y), is_free)
        return multiply(product, flat(self.z), self.above, self.rows, y, self._signs)

    def _is_sparing(self) -> bool:
        """Whether only signs are wanted, of many rows, on lines with few kinks."""
        few = len(self.chords.s) <= _FEW * len(self.chords.ends)
        is_large = (self.n - self.n_old) * self.h >= _MANY
        return is_large and few and self.plan.ends_with_signs(self.matrix.last)

    def _signs(self, some: Floats) -> Packed | None:
        """Room for signs, from some rows."""
        following = self.plan.bend_after(self.matrix.last)
        if following is None:
            return None
        theta = np.array(thresholds(following))
        noise = NodeNoise(self.plan.graph, self.plan.plane, self.xy, self.matrix.last)
        largest = 0.0 if self.n_old >= _ENOUGH else self._largest_bend()
        return Packed.room(self.n, self.h, theta, cutoff_of(some, theta, noise, largest))

    def _largest_bend(self) -> float:
        """A bound for what a kink bends an entry on its line by."""
        changes = [float(np.abs(line.change).max(initial=0.0)) for line in (self.edges, self.chords)]
        return max(changes) * float(np.abs(self.matrix.columns).max()) / 4

    def _room(self, n: int) -> Tensor:
        """Room for n rows.

        If z is free and its rows are as long, that is its memory, which products take block by block.
        """
        z, h = self.z, self.h
        if n * h < _LARGE:
            return empty((n, h))
        fits = z.untyped_storage().nbytes() >= n * h * z.itemsize and z.storage_offset() == 0
        if self.is_free and fits and z[0].numel() == h and z.is_contiguous():
            return z.new_empty(0).set_(z.untyped_storage(), 0, (n, h), (h, 1))
        return self.plan.reserve.rows(n, h)
