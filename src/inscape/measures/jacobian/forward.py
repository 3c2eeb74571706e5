"""Forward through a perturbed network: its evaluation at a batch of points, and directions pushed through it.

A network is cut after its first affine operations, since all perturbed copies share what comes before. The
evaluation of the rest keeps what every unit reads and the slope that it has there; many directions at once
then go through the network linearised at each point. One sweep back tells which units are good: joined to the
output by a path of active units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import MEMORY, Ints
from inscape.measures.jacobian.units import Layer, unit_layers
from inscape.models.graph import INPUT, Graph, Node
from inscape.models.graph.affine import Affine
from inscape.progress import Meter


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
        node = graph.nodes[current]
        if not node.is_affine or len(node.inputs) != 1 or current == graph.output:
            break
        run.append(current)
        if node.op.weight is not None:
            kept = len(run)
    run = run[:kept]
    prefix = tuple(op for i in run if (op := graph.nodes[i].affine) is not None)
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
    return prefix[-1].matrix if prefix and all(op.is_reshape for op in prefix[:-1]) else None


Seen = Callable[[int, Tensor], None]
"""Called with a node's number and its tangents (n, k, *shape)."""
_TANGENTS = 2**26
"""Bytes that the live tangents of one push fill at most: more is not faster."""


@dataclass(eq=False)
class State:
    """A batch of n points in one perturbed network.

    Attributes:
        pre: for each layer, u_i = z_i - beta_i, what unit i reads before its own noise, (n, *shape).
        slopes: the linear map of each node at each point, as its operation's `slopes` has it.
        output: the scores, (n, ...).
    """

    pre: list[Tensor]
    slopes: dict[int, Any]
    output: Tensor


def evaluate(graph: Graph, layers: tuple[Layer, ...], x: Tensor, noise: list[Tensor] | None) -> State:
    """Evaluate a batch, each unit's bias raised by its noise (1 or n, *shape)."""
    of_layer = {layer.node: k for k, layer in enumerate(layers)}
    state = State([], {}, x)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if i in of_layer:
            state.pre.append(inputs[0])
            if noise is not None:
                inputs = [inputs[0] - noise[of_layer[i]]]
        state.slopes[i] = node.op.slopes(*inputs)
        return node.op(*inputs)

    with torch.no_grad():
        state.output = graph.walk(x, visit)
    return state


def push(graph: Graph, state: State, directions: Tensor, wanted: set[int], seen: Seen) -> None:
    """Push k directions (k, *input_shape) through a network linearised at n points.

    Args:
        graph: the network, in the precision of `directions`.
        state: its evaluation at the n points: the slopes of its bends.
        directions: the same for every point.
        wanted: the nodes whose tangents are handed to `seen`, as soon as they are known.
        seen: gets the tangents.
    """
    n, k = len(state.output), len(directions)

    def shown(i: int, tangents: Tensor) -> Tensor:
        if i in wanted:
            seen(i, tangents.reshape(n, k, *tangents.shape[1:]))
        return tangents

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        each = (t.reshape(n, k, *t.shape[1:]) for t in inputs)
        return shown(i, node.op.along(state.slopes[i], *each).flatten(0, 1))

    with torch.no_grad():
        start = directions[None].expand(n, *directions.shape).reshape(n * k, *directions.shape[1:])
        graph.walk(shown(0, start), visit)


def directions_at_once(graph: Graph, n: int, dtype: torch.dtype, memory: int = MEMORY) -> int:
    """How many directions may be pushed at once at n points so that live tangents stay within `memory`.

    They also stay within `_TANGENTS`, however much memory there is.
    """
    sizes = [math.prod(shape) for shape in graph.shapes]
    alive, largest = set(), 1
    for i, node in enumerate(graph.nodes[: graph.output + 1]):
        alive.add(i)
        largest = max(largest, sum(sizes[j] for j in alive))
        alive -= {j for j in node.inputs if graph.last_use[j] == i}
    itemsize = torch.empty(0, dtype=dtype).element_size()
    return max(
        1, int(min(memory, _TANGENTS) // (3 * n * largest * itemsize))
    )  # operations have copies of their own


def good_units(graph: Graph, layers: tuple[Layer, ...], state: State) -> list[Tensor]:
    """For each layer, whether each unit reaches the output through active units, (n, *shape) bool.

    A weight of zero is no edge. One sweep from the output back, through absolute values of the weights.
    """
    graph = graph.cast(torch.float32)
    n = len(state.output)
    reached: dict[int, Tensor] = {graph.output: torch.ones_like(state.output, dtype=torch.bool)}
    good: dict[int, Tensor] = {}
    of_layer = {layer.node for layer in layers}
    for i in range(graph.output, 0, -1):
        node = graph.nodes[i]
        here = reached.pop(i, None)
        if here is None:
            here = torch.zeros(n, *graph.shapes[i], dtype=torch.bool)
        if i in of_layer:
            good[i] = here
        shapes = [graph.shapes[j] for j in node.inputs]
        back = node.op.back(state.slopes[i], here, shapes)
        for j, b in zip(node.inputs, back, strict=True):
            reached[j] = reached[j] | b if j in reached else b
    return [good[layer.node] for layer in layers]


@dataclass(eq=False)
class AtKink:
    """Units to be looked at, one per row: the layer, and the unit's number in the flattened row of it."""

    layer: Tensor
    unit: Tensor


def good_at_kink(
    graph: Graph, layers: tuple[Layer, ...], x: Tensor, noise: list[Tensor] | None, which: AtKink, kink: int
) -> Tensor:
    """Whether, in row r, unit `which.unit[r]` is good when its own bias puts it exactly at its kink, (n,).

    The density of a unit's kink at x is conditional on b_i = z_i(x): the unit itself then stands at its
    threshold, whatever its noise, and the layers after it see that. Each row is evaluated with its unit
    there, and a mark is carried forward from it through active units.

    Args:
        graph: in the precision of `x`.
        layers: its units.
        x: points (n, *input_shape).
        noise: per layer (n or 1, *shape).
        which: the unit of each row.
        kink: which threshold, for units that have two.
    """
    of_layer = {layer.node: k for k, layer in enumerate(layers)}

    def visit(i: int, node: Node, inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        values, marks = [v for v, _ in inputs], [m for _, m in inputs]
        k = of_layer.get(i)
        mine = torch.zeros(0, dtype=torch.long)
        if k is not None:
            u = (values[0] - noise[k] if noise is not None else values[0].clone()).contiguous()
            mine = torch.nonzero(which.layer == k)[:, 0]
            u.view(len(u), -1)[mine, which.unit[mine]] = layers[k].kinks[min(kink, len(layers[k].kinks) - 1)]
            values = [u]
        slopes: Any = node.op.slopes(*values)
        mark = node.op.forth(slopes, *marks).to(x.dtype).contiguous()
        mark.view(len(x), -1)[mine, which.unit[mine]] = 1.0
        return node.op(*values), mark

    with torch.no_grad():
        _, marks = graph.walk((x, torch.zeros_like(x)), visit)
    return (marks.flatten(1) > 0).any(dim=1)


NUMBERS_AT_ONCE = 2**24


def crossings(
    graph: Graph, points: Tensor, p: int, radius: float, rng: np.random.Generator, show: Meter
) -> tuple[tuple[str, ...], Ints]:
    """The names of the layers, and how many units of each change sign on a hull around each point, (n, L)."""
    graph = graph.cast(torch.float64)
    layers = unit_layers(graph)
    counts = np.zeros((len(points), len(layers)), dtype=np.int64)
    size = max(1, NUMBERS_AT_ONCE // (2 * p * sum(int(np.prod(s)) for s in graph.shapes)))
    for i in range(0, len(points), size):
        corners = _corners(points[i : i + size], p, radius, rng)
        counts[i : i + size] = _between_corners(graph, layers, corners, 2 * p)
        show(min(i + size, len(points)), len(points))
    return tuple(layer.name for layer in layers), counts


def _corners(points: Tensor, p: int, radius: float, rng: np.random.Generator) -> Tensor:
    """The 2 p corners around each of n points, (n 2 p, *shape)."""
    n, d = len(points), points[0].numel()
    frames = torch.linalg.qr(torch.from_numpy(rng.standard_normal((n, d, p))))[0].transpose(1, 2)
    steps = radius * torch.cat([frames, -frames], dim=1)
    return (points.reshape(n, 1, d) + steps).reshape(n * 2 * p, *points.shape[1:])


def _between_corners(graph: Graph, layers: tuple[Layer, ...], corners: Tensor, per_point: int) -> Ints:
    """How many thresholds of each layer lie between two corners of each point, (n, L)."""
    state = evaluate(graph, layers, corners, None)
    counts = []
    for layer, u in zip(layers, state.pre, strict=True):
        by_point = u.reshape(-1, per_point, layer.size)
        low, high = by_point.amin(dim=1), by_point.amax(dim=1)
        kinks = torch.tensor(layer.kinks, dtype=u.dtype)[:, None, None]
        counts.append(((low <= kinks) & (high > kinks)).sum(dim=(0, 2)))
    return (
        torch.stack(counts, dim=1).numpy() if counts else np.zeros((len(corners) // per_point, 0), np.int64)
    )


def in_ball(graph: Graph, points: Tensor, radius: float) -> Ints:
    """How many thresholds of the first layer are met by the open ball: |u - kink| < radius |grad u|."""
    graph = graph.cast(torch.float64)
    layers = unit_layers(graph)
    if not layers or not all(n.is_affine for n in graph.nodes[: layers[0].source]):
        return np.empty(0, dtype=np.int64)
    layer = layers[0]
    before = Graph(graph.nodes[: layer.source + 1], output=layer.source, input_shape=graph.input_shape)
    squares = torch.zeros(layer.size, dtype=torch.float64)
    d = points[0].numel()
    one = evaluate(before, (), torch.zeros(1, *graph.input_shape, dtype=torch.float64), None)

    def seen(node: int, tangents: Tensor) -> None:
        squares.add_(tangents[0].flatten(1).square().sum(dim=0))

    for chunk in torch.split(torch.eye(d, dtype=torch.float64), directions_at_once(before, 1, torch.float64)):
        push(before, one, chunk.reshape(-1, *graph.input_shape), {layer.source}, seen)
    u, reach = before.evaluate(points).flatten(1), radius * squares.sqrt()
    kinks = torch.tensor(layer.kinks, dtype=u.dtype)[:, None, None]
    return ((u - kinks).abs() < reach).sum(dim=(0, 2)).numpy()
