"""Collect the knots of a walk, segment by segment."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.arrays import Floats
from inscape.models import Model
from inscape.models.graph import Graph
from inscape.partition.linear.confirmed import graph_on
from inscape.partition.linear.regions import LinearSegment
from inscape.partition.linear.rounding import SLACK, slopes
from inscape.partition.linear.segments.breakpoints import Rows
from inscape.partition.linear.segments.float32 import stretches
from inscape.partition.linear.segments.walk import CHUNK, walk
from inscape.probes import Segment
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

Found = tuple[Floats, npt.NDArray[np.bool_]]
"""The knots (k,) of one segment, and at which of them the output surely bends (k,)."""

ON_KINK = Status("non_generic", "some units lie on their kink along a whole piece")

_DOUBTFUL_JUMP = 1e-6
"""A change of slope below this fraction of the slope is checked by the chain rule."""

_DOUBTFUL_BEND = 1e5
"""So is a bend of the scores below this many units of rounding."""


def pieces(
    model: Model, segments: Sequence[Segment], *, memory: int, tolerance: float, precision: str, meter: Meter
) -> list[LinearSegment]:
    """The linear pieces on every segment; `linear_regions` documents the arguments."""
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
    found = knots.by_segment(len(segments))
    if len(result.doubts[0]):
        found = decided(graph, segments, found, result.doubts, memory=memory, tolerance=tolerance)
    provenance = Provenance.of(model)
    scores = Scores(graph)
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
            _certain=certain,
            _scores=scores,
        )
        for segment, n_flat, (t, certain) in zip(segments, result.n_flat.tolist(), found, strict=True)
    ]


class Knots:
    """A sink that keeps the parameters of all knots, and at which of them the output surely bends.

    A row is a knot if it has a neighbour on either side in its segment. The row that two chunks share is
    judged with the second, for which the row before it is remembered.
    """

    def __init__(self) -> None:
        self._t: list[Floats] = []
        self._segment: list[npt.NDArray[np.int64]] = []
        self._certain: list[npt.NDArray[np.bool_]] = []
        self._before: tuple[Rows, Any] | None = None

    def take(self, rows: Rows, scores: Tensor, scale: float) -> None:
        """Add the rows of one chunk, on which scores can be as large as `scale`."""
        f, t, segment = scores.numpy(), rows.t, rows.segment
        if self._before is not None:
            last, g = self._before
            if last.segment[1] == segment[0] and last.t[1] == t[0]:
                t, segment = np.concatenate([last.t[:1], t]), np.concatenate([last.segment[:1], segment])
                f = np.concatenate([g, f])
        self._before = Rows(rows.t[-2:], rows.segment[-2:]), scores[-2:-1].numpy().copy()
        inside = (segment[:-2] == segment[1:-1]) & (segment[1:-1] == segment[2:])
        self._t.append(t[1:-1][inside])
        self._segment.append(segment[1:-1][inside])
        self._certain.append(surely_bends(t, f, scale)[inside])

    def by_segment(self, n: int) -> list[Found]:
        """The knots (k,) of each segment, and at which of them the output surely bends (k,)."""
        t, certain = np.concatenate(self._t), np.concatenate(self._certain)
        bounds = np.searchsorted(np.concatenate(self._segment), np.arange(n + 1))
        return [(t[a:b], certain[a:b]) for a, b in pairwise(bounds)]


def surely_bends(t: Floats, f: Any, scale: float) -> npt.NDArray[np.bool_]:
    """Whether the slope of f (n, c), of at most `scale`, surely changes at the inner rows, (n - 2,).

    With slopes l and r before and after a row and lengths a and b of the pieces, the row lies (r - l) a b /
    (a + b) below the chord of its neighbours; that must exceed the rounding of f, and r - l be no small part
    of the slope.
    """
    steps = np.diff(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.diff(f, axis=0) / steps[:, None]
        size = np.abs(slope).max(axis=1)
        jump = np.abs(np.diff(slope, axis=0)).max(axis=1)
        bend = jump * (steps[:-1] * steps[1:] / (steps[:-1] + steps[1:]))
    rounding = float(np.finfo(f.dtype).eps) * max(float(np.abs(f).max(initial=0.0)), scale / SLACK)
    certain: npt.NDArray[np.bool_] = jump > _DOUBTFUL_JUMP * np.maximum(size[:-1], size[1:])
    certain &= bend > _DOUBTFUL_BEND * rounding
    return certain


def decided(
    graph: Graph,
    segments: Sequence[Segment],
    found: list[Found],
    doubts: tuple[npt.NDArray[np.int64], Floats],
    *,
    memory: int,
    tolerance: float,
) -> list[Found]:
    """Knots of a float32 walk, those around doubtful places replaced by the knots of a float64 walk there."""
    chosen = stretches(graph, segments, [f[0] for f in found], doubts)
    again = [Segment(segments[k].start, segments[k].end, span=(a, b)) for k, a, b in chosen]
    knots = Knots()
    walk(graph, again, knots.take, memory=memory, tolerance=tolerance)
    found = list(found)
    for (k, a, b), (t, certain) in zip(chosen, knots.by_segment(len(again)), strict=True):
        i, j = np.searchsorted(found[k][0], [a, b])
        old_t, old_certain = found[k]
        found[k] = (
            np.concatenate([old_t[:i], t, old_t[j:]]),
            np.concatenate([old_certain[:i], certain, old_certain[j:]]),
        )
    return found


class Scores:
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
        most = max(1, CHUNK // 8 // max(1, *(int(np.prod(s)) for s in self.graph.shapes)))
        nothing = np.empty((0, int(np.prod(self.graph.shapes[self.graph.output]))))
        parts = [(nothing, nothing)]
        for start in range(0, len(t), most):
            x = torch.from_numpy(segment.points(t[start : start + most]).reshape(-1, *shape))
            found = slopes(self.graph, x, direction.expand_as(x))
            parts.append((found.values.flatten(1).numpy(), found.bounds.flatten(1).numpy()))
        slope, error = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        return slope, error
