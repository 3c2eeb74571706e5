"""A linear map of a bent tensor along a straight line: from its ends and the breakpoints between them.

Along a line from a (s = 0) to b (s = 1) the output of an elementwise node has breakpoints at s_1 <= ... <=
s_m, where entry u_k changes its slope by c_k. A linear map W of it is then known anywhere from its values at
both ends, at the cost of some columns of W instead of a product. In one form,

    y(s) = (1 - s) y(a) + s y(b) - sum_k c_k G(s, s_k) W[:, u_k],   G(s, t) = min(s, t) (1 - max(s, t)),

every point costs m columns, and one entry of it m numbers: good for few breakpoints. In the other,

    y(s) = y(a) + s g + sum over s_k < s of (s - s_k) c_k W[:, u_k],
    g = y(b) - y(a) - sum_k (1 - s_k) c_k W[:, u_k],

the points are taken in order, and each breakpoint that is passed costs a column: good for many.

Which maps of a network read a bent tensor directly, so that this applies, `fusions` says.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from inscape.compiled import inlined
from inscape.models.graph import Graph


@inlined
def sag(s, t, change):
    """By how much a breakpoint at t, where the slope changes, bends a line down at s: change G(s, t)."""
    return change * s * (1.0 - t) if s < t else change * t * (1.0 - s)


@inlined
def start_line(first, last, s, entry, change, start, stop, columns, base, slope):
    """Begin a line between two rows, first and last: y = base + s slope up to its first breakpoint.

    The line's breakpoints are those from `start` to `stop` - 1 of s, entry and change.
    """
    for v in range(len(base)):
        base[v] = first[v]
        slope[v] = last[v] - base[v]
    for k in range(start, stop):
        weight, column = change[k] * (1.0 - s[k]), columns[entry[k]]
        for v in range(len(base)):
            slope[v] -= weight * column[v]


@inlined
def pass_breakpoint(s, change, column, base, slope):
    """Pass a breakpoint: from there on y = base + s slope with another base and slope."""
    offset = change * s
    for v in range(len(base)):
        slope[v] += change * column[v]
        base[v] -= offset * column[v]


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
        if node.is_affine or node.op.slope_jumps is None:
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
    return graph.nodes[k].op.is_reshape and graph.nodes[k].inputs == (before,)


def _fusion(graph: Graph, k: int) -> Fusion | None:
    op, row = graph.nodes[k].op, graph.shapes[k - 1]
    if op.matrix is not None and len(row) == 1:
        return Fusion(k, np.ascontiguousarray(op.matrix.numpy().T), None)
    if op.weight is not None and op.geometry is not None and len(row) == 3:
        stride, padding, dilation, groups = op.geometry
        sizes = (*row, *graph.shapes[k], *stride, *padding, *dilation, groups)
        return Fusion(k, np.ascontiguousarray(op.weight.numpy()), sizes)
    return None
