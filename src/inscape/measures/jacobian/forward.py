"""Forward through a perturbed network: its evaluation at a batch of points, and directions pushed through it.

The evaluation keeps what every unit reads and the slope that it has there; many directions at once then go
through the network linearised at each point.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.units import Layer
from inscape.memory import MEMORY
from inscape.models.graph import Graph, Node
from inscape.models.graph.piecewise import Bend

Seen = Callable[[int, Tensor], None]
"""Called with a node's number and its tangents (n, k, *shape)."""
_TANGENTS = 2**26
"""Bytes that the live tangents of one push fill at most: more is not faster."""


@dataclass(eq=False)
class State:
    """A batch of n points in one perturbed network.

    Attributes:
        pre: for each layer, u_i = z_i - beta_i, what unit i reads before its own noise, (n, *shape).
        slopes: the linear map of each bend at each point, as `Bend.slopes` has it.
        output: the scores, (n, ...).
    """

    pre: list[Tensor]
    slopes: dict[int, Tensor]
    output: Tensor


def evaluate(graph: Graph, layers: tuple[Layer, ...], x: Tensor, noise: list[Tensor] | None) -> State:
    """Evaluate a batch, each unit's bias raised by its noise (1 or n, *shape)."""
    of_layer = {layer.node: k for k, layer in enumerate(layers)}
    state = State([], {}, x)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if isinstance(node.op, Bend):
            if i in of_layer:
                state.pre.append(inputs[0])
                if noise is not None:
                    inputs = [inputs[0] - noise[of_layer[i]]]
            state.slopes[i] = node.op.slopes(inputs[0])
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
        if isinstance(node.op, Bend):
            each = inputs[0].reshape(n, k, *inputs[0].shape[1:])
            return shown(i, node.op.along(state.slopes[i], each).flatten(0, 1))
        return shown(i, node.op.linear_part(*inputs))

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
