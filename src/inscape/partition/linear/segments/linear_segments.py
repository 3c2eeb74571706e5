"""Linear regions along segments: the knots of a walk, those of a float64 one where float32 is in doubt.

In float32 a knot has an error of about 1e-7 of the span, more for a unit that changes slowly, so that a walk
can miss a unit that turns just before its kink. The walk notes such positions. A stretch around each is cut
out at points where every unit is clearly on one side of its kinks, so that both walks agree on what happens
before and after it, and a float64 walk finds the knots on it again.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Bools, Floats, Ints
from inscape.models import Model
from inscape.models.graph import Graph, Node, flat
from inscape.models.graph.piecewise import Bend
from inscape.models.graph.trace import graph_of
from inscape.partition.linear.regions import LinearSegment
from inscape.partition.linear.rounding import SLACK, points_at, slopes
from inscape.partition.linear.segments.breakpoints import (
    NEAR_IN_UNITS,
    Positions,
    positions_touching_kink,
)
from inscape.partition.linear.segments.walk import BYTES_IN_CHUNK, walk
from inscape.probes import Segment
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

KnotsOfOne = tuple[Floats, Bools]
"""The knots (k,) of one segment, and at which of them the output surely bends (k,)."""

ON_KINK = Status(
    "non_generic",
    "along a whole region some units are exactly where they switch; the count is right, but a segment beside "
    "this one may have another: move it a little and compare",
)

_DOUBTFUL_JUMP = 1e-6
"""A change of slope below this fraction of the slope is checked by the chain rule."""

_DOUBTFUL_SAG = 1e5
"""So is one that lowers the scores by fewer units of rounding than this."""


def linear_segments(
    model: Model, segments: Sequence[Segment], *, memory: int, tolerance: float, precision: str, meter: Meter
) -> list[LinearSegment]:
    """The linear regions on every segment; `linear_regions` documents the arguments."""
    graph = graph_on(model, segments)
    total = 1000 * len(segments)
    knots = Knots()
    result = walk(
        graph,
        segments,
        knots.take,
        memory=memory,
        tolerance=tolerance,
        dtype=getattr(torch, precision),
        done=lambda n: meter(round(1000 * n), total),
    )
    by_segment = knots.by_segment(len(segments))
    if len(result.doubts[0]):
        by_segment = decided(graph, segments, by_segment, result.doubts, memory=memory, tolerance=tolerance)
    provenance = Provenance.of(model)
    scores = SegmentScores(graph)
    return [
        LinearSegment(
            probe=segment,
            knots=t,
            status=ON_KINK if n_flat else COMPLETE,
            n_on_kink=n_flat,
            n_evaluations=len(t) + 2,
            precision=precision,
            tolerance=tolerance,
            provenance=provenance,
            class_names=model.classes,
            _certain=certain,
            _scores=scores,
        )
        for segment, n_flat, (t, certain) in zip(segments, result.n_flat.tolist(), by_segment, strict=True)
    ]


class Knots:
    """A sink that keeps the parameters of all knots, and at which of them the output surely bends.

    A position is a knot if it has a neighbour on either side in its segment. The position that two chunks
    share is judged with the second, for which the position before it is remembered.
    """

    def __init__(self) -> None:
        self._t: list[Floats] = []
        self._segment: list[Ints] = []
        self._certain: list[Bools] = []
        self._before: tuple[Positions, Any] | None = None

    def take(self, positions: Positions, scores: Tensor, scale: float) -> None:
        """Add the positions of one chunk, on which scores can be as large as `scale`."""
        f, t, segment = scores.numpy(), positions.t, positions.segment
        if self._before is not None:
            last, g = self._before
            if last.segment[1] == segment[0] and last.t[1] == t[0]:
                t, segment = np.concatenate([last.t[:1], t]), np.concatenate([last.segment[:1], segment])
                f = np.concatenate([g, f])
        self._before = Positions(positions.t[-2:], positions.segment[-2:]), scores[-2:-1].numpy().copy()
        inside = (segment[:-2] == segment[1:-1]) & (segment[1:-1] == segment[2:])
        self._t.append(t[1:-1][inside])
        self._segment.append(segment[1:-1][inside])
        self._certain.append(surely_bends(t, f, scale)[inside])

    def by_segment(self, n: int) -> list[KnotsOfOne]:
        """The knots (k,) of each segment, and at which of them the output surely bends (k,)."""
        t, certain = np.concatenate(self._t), np.concatenate(self._certain)
        bounds = np.searchsorted(np.concatenate(self._segment), np.arange(n + 1))
        return [(t[a:b], certain[a:b]) for a, b in pairwise(bounds)]


def surely_bends(t: Floats, f: Any, scale: float) -> Bools:
    """Whether the slope of f (n, c), of at most `scale`, surely changes at the inner positions, (n - 2,).

    With slopes l and r before and after a position and lengths a and b of the intervals, f lies
    (r - l) a b / (a + b) below the straight line between its neighbours; this sag must exceed the rounding
    of f, and r - l must be no small fraction of the slope.
    """
    steps = np.diff(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.diff(f, axis=0) / steps[:, None]
        size = np.abs(slope).max(axis=1)
        jump = np.abs(np.diff(slope, axis=0)).max(axis=1)
        sag = jump * (steps[:-1] * steps[1:] / (steps[:-1] + steps[1:]))
    rounding = float(np.finfo(f.dtype).eps) * max(float(np.abs(f).max(initial=0.0)), scale / SLACK)
    certain: Bools = jump > _DOUBTFUL_JUMP * np.maximum(size[:-1], size[1:])
    certain &= sag > _DOUBTFUL_SAG * rounding
    return certain


def decided(
    graph: Graph,
    segments: Sequence[Segment],
    by_segment: list[KnotsOfOne],
    doubts: tuple[Ints, Floats],
    *,
    memory: int,
    tolerance: float,
) -> list[KnotsOfOne]:
    """Knots of a float32 walk, replaced by those of a float64 walk around doubtful positions."""
    chosen = stretches(graph, segments, [t for t, _ in by_segment], doubts)
    again = [Segment(segments[k].start, segments[k].end, span=(a, b)) for k, a, b in chosen]
    knots = Knots()
    walk(graph, again, knots.take, memory=memory, tolerance=tolerance)
    by_segment = list(by_segment)
    for (k, a, b), (t, certain) in zip(chosen, knots.by_segment(len(again)), strict=True):
        i, j = np.searchsorted(by_segment[k][0], [a, b])
        old_t, old_certain = by_segment[k]
        by_segment[k] = (
            np.concatenate([old_t[:i], t, old_t[j:]]),
            np.concatenate([old_certain[:i], certain, old_certain[j:]]),
        )
    return by_segment


class SegmentScores:
    """Values and slopes of the scores along a segment, from the graph as it was recorded."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def values(self, segment: Segment, t: Floats) -> Floats:
        """The scores at parameters t, (n, c)."""
        x = torch.from_numpy(segment.points(t).reshape(-1, *self.graph.input_shape))
        return np.asarray(self.graph.evaluate(x).reshape(len(x), -1).numpy())

    def slopes(self, segment: Segment, t: Floats) -> tuple[Floats, Floats]:
        """The slope d score / dt at parameters t that are no knots, by the chain rule, and its error."""
        shape = self.graph.input_shape
        direction = torch.from_numpy((segment.end - segment.start).reshape(1, *shape))
        most = max(1, BYTES_IN_CHUNK // 8 // max(1, *(int(np.prod(s)) for s in self.graph.shapes)))
        nothing = np.empty((0, int(np.prod(self.graph.shapes[self.graph.output]))))
        chunks = [(nothing, nothing)]
        for start in range(0, len(t), most):
            x = torch.from_numpy(segment.points(t[start : start + most]).reshape(-1, *shape))
            derivative = slopes(self.graph, x, direction.expand_as(x))
            chunks.append((derivative.values.flatten(1).numpy(), derivative.bounds.flatten(1).numpy()))
        slope, error = (np.concatenate([c[k] for c in chunks]) for k in (0, 1))
        return slope, error


SegmentInterval = tuple[int, float, float]
"""A segment's number and an interval of its t."""

_REACH = (1, 2, 4, 8, 16, 32, 64, 128)
"""How many intervals from a doubtful position a stretch may end, as tried in turn; a unit may turn slowly."""


def stretches(
    graph: Graph, segments: Sequence[Segment], knots: Sequence[Floats], doubts: tuple[Ints, Floats]
) -> list[SegmentInterval]:
    """Disjoint stretches that hold all doubtful positions (segment, t), in order."""
    edges = {
        k: np.concatenate([segments[k].span[:1], knots[k], segments[k].span[1:]])
        for k in np.unique(doubts[0])
    }
    clear_positions = _clear_middles(graph, segments, edges, doubts)
    doubtful: list[SegmentInterval] = []
    for k, t_edges in edges.items():
        clear = np.sort(clear_positions.t[clear_positions.segment == k])
        ends = np.concatenate([t_edges[:1], clear, t_edges[-1:]])
        t = np.sort(doubts[1][doubts[0] == k])
        after = np.clip(np.searchsorted(ends, t, side="right"), 1, len(ends) - 1)
        for j in np.unique(after).tolist():
            if doubtful and doubtful[-1][0] == k and doubtful[-1][2] == ends[j - 1]:
                doubtful[-1] = (int(k), doubtful[-1][1], float(ends[j]))
            else:
                doubtful.append((int(k), float(ends[j - 1]), float(ends[j])))
    return doubtful


def _clear_middles(
    graph: Graph, segments: Sequence[Segment], edges: dict[int, Floats], doubts: tuple[Ints, Floats]
) -> Positions:
    """On both sides of each doubtful position, the middle of an interval where every unit is on a clear side.

    The nearest intervals are tried first, for all positions in one batch; then others, further away.
    """
    intervals = [int(np.searchsorted(edges[k], t)) - 1 for k, t in zip(*doubts, strict=True)]
    waiting = {(int(k), j, side) for k, j in zip(doubts[0], intervals, strict=True) for side in (-1, 1)}
    clear_positions: list[Positions] = [Positions(np.zeros(0), np.zeros(0, np.int64))]
    for reach in _REACH:
        tried = sorted({(k, j + side * reach) for k, j, side in waiting})
        tried = [(k, j) for k, j in tried if 0 <= j < len(edges[k]) - 1]
        middles = Positions(
            np.array([(edges[k][j] + edges[k][j + 1]) / 2 for k, j in tried]),
            np.array([k for k, _ in tried], dtype=np.int64),
        )
        clear = is_clear(graph, segments, middles)
        clear_positions.append(Positions(middles.t[clear], middles.segment[clear]))
        unclear = {interval for interval, good in zip(tried, clear, strict=True) if not good}
        waiting = {w for w in waiting if (w[0], w[1] + w[2] * reach) in unclear}
        if not waiting:
            break
    return Positions(
        np.concatenate([c.t for c in clear_positions]), np.concatenate([c.segment for c in clear_positions])
    )


def is_clear(graph: Graph, segments: Sequence[Segment], positions: Positions) -> Bools:
    """Whether at each position every unit is further from its kinks than its float32 error, (n,)."""
    most = max(1, BYTES_IN_CHUNK // 4 // max(int(np.prod(s)) for s in graph.shapes))
    chunks = [
        _is_clear(
            graph,
            points_at(segments, positions, np.arange(k, min(k + most, len(positions))), graph.input_shape),
        )
        for k in range(0, len(positions), most)
    ]
    return np.concatenate([np.zeros(0, bool), *chunks])


def _is_clear(graph: Graph, points: Tensor) -> Bools:
    clear = torch.ones(len(points), dtype=torch.bool)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if node.bend is not None:
            clear.logical_and_(_sides_are_clear(node.bend, inputs[0]))
        return node.op(*inputs)

    with torch.no_grad():
        graph.cast(torch.float32).walk(points.float(), visit)
    return np.asarray(clear.numpy())


def _sides_are_clear(op: Bend, z: Tensor) -> Tensor:
    values = flat(z)
    near = values.dtype.type(
        NEAR_IN_UNITS * float(np.finfo(values.dtype).eps) * float(np.abs(values).max(initial=0.0))
    )
    windows = op.windows(tuple(z.shape[1:]))
    if windows is not None:
        return _winners_are_clear(torch.from_numpy(windows.entries), z, float(near))
    apart = np.arange(len(values))  # every position on a segment of its own
    clear = np.ones(len(values), bool)
    for kink in op.kinks:
        clear &= ~positions_touching_kink(values, apart, values.dtype.type(kink), near)
    return torch.from_numpy(clear)


def _winners_are_clear(table: Tensor, z: Tensor, near: float) -> Tensor:
    entries = z.reshape(len(z), -1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
    top = entries.topk(2, dim=-1).values
    gap = top[..., 0] - top[..., 1]
    return ((gap > near) | (gap == 0)).all(dim=1)


def graph_on(model: Model, segments: Sequence[Segment]) -> Graph:
    """The model's graph on the segments' points, compared with the model at a few of them once."""
    sample = [segments[i] for i in sorted({0, len(segments) // 2, len(segments) - 1})]
    return graph_of(
        model,
        segments[0].input_shape,
        lambda: np.concatenate([s.points(np.linspace(*s.span, 3)) for s in sample]),
    )
