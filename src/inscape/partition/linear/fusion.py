"""Linear maps that read a piecewise-linear node directly, so that `bent_line` gives them at new places."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from inscape.models.graph import Graph
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend


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


def fusions(graph: Graph) -> dict[int, Fusion]:
    """For each elementwise node with one slope whose next reader is a linear map: that map."""
    if graph not in _KNOWN:
        _KNOWN[graph] = _fusions(graph)
    return _KNOWN[graph]


_KNOWN: WeakKeyDictionary[Graph, dict[int, Fusion]] = WeakKeyDictionary()


def _fusions(graph: Graph) -> dict[int, Fusion]:
    known = {}
    for i, node in enumerate(graph.nodes):
        if not isinstance(node.op, Bend) or node.op.slope_jumps is None:
            continue
        k = i + 1
        while k <= graph.output and _is_reshape(graph, k, k - 1) and graph.last_use[k] == k + 1:
            k += 1
        if k <= graph.output and graph.nodes[k].inputs == (k - 1,):
            fusion = _fusion(graph, k)
            if fusion is not None:
                known[i] = fusion
    return known


def _is_reshape(graph: Graph, k: int, before: int) -> bool:
    op = graph.nodes[k].op
    return isinstance(op, Affine) and op.name == "reshape" and graph.nodes[k].inputs == (before,)


def _fusion(graph: Graph, k: int) -> Fusion | None:
    op, row = graph.nodes[k].op, graph.shapes[k - 1]
    if not isinstance(op, Affine):
        return None
    if op.name == "linear" and len(row) == 1:
        return Fusion(k, np.ascontiguousarray(op.constants[0].numpy().T), None)
    if op.name == "conv" and len(row) == 3 and op.geometry is not None:
        stride, padding, dilation, groups = op.geometry
        sizes = (*row, *graph.shapes[k], *stride, *padding, *dilation, groups)
        return Fusion(k, np.ascontiguousarray(op.constants[0].numpy()), sizes)
    return None
