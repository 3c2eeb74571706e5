"""Walk a network along segments: every break point of every layer, in bounded memory.

All tensors are linear between neighbouring rows. An affine node is one batched evaluation. A piecewise-linear
node adds the rows where it bends, and the tensors that later nodes need are interpolated there. Rows are
streamed depth first: after each such node the rows are cut into chunks, and each chunk runs to the end of the
network before the next one starts, so that memory does not grow with the number of pieces. Chunks of one
segment share a row, hence every interval belongs to exactly one chunk, and chunks end in order along the
segments.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph
from inscape.models.graph.affine import Affine
from inscape.models.graph.piecewise import Bend, Windows
from inscape.partition.linear.bending import (
    ROUNDING,
    bent,
    flat,
    interpolate,
    overwrite,
    refine,
)
from inscape.partition.linear.fusing import Expansion, fusions, slope_changes
from inscape.partition.linear.rows import Refinement, Rows
from inscape.probes import Segment

CHUNK = 2**22
"""Bytes per tensor and chunk: enough for a product to run at full speed, little enough to be used again."""

Sink = Callable[[Rows, Tensor], None]
"""Receives the rows of each finished chunk with the network's output there, (rows, c)."""


@dataclass
class Walk:
    """What a walk along segments met.

    Attributes:
        n_evaluations: rows at which the output was evaluated.
        n_flat: how often a unit lay on its kink between two neighbouring rows, for each segment.
        doubts: segments (m,) and parameters t (m,) around which float32 could not tell all crossings.
    """

    n_evaluations: int
    n_flat: Ints
    doubts: tuple[Ints, Floats]


def walk(
    graph: Graph,
    segments: Sequence[Segment],
    sink: Sink,
    *,
    memory: int,
    tolerance: float,
    dtype: torch.dtype = torch.float64,
    done: Callable[[float], None] = lambda _: None,
) -> Walk:
    """Send every break point of `graph` along `segments` to `sink`, chunk by chunk in order.

    Args:
        graph: the network.
        segments: the segments; rows carry their positions in this list.
        sink: takes the rows of a chunk and the scores there.
        memory: bytes that the tensors of the walk may take.
        tolerance: break points nearer than this part of the span are one.
        dtype: the precision of the tensors; parameters t are always float64.
        done: told, after each chunk, how many segments are finished, with a fraction.
    """
    walker = _Walker(graph.cast(dtype), segments, sink, memory, tolerance, dtype, done)
    walker.run()
    segment, t = (np.concatenate([d[k] for d in walker.doubts]) for k in (0, 1))
    return Walk(walker.n_evaluations, walker.n_flat, (segment, t))


class _Walker:
    def __init__(
        self,
        graph: Graph,
        segments: Sequence[Segment],
        sink: Sink,
        memory: int,
        tolerance: float,
        dtype: torch.dtype,
        done: Callable[[float], None],
    ) -> None:
        self.graph, self.segments, self.sink, self.dtype, self.done = graph, segments, sink, dtype, done
        self.lengths = np.array([s.span[1] - s.span[0] for s in segments])
        self.starts = np.array([s.span[0] for s in segments])
        self.tolerance = tolerance * self.lengths
        self.sizes = _stage_sizes(graph)
        self.fusions = fusions(graph)
        n_bends = sum(not n.is_affine for n in graph.nodes)
        held = 4 * (n_bends + 1) * dtype.itemsize  # at each level: input, output, a skip and a temporary
        self.chunk = max(1, min(CHUNK // dtype.itemsize, memory // held))
        self.n_evaluations = 0
        self.doubts: list[tuple[Ints, Floats]] = [(np.zeros(0, np.int64), np.zeros(0))]
        self.n_flat = np.zeros(len(segments), np.int64)

    def run(self) -> None:
        batch = max(1, self.most_rows(0) // 2)
        for first in range(0, len(self.segments), batch):
            chosen = self.segments[first : first + batch]
            t = np.array([s.span for s in chosen])
            rows = Rows(t.reshape(-1), np.repeat(np.arange(first, first + len(chosen)), 2))
            start, end = (
                np.stack([getattr(s, name).reshape(1, -1) for s in chosen]) for name in ("start", "end")
            )
            ends = torch.from_numpy((1 - t[..., None]) * start + t[..., None] * end)
            with torch.no_grad():
                self._advance(1, {0: ends.reshape(-1, *self.graph.input_shape).to(self.dtype)}, rows)

    def most_rows(self, node: int) -> int:
        """How many rows go into one chunk from a node on."""
        return max(2, self.chunk // self.sizes[node])

    def _advance(self, node: int, live: dict[int, Tensor], rows: Rows) -> None:
        """Evaluate from `node` on; split into chunks at the next piecewise-linear node."""
        graph = self.graph
        for i in range(node, graph.output + 1):
            op, inputs = graph.nodes[i].op, graph.nodes[i].inputs
            if isinstance(op, Bend):
                self._bend(i, op, live, rows)
                return
            live[i] = op(*(live[j] for j in inputs))
            for j in inputs:
                if graph.last_use[j] <= i:
                    live.pop(j, None)
        self.n_evaluations += len(rows)
        self.sink(rows, live[graph.output].reshape(len(rows), -1))
        last = rows.segment[-1]
        self.done(float(last + (rows.t[-1] - self.starts[last]) / self.lengths[last]))

    def _bend(self, i: int, op: Bend, live: dict[int, Tensor], rows: Rows) -> None:
        (j,) = self.graph.nodes[i].inputs
        z = live[j]
        refinement = refine(op, z, rows, self.tolerance, _NodeRounding(self, j, rows))
        if refinement.bends.n_flat.any():
            np.add.at(self.n_flat, rows.segment, refinement.bends.n_flat)
        fusion = self.fusions.get(i)
        last = i if fusion is None else fusion.last
        later = [k for k in live if self.graph.last_use[k] > last]
        keep = fusion is None or self.graph.last_use[i] > i + 1
        if fusion is not None:
            change = slope_changes(op, flat(z), refinement.bends)
            h = op(z) if keep or not self._may_overwrite(j, i) else overwrite(op, z)
            expansion = Expansion(fusion, self._through(i, last, h), refinement.bends, change)
        for part in _parts(refinement, self.most_rows(last)):
            new = {k: interpolate(live[k], part) for k in later}
            if keep:
                new[i] = bent(op, z, part)
            if fusion is not None:
                new[last] = expansion.rows(part)
            self._advance(last + 1, new, part.rows)

    def _may_overwrite(self, node: int, reader: int) -> bool:
        """Whether a node's tensor is its own, and nobody but `reader` needs it."""
        op = self.graph.nodes[node].op
        return isinstance(op, Affine) and op.owns_result and self.graph.last_use[node] == reader

    def _through(self, node: int, last: int, value: Tensor) -> Tensor:
        """The value of node `last` in a chain of affine nodes that starts after `node`."""
        for k in range(node + 1, last + 1):
            op = self.graph.nodes[k].op
            value = op(value)
        return value


def points_at(segments: Sequence[Segment], rows: Rows, chosen: Ints, shape: tuple[int, ...]) -> Tensor:
    """The points of the input space at some rows, (k, *shape), in float64."""
    numbers, which = np.unique(rows.segment[chosen], return_inverse=True)
    start = np.stack([segments[k].start.reshape(-1) for k in numbers])
    end = np.stack([segments[k].end.reshape(-1) for k in numbers])
    t = rows.t[chosen][:, None]
    return torch.from_numpy((1 - t) * start[which] + t * end[which]).reshape(-1, *shape)


@dataclass(frozen=True, eq=False)
class _NodeRounding:
    """What the walk can say about the rounding of one node on some rows."""

    walker: _Walker
    node: int
    rows: Rows

    def _points(self, rows: Ints) -> Tensor:
        return points_at(self.walker.segments, self.rows, rows, self.walker.graph.input_shape)

    def noise(self, interval: Ints, entry: Ints) -> Floats:
        """A bound for the rounding error of an entry between a row and the next one, for each pair (m,)."""
        graph = self.walker.graph.cast(torch.float64)
        needed, where = np.unique(np.stack([interval, interval + 1]), return_inverse=True)
        where = where.reshape(2, -1)
        size, most = np.zeros(len(interval)), self.walker.most_rows(0)
        for start in range(0, len(needed), most):
            sizes = magnitude(graph, self._points(needed[start : start + most]), self.node)
            found = sizes.reshape(len(sizes), -1).numpy()
            for row in where - start:
                here = np.flatnonzero((row >= 0) & (row < len(found)))
                size[here] = np.maximum(size[here], found[row[here], entry[here]])
        return np.asarray(ROUNDING * float(np.finfo(np.float64).eps) * size)

    @property
    def cancels(self) -> bool:
        """Whether every entry of the node is zero but for rounding."""
        return self.node in self.walker.graph.cancelling

    def at(self, rows: Ints) -> "_NodeRounding":
        """The same for some of the rows, in that order."""
        return replace(self, rows=Rows(self.rows.t[rows], self.rows.segment[rows]))

    def exactly(self, rows: Ints) -> Any:
        """The node's values at some rows in float64, (k, h)."""
        most = self.walker.most_rows(0)
        parts = [
            self.walker.graph.evaluate(self._points(rows[k : k + most]), until=self.node)
            for k in range(0, len(rows), most)
        ]
        return torch.cat([p.reshape(len(p), -1) for p in parts]).numpy()

    def doubt(self, rows: Ints) -> None:
        """Keep where the rows are."""
        self.walker.doubts.append((self.rows.segment[rows], self.rows.t[rows]))


def magnitude(graph: Graph, x: Tensor, node: int, size: Tensor | None = None) -> Tensor:
    """The sums of absolute terms from which the entries of a node are formed at some points.

    `size` is the scale of the numbers from which the points themselves were formed, |x| if not given.
    """
    values: dict[int, Tensor] = {0: x}
    sizes: dict[int, Tensor] = {0: x.abs() if size is None else size}
    for i in range(1, node + 1):
        op, inputs = graph.nodes[i].op, graph.nodes[i].inputs
        values[i] = op(*(values[j] for j in inputs))
        if isinstance(op, Bend):
            sizes[i] = _bent_size(op, values[inputs[0]], sizes[inputs[0]], values[i])
        else:
            sizes[i] = op.magnitude(*(sizes[j] for j in inputs))
    return sizes[node]


def _bent_size(op: Bend, z: Tensor, size: Tensor, value: Tensor) -> Tensor:
    """The scale of a bent tensor: its own, but for entries that are nothing but rounding, which keep theirs.

    Were all scales carried on, bounds would grow with every layer as no error ever does.
    """
    noise = ROUNDING * torch.finfo(z.dtype).eps
    in_doubt = z.abs() <= noise * size
    if isinstance(op, Windows):
        return op(torch.where(in_doubt, size, z.abs()))
    if not bool(in_doubt.any()):
        return value.abs()
    slope = (op(z + noise * size) - op(z - noise * size)).abs() / (2 * noise)
    return torch.where(in_doubt, torch.maximum(slope, value.abs()), value.abs())


def _parts(refinement: Refinement, most: int) -> Iterator[Refinement]:
    """Chunks of about equal length and at most `most` rows; neighbours within a segment share a row."""
    n, segment = len(refinement.rows), refinement.rows.segment
    n_parts = max(1, math.ceil((n - 1) / max(1, most - 1)))
    step = max(1, math.ceil((n - 1) / n_parts))
    start = 0
    while start < n - 1:
        stop = min(start + step, n - 1)
        if n_parts == 1:
            yield refinement
            return
        yield refinement.part(start, stop + 1)
        start = stop + 1 if stop + 1 < n and segment[stop] != segment[stop + 1] else stop


def _stage_sizes(graph: Graph) -> list[int]:
    """For each node the largest row, in numbers, from it to the next piecewise-linear node."""
    sizes = [max(1, math.prod(s)) for s in graph.shapes]
    for i in range(graph.output - 1, -1, -1):
        if graph.nodes[i + 1].is_affine:
            sizes[i] = max(sizes[i], sizes[i + 1])
        else:
            sizes[i] = max(sizes[i], math.prod(graph.shapes[i + 1]))
    return sizes
