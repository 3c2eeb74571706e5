"""The intermediate representation: nodes that are affine or piecewise linear, in order of evaluation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.errors import PartitionError
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend


@dataclass(frozen=True)
class Foreign:
    """An operation that is neither affine nor piecewise linear in the input.

    Attributes:
        operation: what it is called, such as "gelu".
        path: the module that calls it, such as "encoder.3.act"; "" for the model itself.
    """

    operation: str
    path: str

    def __str__(self) -> str:
        return f"{self.operation} in {self.path or 'the model itself'}"


@dataclass(frozen=True, eq=False)
class Node:
    """One operation on earlier nodes.

    Attributes:
        op: an `Affine` or a `Bend`; None for node 0, the input.
        inputs: the numbers of the nodes that it reads, all smaller than its own.
        path: the module or file node that it came from, for messages.
    """

    op: Affine | Bend | None
    inputs: tuple[int, ...] = ()
    path: str = ""

    @property
    def is_affine(self) -> bool:
        """Whether the node is affine in the nodes that it reads."""
        return not isinstance(self.op, Bend)


class Graph:
    """A network as a list of nodes; node 0 is the input, a batch (n, *input_shape).

    Args:
        nodes: in order of evaluation.
        output: the number of the node whose value are the scores.
        input_shape: the shape of one point.
        head: "softmax", "log_softmax" or "sigmoid" if the model ends in one: it changes no label, so the
            graph stops before it.

    Evaluating the graph in a precision casts its constants once; a cast graph is kept.

    >>> from inscape.models.graph.affine import linear
    >>> from inscape.models.graph.piecewise import Leaky
    >>> nodes = [Node(None), Node(linear(torch.tensor([[1.0], [-1.0]])), (0,)), Node(Leaky(), (1,))]
    >>> Graph(nodes, output=2, input_shape=(1,)).evaluate(torch.tensor([[3.0]])).tolist()
    [[3.0, 0.0]]
    """

    def __init__(
        self, nodes: Sequence[Node], *, output: int, input_shape: Shape, head: str | None = None
    ) -> None:
        self.nodes = tuple(nodes)
        self.output = output
        self.input_shape = tuple(input_shape)
        self.head = head
        self.is_confirmed = False  # whether it was compared with its model on the points of a request
        self._origin = self
        self._casts: dict[torch.dtype, Graph] = {}

    def __repr__(self) -> str:
        bends = sum(not n.is_affine for n in self.nodes)
        return f"Graph({len(self.nodes)} nodes, {bends} piecewise linear, input_shape={self.input_shape})"

    def cast(self, dtype: torch.dtype) -> "Graph":
        """The graph with all constants in one precision, each rounded once from what was recorded."""
        known = self._origin._casts
        if dtype not in known:
            nodes = [Node(n.op and n.op.cast(dtype), n.inputs, n.path) for n in self._origin.nodes]
            graph = Graph(nodes, output=self.output, input_shape=self.input_shape, head=self.head)
            graph._origin = self._origin
            known[dtype] = graph
        return known[dtype]

    @cached_property
    def own_dtype(self) -> torch.dtype:
        """The precision in which the constants were recorded, the least if there are several."""
        kinds = {
            c.dtype
            for n in self._origin.nodes
            if isinstance(n.op, Affine)
            for c in n.op.constants
            if c.dtype.is_floating_point
        }
        return min(kinds, key=lambda d: torch.finfo(d).max, default=torch.float64)

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """For each node the number of the last node that reads it; the output is read at the end."""
        last = list(range(len(self.nodes)))
        for i, node in enumerate(self.nodes):
            for j in node.inputs:
                last[j] = i
        last[self.output] = len(self.nodes)
        return tuple(last)

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The row shape of every node, found by evaluating one row of zeros."""
        graph = self.cast(torch.float64)
        values = [torch.zeros(1, *self.input_shape, dtype=torch.float64)]
        with torch.no_grad():
            for node in graph.nodes[1:]:
                assert node.op is not None
                values.append(node.op(*(values[j] for j in node.inputs)))
        return tuple(tuple(v.shape[1:]) for v in values)

    @cached_property
    def cancelling(self) -> frozenset[int]:
        """The nodes whose terms cancel in every entry, on a few points of noise: zero but for rounding."""
        graph = self.cast(torch.float64)
        x = torch.randn(3, *self.input_shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        values, sizes = {0: x}, {0: x.abs()}
        found = set()
        with torch.no_grad():
            for i, node in enumerate(graph.nodes[1:], start=1):
                assert node.op is not None
                values[i] = node.op(*(values[j] for j in node.inputs))
                if isinstance(node.op, Bend):
                    sizes[i] = values[i].abs()
                else:
                    sizes[i] = node.op.magnitude(*(sizes[j] for j in node.inputs))
                if bool((values[i].abs() <= 1e-9 * sizes[i]).all()):
                    found.add(i)
        return frozenset(found)

    def evaluate(self, x: Tensor, *, until: int | None = None) -> Tensor:
        """The value of the output, or of node `until`, on a batch, in the precision of `x`."""
        graph, stop = self.cast(x.dtype), self.output if until is None else until
        values = {0: x}
        with torch.no_grad():
            for i, node in enumerate(graph.nodes[1 : stop + 1], start=1):
                assert node.op is not None
                values[i] = node.op(*(values[j] for j in node.inputs))
                for j in node.inputs:
                    if self.last_use[j] == i and j != stop:
                        values.pop(j, None)
        return values[stop]

    def derivative(self, x: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
        """The output at `x` and its derivative in the direction `dx`, both (n, ...)."""
        graph = self.cast(x.dtype)
        values, slopes = {0: x}, {0: dx}
        with torch.no_grad():
            for i, node in enumerate(graph.nodes[1 : self.output + 1], start=1):
                inputs, directions = [values[j] for j in node.inputs], [slopes[j] for j in node.inputs]
                if isinstance(node.op, Bend):
                    values[i], slopes[i] = node.op(*inputs), node.op.derivative(*inputs, *directions)
                else:
                    assert node.op is not None
                    values[i] = node.op(*inputs)
                    slopes[i] = linear_image(node.op, directions)
                for j in node.inputs:
                    if self.last_use[j] == i:
                        del values[j], slopes[j]
        return values[self.output], slopes[self.output]


def linear_image(op: Affine, directions: list[Tensor]) -> Tensor:
    """A d for the operation y = A d + b: op(k d) - op(0), over k.

    A large power of two for k makes b so small beside k A d that no digit of the difference is lost.
    """
    largest = max(float(d.abs().max()) for d in directions)
    offset = op(*(torch.zeros_like(d[:1]) for d in directions))
    if largest == 0.0:
        return torch.zeros_like(op(*directions))
    k = 2.0 ** (_LARGE[directions[0].dtype] - math.frexp(largest)[1])
    return (op(*(d * k for d in directions)) - offset) / k


_LARGE = {torch.float64: 300, torch.float32: 40}
"""Powers of two that dwarf any offset and leave room for a sum of products."""


def refuse(name: str, foreign: Sequence[Foreign]) -> PartitionError:
    """The error for an exact request on a model that holds foreign operations."""
    rest = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
    return PartitionError(
        f"{name} is not piecewise affine because of {foreign[0]}{rest}: it cannot be counted exactly; "
        'use method="adaptive", or method="grid" to compare with grids'
    )
