"""Walk a network along segments: every breakpoint of every layer, in bounded memory.

All tensors are linear between neighbouring positions. An affine node is one batched evaluation. A
piecewise-linear node adds the positions where it bends, and the tensors that later nodes need are
interpolated there. Positions are streamed depth first: after each such node the positions are cut into
chunks, and each chunk runs to the end of the network before the next one starts, so that memory does not grow
with the number of pieces. Chunks of one segment share a position, hence every interval belongs to exactly one
chunk, and chunks end in order along the segments.

A linear map right after a piecewise-linear node is known at new positions without a product each
(`Expansion`): between two old positions the node's output bends, and the map follows from its values at both
by the formula of `bent_line`, in order. So a new position costs one column of the map (for a convolution, one
patch of it) and a sum of two vectors; products are needed at the old positions only.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.budget import given_back, resident_memory
from inscape.compiled import inlined, kernel
from inscape.errors import OutOfRangeError
from inscape.models.graph import Graph, Node, flat
from inscape.models.graph.network import Fusion, evaluate_node
from inscape.models.graph.piecewise import Bend
from inscape.parallel import Job, Tell, in_order, is_parallel, single_products, spread
from inscape.partition.linear.bent_line import pass_breakpoint, start_line
from inscape.partition.linear.rounding import SegmentRounding, scales_of
from inscape.partition.linear.segments.breakpoints import (
    Breakpoints,
    Positions,
    Refinement,
    bent,
    interpolate,
    refine,
)
from inscape.probes import Segment

BYTES_IN_CHUNK = 2**22
"""Bytes per tensor and chunk: enough for a product to run at full speed, little enough to be used again."""

PRODUCTS_IN_JOB = 8 * 10**8
"""Products of two numbers that are worth the calls of a job: some ten milliseconds."""
KNOTS_PER_UNIT = 0.2
"""About how many a network has on a segment between data points; for estimates of work only."""
LEFT_OVER_JOBS = 8
"""A job takes the segments that are left over this number, so that the last jobs are short."""
BYTES_UNCHECKED = 2**27
"""Of the largest tensors of positions: when so many have passed, the memory of the process is looked at."""
FEWEST_JOBS = 8
"""Of whole segments; if there are fewer, segments are cut into chunks of positions instead."""

HEADROOM = 16.0
"""Numbers are refused from the largest float over this on, so that differences of them do not overflow."""

SegmentSink = Callable[[Positions, Tensor, float], None]
"""Receives the positions of each finished chunk, the output there, (n, c), and how large that can be."""


@dataclass
class SegmentWalk:
    """The result of a walk along segments, besides what its sink received.

    Attributes:
        n_evaluations: positions at which the output was evaluated.
        n_flat: how often a unit lay on its kink between two neighbouring positions, for each segment.
        doubts: segments (m,) and parameters t (m,) around which float32 could not tell all crossings.
    """

    n_evaluations: int
    n_flat: Ints
    doubts: tuple[Ints, Floats]


def walk(
    graph: Graph,
    segments: Sequence[Segment],
    sink: SegmentSink,
    *,
    memory: int,
    tolerance: float,
    dtype: torch.dtype = torch.float64,
    done: Callable[[float], None] = lambda _: None,
) -> SegmentWalk:
    """Send every breakpoint of `graph` along `segments` to `sink`, chunk by chunk in order.

    Args:
        graph: the network.
        segments: the segments; positions carry their numbers in this list.
        sink: takes the positions of a chunk and the scores there.
        memory: bytes that the tensors of the walk may take, in each thread.
        tolerance: breakpoints nearer than this fraction of the span are one.
        dtype: the precision of the tensors; parameters t are always float64.
        done: is told, after each chunk, how many segments are finished, with a fraction.
    """
    with single_products(), torch.no_grad():
        walker = _SegmentWalker(graph.cast(dtype), segments, memory, tolerance, dtype)
        log = _Log(len(segments), lambda chunk: walker.hand_over(chunk, sink, done))
        walker.run(log)
    segment, t = (np.concatenate([d[k] for d in log.doubts]) for k in (0, 1))
    order = np.lexsort((t, segment))
    return SegmentWalk(log.n_evaluations, log.n_flat, (segment[order], t[order]))


class _Log:
    """What a walk, or one job of it, counts and notes: see `SegmentWalk`; finished chunks are handed on."""

    def __init__(self, n_segments: int, finish: Callable[["_SegmentChunk"], None]) -> None:
        self.n_evaluations, self.n_flat = 0, np.zeros(n_segments, np.int64)
        self.doubts: list[tuple[Ints, Floats]] = [(np.zeros(0, np.int64), np.zeros(0))]
        self.finish = finish

    def take_over(self, other: "_Log") -> None:
        self.n_evaluations += other.n_evaluations
        self.n_flat += other.n_flat
        self.doubts += other.doubts


@dataclass(eq=False)
class _SegmentChunk:
    """A chunk of positions on its way through the network.

    Attributes:
        node: the node to go on with.
        tensors: those that it and later nodes read, on the positions, by the numbers of their nodes.
        scales: how large these can be.
        positions: the positions.
    """

    node: int
    tensors: dict[int, Tensor]
    scales: dict[int, float]
    positions: Positions


class _SegmentWalker:
    def __init__(
        self,
        graph: Graph,
        segments: Sequence[Segment],
        memory: int,
        tolerance: float,
        dtype: torch.dtype,
    ) -> None:
        self.graph, self.segments, self.dtype = graph, segments, dtype
        self.lengths = np.array([s.span[1] - s.span[0] for s in segments])
        self.starts = np.array([s.span[0] for s in segments])
        self.tolerance = tolerance * self.lengths
        self.sizes = _stage_sizes(graph)
        self.fusions = graph.fusions
        self.scales = scales_of(graph)
        per_number = 4 * (len(graph.bends) + 1) * dtype.itemsize  # each level: input, output, skip, temporary
        self.chunk = max(1, min(BYTES_IN_CHUNK // dtype.itemsize, memory // per_number))
        self.limit = float(torch.finfo(graph.own_dtype).max) / HEADROOM
        # what passed since the memory of the process was looked at, and what that was
        self.widest, self.unchecked, self.resident = (
            max(math.prod(s) for s in graph.shapes),
            0,
            resident_memory(),
        )

    def run(self, log: _Log) -> None:
        """Walk all segments."""
        if not is_parallel():
            for first, stop in self._batches():
                self._advance(self._ends(first, stop), log)
            return

        def take(finished: tuple[_Log, list[_SegmentChunk]]) -> None:
            of_job, chunks = finished
            log.take_over(of_job)
            for chunk in chunks:
                log.finish(chunk)

        batches = self._batches()
        if len(batches) >= FEWEST_JOBS:
            spread((partial(self._on_its_own, partial(self._ends, *batch)) for batch in batches), finish=take)
            return
        for finished in in_order(self._chunk_jobs(batches, log)):
            take(finished)

    def _chunk_jobs(
        self, batches: list[tuple[int, int]], log: _Log
    ) -> Iterator[Job[tuple[_Log, list[_SegmentChunk]]]]:
        """Jobs in order, for each chunk that can be taken by itself."""
        for first, stop in batches:
            for chunk in self._fitting_chunks(self._ends(first, stop), log):
                yield partial(self._on_its_own, partial(_same, chunk))

    def _fitting_chunks(self, chunk: _SegmentChunk, log: _Log) -> Iterator[_SegmentChunk]:
        """The chunks of the first piecewise-linear node that makes several."""
        self._evaluate(chunk)
        if chunk.node > self.graph.output:
            yield chunk
            return
        after = self._bend(chunk, log)
        first, second = next(after), next(after, None)
        if second is None:
            yield from self._fitting_chunks(first, log)
        else:
            yield from (first, second)
            yield from after

    def _on_its_own(
        self, begin: Callable[[], _SegmentChunk], tell: Tell = lambda told: None
    ) -> tuple[_Log, list[_SegmentChunk]]:
        """Take a chunk to the end, in a thread of its own; what comes out of it is handed over later."""
        finished: list[_SegmentChunk] = []

        def finish(chunk: _SegmentChunk) -> None:
            finished.append(chunk)
            tell(None)

        log = _Log(len(self.segments), finish)
        with torch.no_grad():
            self._advance(begin(), log)
        return log, finished

    def _batches(self) -> list[tuple[int, int]]:
        """The segments that are walked together, from one to another: a chunk can hold their ends."""
        n, most, graph = len(self.segments), max(1, self.most_positions(0) // 2), self.graph
        products = max(1.0, graph.n_products * KNOTS_PER_UNIT * graph.n_units)
        least = max(1, math.ceil(PRODUCTS_IN_JOB / products))
        if n < FEWEST_JOBS * least:
            return [(first, min(first + most, n)) for first in range(0, n, most)]
        batches, first = [], 0
        while first < n:
            stop = min(n, first + min(most, max(least, math.ceil((n - first) / LEFT_OVER_JOBS))))
            batches.append((first, stop))
            first = stop
        return batches

    def _ends(self, first: int, stop: int) -> _SegmentChunk:
        """The ends of some segments, with which their walk begins."""
        chosen = self.segments[first:stop]
        t = np.array([s.span for s in chosen])
        positions = Positions(t.reshape(-1), np.repeat(np.arange(first, stop), 2))
        start, end = (
            np.concatenate([getattr(s, name) for s in chosen], axis=None).reshape(len(chosen), 1, -1)
            for name in ("start", "end")
        )
        with np.errstate(over="ignore", invalid="ignore"):
            ends = (1 - t[..., None]) * start
            ends += t[..., None] * end
        scale = self._checked(torch.from_numpy(ends), "the points of the segments")
        points = torch.from_numpy(ends).reshape(-1, *self.graph.input_shape).to(self.dtype)
        return _SegmentChunk(1, {0: points}, {0: scale}, positions)

    def _checked(self, z: Tensor, what: str) -> float:
        """The largest entry of a tensor; an error if that is more than the network's arithmetic can carry."""
        low, high = z.aminmax()
        largest = max(float(high), -float(low))
        if not largest <= self.limit:
            kind = str(self.graph.own_dtype).removeprefix("torch.")
            raise OutOfRangeError(
                f"{what} reach {largest:.3g}: {kind} arithmetic carries numbers of at most {self.limit:.3g}, "
                "so nothing is counted, rather than wrongly; choose probes or weights of a smaller scale"
            )
        return largest

    def most_positions(self, node: int) -> int:
        """How many positions go into one chunk from a node on."""
        return max(2, self.chunk // self.sizes[node])

    def _advance(self, chunk: _SegmentChunk, log: _Log) -> None:
        """Take a chunk to the end; it becomes several at a piecewise-linear node that adds many positions."""
        self._evaluate(chunk)
        if chunk.node <= self.graph.output:
            for after in self._bend(chunk, log):
                self._advance(after, log)
            return
        self._checked(chunk.tensors[self.graph.output], "the scores")
        log.n_evaluations += len(chunk.positions)
        log.finish(chunk)

    def hand_over(self, chunk: _SegmentChunk, sink: SegmentSink, done: Callable[[float], None]) -> None:
        """Give a finished chunk to the sink."""
        positions, output = chunk.positions, self.graph.output
        scores = chunk.tensors[output].reshape(len(positions), -1)
        sink(positions, scores, chunk.scales[output])
        self.unchecked += scores.element_size() * len(positions) * self.widest
        if self.unchecked > BYTES_UNCHECKED:
            self.unchecked, self.resident = 0, given_back(self.resident)
        last = positions.segment[-1]
        done(float(last + (positions.t[-1] - self.starts[last]) / self.lengths[last]))

    def _evaluate(self, chunk: _SegmentChunk) -> None:
        """Evaluate the nodes up to the next piecewise-linear one, or to the end."""
        graph, scales = self.graph, chunk.scales

        def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
            scales[i] = self.scales.affine(i, *(scales[j] for j in node.inputs))
            return node.op(*inputs)

        chunk.node = graph.go_on(chunk.tensors, chunk.node, visit, last=graph.output, before=graph.bends)

    def _bend(self, chunk: _SegmentChunk, log: _Log) -> Iterator[_SegmentChunk]:
        """The chunks after a piecewise-linear node, which adds the positions where it bends."""
        i, live, positions, scales = chunk.node, chunk.tensors, chunk.positions, chunk.scales
        op = self.graph.bends[i]
        (j,) = self.graph.nodes[i].inputs
        z = live[j]
        largest = self._checked(z, f"the inputs of {op.name}")
        refinement = refine(op, z, positions, self.tolerance, self._rounding(j, positions, scales[j], log))
        scales = scales | {i: self.scales.bent(op, scales[j], largest)}
        breakpoints = refinement.breakpoints
        if breakpoints.n_flat.any():
            np.add.at(log.n_flat, positions.segment, breakpoints.n_flat)
        fusion = self.fusions.get(i)
        last = i if fusion is None else fusion.last
        later = [k for k in live if self.graph.last_use[k] > last]
        keep = fusion is None or self.graph.last_use[i] > i + 1
        if fusion is not None:
            change = slope_changes(op, flat(z), breakpoints)
            h = op(z) if keep or not self._may_overwrite(j, i) else op.overwrite(z)
            y = self.graph.walk(h, evaluate_node, first=i, until=last)
            expansion = Expansion(fusion, y, breakpoints, change)
            for k in range(i + 1, last + 1):
                scales[k] = self.scales.affine(k, *(scales[n] for n in self.graph.nodes[k].inputs))
        for refined in _chunks(refinement, self.most_positions(last)):
            tensors = {k: interpolate(live[k], refined) for k in later}
            if keep:
                tensors[i] = bent(op, z, refined)
            if fusion is not None:
                tensors[last] = expansion.values(refined)
            yield _SegmentChunk(last + 1, tensors, {**scales}, refined.positions)

    def _rounding(self, node: int, positions: Positions, scale: float, log: _Log) -> SegmentRounding:
        most = self.most_positions(0)
        return SegmentRounding(self.graph, self.segments, node, positions, scale, most, log.doubts)

    def _may_overwrite(self, node: int, reader: int) -> bool:
        """Whether a node's tensor is its own, and no node after `reader` needs it."""
        return self.graph.nodes[node].op.owns_result and self.graph.last_use[node] == reader


def _same(chunk: _SegmentChunk) -> _SegmentChunk:
    return chunk


def _chunks(refinement: Refinement, most: int) -> Iterator[Refinement]:
    """Chunks of about equal length, at most `most` positions; neighbours within a segment share one."""
    n, segment = len(refinement.positions), refinement.positions.segment
    n_chunks = max(1, math.ceil((n - 1) / max(1, most - 1)))
    step = max(1, math.ceil((n - 1) / n_chunks))
    start = 0
    while start < n - 1:
        stop = min(start + step, n - 1)
        if n_chunks == 1:
            yield refinement
            return
        yield refinement.between(start, stop + 1)
        start = stop + 1 if stop + 1 < n and segment[stop] != segment[stop + 1] else stop


def _stage_sizes(graph: Graph) -> list[int]:
    """For each node the largest tensor of a point, in numbers, from it to the next piecewise-linear node."""
    sizes = [max(1, math.prod(s)) for s in graph.shapes]
    for i in range(graph.output - 1, -1, -1):
        if graph.nodes[i + 1].is_affine:
            sizes[i] = max(sizes[i], sizes[i + 1])
        else:
            sizes[i] = max(sizes[i], math.prod(graph.shapes[i + 1]))
    return sizes


REANCHOR_AFTER = 1 / 32
"""How far from its anchor, where it was last evaluated in full, a map is continued along its slope."""


class Expansion:
    """The map's values on refined positions, from those on the old positions and the breakpoints between.

    Chunks of positions have to be taken in order: each continues where the last one ended.
    """

    def __init__(self, fusion: Fusion, y: Tensor, breakpoints: Breakpoints, change: Any) -> None:
        self._shape = tuple(y.shape[1:])
        self._y = y.reshape(len(y), -1).contiguous()
        self._breakpoints, self._change, self._fusion = breakpoints, change, fusion
        n_out = self._y.shape[1]
        kind = self._y.numpy().dtype
        self._line = np.empty((2, n_out))  # base and slope: the map is base + s slope
        self._stored = np.empty((2, n_out), kind)  # its value at the anchor and its slope, as they are stored
        self._cursor = np.array([-1.0, 0.0, 0.0])  # the interval, the next crossing, the anchor

    def values(self, chunk: Refinement) -> Tensor:
        """The values on the positions of one chunk."""
        out = torch.empty((len(chunk.positions), *self._shape), dtype=self._y.dtype)
        lines = self._breakpoints.start, self._breakpoints.s, self._breakpoints.entry, self._change
        read = (self._y.numpy(), *lines, self._fusion.columns, chunk.parent, chunk.fraction)
        written = out.view(len(out), -1).numpy(), self._line, self._cursor
        if self._fusion.geometry is None:
            _expand_matrix(*read, *written)
        else:
            _expand_convolution(*read, *written, self._stored, np.array(self._fusion.geometry))
        return out


def slope_changes(op: Bend, z: Any, breakpoints: Breakpoints) -> Any:
    """By how much the slope d h / d s of the bending entry changes at each breakpoint, (m,)."""
    before, entry = breakpoints.interval, breakpoints.entry
    rise = np.abs(z[before + 1, entry].astype(np.float64) - z[before, entry])
    return np.array(op.slope_jumps or (0.0,))[breakpoints.kink] * rise


@kernel
def _expand_matrix(y, start, s, entry, change, columns, parent, fraction, out, line, cursor):
    """Write a matrix product at new positions, from its values y at old ones and the breakpoints between."""
    n_out = y.shape[1]
    base, slope = line[0], line[1]
    current, k = int(cursor[0]), int(cursor[1])
    for r in range(len(parent)):
        # (1) an old position
        i, f = parent[r], fraction[r]
        if f == 0.0:
            for v in range(n_out):
                out[r, v] = y[i, v]
            continue
        # (2) a new one: begin its interval, or continue along it past the breakpoints before
        if i != current:
            current, k = i, start[i]
            start_line(y[i], y[i + 1], s, entry, change, start[i], start[i + 1], columns, base, slope)
        while k < start[i + 1] and s[k] <= f:
            pass_breakpoint(s[k], change[k], columns[entry[k]], base, slope)
            k += 1
        # (3) the value there
        for v in range(n_out):
            out[r, v] = base[v] + f * slope[v]
    cursor[0], cursor[1] = current, k


@inlined
def _add_patch(base, slope, near, steep, weight, entry, at, change, anchor, geometry):
    """Add to a convolution what one entry contributes that changes its slope by `change` at s = `at`.

    The map is base + s slope in float64; `near` and `steep` are its value at s = `anchor` and its slope as
    they are stored.
    """
    # (1) the entry's pixel, and the outputs of its group of channels
    _, height, width, n_out, ho, wo, sy, sx, py, px, dy, dx, groups = geometry
    pixel = entry % (height * width)
    channel, y, x = entry // (height * width), pixel // width, pixel % width
    per_group, outs = weight.shape[1], n_out // groups
    first = channel // per_group * outs
    inside = channel % per_group
    # (2) the outputs whose window holds that pixel
    for a in range(weight.shape[2]):
        at_y = y + py - a * dy
        if at_y < 0 or at_y % sy != 0 or at_y // sy >= ho:
            continue
        for b in range(weight.shape[3]):
            at_x = x + px - b * dx
            if at_x < 0 or at_x % sx != 0 or at_x // sx >= wo:
                continue
            # (3) their base and slope, as in `bent_line.pass_breakpoint`
            where = at_y // sy * wo + at_x // sx
            for o in range(first, first + outs):
                v = o * ho * wo + where
                bend = change * weight[o, inside, a, b]
                slope[v] += bend
                base[v] -= at * bend
                near[v] = base[v] + anchor * slope[v]
                steep[v] = slope[v]


@inlined
def _anchored(base, slope, near, steep, anchor):
    """Write the value of a map at s = `anchor` and its slope, as they are stored."""
    for v in range(len(base)):
        near[v] = base[v] + anchor * slope[v]
        steep[v] = slope[v]


@kernel
def _expand_convolution(
    y, start, s, entry, change, weight, parent, fraction, out, line, cursor, stored, geometry
):
    """As `_expand_matrix`, for a convolution: an entry that bends changes one patch of the map."""
    n_out = y.shape[1]
    base, slope, near, steep = line[0], line[1], stored[0], stored[1]
    current, k, anchor = int(cursor[0]), int(cursor[1]), cursor[2]
    for r in range(len(parent)):
        i, f = parent[r], fraction[r]
        if f == 0.0:
            for v in range(n_out):
                out[r, v] = y[i, v]
            continue
        if i != current:
            # (1) begin an interval: the line between its ends, and from its slope the slope at the start
            current, k, anchor = i, start[i], 0.0
            for v in range(n_out):
                base[v] = y[i, v]
                slope[v] = y[i + 1, v] - base[v]
            for j in range(start[i], start[i + 1]):
                _add_patch(
                    base, slope, near, steep, weight, entry[j], 0.0, -change[j] * (1.0 - s[j]), 0.0, geometry
                )
            _anchored(base, slope, near, steep, anchor)
        # (2) pass the breakpoints before the position
        while k < start[i + 1] and s[k] <= f:
            _add_patch(base, slope, near, steep, weight, entry[k], s[k], change[k], anchor, geometry)
            k += 1
        # (3) write the position, along the slope from an anchor that is near
        if f - anchor > REANCHOR_AFTER:
            anchor = f
            _anchored(base, slope, near, steep, anchor)
        step = y.dtype.type(f - anchor)
        for v in range(n_out):
            out[r, v] = near[v] + step * steep[v]
    cursor[0], cursor[1], cursor[2] = current, k, anchor
