"""How exactly float64 knows the entries of a node: bounds for rounding errors at points, and cheap scales.

An entry y = sum of w_k h_k + b has two kinds of error. Its own sum is rounded by a few eps times the sum of
the absolute terms. And the h_k were rounded before it: errors that point in all directions add up as the root
of their squares, and end where a unit is surely on its flat side. Absolute sums of the second kind would grow
with every layer as no error ever does.
"""

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from inscape.models.graph import Graph, Node
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend, Clip, Leaky, Windows
from inscape.partition.linear.segments.breakpoints import ROUNDING, SLACK

_Triple = tuple[Tensor, Tensor, Tensor]
"""Values, the sums of their own absolute terms, and the errors that they take over."""
_Quadruple = tuple[Tensor, Tensor, Tensor, Tensor]
"""Values, their slopes, and of the slopes the terms and the errors taken over."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The entries of a node at some points, (n, ...), and the scale of their rounding errors."""

    values: Tensor
    sizes: Tensor

    @property
    def bounds(self) -> Tensor:
        """How far each entry may be from the truth."""
        return ROUNDING * torch.finfo(self.values.dtype).eps * self.sizes


def evaluated(graph: Graph, x: Tensor, node: int, size: Tensor | None = None) -> Evaluated:
    """A node's entries at some points, evaluated anew, with the scale of their rounding errors.

    Args:
        graph: the network, in the precision of the points.
        x: the points, (n, *input_shape).
        node: the number of the node.
        size: the scale of the numbers from which the points themselves were formed, |x| if not given.
    """

    def visit(i: int, node: Node, inputs: list[_Triple]) -> _Triple:
        values, terms, before = zip(*inputs, strict=True)
        value = node.op(*values)
        if isinstance(node.op, Bend):
            return value, *_after_bend(node.op, values[0], terms[0], before[0], value)
        return value, node.op.magnitude(*terms), _root_of_squares(node.op, *before)

    start = x, x.abs() if size is None else size, torch.zeros_like(x)
    value, terms, before = graph.walk(start, visit, until=node)
    return Evaluated(value, torch.hypot(terms, before))


def _root_of_squares(op: Affine, *sizes: Tensor) -> Tensor:
    """The root of the sum of squares of an affine operation's terms, without its offset."""
    linear = op.linear_part
    squared = replace(linear, constants=tuple(c * c for c in linear.constants))
    return squared.magnitude(*(s * s for s in sizes)).sqrt()


def _after_bend(op: Bend, z: Tensor, terms: Tensor, before: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The scale of a bent tensor: its own, but for entries that are nothing but rounding, which keep theirs.

    And the scale of the errors that it takes over: none where the operation is surely flat.
    """
    noise = ROUNDING * torch.finfo(z.dtype).eps
    size = torch.hypot(terms, before)
    if isinstance(op, Windows):
        return _after_windows(op, z, terms, size, noise, value)
    bound = noise * size
    steepness = (op(z + bound) - op(z - bound)).abs() / (2 * bound)
    inherited = torch.where(bound > 0, steepness * size, 0.0)
    kept = torch.where(z.abs() <= bound, torch.minimum(terms, inherited), 0.0)
    return torch.maximum(kept, value.abs()), inherited


def _after_windows(
    op: Windows, z: Tensor, terms: Tensor, size: Tensor, noise: float, value: Tensor
) -> tuple[Tensor, Tensor]:
    """The same for maxima: of the entries that may be the largest of their window."""
    table = op.table(tuple(z.shape[1:]))
    is_entry = table >= 0

    def of_windows(entries: Tensor) -> Tensor:
        return entries.flatten(1)[:, table.clamp(min=0)]

    high, low = of_windows(z + noise * size), of_windows(z - noise * size)
    best = low.masked_fill(~is_entry, -torch.inf).amax(dim=-1, keepdim=True)
    contends = (high >= best) & is_entry

    def largest(entries: Tensor) -> Tensor:
        return torch.where(contends, of_windows(entries), 0.0).amax(dim=-1).reshape(value.shape)

    kept = largest(torch.where(z.abs() <= noise * size, terms, 0.0))
    return torch.maximum(kept, value.abs()), largest(size)


def slopes(graph: Graph, x: Tensor, dx: Tensor) -> Evaluated:
    """The derivative of the output at `x` in the direction `dx`, (n, ...), with the scale of its errors."""

    def visit(i: int, node: Node, inputs: list[_Quadruple]) -> _Quadruple:
        values, slopes, terms, before = zip(*inputs, strict=True)
        if isinstance(node.op, Bend):
            slope = node.op.derivative(values[0], slopes[0])
            inherited = node.op.derivative(values[0], torch.hypot(terms[0], before[0])).abs()
            return node.op(values[0]), slope, slope.abs(), inherited
        linear = node.op.linear_part
        return node.op(*values), linear(*slopes), linear.magnitude(*terms), _root_of_squares(node.op, *before)

    with torch.no_grad():
        start = x, dx, dx.abs(), torch.zeros_like(dx)
        _, slope, terms, before = graph.cast(x.dtype).walk(start, visit)
    return Evaluated(slope, torch.hypot(terms, before))


class Scales:
    """For each node how large its entries can be, given how large those that it reads are.

    |A| and |b| are the absolute coefficients of an affine node: entries of at most s become entries of at
    most (largest row sum of |A|) s + (largest |b|).
    """

    def __init__(self, graph: Graph) -> None:
        double = graph.cast(torch.float64)
        self._growth: dict[int, tuple[float, float]] = {}
        with torch.no_grad():
            for i, node in enumerate(double.nodes):
                if isinstance(node.op, Affine) and node.inputs:
                    rows = [torch.ones(1, *graph.shapes[j], dtype=torch.float64) for j in node.inputs]
                    offset = node.op.magnitude(*(torch.zeros_like(r) for r in rows))
                    growth = node.op.linear_part.magnitude(*rows)
                    self._growth[i] = float(growth.max()), float(offset.max())

    def affine(self, node: int, *scales: float) -> float:
        """How large the entries of an affine node can be."""
        growth, offset = self._growth[node]
        return growth * max(scales) + offset

    def bent(self, op: Bend, scale: float, largest: float) -> float:
        """The same after a piecewise-linear node whose inputs can be `scale` and are at most `largest`.

        Where they are much smaller than they can be, they may be nothing but rounding, and so the scale must
        not shrink with them.
        """
        reach = max(largest, scale / SLACK)
        if isinstance(op, Clip):
            return max([reach, *(abs(b) for b in (op.low, op.high) if abs(b) < torch.inf)])
        return (
            reach * max(1.0, float(torch.as_tensor(op.slope).abs().max())) if isinstance(op, Leaky) else reach
        )


def scales_of(graph: Graph) -> Scales:
    """The scales of a graph, computed once."""
    if graph not in _KNOWN:
        _KNOWN[graph] = Scales(graph)
    return _KNOWN[graph]


_KNOWN: WeakKeyDictionary[Graph, Scales] = WeakKeyDictionary()
