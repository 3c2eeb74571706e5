"""A network cut after its first affine operations: what comes before is shared by all perturbed copies."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.units import Layer, unit_layers
from inscape.models.graph import INPUT, Graph, Node
from inscape.models.graph.affine import Affine


@dataclass(frozen=True, eq=False)
class PrefixedNetwork:
    """A network as tail(prefix(x)), where the prefix is affine.

    Attributes:
        prefix: affine operations, in order.
        tail: the rest; its node 0 is the prefix's value.
        layers: the units of the tail, which are those of the network.
        input_shape: of the whole network.
    """

    prefix: tuple[Affine, ...]
    tail: Graph
    layers: tuple[Layer, ...]
    input_shape: tuple[int, ...]

    def start(self, x: Tensor) -> Tensor:
        """The prefix's value at points (n, *input_shape)."""
        with torch.no_grad():
            for op in self.prefix:
                x = op.cast(x.dtype)(x)
        return x

    @property
    def is_matrix(self) -> bool:
        """Whether the prefix is one linear map of the flattened input."""
        return _matrix(self.prefix) is not None

    def n_directions(self) -> int:
        """How many orthonormal directions span every gradient."""
        weight, d = _matrix(self.prefix), math.prod(self.input_shape)
        return d if weight is None else min(d, len(weight))

    def directions(self, dtype: torch.dtype, start: int = 0, stop: int | None = None) -> Tensor:
        """Some of the orthonormal directions that span every gradient, as the prefix maps them.

        If the prefix ends in a matrix W (h, d) with h < d, all gradients are combinations of its rows. With
        W' = Q R the columns of Q stand for the d inputs, and W Q = R': h directions instead of d, exactly.
        Otherwise they are the unit vectors. Returns (stop - start, *tail input shape).
        """
        d = math.prod(self.input_shape)
        weight = _matrix(self.prefix)
        if weight is not None:
            w = weight.to(dtype)
            return (torch.linalg.qr(w.T, mode="r")[1] if len(w) < d else w.T.contiguous())[start:stop]
        stop = d if stop is None else min(stop, d)
        units = torch.zeros(stop - start, d, dtype=dtype)
        units[torch.arange(stop - start), torch.arange(start, stop)] = 1.0
        return self.through_prefix(units.reshape(-1, *self.input_shape))

    def through_prefix(self, directions: Tensor) -> Tensor:
        """What the linear part of the prefix makes of directions (k, *input_shape)."""
        with torch.no_grad():
            for op in self.prefix:
                directions = op.cast(directions.dtype).linear_part(directions)
        return directions


def prefixed(graph: Graph) -> PrefixedNetwork:
    """Cut a network after the longest run of affine operations of which each alone reads the one before.

    The run ends at its last linear map or convolution, so that the tail is not network inside an activation.
    """
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for i, node in enumerate(graph.nodes):
        for j in node.inputs:
            readers[j].append(i)
    current, run, kept = 0, [], 0
    while len(readers[current]) == 1 and current != graph.output:
        current = readers[current][0]
        op = graph.nodes[current].op
        if not isinstance(op, Affine) or len(graph.nodes[current].inputs) != 1 or current == graph.output:
            break
        run.append(current)
        if op.name in ("linear", "conv"):
            kept = len(run)
    run = run[:kept]
    prefix = tuple(op for i in run if isinstance(op := graph.nodes[i].op, Affine))
    tail = _tail(graph, run)
    return PrefixedNetwork(prefix, tail, unit_layers(tail), graph.input_shape)


def _tail(graph: Graph, run: list[int]) -> Graph:
    if not run:
        return graph
    gone, first = set(run), run[-1]
    kept = [i for i in range(1, len(graph.nodes)) if i not in gone]
    number = {first: 0} | {old: new for new, old in enumerate(kept, start=1)}
    nodes = [INPUT] + [
        Node(graph.nodes[i].op, tuple(number[j] for j in graph.nodes[i].inputs), graph.nodes[i].path)
        for i in kept
    ]
    return Graph(nodes, output=number[graph.output], input_shape=graph.shapes[first], head=graph.head)


def _matrix(prefix: tuple[Affine, ...]) -> Tensor | None:
    """The matrix of a prefix that flattens its input and applies one linear map."""
    if not prefix or prefix[-1].name != "linear" or any(op.name != "reshape" for op in prefix[:-1]):
        return None
    return prefix[-1].constants[0]
