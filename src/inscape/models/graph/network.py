"""The intermediate representation: nodes that are affine or piecewise linear, in order of evaluation."""

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.errors import PartitionError
from inscape.models.graph.affine import Affine, by_torch, identity, reshape
from inscape.models.graph.piecewise import Bend

Value = TypeVar("Value")


class Unreadable(Exception):
    """Raised by a front end: an operation stands in the way of a graph.

    Args:
        operation: what it is called, such as "softmax".
        about: what of it stands in the way, such as "over a part of the scores"; "" for all of it.

    Attributes:
        verdict: what is said of a model for its sake; {} is where the operation is named.
    """

    verdict: ClassVar[str]

    def __init__(self, operation: str, about: str = "") -> None:
        super().__init__(f"{operation} {about}".strip())
        self.operation, self.about = operation, about


class IsRandom(Unreadable):
    """The operation gives another result each time."""

    verdict = "cannot be counted exactly because of {}, which is random"


class NotPiecewiseAffine(Unreadable):
    """The operation is neither affine nor piecewise linear: no front end could read it."""

    verdict = "is not piecewise affine because of {}"


class MixesPoints(Unreadable):
    """What the operation makes of a point depends on the rest of the batch."""

    verdict = "cannot be counted exactly because of {}, where the points of a batch meet"


class Jumps(Unreadable):
    """The operation is piecewise affine but not continuous, and exact counts need continuous networks."""

    verdict = "cannot be counted exactly because of {}, which jumps"


class OnlyRounding(Unreadable):
    """Scores are of the size of the rounding errors on the way to them."""

    verdict = "cannot be counted exactly because of {}, which rounding makes of much larger numbers"


class NotSupportedYet(Unreadable):
    """The operation may well be affine or piecewise linear, but it is not read."""

    verdict = "cannot be counted exactly; not supported yet: {}"


class WritesEntries(NotSupportedYet):
    """The operation writes into some entries of a tensor: without side effects it may be read after all."""

    def __init__(self, about: str = "") -> None:
        super().__init__("a write into part of a tensor", about)


_BY_HOPE = (IsRandom, NotPiecewiseAffine, MixesPoints, Jumps, OnlyRounding, NotSupportedYet)
"""The one that leaves least hope comes first: a model is called by the first that applies to it."""


@dataclass(frozen=True)
class Foreign:
    """An operation that cannot be part of a graph.

    Attributes:
        operation: what it is called, such as "gelu".
        path: the module that calls it, such as "encoder.3.act"; "" for the model itself.
        kind: why it cannot.
        layer: the class of that module, where it says more than the operation does.
    """

    operation: str
    path: str
    kind: type[Unreadable] = NotPiecewiseAffine
    layer: str = ""

    def __str__(self) -> str:
        layer = f" ({self.layer})" if self.layer and self.path else ""
        return f"{self.operation} in {self.path or 'the model itself'}{layer}"


@dataclass(frozen=True, eq=False)
class Node:
    """One operation on earlier nodes.

    Attributes:
        op: an `Affine` or a `Bend`; that of node 0, the input, is the identity and reads nothing.
        inputs: the numbers of the nodes that it reads, all smaller than its own.
        path: the module or file node that it came from, for messages.
    """

    op: Affine | Bend
    inputs: tuple[int, ...] = ()
    path: str = ""

    @property
    def is_affine(self) -> bool:
        """Whether the node is affine in the nodes that it reads."""
        return self.op.is_affine

    @property
    def affine(self) -> Affine | None:
        """Its operation, if that is affine."""
        return self.op if isinstance(self.op, Affine) else None

    @property
    def bend(self) -> Bend | None:
        """Its operation, if that is piecewise linear."""
        return self.op if isinstance(self.op, Bend) else None


@dataclass(frozen=True, eq=False)
class Fusion:
    """A linear map that reads an elementwise node, perhaps reshaped.

    Attributes:
        last: the number of the map's node.
        columns: for a matrix its transpose, (in, out); for a convolution its weight.
        geometry: for a convolution: shapes of input and output, stride, padding, dilation, groups.
    """

    last: int
    columns: Any
    geometry: tuple[int, ...] | None


INPUT = Node(identity())
"""Node 0 of every graph."""

Visit = Callable[[int, Node, list[Value]], Value]
"""What a walk does at a node: its value, from its number, itself, and the values of what it reads."""


def evaluate_node(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
    """The value of a node: what the simplest walk does."""
    return node.op(*inputs)


class Graph:
    """A network as a list of nodes; node 0 is the input, a batch (n, *input_shape).

    Args:
        nodes: in order of evaluation.
        output: the number of the node whose value are the scores.
        input_shape: the shape of one point.
        head: "softmax", "log_softmax" or "sigmoid" if the model ends in one: it changes no label, so the
            graph stops before it. "order" if only the order of the scores is the model's.
        returned: the number of the node whose value, behind the head, the model returns; by default the
            output, another one where scores are made of it by a decision rule.

    Evaluating the graph in a precision casts its constants once; a cast graph is kept.

    >>> from inscape.models.graph.affine import linear
    >>> from inscape.models.graph.piecewise import Leaky
    >>> nodes = [INPUT, Node(linear(torch.tensor([[1.0], [-1.0]])), (0,)), Node(Leaky(), (1,))]
    >>> Graph(nodes, output=2, input_shape=(1,)).evaluate(torch.tensor([[3.0]])).tolist()
    [[3.0, 0.0]]
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        output: int,
        input_shape: Shape,
        head: str | None = None,
        returned: int | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.output = output
        self.returned = output if returned is None else returned
        self.input_shape = tuple(input_shape)
        self.head = head
        self.is_confirmed = False  # whether it was compared with its model on the points of a request
        self._origin = self
        self._casts: dict[torch.dtype, Graph] = {}

    def __repr__(self) -> str:
        nodes = f"{len(self.nodes)} nodes, {len(self.bends)} piecewise linear"
        return f"Graph({nodes}, input_shape={self.input_shape})"

    def cast(self, dtype: torch.dtype) -> "Graph":
        """The graph with all constants in one precision, each rounded once from what was recorded."""
        known = self._origin._casts
        if dtype not in known:
            with torch.inference_mode(False):  # the graph may outlive the caller's mode
                nodes = [Node(n.op.cast(dtype), n.inputs, n.path) for n in self._origin.nodes]
            graph = Graph(
                nodes,
                output=self.output,
                input_shape=self.input_shape,
                head=self.head,
                returned=self.returned,
            )
            graph._origin = self._origin
            known[dtype] = graph
        return known[dtype]

    def after(self, first: "Graph") -> "Graph":
        """This network on what another one makes of the input, reshaped to what this one takes."""
        nodes = list(first.nodes[: first.output + 1])
        if first.shapes[first.output] != self.input_shape:
            nodes.append(Node(reshape(self.input_shape), (first.output,)))
        start = len(nodes) - 1  # takes the place of this network's node 0
        nodes += [Node(n.op, tuple(start + j for j in n.inputs), n.path) for n in self.nodes[1:]]
        return Graph(
            nodes,
            output=start + self.output,
            input_shape=first.input_shape,
            head=self.head,
            returned=start + self.returned,
        )

    def reshaped(self, shape: Shape) -> "Graph":
        """This network with its output in another shape; what it returns stays as it is before a head."""
        if self.shapes[self.output] == shape:
            return self
        end, returned = self.output, self.returned
        if self.head is None and returned == end:
            if self.nodes[end].op.is_reshape:
                end = self.nodes[end].inputs[0]
            returned = end
        nodes = list(self.nodes[: end + 1])
        if self.shapes[end] != shape:
            nodes.append(Node(reshape(shape), (end,)))
        return Graph(
            nodes, output=len(nodes) - 1, input_shape=self.input_shape, head=self.head, returned=returned
        )

    @cached_property
    def own_dtype(self) -> torch.dtype:
        """The precision in which the constants were recorded, the least if there are several."""
        kinds = {c.dtype for n in self._origin.nodes for c in n.op.constants if c.dtype.is_floating_point}
        return min(kinds, key=lambda d: torch.finfo(d).max, default=torch.float64)

    @cached_property
    def bends(self) -> dict[int, Bend]:
        """The piecewise-linear operations by the numbers of their nodes, in order."""
        return {i: n.bend for i, n in enumerate(self.nodes) if n.bend is not None}

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """For each node the number of the last node that reads it; the output is read at the end."""
        last = list(range(len(self.nodes)))
        for i, node in enumerate(self.nodes):
            for j in node.inputs:
                last[j] = i
        last[self.output] = len(self.nodes)
        return tuple(last)

    def walk(self, start: Value, visit: Visit[Value], *, first: int = 0, until: int | None = None) -> Value:
        """What `visit` makes of the output, or of node `until`: the one evaluation of the graph.

        Nodes are visited in order. What no later node reads is let go at once, so that memory holds the live
        values only. A value is whatever the visitor carries along: a tensor, a tensor and its derivative, ...

        Args:
            start: the value of node `first`.
            visit: called with a node's number, the node, and the values of the nodes that it reads.
            first: the node to start after: the input, or another one on which alone the rest depends.
            until: the node to stop at, by default the output.
        """
        last = self.output if until is None else until
        live = {first: start}
        self.go_on(live, first + 1, visit, last=last)
        return live[last]

    def go_on(
        self,
        live: dict[int, Value],
        node: int,
        visit: Visit[Value],
        *,
        last: int,
        before: Container[int] = (),
    ) -> int:
        """Take a walk on from the middle of the graph, up to a node of `before` or to the end.

        Args:
            live: the values that are read from here on, by the numbers of their nodes; changed into those
                that are read from where the walk stops.
            node: the next one to visit.
            visit: as in `walk`.
            last: the last node to visit.
            before: nodes to stop at, which are not visited.

        Returns:
            the node to go on with.
        """
        while node <= last and node not in before:
            inputs = self.nodes[node].inputs
            live[node] = visit(node, self.nodes[node], [live[j] for j in inputs])
            for j in inputs:
                if self.last_use[j] <= node:
                    live.pop(j, None)
            node += 1
        return node

    def walk_back(
        self,
        end: Value,
        visit: Callable[[int, Node, Value | None], Sequence[Value]],
        join: Callable[[Value, Value], Value],
    ) -> None:
        """Visit the nodes from the output back to the first behind the input.

        Args:
            end: the value of the output.
            visit: called with a node's number, the node and its value, None if no node visited so far reads
                it; returns a value for each node that it reads.
            join: makes one value of those that two readers give a node.
        """
        values = {self.output: end}
        for i in range(self.output, 0, -1):
            given = visit(i, self.nodes[i], values.pop(i, None))
            for j, value in zip(self.nodes[i].inputs, given, strict=True):
                values[j] = join(values[j], value) if j in values else value

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of a point of every node, found by evaluating one point of zeros."""
        shapes = [self.input_shape]

        def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
            value = node.op(*inputs)
            shapes.append(tuple(value.shape[1:]))
            return value

        with torch.no_grad(), by_torch():
            zeros = torch.zeros(1, *self.input_shape, dtype=torch.float64)
            self.cast(torch.float64).walk(zeros, visit, until=len(self.nodes) - 1)
        return tuple(shapes)

    @cached_property
    def most_alive(self) -> int:
        """The most numbers per point that a walk to the output holds at once."""
        sizes, most = [max(1, math.prod(shape)) for shape in self.shapes], 0
        live = {0: sizes[0]}

        def visit(i: int, node: Node, inputs: list[int]) -> int:
            nonlocal most
            most = max(most, sum(live.values()) + sizes[i])
            return sizes[i]

        self.go_on(live, 1, visit, last=self.output)
        return max(most, sizes[0])

    @cached_property
    def n_units(self) -> int:
        """The entries of all piecewise-linear nodes."""
        return sum(math.prod(self.shapes[i]) for i in self.bends)

    @cached_property
    def n_products(self) -> int:
        """Products of two numbers in one evaluation; an entry of a node that is not affine counts as one."""
        return sum(self._n_products(i) for i in range(1, len(self.nodes)))

    def _n_products(self, i: int) -> int:
        node, size = self.nodes[i], math.prod(self.shapes[i])
        if node.affine is None:
            return size
        return node.affine.n_products(size, math.prod(self.shapes[node.inputs[0]]))

    @cached_property
    def fusions(self) -> dict[int, Fusion]:
        """For each elementwise node with one slope whose next reader is a linear map: that map."""
        known = {}
        for i, bend in self.bends.items():
            if bend.slope_jumps is None:
                continue
            k = i + 1
            while k <= self.output and self._is_reshaped(k) and self.last_use[k] == k + 1:
                k += 1
            if k <= self.output and self.nodes[k].inputs == (k - 1,):
                fusion = self._fusion(k)
                if fusion is not None:
                    known[i] = fusion
        return known

    def _is_reshaped(self, k: int) -> bool:
        """Whether node k is the one before it in another shape."""
        return self.nodes[k].op.is_reshape and self.nodes[k].inputs == (k - 1,)

    def _fusion(self, k: int) -> Fusion | None:
        op, shape = self.nodes[k].op, self.shapes[k - 1]
        if op.matrix is not None and len(shape) == 1:
            return Fusion(k, np.ascontiguousarray(op.matrix.numpy().T), None)
        if op.weight is not None and op.geometry is not None and len(shape) == 3:
            stride, padding, dilation, groups = op.geometry
            sizes = (*shape, *self.shapes[k], *stride, *padding, *dilation, groups)
            return Fusion(k, np.ascontiguousarray(op.weight.numpy()), sizes)
        return None

    @cached_property
    def cancelling(self) -> frozenset[int]:
        """The nodes whose terms cancel in every entry, at a few random points: zero up to rounding."""
        x = torch.randn(3, *self.input_shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        cancelling = set()

        def visit(i: int, node: Node, inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
            value = node.op(*(v for v, _ in inputs))
            size = node.op.term_size(value, [s for _, s in inputs])
            if bool((value.abs() <= 1e-9 * size).all()):
                cancelling.add(i)
            return value, size

        with torch.no_grad():
            self.cast(torch.float64).walk((x, x.abs()), visit, until=len(self.nodes) - 1)
        return frozenset(cancelling)

    def evaluate(self, x: Tensor, *, until: int | None = None) -> Tensor:
        """The value of the output, or of node `until`, on a batch, in the precision of `x`."""
        with torch.no_grad():
            return self.differentiable(x, until=until)

    def differentiable(self, x: Tensor, *, until: int | None = None) -> Tensor:
        """The same as torch differentiates it, where gradients are enabled."""
        return self.cast(x.dtype).walk(x, evaluate_node, until=until)

    def derivative(self, x: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
        """The output at `x` and its derivative in the direction `dx`, both (n, ...)."""

        def visit(i: int, node: Node, inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
            values, slopes = [v for v, _ in inputs], [s for _, s in inputs]
            return node.op(*values), node.op.jvp(values, slopes)

        with torch.no_grad():
            return self.cast(x.dtype).walk((x, dx), visit)


def refuse(name: str, foreign: Sequence[Foreign]) -> PartitionError:
    """The error for an exact request on a model that holds foreign operations.

    >>> str(refuse("net", [Foreign("round", "3", Jumps), Foreign("gelu", "5")]).reason)
    'net is not piecewise affine because of gelu in 5 (and 1 more)'
    """
    different = list(dict.fromkeys(foreign))
    worst = min(different, key=lambda f: [issubclass(f.kind, kind) for kind in _BY_HOPE].index(True))
    rest = f" (and {len(different) - 1} more)" if len(different) > 1 else ""
    never = "it cannot be counted exactly; " if worst.kind is NotPiecewiseAffine else ""
    return PartitionError(
        f"{name} {worst.kind.verdict.format(f'{worst}{rest}')}",
        remedy=f'{never}use method="adaptive", or method="grid" to compare with grids',
    )


def needed(nodes: Sequence[Node], output: int) -> set[int]:
    """The numbers of the nodes that the output depends on, and of the input."""
    wanted = {0, output}
    for i in range(output, 0, -1):
        if i in wanted:
            wanted.update(nodes[i].inputs)
    return wanted


def pruned(nodes: Sequence[Node], output: int) -> tuple[list[Node], int]:
    """The nodes that the output depends on, and the input, renumbered; with the output's new number."""
    wanted = needed(nodes, output)
    number = {old: new for new, old in enumerate(sorted(wanted))}
    kept = [
        Node(nodes[i].op, tuple(number[j] for j in nodes[i].inputs), nodes[i].path) for i in sorted(wanted)
    ]
    return kept, number[output]


def folded(nodes: Sequence[Node], output: int) -> tuple[list[Node], int]:
    """Batch-norm in eval mode merged into the convolution or linear map before it, if only it reads that.

    (W x + b) s + m = (s W) x + (s b + m): one pass over the data instead of two.
    """
    nodes = list(nodes)
    readers = [0] * len(nodes)
    for node in nodes:
        for j in node.inputs:
            readers[j] += 1
    readers[output] += 1
    moved = list(range(len(nodes)))
    for i, node in enumerate(nodes):
        op, inputs = node.op, tuple(moved[j] for j in node.inputs)
        nodes[i] = Node(op, inputs, node.path)
        if op.per_channel is None:
            continue
        before = nodes[inputs[0]]
        if before.op.then is not None and readers[inputs[0]] == 1:
            nodes[i] = Node(before.op.then(*op.per_channel), before.inputs, before.path)
    return pruned(nodes, output)


def flat(batch: Tensor) -> Any:
    """A batch of tensors as a contiguous array, (n, h)."""
    return batch.reshape(len(batch), -1).contiguous().numpy()
