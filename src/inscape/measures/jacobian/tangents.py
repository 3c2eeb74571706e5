"""Gradients by forward differentiation: many directions pushed through the linearised network at once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from inscape.measures.jacobian import MEMORY
from inscape.measures.jacobian.forward import State
from inscape.measures.jacobian.linear_part import linear_part
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows

Seen = Callable[[int, Tensor], None]
"""Called with a node's number and its tangents (n, k, *shape)."""


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
    tangents = {0: directions[None].expand(n, *directions.shape).reshape(n * k, *directions.shape[1:])}
    with torch.no_grad():
        if 0 in wanted:
            seen(0, tangents[0].reshape(n, k, *directions.shape[1:]))
        for i, node in enumerate(graph.nodes[1 : graph.output + 1], start=1):
            inputs = [tangents[j] for j in node.inputs]
            if isinstance(node.op, Bend):
                tangents[i] = _bent(node.op, inputs[0], state.slopes[i], k)
            else:
                assert node.op is not None
                tangents[i] = linear_part(node.op)(*inputs)
            if i in wanted:
                seen(i, tangents[i].reshape(n, k, *tangents[i].shape[1:]))
            for j in node.inputs:
                if graph.last_use[j] == i:
                    tangents.pop(j, None)


def _bent(op: Bend, tangents: Tensor, slopes: Tensor, k: int) -> Tensor:
    n = len(slopes)
    if isinstance(op, Windows):
        index = slopes.flatten(1)[:, None].expand(n, k, -1).reshape(n * k, -1)
        return tangents.flatten(1).gather(1, index).reshape(n * k, *slopes.shape[1:])
    shaped = tangents.reshape(n, k, *slopes.shape[1:])
    return (shaped * slopes[:, None]).reshape(tangents.shape)


def directions_at_once(graph: Graph, n: int, dtype: torch.dtype, memory: int = MEMORY) -> int:
    """How many directions may be pushed at once at n points so that live tangents stay within `memory`."""
    sizes = [math.prod(shape) for shape in graph.shapes]
    alive, largest = set(), 1
    for i, node in enumerate(graph.nodes[: graph.output + 1]):
        alive.add(i)
        largest = max(largest, sum(sizes[j] for j in alive))
        alive -= {j for j in node.inputs if graph.last_use[j] == i}
    itemsize = torch.empty(0, dtype=dtype).element_size()
    return max(1, int(memory // (3 * n * largest * itemsize)))  # operations have copies of their own
