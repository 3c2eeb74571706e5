"""The values of a layer at the vertices: vectors that are stored, and lines that give the others.

At the vertices on a line a linear map of a bent tensor follows by the formula of `bent_line`, without a
matrix product for each.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from inscape.arrays import Bools, Floats, Int32s, Ints, SignVectors
from inscape.compiled import inlined, kernel
from inscape.models.graph import flat
from inscape.parallel import is_parallel, spread
from inscape.partition.linear.bent_line import pass_breakpoint, sag, start_line
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.layer.sign_vectors import pack_vector
from inscape.partition.linear.planes.plan import empty

_NO_INT32S, _NO_INTS = np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_LINES = Lines(
    ends=np.zeros((0, 2), np.int32),
    start=np.zeros(1, np.int64),
    s=np.zeros(0),
    unit=_NO_INT32S,
    change=np.zeros(0),
    vertex=_NO_INTS,
)


class Values(NamedTuple):
    """A tensor at the vertices, (v, h); where its vectors are not stored, a linear map of a bent tensor."""

    vectors: Floats
    """The values at the first vertices, (n, h): a vector of h entries for each."""
    edges: Lines
    """Lines between these."""
    chords: Lines
    """Lines between these and vertices on edges."""
    columns: Floats
    """The transpose of the map, (in, h)."""
    line: Int32s
    """The line on which each vertex after the first n lies; chords are numbered after edges."""
    breakpoint: Int32s
    """The breakpoint of that line at which it lies."""
    number: Ints
    """The number that each vertex has here; empty if that is its own."""

    @classmethod
    def stored(cls, vectors: Floats) -> "Values":
        """A tensor of which all vectors are stored."""
        none = np.zeros((0, vectors.shape[1]))
        return cls(vectors, _NO_LINES, _NO_LINES, none, _NO_INT32S, _NO_INT32S, _NO_INTS)

    @classmethod
    def on_lines(cls, vectors: Floats, edges: Lines, chords: Lines, columns: Floats, n: int) -> "Values":
        """A tensor whose first vectors are stored; the lines of n more vertices are still to be written."""
        line, breakpoint = np.empty(n, np.int32), np.full(n, -1, np.int32)
        return cls(vectors, edges, chords, columns, line, breakpoint, _NO_INTS)

    @property
    def is_stored(self) -> bool:
        """Whether all vectors are stored."""
        return not len(self.line)

    @property
    def h(self) -> int:
        """How many entries a vector has."""
        return int(self.vectors.shape[1])

    def moved_to(self, vertices: Ints) -> "Values":
        """The tensor at some vertices, in order of their numbers, in the memory of this one."""
        if not self.is_stored:
            return self._replace(number=vertices)
        _move_up(self.vectors, vertices)
        return Values.stored(self.vectors[: len(vertices)])

    def at(self, vertices: Ints, entries: Ints) -> Floats:
        """Entries at vertices, for each pair (m,)."""
        if self.is_stored:
            return np.asarray(self.vectors[vertices, entries])
        out = np.empty(len(vertices))
        _each_value(self, vertices, entries, out)
        return out

    def vectors_at(self, vertices: Ints) -> Floats:
        """The vectors at vertices, (m, h)."""
        if self.is_stored:
            return np.asarray(self.vectors[vertices])
        out = np.empty((len(vertices), self.h))
        _vectors_of(self, vertices, np.empty(self.h), np.empty(self.h), out)
        return out


@kernel
def _move_up(vectors, vertices):
    """Move the vectors of some vertices, which ascend, to the front."""
    for i in range(len(vertices)):
        if vertices[i] != i:
            vector, out = vectors[vertices[i]], vectors[i]
            for u in range(len(out)):
                out[u] = vector[u]


@inlined
def _between(first, last, s):
    """Linear interpolation at s between the values at 0 and 1, exact at both ends."""
    return first + s * (last - first) if s <= 0.5 else last + (1.0 - s) * (first - last)


@inlined
def _sags(lines, line, s, columns, u):
    """By how much the breakpoints of a line bend entry u down at s, see `bent_line.sag`."""
    total = 0.0
    for k in range(lines.start[line], lines.start[line + 1]):
        total += sag(s, lines.s[k], lines.change[k]) * columns[lines.unit[k], u]
    return total


@inlined
def _on_edge(values, v, u):
    """Entry u at a vertex that is stored or lies on an edge."""
    vectors, edges, n = values.vectors, values.edges, len(values.vectors)
    if v < n:
        return vectors[v, u]
    line, s = values.line[v - n], edges.s[values.breakpoint[v - n]]
    straight = _between(vectors[edges.ends[line, 0], u], vectors[edges.ends[line, 1], u], s)
    return straight - _sags(edges, line, s, values.columns, u)


@inlined
def value(values, vertex, u):
    """Entry u at a vertex whose vector may not be stored."""
    n, chords = len(values.vectors), values.chords
    v = values.number[vertex] if len(values.number) > 0 else np.int64(vertex)
    if v < n or values.line[v - n] < len(values.edges.ends):
        return _on_edge(values, v, u)
    line, s = values.line[v - n] - len(values.edges.ends), chords.s[values.breakpoint[v - n]]
    first = _on_edge(values, np.int64(chords.ends[line, 0]), u)
    last = _on_edge(values, np.int64(chords.ends[line, 1]), u)
    return _between(first, last, s) - _sags(chords, line, s, values.columns, u)


@kernel
def _each_value(values, vertices, entries, out):
    """Write entries at vertices, for each pair."""
    for i in range(len(vertices)):
        out[i] = value(values, vertices[i], entries[i])


@dataclass(frozen=True, eq=False)
class Interpolation:
    """How tensors that are affine on the old faces are carried to the vertices after a cut.

    Attributes:
        n_old: the number of old vertices.
        source: up to four old vertices, of which each new one is a weighted mean, (n, 4).
        weight: their weights, (n, 4).
        zeros: pairs of a new vertex and a unit that is on its kink there, in order of the vertices, (k, 2).
    """

    n_old: int
    source: Ints
    weight: Floats
    zeros: Ints

    @classmethod
    def of(cls, n_old: int, n: int, edges: Lines, chords: Lines) -> "Interpolation":
        """The interpolation after a cut, to n vertices of which the first n_old are old.

        New ones lie on edges, or on chords between vertices that are old or on edges.
        """
        source, weight = np.zeros((n - n_old, 4), np.int64), np.zeros((n - n_old, 4))
        _write_sources(n_old, edges, chords, source, weight)
        pairs = [np.stack([line.vertex, line.unit], axis=1)[line.vertex >= 0] for line in (edges, chords)]
        zeros = np.concatenate(pairs)
        return cls(n_old, source, weight, zeros[np.argsort(zeros[:, 0], kind="stable")])

    def carry(self, z: Tensor, vertices: Ints) -> Tensor:
        """A tensor at some of the vertices, in that order."""
        out = empty((len(vertices), *z.shape[1:]))
        _gather(flat(z), self.n_old, self.source, self.weight, vertices, out.view(len(out), -1).numpy())
        return out

    def carry_input(self, z: Tensor, vertices: Ints, kinks: Floats) -> Tensor:
        """The input of the layer that was cut, exactly on its kink where a unit is zero."""
        out = self.carry(z, vertices)
        number = np.full(int(vertices.max(initial=-1)) + 1, -1)
        number[vertices] = np.arange(len(vertices))
        vertex, unit = self.zeros[:, 0], self.zeros[:, 1]
        is_given = vertex < len(number)
        is_given[is_given] = number[vertex[is_given]] >= 0
        vertex, unit, h = vertex[is_given], unit[is_given], max(1, z[0].numel())
        values = out.view(len(out), -1).numpy()
        values[number[vertex], unit % h] = kinks[unit // h]
        return out


@kernel
def _write_sources(n_old, edges, chords, source, weight):
    """Write up to four old vertices for each new one, and their weights, (n_new, 4) each, zero before."""
    # (1) on edges: the two ends
    for e in range(len(edges.ends)):
        for k in range(edges.start[e + 1] - 1, edges.start[e] - 1, -1):
            i = edges.vertex[k] - n_old
            source[i, 0], source[i, 1] = edges.ends[e, 0], edges.ends[e, 1]
            weight[i, 0], weight[i, 1] = 1.0 - edges.s[k], edges.s[k]
    # (2) on chords: two for each end, unless the vertex is known from another chord
    for line in range(len(chords.ends)):
        for k in range(chords.start[line], chords.start[line + 1]):
            i = chords.vertex[k] - n_old
            if chords.vertex[k] < 0 or weight[i, 0] + weight[i, 1] + weight[i, 2] + weight[i, 3] > 0.0:
                continue
            for d in range(2):
                end = chords.ends[line, d]
                of_end = chords.s[k] if d == 1 else 1.0 - chords.s[k]
                for j in range(2):
                    if end >= n_old:
                        source[i, 2 * d + j] = source[end - n_old, j]
                        weight[i, 2 * d + j] = of_end * weight[end - n_old, j]
                    else:
                        source[i, 2 * d + j] = end
                        weight[i, 2 * d + j] = of_end if j == 0 else 0.0


@kernel
def _gather(z, n_old, source, weight, vertices, out):
    """Write the vectors of vertices: stored, or means of those of their sources."""
    h = z.shape[1]
    for i in range(len(vertices)):
        v = vertices[i]
        if v < n_old:
            for u in range(h):
                out[i, u] = z[v, u]
            continue
        s, w = source[v - n_old], weight[v - n_old]
        a, b, c, d = z[s[0]], z[s[1]], z[s[2]], z[s[3]]
        if w[2] == 0.0 and w[3] == 0.0:
            for u in range(h):
                out[i, u] = w[0] * a[u] + w[1] * b[u]
        else:
            for u in range(h):
                out[i, u] = (w[0] * a[u] + w[1] * b[u]) + (w[2] * c[u] + w[3] * d[u])


CARRIED_ALONG_ABOVE_BREAKPOINTS = 4
"""On lines with more breakpoints than this the sum over them is updated from point to point."""


@inlined
def _by_formula(a, b, s, entry, change, i, out, columns):
    """Write the vector at breakpoint i of a line from a to b, summing over all its breakpoints."""
    n_out = len(out)
    first, last, t = (a, b, s[i]) if s[i] <= 0.5 else (b, a, 1.0 - s[i])
    weight, column = sag(s[i], s[0], change[0]), columns[entry[0]]
    for v in range(n_out):
        out[v] = first[v] + t * (last[v] - first[v]) - weight * column[v]
    for k in range(1, len(s)):
        weight, column = sag(s[i], s[k], change[k]), columns[entry[k]]
        for v in range(n_out):
            out[v] -= weight * column[v]


BREAKPOINTS_IN_STRETCH = 2**12
"""About how many breakpoints are on the lines of a stretch, which one thread takes ..."""

MOST_STRETCHES = 100
"""... if there are not more stretches than this, whose numbers fit into a byte for each vertex."""

OPEN, DONE = 0, -1
"""In place of a stretch's number: at a vertex that any stretch may fill, at one that none has to any more."""


def stretches(lines: Lines, n: int, stretch_of: Any, *, is_disjoint: bool) -> list[tuple[int, Lines]]:
    """Lines in stretches that threads can take in parallel, each with its number.

    The first line on which a vertex lies gives the values there. A single thread meets that line first; for
    several threads the number of its stretch is written, unless no two lines have a vertex in common.

    Args:
        lines: all of them.
        n: the vertices before this one are never open.
        stretch_of: for each vertex from n on which stretch is to fill it, or `OPEN`, or `DONE`.
        is_disjoint: whether no vertex lies on two lines.
    """
    if not is_parallel():
        return [(OPEN, lines)]
    first, last = int(lines.start[0]), int(lines.start[-1])
    n_stretches = min(-(-(last - first) // BREAKPOINTS_IN_STRETCH), MOST_STRETCHES)
    if n_stretches < 2:
        return [(OPEN, lines)]
    even = np.linspace(first, last, n_stretches + 1)[1:-1].astype(np.int64)
    inner = np.unique(np.searchsorted(lines.start, even))
    bounds = [0, *inner[(inner > 0) & (inner < len(lines.ends))].tolist(), len(lines.ends)]
    cut = [lines._replace(ends=lines.ends[a:b], start=lines.start[a : b + 1]) for a, b in pairwise(bounds)]
    if is_disjoint:
        return [(OPEN, stretch) for stretch in cut]
    for number, stretch in enumerate(cut, 1):
        _write_stretch(stretch, number, n, stretch_of)
    return list(enumerate(cut, 1))


@kernel
def _write_stretch(lines, number, n, stretch_of):
    """Write the number of a stretch of lines at the open vertices on them."""
    for k in range(lines.start[0], lines.start[len(lines.ends)]):
        x = lines.vertex[k] - n
        if x >= 0 and stretch_of[x] == OPEN:
            stretch_of[x] = number


@kernel
def _expand_each(y, number, lines, columns, stretch_of, base, slope, kinks, cutoff, above, near):
    """Fill the vectors at those breakpoints of a stretch of lines that it is to fill, each once."""
    for line in range(len(lines.ends)):
        # (1) is there anything to fill?
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= 0 and stretch_of[lines.vertex[k]] == number
        if not is_open:
            continue
        # (2) with many breakpoints the line is followed from its first end
        a, b = lines.ends[line, 0], lines.ends[line, 1]
        s, entry, change = lines.s[first:last], lines.unit[first:last], lines.change[first:last]
        is_long = last - first > CARRIED_ALONG_ABOVE_BREAKPOINTS
        if is_long:
            start_line(y[a], y[b], s, entry, change, 0, len(s), columns, base, slope)
        for i in range(last - first):
            x = lines.vertex[first + i]
            if x >= 0 and stretch_of[x] == number:
                # (3) the vector at a breakpoint, and its signs
                out, stretch_of[x] = y[x], DONE
                if is_long:
                    for v in range(len(base)):
                        out[v] = base[v] + s[i] * slope[v]
                else:
                    _by_formula(y[a], y[b], s, entry, change, i, out, columns)
                if len(above) > 0:
                    near[x] = pack_vector(out, kinks, cutoff, above[x])
            if is_long:
                pass_breakpoint(s[i], change[i], columns[entry[i]], base, slope)


def expand(
    y: Floats,
    n_old: int,
    edges: Lines,
    chords: Lines,
    columns: Floats,
    kinks: Floats,
    cutoff: float,
    above: SignVectors,
    near: Bools,
) -> None:
    """Fill the vectors of y (v, out) at the breakpoints of lines, first those of edges, then those of chords.

    Args:
        y: the map at the vertices, filled at the first n_old.
        n_old: the number of old vertices.
        edges: lines between old vertices, whose units are entries.
        chords: lines between vertices that are old or on edges.
        columns: the transpose of the map, (in, out).
        kinks: of the new vectors' entries.
        cutoff: how near a kink an entry counts.
        above: written with the signs of the new vectors, see `pack_vectors`, unless it is empty.
        near: likewise, whether they have an entry near a kink.
    """
    stretch_of = np.zeros(len(y), np.int8)
    stretch_of[:n_old] = DONE

    def fill(number: int, lines: Lines) -> None:
        base, slope = np.empty(y.shape[1]), np.empty(y.shape[1])
        _expand_each(y, number, lines, columns, stretch_of, base, slope, kinks, cutoff, above, near)

    for lines in (edges, chords):
        parallel = stretches(lines, 0, stretch_of, is_disjoint=lines is edges)
        spread(partial(fill, *stretch) for stretch in parallel)


@inlined
def _evaluate(values, v, out):
    """Write the vector of a vertex on an edge to `out`; nothing if it is stored."""
    n, edges = len(values.vectors), values.edges
    if v >= n:
        line = values.line[v - n]
        first, last = edges.start[line], edges.start[line + 1]
        a, b = values.vectors[edges.ends[line, 0]], values.vectors[edges.ends[line, 1]]
        s, entry, change = edges.s[first:last], edges.unit[first:last], edges.change[first:last]
        _by_formula(a, b, s, entry, change, values.breakpoint[v - n] - first, out, values.columns)


@kernel
def _write_lines(values, lines, base_line):
    """Write the line and the breakpoint of each vertex on lines; several breakpoints may be at one vertex."""
    n = len(values.vectors)
    for line in range(len(lines.ends)):
        for k in range(lines.start[line], lines.start[line + 1]):
            x = lines.vertex[k] - n
            if x >= 0 and values.breakpoint[x] < 0:
                values.line[x], values.breakpoint[x] = base_line + line, k


@inlined
def _sign(vector, x, signs):
    """Write the sign vector of a vertex, whose values are given."""
    kinks, cutoff, above, near = signs
    near[x] = pack_vector(vector, kinks, cutoff, above[x])


@kernel
def _sign_each(values, number, lines, n_ends, stretch_of, at_a, at_b, vector, signs):
    """Write the signs at the vertices that a stretch of lines is to fill, and at the lines' n_ends ends."""
    n = len(values.vectors)
    for line in range(len(lines.ends)):
        # (1) is there anything to sign?
        first, last = lines.start[line], lines.start[line + 1]
        is_open = False
        for k in range(first, last):
            is_open |= lines.vertex[k] >= n and stretch_of[lines.vertex[k] - n] == number
        if not is_open:
            continue
        # (2) the vectors at the ends, and their signs
        v, w = lines.ends[line, 0], lines.ends[line, 1]
        _evaluate(values, v, at_a)
        _evaluate(values, w, at_b)
        a, b = values.vectors[v] if v < n else at_a, values.vectors[w] if w < n else at_b
        for d in range(n_ends):
            x = lines.ends[line, d]
            if x >= n and stretch_of[x - n] == OPEN:
                stretch_of[x - n] = DONE
                _sign(a if d == 0 else b, x, signs)
        # (3) the vectors at the breakpoints, and their signs
        s, entry, change = lines.s[first:last], lines.unit[first:last], lines.change[first:last]
        for k in range(first, last):
            x = lines.vertex[k]
            if x >= n and stretch_of[x - n] == number:
                stretch_of[x - n] = DONE
                _by_formula(a, b, s, entry, change, k - first, vector, values.columns)
                _sign(vector, x, signs)


def sign_lines(values: Values, kinks: Floats, cutoff: float, above: SignVectors, near: Bools) -> None:
    """Write where the vertices on the lines of `values` lie, and their signs; their vectors are not stored.

    Chords come first, so that the vectors at their ends, which lie on edges, are evaluated once.

    Args:
        values: the first vectors are stored; `breakpoint` is -1 at the other vertices.
        kinks: of the entries.
        cutoff: how near a kink an entry counts.
        above: written with the signs at the other vertices, see `pack_vectors`.
        near: likewise, whether they have an entry near a kink.
    """
    h, edges, chords = values.h, values.edges, values.chords
    n, stretch_of = len(values.vectors), np.zeros(len(values.line), np.int8)

    def sign(n_ends: int, number: int, lines: Lines) -> None:
        scratch = np.empty(h), np.empty(h), np.empty(h)
        _sign_each(values, number, lines, n_ends, stretch_of, *scratch, (kinks, cutoff, above, near))

    spread(partial(_write_lines, values, *lines) for lines in ((edges, 0), (chords, len(edges.ends))))
    # a vertex at which several chords end gets the same signs, whichever of them writes these
    spread(partial(sign, 2, *stretch) for stretch in stretches(chords, n, stretch_of, is_disjoint=False))
    spread(partial(sign, 0, *stretch) for stretch in stretches(edges, n, stretch_of, is_disjoint=True))


@kernel
def _vectors_of(values, vertices, at_a, at_b, out):
    """Write the vectors of vertices of `values`, stored or not, (m, h)."""
    n, n_edges, chords = len(values.vectors), len(values.edges.ends), values.chords
    for i in range(len(vertices)):
        v = values.number[vertices[i]] if len(values.number) > 0 else vertices[i]
        # (1) stored, or on an edge
        if v < n:
            for u in range(out.shape[1]):
                out[i, u] = values.vectors[v, u]
            continue
        if values.line[v - n] < n_edges:
            _evaluate(values, v, out[i])
            continue
        # (2) on a chord, whose ends are stored or on edges
        line = values.line[v - n] - n_edges
        j, k = chords.ends[line, 0], chords.ends[line, 1]
        _evaluate(values, j, at_a)
        _evaluate(values, k, at_b)
        a, b = values.vectors[j] if j < n else at_a, values.vectors[k] if k < n else at_b
        first, last = chords.start[line], chords.start[line + 1]
        s, entry, change = chords.s[first:last], chords.unit[first:last], chords.change[first:last]
        _by_formula(a, b, s, entry, change, values.breakpoint[v - n] - first, out[i], values.columns)
