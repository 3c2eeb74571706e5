"""Which stretches of a float32 walk to walk again in float64.

A float32 walk places a knot with an error of about 1e-7 of the span, more for a unit that changes slowly, so it
can miss a unit that turns just before its threshold. The walk notes such places. A stretch around each is cut
out at points where every unit is clearly on one side of its thresholds, so that both walks agree on what
happens before and after it, and its knots are found again in float64.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows
from inscape.partition.linear import kernels
from inscape.partition.linear.bending import NEAR, Floats, flat, thresholds, window_table
from inscape.partition.linear.engine import CHUNK
from inscape.probes import Segment

Stretch = tuple[int, float, float]
"""A segment's number and an interval of its t."""

_REACH = (1, 2, 4, 8, 16, 32, 64, 128)
"""How many pieces away from a doubtful place cuts are tried: a unit that turns there does so slowly."""


def stretches(
    graph: Graph,
    segments: Sequence[Segment],
    knots: Sequence[Floats],
    doubts: tuple[npt.NDArray[np.int64], Floats],
) -> list[Stretch]:
    """Disjoint stretches that hold all doubtful places (segment, t), in order."""
    found: list[Stretch] = []
    for k in np.unique(doubts[0]).tolist():
        t = np.sort(doubts[1][doubts[0] == k])
        cuts = _safe_cuts(graph, segments[k], knots[k], t)
        after = np.clip(np.searchsorted(cuts, t, side="right"), 1, len(cuts) - 1)
        for j in np.unique(after).tolist():
            if found and found[-1][0] == k and found[-1][2] == cuts[j - 1]:
                found[-1] = (k, found[-1][1], float(cuts[j]))
            else:
                found.append((k, float(cuts[j - 1]), float(cuts[j])))
    return found


def _safe_cuts(graph: Graph, segment: Segment, knots: Floats, t: Floats) -> Floats:
    """The ends of the span and, around each t, middles of pieces where every unit is on a clear side.

    The nearest pieces are tried first; places without a cut on one side try further ones there.
    """
    low, high = segment.span
    edges = np.concatenate([[low], knots, [high]])
    piece = np.clip(np.searchsorted(edges, t) - 1, 0, len(edges) - 2)
    cuts = np.zeros(0)
    for side in (-1, 1):
        waiting = piece
        for reach in _REACH:
            tried = np.unique(waiting + side * reach)
            tried = tried[(tried >= 0) & (tried < len(edges) - 1)]
            middles = (edges[tried] + edges[tried + 1]) / 2
            clear = is_clear(graph, segment, middles)
            cuts = np.concatenate([cuts, middles[clear]])
            waiting = waiting[np.isin(waiting + side * reach, tried[~clear])]
            if not len(waiting):
                break
    return np.concatenate([[low], np.unique(cuts), [high]])


def is_clear(graph: Graph, segment: Segment, t: Floats) -> npt.NDArray[np.bool_]:
    """Whether at parameters t (n,) every unit is further from its thresholds than float32 can err, (n,)."""
    most = max(1, CHUNK // 4 // max(int(np.prod(s)) for s in graph.shapes))
    parts = [_is_clear(graph, segment.points(t[k : k + most])) for k in range(0, len(t), most)]
    return np.concatenate([np.zeros(0, bool), *parts])


def _is_clear(graph: Graph, points: Floats) -> npt.NDArray[np.bool_]:
    values: dict[int, Tensor] = {0: torch.from_numpy(points).float().reshape(-1, *graph.input_shape)}
    clear = torch.ones(len(points), dtype=torch.bool)
    with torch.no_grad():
        for i, node in enumerate(graph.cast(torch.float32).nodes[1 : graph.output + 1], start=1):
            assert node.op is not None
            values[i] = node.op(*(values[j] for j in node.inputs))
            if isinstance(node.op, Bend):
                clear &= _sides_are_clear(node.op, values[node.inputs[0]])
            for j in node.inputs:
                if graph.last_use[j] == i:
                    values.pop(j, None)
    result: npt.NDArray[np.bool_] = clear.numpy()
    return result


def _sides_are_clear(op: Bend, z: Tensor) -> Tensor:
    rows = flat(z)
    near = rows.dtype.type(NEAR * float(np.finfo(rows.dtype).eps) * float(np.abs(rows).max(initial=0.0)))
    if isinstance(op, Windows):
        return _winners_are_clear(op, z, float(near))
    apart = np.arange(len(rows))  # every row a segment of its own
    clear = np.ones(len(rows), bool)
    for theta in thresholds(op):
        clear &= ~kernels.rows_touching_threshold(rows, apart, rows.dtype.type(theta), near)
    return torch.from_numpy(clear)


def _winners_are_clear(op: Windows, z: Tensor, near: float) -> Tensor:
    table = torch.from_numpy(window_table(op, tuple(z.shape[1:])))
    entries = z.reshape(len(z), -1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
    top = entries.topk(2, dim=-1).values
    gap = top[..., 0] - top[..., 1]
    return ((gap > near) | (gap == 0)).all(dim=1)
