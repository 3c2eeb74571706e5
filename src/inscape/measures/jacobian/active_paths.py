"""Which units are good: whether a path of active units joins them to the output."""

from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.forward import State
from inscape.measures.jacobian.units import Layer
from inscape.models.graph import Graph, Node
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend


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
        shapes = [graph.shapes[j] for j in node.inputs]
        if isinstance(node.op, Bend):
            back = [node.op.back(state.slopes[i], here, shapes[0])]
        else:
            back = _back_through_affine(node.op, here, shapes)
        for j, b in zip(node.inputs, back, strict=True):
            reached[j] = reached[j] | b if j in reached else b
    return [found[layer.node] for layer in layers]


def _back_through_affine(op: Affine, here: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    if op.name == "linear" and bool((op.constants[0] != 0).all()):
        return [here.any(dim=-1, keepdim=True).expand(*here.shape[:-1], shapes[0][-1])]
    inputs = [torch.zeros(len(here), *shape, requires_grad=True) for shape in shapes]
    with torch.enable_grad():
        out = op.linear_part.magnitude(*inputs)
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
    of_layer = {layer.node: k for k, layer in enumerate(layers)}

    def visit(i: int, node: Node, inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        values, marks = [v for v, _ in inputs], [m for _, m in inputs]
        if isinstance(node.op, Affine):
            mark = (node.op.linear_part.magnitude(*marks) > 0).to(x.dtype)
            return node.op(*values), mark
        u = values[0]
        k = of_layer.get(i)
        mine = torch.zeros(0, dtype=torch.long)
        if k is not None:
            u = (u - noise[k] if noise is not None else u.clone()).contiguous()
            mine = torch.nonzero(which.layer == k)[:, 0]
            u.view(len(u), -1)[mine, which.unit[mine]] = layers[k].kinks[min(kink, len(layers[k].kinks) - 1)]
        slopes = node.op.slopes(u)
        mark = (node.op.along(slopes, marks[0][:, None])[:, 0] != 0).to(x.dtype).contiguous()
        mark.view(len(x), -1)[mine, which.unit[mine]] = 1.0
        return node.op(u), mark

    with torch.no_grad():
        _, marks = graph.walk((x, torch.zeros_like(x)), visit)
    return (marks.flatten(1) > 0).any(dim=1)
