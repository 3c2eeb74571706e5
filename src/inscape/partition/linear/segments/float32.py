"""Which stretches of a float32 walk to walk again in float64.

A float32 walk places a knot with an error of about 1e-7 of the span, more for a unit that changes slowly, so
it can miss a unit that turns just before its kink. The walk notes such places. A stretch around each is
cut out at points where every unit is clearly on one side of its kinks, so that both walks agree on what
happens before and after it, and its knots are found again in float64.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Bools, Floats, Ints
from inscape.models.graph import Graph, Node, flat
from inscape.models.graph.piecewise import Bend, Windows, window_table
from inscape.partition.linear.rounding import points_at
from inscape.partition.linear.segments import kernels
from inscape.partition.linear.segments.breakpoints import NEAR, Rows
from inscape.partition.linear.segments.walk import CHUNK
from inscape.probes import Segment

Stretch = tuple[int, float, float]
"""A segment's number and an interval of its t."""

_REACH = (1, 2, 4, 8, 16, 32, 64, 128)
"""How many pieces away from a doubtful place cuts are tried; a unit that turns there may do so slowly."""


def stretches(
    graph: Graph, segments: Sequence[Segment], knots: Sequence[Floats], doubts: tuple[Ints, Floats]
) -> list[Stretch]:
    """Disjoint stretches that hold all doubtful places (segment, t), in order."""
    edges = {
        k: np.concatenate([segments[k].span[:1], knots[k], segments[k].span[1:]])
        for k in np.unique(doubts[0])
    }
    cuts = _clear_middles(graph, segments, edges, doubts)
    found: list[Stretch] = []
    for k, own in edges.items():
        places = np.concatenate([own[:1], np.sort(cuts.t[cuts.segment == k]), own[-1:]])
        t = np.sort(doubts[1][doubts[0] == k])
        after = np.clip(np.searchsorted(places, t, side="right"), 1, len(places) - 1)
        for j in np.unique(after).tolist():
            if found and found[-1][0] == k and found[-1][2] == places[j - 1]:
                found[-1] = (int(k), found[-1][1], float(places[j]))
            else:
                found.append((int(k), float(places[j - 1]), float(places[j])))
    return found


def _clear_middles(
    graph: Graph, segments: Sequence[Segment], edges: dict[int, Floats], doubts: tuple[Ints, Floats]
) -> Rows:
    """On both sides of each doubtful place, the middle of a piece where every unit is on a clear side.

    The nearest pieces are tried first, all places in one batch; those without a cut try further ones.
    """
    pieces = [int(np.searchsorted(edges[k], t)) - 1 for k, t in zip(*doubts, strict=True)]
    waiting = {(int(k), piece, side) for k, piece in zip(doubts[0], pieces, strict=True) for side in (-1, 1)}
    cuts: list[Rows] = [Rows(np.zeros(0), np.zeros(0, np.int64))]
    for reach in _REACH:
        tried = sorted({(k, piece + side * reach) for k, piece, side in waiting})
        tried = [(k, j) for k, j in tried if 0 <= j < len(edges[k]) - 1]
        middles = Rows(
            np.array([(edges[k][j] + edges[k][j + 1]) / 2 for k, j in tried]),
            np.array([k for k, _ in tried], dtype=np.int64),
        )
        clear = is_clear(graph, segments, middles)
        cuts.append(Rows(middles.t[clear], middles.segment[clear]))
        unclear = {place for place, good in zip(tried, clear, strict=True) if not good}
        waiting = {w for w in waiting if (w[0], w[1] + w[2] * reach) in unclear}
        if not waiting:
            break
    return Rows(np.concatenate([c.t for c in cuts]), np.concatenate([c.segment for c in cuts]))


def is_clear(graph: Graph, segments: Sequence[Segment], rows: Rows) -> Bools:
    """Whether at each row every unit is further from its kinks than float32 can err, (n,)."""
    most = max(1, CHUNK // 4 // max(int(np.prod(s)) for s in graph.shapes))
    chunks = [
        _is_clear(graph, points_at(segments, rows, np.arange(k, min(k + most, len(rows))), graph.input_shape))
        for k in range(0, len(rows), most)
    ]
    return np.concatenate([np.zeros(0, bool), *chunks])


def _is_clear(graph: Graph, points: Tensor) -> Bools:
    clear = torch.ones(len(points), dtype=torch.bool)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if isinstance(node.op, Bend):
            clear.logical_and_(_sides_are_clear(node.op, inputs[0]))
        return node.op(*inputs)

    with torch.no_grad():
        graph.cast(torch.float32).walk(points.float(), visit)
    return np.asarray(clear.numpy())


def _sides_are_clear(op: Bend, z: Tensor) -> Tensor:
    rows = flat(z)
    near = rows.dtype.type(NEAR * float(np.finfo(rows.dtype).eps) * float(np.abs(rows).max(initial=0.0)))
    if isinstance(op, Windows):
        return _winners_are_clear(op, z, float(near))
    apart = np.arange(len(rows))  # every row a segment of its own
    clear = np.ones(len(rows), bool)
    for theta in op.kinks:
        clear &= ~kernels.rows_touching_threshold(rows, apart, rows.dtype.type(theta), near)
    return torch.from_numpy(clear)


def _winners_are_clear(op: Windows, z: Tensor, near: float) -> Tensor:
    table = torch.from_numpy(window_table(op, tuple(z.shape[1:])))
    entries = z.reshape(len(z), -1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
    top = entries.topk(2, dim=-1).values
    gap = top[..., 0] - top[..., 1]
    return ((gap > near) | (gap == 0)).all(dim=1)
