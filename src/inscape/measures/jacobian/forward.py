"""Forward through a perturbed network: its evaluation at a batch of points, and directions pushed through it.

Its units stand in layers, a `Layer` for each elementwise piecewise-linear node. The first affine operations
are a prefix, which all perturbed copies share. The evaluation of the rest keeps what every unit reads and the
slope that it has there; many directions at once then go through the network linearised at each point, in a
multilayer perceptron as small matrix products. One sweep back tells which units are good: joined to the
output by a path of active units. Without directions, what units read at the corners of a hull tells which of
them change sign there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Ints, Shape
from inscape.budget import MEMORY
from inscape.models.graph import INPUT, Graph, Node
from inscape.models.graph.affine import Affine
from inscape.progress import Meter


@dataclass(frozen=True, eq=False)
class Layer:
    """The units of one elementwise piecewise-linear node; unit i reads entry i of the node `source`.

    Attributes:
        node: the number of the bend in the graph.
        source: the number of the node that it reads.
        shape: the shape of a point of both.
        kinks: the thresholds at which a unit bends: 0 for a relu, the bounds of a clip.
        name: the module that holds it, for tables.
    """

    node: int
    source: int
    shape: Shape
    kinks: tuple[float, ...]
    name: str

    @property
    def size(self) -> int:
        """How many units."""
        return math.prod(self.shape)


def unit_layers(graph: Graph) -> tuple[Layer, ...]:
    """The layers of units in order of evaluation.

    Every entry of a relu, leaky relu, prelu, abs, clip or maximum is a unit, so every place of a
    convolutional layer has its own. The windows of max-pooling have no bias and are none.
    """
    layers: list[Layer] = []
    for i, bend in graph.bends.items():
        if bend.kinks:
            node = graph.nodes[i]
            path = node.path or f"{bend.name} {len(layers) + 1}"
            layers.append(Layer(i, node.inputs[0], graph.shapes[i], bend.kinks, path))
    return tuple(layers)


def window_nodes(graph: Graph) -> int:
    """How many max-pooling nodes the graph has: their kinks belong to no unit."""
    return sum(not bend.is_elementwise for bend in graph.bends.values())


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
    """The network behind its prefix, the longest run of affine operations that alone read the one before.

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
"""Called with a node's number and its tangents (n, k, *shape); of a chain with the number of a layer, or that
of the output, and its gradients (n, units, r)."""
BYTES_OF_TANGENTS = 2**26
"""Bytes that the live tangents of one push fill at most: more is not faster."""


@dataclass(eq=False)
class Evaluation:
    """A batch of n points in one perturbed network.

    Attributes:
        pre: for each layer, u_i = z_i - beta_i, what unit i reads before its own perturbation, (n, *shape).
        slopes: the linear map of each node at each point, as its operation's `slopes` has it.
        output: the scores, (n, ...).
    """

    pre: list[Tensor]
    slopes: dict[int, Any]
    output: Tensor


def evaluate(
    graph: Graph, layers: tuple[Layer, ...], x: Tensor, perturbation: list[Tensor] | None
) -> Evaluation:
    """Evaluate a batch, each unit's bias raised by its perturbation (1 or n, *shape)."""
    of_layer = {layer.node: k for k, layer in enumerate(layers)}
    state = Evaluation([], {}, x)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if i in of_layer:
            state.pre.append(inputs[0])
            if perturbation is not None:
                inputs = [inputs[0] - perturbation[of_layer[i]]]
        state.slopes[i] = node.op.slopes(*inputs)
        return node.op(*inputs)

    with torch.no_grad():
        state.output = graph.walk(x, visit)
    return state


def push(graph: Graph, state: Evaluation, directions: Tensor, wanted: set[int], seen: Seen) -> None:
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

    They also stay within `BYTES_OF_TANGENTS`, however much memory there is.
    """
    each = 3 * n * graph.most_alive * dtype.itemsize  # operations have copies of their own
    return max(1, int(min(memory, BYTES_OF_TANGENTS) // each))


def good_units(graph: Graph, layers: tuple[Layer, ...], state: Evaluation) -> list[Tensor]:
    """For each layer, whether each unit reaches the output through active units, (n, *shape) bool.

    A weight of zero is no edge. One sweep from the output back, through absolute values of the weights.
    """
    graph = graph.cast(torch.float32)
    of_layer, good = {layer.node for layer in layers}, {}

    def visit(i: int, node: Node, reaches: Tensor | None) -> list[Tensor]:
        if reaches is None:
            reaches = torch.zeros(len(state.output), *graph.shapes[i], dtype=torch.bool)
        if i in of_layer:
            good[i] = reaches
        return node.op.back(state.slopes[i], reaches, [graph.shapes[j] for j in node.inputs])

    graph.walk_back(torch.ones_like(state.output, dtype=torch.bool), visit, torch.logical_or)
    return [good[layer.node] for layer in layers]


@dataclass(eq=False)
class AtKink:
    """One unit for each point: its layer, and its number in the flattened layer."""

    layer: Tensor
    unit: Tensor


def good_at_kink(
    graph: Graph,
    layers: tuple[Layer, ...],
    x: Tensor,
    perturbation: list[Tensor] | None,
    which: AtKink,
    kink: int,
) -> Tensor:
    """Whether unit `which.unit[r]` is good at point r when its own bias puts it exactly at its kink, (n,).

    The density of a unit's kink at x is conditional on b_i = z_i(x): the unit itself then stands at its
    threshold, whatever its perturbation, and the layers after it see that. Each point is evaluated with its
    unit there, and a mark is carried forward from it through active units.

    Args:
        graph: in the precision of `x`.
        layers: its units.
        x: points (n, *input_shape).
        perturbation: per layer (n or 1, *shape).
        which: the unit of each point.
        kink: which threshold, for units that have two.
    """
    of_layer = {layer.node: k for k, layer in enumerate(layers)}

    def visit(i: int, node: Node, inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        values, marks = [v for v, _ in inputs], [m for _, m in inputs]
        k = of_layer.get(i)
        at = torch.zeros(0, dtype=torch.long)
        if k is not None:
            u = (values[0] - perturbation[k] if perturbation is not None else values[0].clone()).contiguous()
            at = torch.nonzero(which.layer == k)[:, 0]
            u.view(len(u), -1)[at, which.unit[at]] = layers[k].kinks[min(kink, len(layers[k].kinks) - 1)]
            values = [u]
        slopes: Any = node.op.slopes(*values)
        mark = node.op.forth(slopes, *marks).to(x.dtype).contiguous()
        mark.view(len(x), -1)[at, which.unit[at]] = 1.0
        return node.op(*values), mark

    with torch.no_grad():
        _, marks = graph.walk((x, torch.zeros_like(x)), visit)
    return (marks.flatten(1) > 0).any(dim=1)


NUMBERS_AT_ONCE = 2**24
"""Entries of all nodes together at the corners that are evaluated at a time."""


def crossings(
    graph: Graph, points: Tensor, p: int, radius: float, rng: np.random.Generator, show: Meter
) -> tuple[tuple[str, ...], Ints]:
    """The names of the layers, and how many units of each change sign on a hull around each point, (n, L)."""
    graph = graph.cast(torch.float64)
    layers = unit_layers(graph)
    counts = np.zeros((len(points), len(layers)), dtype=np.int64)
    size = max(1, NUMBERS_AT_ONCE // (2 * p * sum(int(np.prod(s)) for s in graph.shapes)))
    show(0, len(points))
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


CACHE_BYTES = 5 * 2**19
"""Bytes of the gradients of one layer of one block of points: past some 2.5 MB products wait for memory."""


CHOOSE_UNITS_ABOVE_COORDINATES = 32
"""Coordinates of the gradients up to which units of slope zero are not left out."""


@dataclass(frozen=True, eq=False)
class LayerChain:
    """The tail of a multilayer perceptron: elementwise bends and linear maps on vectors in turn.

    With slopes D_l of layer l, the gradients of layer l + 1 are the rows of G_{l+1} = W_{l+1} D_l G_l. Three
    savings: G_1 is W_1 in the coordinates of its row space, h x h instead of h x d; units of slope zero are
    left out of the product; and if only norms are wanted, the active rows of G_1 are replaced by the Cholesky
    factor of their Gram matrix, which has as many columns as there are active units.

    Attributes:
        weights: transposed, (h_l, h_{l+1}) for the map after each layer of units; the last leads to the
            output, and is missing if the network ends in a bend.
        start: the gradients G_1 of the first layer, (h_1, r).
        gram: G_1 G_1'.
    """

    weights: tuple[Tensor, ...]
    start: Tensor
    gram: Tensor

    @property
    def has_many_coordinates(self) -> bool:
        """Whether gradients have enough coordinates for active units to be worth choosing."""
        return self.start.shape[1] > CHOOSE_UNITS_ABOVE_COORDINATES

    def block_length(self) -> int:
        """How many points to work on at once."""
        widest = max([*(max(w.shape) for w in self.weights), len(self.start)])
        bytes_per_point = widest * self.start.shape[1] * self.start.element_size()
        return max(8, min(4096, CACHE_BYTES // max(1, bytes_per_point)))


def as_chain(network: PrefixedNetwork, directions: Tensor) -> LayerChain | None:
    """The chain that a network is, or None if it is something else.

    Args:
        network: the network.
        directions: of `PrefixedNetwork.directions`, in the precision of the work.
    """
    tail = network.tail
    if len(tail.input_shape) != 1 or tail.output != len(tail.nodes) - 1:
        return None
    weights, bends, expect_bend = [], 0, True
    for i, node in enumerate(tail.nodes[1:], start=1):
        if node.inputs != (i - 1,) or node.op.is_elementwise != expect_bend:
            return None
        if expect_bend:
            bends += 1
        elif node.op.matrix is not None:
            weights.append(node.op.matrix.to(directions.dtype).T.contiguous())
        else:
            return None
        expect_bend = not expect_bend
    if bends != len(network.layers):
        return None  # a bend without a kink
    start = directions.T.contiguous()
    return LayerChain(tuple(weights), start, (start.double() @ start.double().T).to(start.dtype))


def push_chain(chain: LayerChain, slopes: list[Tensor], seen: Seen, *, only_norms: bool) -> None:
    """Hand the gradients of every later layer and of the output, for n points, to `seen`.

    Args:
        chain: the network.
        slopes: the slope of each unit of each layer, (n, h_l).
        seen: gets the gradients; layer 0 is left out, since its gradients are `chain.start` everywhere.
        only_norms: whether only norms of gradients matter, so that the coordinates may be changed.
    """
    if chain.start.shape[1] <= CHOOSE_UNITS_ABOVE_COORDINATES:
        _push_few(chain, slopes, seen)
        return
    points = torch.arange(len(slopes[0]))[:, None]
    index, slope = _active(slopes[0])
    g = _cholesky(chain, index, slope) if only_norms and index.shape[1] < chain.start.shape[1] else None
    g = (chain.start[index] if g is None else g) * slope[..., None]
    for layer, weight in enumerate(chain.weights, start=1):
        g = torch.bmm(weight[index].transpose(1, 2), g)
        seen(layer, g)
        if layer < len(chain.weights):
            index, slope = _active(slopes[layer])
            g = g[points, index]
            g *= slope[..., None]
    if len(chain.weights) < len(slopes):  # the network ends in a bend
        last = g if chain.weights else chain.start
        seen(len(slopes), last * slopes[-1][..., None])


def push_alike(
    chain: LayerChain, slopes: list[Tensor], norms_seen: Seen, output_seen: Callable[[Tensor], None]
) -> None:
    """Norms of gradients for groups of m points that hardly differ: one in m perturbed networks.

    Units that are active at any point of a group stand for all of it, with their slopes, zero or not: the
    factor of the Gram matrix and the rows of the weights are chosen once per group, and one product serves
    it.

    Args:
        chain: the network.
        slopes: the slope of each unit of each layer, (groups, m, h_l).
        norms_seen: gets the number of each layer after the first and the norms, (groups m, h_l).
        output_seen: gets the gradients of the output, (groups m, c, r).
    """
    groups, m = slopes[0].shape[:2]
    each = torch.arange(groups)[:, None]
    index, slope = _active_anywhere(slopes[0])
    g = _cholesky(chain, index, slope.abs().amax(dim=2)) if index.shape[1] < chain.start.shape[1] else None
    g = chain.start[index] if g is None else g
    g = g[:, :, None] * slope[..., None]  # (groups, units, m, r)
    for layer, weight in enumerate(chain.weights, start=1):
        g = torch.bmm(weight[index].transpose(1, 2), g.flatten(2)).reshape(groups, -1, m, g.shape[3])
        if layer == len(slopes):
            output_seen(g.transpose(1, 2).flatten(0, 1))
            return
        norms_seen(layer, torch.linalg.vector_norm(g, dim=3).transpose(1, 2).flatten(0, 1))
        if layer < len(chain.weights):
            index, slope = _active_anywhere(slopes[layer])
            g = g[each, index]
            g *= slope[..., None]
    g = g if chain.weights else chain.start[None, :, None].expand(groups, -1, m, -1)
    output_seen((g * slopes[-1].transpose(1, 2)[..., None]).transpose(1, 2).flatten(0, 1))


def _active_anywhere(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """The units active at any of m points, (groups, k), padded, and their slopes there, (groups, k, m)."""
    index, _ = _active(slopes.abs().amax(dim=1))
    return index, slopes.gather(2, index[:, None].expand(-1, slopes.shape[1], -1)).transpose(1, 2)


def _push_few(chain: LayerChain, slopes: list[Tensor], seen: Seen) -> None:
    """The same with few coordinates: one product over all points costs less than choosing active units."""
    g = chain.start.T * slopes[0][:, None]
    for layer, weight in enumerate(chain.weights, start=1):
        g = g @ weight
        seen(layer, g.transpose(1, 2))
        if layer < len(slopes):
            g = g * slopes[layer][:, None]
    if len(chain.weights) < len(slopes):
        seen(len(slopes), g.transpose(1, 2))


def _active(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """The units of slope not zero at each point, (n, k), padded with some of slope zero, and their slopes."""
    active = slopes != 0
    k = max(1, int(active.sum(dim=1).max()))
    index = torch.argsort(active, dim=1, stable=True, descending=True)[:, :k]
    return index, slopes.gather(1, index)


def _cholesky(chain: LayerChain, index: Tensor, slope: Tensor) -> Tensor | None:
    """L with L L' the Gram matrix of the chosen rows of G_1; None if one is not positive definite."""
    padding = slope == 0
    gram = chain.gram[index].gather(2, index[:, None].expand(-1, index.shape[1], -1))
    gram.masked_fill_(padding[:, :, None] | padding[:, None, :], 0.0)
    gram.diagonal(dim1=1, dim2=2).add_(padding.to(gram.dtype))
    factor, info = torch.linalg.cholesky_ex(gram)
    return factor if int(info.abs().max()) == 0 else None
