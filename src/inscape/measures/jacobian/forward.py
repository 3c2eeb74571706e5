"""One evaluation of a perturbed network: what every unit reads, and the slope that it has there."""

from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.layers import Layer
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows


@dataclass(eq=False)
class State:
    """A batch of n points in one perturbed network.

    Attributes:
        pre: for each layer, u_i = z_i - beta_i, what unit i reads before its own noise, (n, *shape).
        slopes: for each bend, the slope of every entry, (n, *shape), or for windows the number of the
            winning entry in the flattened row, (n, *shape of the output).
        output: the scores, (n, ...).
    """

    pre: list[Tensor]
    slopes: dict[int, Tensor]
    output: Tensor


def evaluate(graph: Graph, layers: tuple[Layer, ...], x: Tensor, noise: list[Tensor] | None) -> State:
    """Evaluate a batch, each unit's bias raised by its noise (1 or n, *shape)."""
    of_layer = {layer.node: k for k, layer in enumerate(layers)}
    values = {0: x}
    state = State([], {}, x)
    with torch.no_grad():
        for i, node in enumerate(graph.nodes[1 : graph.output + 1], start=1):
            assert node.op is not None
            inputs = [values[j] for j in node.inputs]
            if isinstance(node.op, Bend):
                if i in of_layer:
                    state.pre.append(inputs[0])
                    if noise is not None:
                        inputs = [inputs[0] - noise[of_layer[i]]]
                state.slopes[i] = _slopes(node.op, inputs[0])
            values[i] = node.op(*inputs)
            for j in node.inputs:
                if graph.last_use[j] == i:
                    values.pop(j, None)
    state.output = values[graph.output]
    return state


def _slopes(op: Bend, u: Tensor) -> Tensor:
    if isinstance(op, Windows):
        return winners(op, u)
    return op.derivative(u, torch.ones_like(u))


def winners(op: Windows, u: Tensor) -> Tensor:
    """The number of the largest entry of each window in the flattened row, (n, *output shape)."""
    table = op.table(tuple(u.shape[1:]))
    entries = u.flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
    best = entries.argmax(dim=-1)
    found = table.expand(len(u), *table.shape).gather(-1, best[..., None])[..., 0]
    return found.reshape(len(u), *op(u[:1]).shape[1:])
