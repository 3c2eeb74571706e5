"""Which units are good: whether a path of active units joins them to the output."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.forward import State, winners
from inscape.measures.jacobian.layers import Layer
from inscape.measures.jacobian.linear_part import linear_part
from inscape.models.graph import Graph
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend, Windows


def good_units(graph: Graph, layers: tuple[Layer, ...], state: State) -> list[Tensor]:
    """For each layer, whether each unit reaches the output through active units, (n, *shape) bool.

    A weight of zero is no edge. One sweep from the output back, through absolute values of the weights.
    """
    graph = graph.cast(torch.float32)
    n = len(state.output)
    reached: dict[int, Tensor] = {graph.output: torch.ones_like(state.output, dtype=torch.bool)}
    found: dict[int, Tensor] = {}
    of_layer = {layer.node for layer in layers}
    for i in range(graph.output, 0, -1):
        node = graph.nodes[i]
        here = reached.pop(i, None)
        if here is None:
            here = torch.zeros(n, *graph.shapes[i], dtype=torch.bool)
        if i in of_layer:
            found[i] = here
        if isinstance(node.op, Bend):
            back = [_back_through_bend(node.op, here, state.slopes[i], graph.shapes[node.inputs[0]])]
        else:
            assert node.op is not None
            back = _back_through_affine(node.op, here, [graph.shapes[j] for j in node.inputs])
        for j, b in zip(node.inputs, back, strict=True):
            reached[j] = reached[j] | b if j in reached else b
    return [found[layer.node] for layer in layers]


def _back_through_bend(op: Bend, here: Tensor, slopes: Tensor, shape: tuple[int, ...]) -> Tensor:
    if isinstance(op, Windows):
        back = torch.zeros(len(here), math.prod(shape), dtype=torch.int32)
        back.scatter_add_(1, slopes.flatten(1), here.flatten(1).int())
        return (back > 0).reshape(len(here), *shape)
    return here & (slopes != 0)


def _back_through_affine(op: Affine, here: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    if op.name == "linear" and bool((op.constants[0] != 0).all()):
        return [here.any(dim=-1, keepdim=True).expand(*here.shape[:-1], shapes[0][-1])]
    inputs = [torch.zeros(len(here), *shape, requires_grad=True) for shape in shapes]
    with torch.enable_grad():
        out = linear_part(op).magnitude(*inputs)
    grads = torch.autograd.grad(out, inputs, here.to(out.dtype), allow_unused=True)
    return [
        torch.zeros(len(here), *shape, dtype=torch.bool) if g is None else g > 0
        for g, shape in zip(grads, shapes, strict=True)
    ]


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
    values, marks = {0: x}, {0: torch.zeros_like(x)}
    of_layer = {layer.node: k for k, layer in enumerate(layers)}
    with torch.no_grad():
        for i, node in enumerate(graph.nodes[1 : graph.output + 1], start=1):
            inputs, before = [values[j] for j in node.inputs], [marks[j] for j in node.inputs]
            assert node.op is not None
            if not isinstance(node.op, Bend):
                values[i] = node.op(*inputs)
                marks[i] = (linear_part(node.op).magnitude(*before) > 0).to(x.dtype)
            else:
                u = inputs[0]
                k = of_layer.get(i)
                mine = torch.zeros(0, dtype=torch.long)
                if k is not None:
                    u = (u - noise[k] if noise is not None else u.clone()).contiguous()
                    mine = torch.nonzero(which.layer == k)[:, 0]
                    threshold = layers[k].kinks[min(kink, len(layers[k].kinks) - 1)]
                    u.view(len(u), -1)[mine, which.unit[mine]] = threshold
                values[i] = node.op(u)
                if isinstance(node.op, Windows):
                    index = winners(node.op, u)
                    marks[i] = before[0].flatten(1).gather(1, index.flatten(1)).reshape(index.shape)
                else:
                    marks[i] = before[0] * (node.op.derivative(u, torch.ones_like(u)) != 0)
                marks[i] = marks[i].contiguous()
                marks[i].view(len(x), -1)[mine, which.unit[mine]] = 1.0
            for j in node.inputs:
                if graph.last_use[j] == i:
                    values.pop(j, None)
                    marks.pop(j, None)
    return (marks[graph.output].flatten(1) > 0).any(dim=1)
