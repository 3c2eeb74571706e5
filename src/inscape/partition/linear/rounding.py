"""Rounding bounds: how accurately float64 knows the entries of a node, and cheap scales of these.

An entry y = sum of w_k h_k + b has two kinds of error. Its own sum is rounded by a few eps times the sum of
the absolute terms. And the h_k were rounded before it: errors of random signs add up like the root of the sum
of their squares, and end where a unit is surely on its flat side. Absolute sums of the second kind would grow
with every layer, as the errors themselves never do.

Segments and planes share this. Cheap scales say where rounding could matter at all: how large the entries of
a layer can be (`Scales`). Only there the entries are evaluated again, with bounds for their errors:
`SegmentRounding` does that at positions along segments, `PlaneRounding` at vertices of a plane.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph, Node
from inscape.models.graph.piecewise import Bend
from inscape.probes import Segment
from inscape.probes.plane import Plane

if TYPE_CHECKING:
    from inscape.partition.linear.segments.breakpoints import Positions

ROUNDING = 2.0**10
"""Rounding error of an entry, in units of eps times the scale that `evaluated` gives."""

SLACK = 2.0**6
"""How many times smaller than they can be the entries of a layer may be without being taken for rounding."""

RECHECKED_BELOW = SLACK * ROUNDING * float(np.finfo(np.float64).eps)
"""A crossing whose values are this small, relative to what the layer's entries can be, may be rounding."""

MAY_BE_ZERO = 1e-9
"""Entries this small, relative to the numbers from which points were formed, may be zero up to rounding."""

_NUMBERS_AT_ONCE = 2**22
"""How many numbers the largest tensor of an evaluation may have."""

_Triple = tuple[Tensor, Tensor, Tensor]
"""Values, the sums of their own absolute terms, and the errors that they inherit."""
_Quadruple = tuple[Tensor, Tensor, Tensor, Tensor]
"""Values, their slopes, and of the slopes the absolute terms and the inherited errors."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The entries of a node at some points, and the scale of their rounding errors.

    Attributes:
        values: the entries, (n, ...).
        sizes: the size of the numbers that each was computed from, (n, ...).
    """

    values: Tensor
    sizes: Tensor

    @property
    def bounds(self) -> Tensor:
        """How far each entry may be from its true value."""
        return ROUNDING * torch.finfo(self.values.dtype).eps * self.sizes


def evaluated(graph: Graph, x: Tensor, node: int, size: Tensor | None = None) -> Evaluated:
    """A node's entries at some points, evaluated again, with the scale of their rounding errors.

    Args:
        graph: the network, in the precision of the points.
        x: the points, (n, *input_shape).
        node: the number of the node.
        size: the scale of the numbers from which the points themselves were formed, |x| if not given.
    """

    def visit(i: int, node: Node, inputs: list[_Triple]) -> _Triple:
        values, terms, before = zip(*inputs, strict=True)
        value = node.op(*values)
        return value, *node.op.error_scales(value, values, terms, before, relative)

    relative = ROUNDING * torch.finfo(x.dtype).eps
    start = x, x.abs() if size is None else size, torch.zeros_like(x)
    value, terms, before = graph.walk(start, visit, until=node)
    return Evaluated(value, torch.hypot(terms, before))


def slopes(graph: Graph, x: Tensor, dx: Tensor) -> Evaluated:
    """The derivative of the output at `x` in the direction `dx`, (n, ...), with the scale of its errors."""

    def visit(i: int, node: Node, inputs: list[_Quadruple]) -> _Quadruple:
        values, slopes, terms, before = zip(*inputs, strict=True)
        slope = node.op.jvp(values, slopes)
        return node.op(*values), slope, *node.op.slope_error_scales(values, slope, terms, before)

    with torch.no_grad():
        start = x, dx, dx.abs(), torch.zeros_like(dx)
        _, slope, terms, before = graph.cast(x.dtype).walk(start, visit)
    return Evaluated(slope, torch.hypot(terms, before))


class Scales:
    """For each node how large its entries can be, given how large those are that it reads.

    With |A| and |b| the absolute coefficients of an affine node, entries of at most s become entries of at
    most (largest row sum of |A|) s + (largest |b|).
    """

    def __init__(self, graph: Graph) -> None:
        double = graph.cast(torch.float64)
        self._growth: dict[int, tuple[float, float]] = {}
        with torch.no_grad():
            for i, node in enumerate(double.nodes):
                if node.affine is not None and node.inputs:
                    self._growth[i] = node.affine.growth([graph.shapes[j] for j in node.inputs])

    def affine(self, node: int, *scales: float) -> float:
        """How large the entries of an affine node can be."""
        growth, offset = self._growth[node]
        return growth * max(scales) + offset

    def bent(self, op: Bend, scale: float, largest: float) -> float:
        """The same after a piecewise-linear node whose inputs can be `scale` and are at most `largest`.

        Entries that are much smaller than they can be may be nothing but rounding, so that the scale must not
        shrink with them.
        """
        return op.largest(max(largest, scale / SLACK))


def scales_of(graph: Graph) -> Scales:
    """The scales of a graph, computed once."""
    if graph not in _KNOWN:
        _KNOWN[graph] = Scales(graph)
    return _KNOWN[graph]


_KNOWN: WeakKeyDictionary[Graph, Scales] = WeakKeyDictionary()


def points_at(
    segments: Sequence[Segment], positions: "Positions", chosen: Ints, shape: tuple[int, ...]
) -> Tensor:
    """The points of the input space at some positions, (k, *shape), in float64."""
    first, second = _summands(segments, positions, chosen)
    return torch.from_numpy(first + second).reshape(-1, *shape)


def _summands(segments: Sequence[Segment], positions: "Positions", chosen: Ints) -> tuple[Floats, Floats]:
    """(1 - t) start and t end at some positions, (k, d) each."""
    numbers, which = np.unique(positions.segment[chosen], return_inverse=True)
    start = np.stack([segments[k].start.reshape(-1) for k in numbers])
    end = np.stack([segments[k].end.reshape(-1) for k in numbers])
    t = positions.t[chosen][:, None]
    return (1 - t) * start[which], t * end[which]


def evaluated_at(
    graph: Graph, segments: Sequence[Segment], positions: "Positions", chosen: Ints, node: int
) -> Evaluated:
    """A node's entries at some positions, evaluated again in float64, with bounds for their errors."""
    first, second = (torch.from_numpy(p) for p in _summands(segments, positions, chosen))
    x, size = (p.reshape(-1, *graph.input_shape) for p in (first + second, first.abs() + second.abs()))
    with torch.no_grad():
        return evaluated(graph.cast(torch.float64), x, node, size)


def _of_pairs(
    evaluate: Callable[[Ints], Evaluated], chosen: Ints, entries: Ints, most: int
) -> tuple[Floats, Floats]:
    """Entries (m, k) at positions or vertices (m,), evaluated again, and bounds for their errors, (m, k).

    Each position or vertex is evaluated once, and at most `most` of them at once.
    """
    needed, where = np.unique(chosen, return_inverse=True)
    where = where.reshape(-1)
    values, bounds = np.empty(entries.shape), np.empty(entries.shape)
    order = np.argsort(where, kind="stable")
    stops = np.searchsorted(where[order], np.arange(0, len(needed) + most, most))
    for k, start in enumerate(range(0, len(needed), most)):
        node = evaluate(needed[start : start + most])
        batch = order[stops[k] : stops[k + 1]]
        pairs = where[batch, None] - start, entries[batch]
        values[batch], bounds[batch] = (v.flatten(1).numpy()[pairs] for v in (node.values, node.bounds))
    return values, bounds


@dataclass(frozen=True, eq=False)
class SegmentRounding:
    """Rounding of one node's entries at positions along segments.

    Attributes:
        graph: the network.
        segments: the segments that the positions refer to.
        node: the number of the node.
        positions: the positions.
        scale: how large the node's entries can be; it does not shrink where they are nothing but rounding.
        most: how many positions are evaluated at once.
        doubts: collects segments and t around which float32 cannot tell whether there are further crossings.
    """

    graph: Graph
    segments: Sequence[Segment]
    node: int
    positions: "Positions"
    scale: float
    most: int
    doubts: list[tuple[Ints, Floats]]

    def ends(self, interval: Ints, entry: Ints) -> tuple[Floats, Floats]:
        """Entries at a position and the next, evaluated again, and bounds for their errors, (2, m) each."""
        values, bounds = _of_pairs(
            lambda chosen: evaluated_at(self.graph, self.segments, self.positions, chosen, self.node),
            np.concatenate([interval, interval + 1]),
            np.concatenate([entry, entry])[:, None],
            self.most,
        )
        return values.reshape(2, -1), bounds.reshape(2, -1)

    def at(self, chosen: Ints) -> "SegmentRounding":
        """The same for some of the positions, in that order."""
        return replace(
            self,
            positions=replace(
                self.positions, t=self.positions.t[chosen], segment=self.positions.segment[chosen]
            ),
        )

    def exactly(self, chosen: Ints) -> Any:
        """The node's values at some positions, evaluated again in float64, (k, h)."""
        chunks = [
            self.graph.evaluate(
                points_at(self.segments, self.positions, chosen[k : k + self.most], self.graph.input_shape),
                until=self.node,
            )
            for k in range(0, len(chosen), self.most)
        ]
        return torch.cat([c.reshape(len(c), -1) for c in chunks]).numpy()

    def doubt(self, chosen: Ints) -> None:
        """Note positions around which float32 cannot tell whether there are further crossings."""
        self.doubts.append((self.positions.segment[chosen], self.positions.t[chosen]))


class RoundingBounds(Protocol):
    """How accurately the values of a layer are known."""

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry, of this scale at most, may be zero up to rounding."""

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Bounds for the rounding error of entries at vertices, for each pair (m,)."""


@dataclass(frozen=True, eq=False)
class PlaneRounding:
    """Bounds for the rounding error of a node's entries at vertices.

    Attributes:
        graph: the network.
        plane: where coordinates lie in the input space.
        xy: the coordinates of the vertices, (v, 2).
        node: the number of the node.
    """

    graph: Graph
    plane: Plane
    xy: Floats
    node: int

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry of the node, of this scale at most, may be zero up to rounding."""
        return scale <= MAY_BE_ZERO * self.plane.reach(self.xy[0]) or self.node in self.graph.cancelling

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """The bounds for pairs of a vertex and an entry, (m,)."""
        return self.largest(vertices, entries[:, None])

    def largest(self, vertices: Ints, entries: Ints) -> Floats:
        """The largest bound over several entries (m, k) at each vertex (m,); entry -1 is none."""
        most = max(1, _NUMBERS_AT_ONCE // max(int(np.prod(s)) for s in self.graph.shapes))
        _, bounds = _of_pairs(self._evaluated, vertices, entries, most)
        return np.asarray(np.where(entries >= 0, bounds, 0.0).max(axis=1))

    def _evaluated(self, vertices: Ints) -> Evaluated:
        xy, shape = self.xy[vertices], (-1, *self.graph.input_shape)
        x, size = (torch.from_numpy(v).reshape(shape) for v in (self.plane.points(xy), self.plane.sizes(xy)))
        with torch.no_grad():
            return evaluated(self.graph, x, self.node, size)
