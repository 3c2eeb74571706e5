"""The values of a layer at the vertices: rows that are stored, and lines between them that give the others.

On a straight line with ends a and b a bent tensor h has kinks at s_1 <= ... <= s_m, where entry u_k changes
its slope by c_k. A linear map W of it is then

    y(s) = (1 - s) y(a) + s y(b) - sum_k c_k G(s, s_k) W[:, u_k],   G(s, t) = min(s, t) (1 - max(s, t)),

so a vertex on the line costs a few columns of W, and one entry of it a few numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import inlined, kernel
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.values.expansion import rows_of

_NOWHERE, _IN_ORDER = np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_LINES = Lines(
    np.zeros((0, 2), np.int32), np.zeros(1, np.int64), np.zeros(0), _NOWHERE, np.zeros(0), _IN_ORDER
)


class Values(NamedTuple):
    """A tensor at the vertices, (v, h).

    rows: of the first vertices, (n, h); edges: `Lines` between these; chords: `Lines` between these and
    vertices on edges; columns: W transposed, (in, h); line, kink: where each vertex after the first n lies,
    lines being numbered through; number: what the vertices are called here, empty if by their numbers.
    """

    rows: Any
    edges: Lines
    chords: Lines
    columns: Any
    line: Any
    kink: Any
    number: Any

    @classmethod
    def stored(cls, rows: Floats) -> "Values":
        """A tensor of which all rows are stored."""
        return cls(rows, _NO_LINES, _NO_LINES, np.zeros((0, rows.shape[1])), _NOWHERE, _NOWHERE, _IN_ORDER)

    @classmethod
    def on_lines(cls, rows: Floats, edges: Lines, chords: Lines, columns: Floats, n: int) -> "Values":
        """A tensor of which the first rows are stored, and n more vertices whose places are to be found."""
        line, kink = np.empty(n, np.int32), np.full(n, -1, np.int32)
        return cls(rows, edges, chords, columns, line, kink, _IN_ORDER)

    @property
    def is_stored(self) -> bool:
        """Whether all rows are stored."""
        return not len(self.line)

    @property
    def h(self) -> int:
        """How many entries a row has."""
        return int(self.rows.shape[1])

    def moved_to(self, vertices: Ints) -> "Values":
        """The tensor at some vertices, in order of their numbers, in the memory of this one."""
        if not self.is_stored:
            return self._replace(number=vertices)
        _move_up(self.rows, vertices)
        return Values.stored(self.rows[: len(vertices)])

    def at(self, vertices: Ints, entries: Ints) -> Floats:
        """Entries at vertices, for each pair (m,)."""
        if self.is_stored:
            return np.asarray(self.rows[vertices, entries])
        found = np.empty(len(vertices))
        _each_value(self, vertices, entries, found)
        return found

    def rows_at(self, vertices: Ints) -> Floats:
        """Rows at vertices, (m, h)."""
        if self.is_stored:
            return np.asarray(self.rows[vertices])
        found = np.empty((len(vertices), self.h))
        rows_of(self, vertices, found)
        return found


@kernel
def _move_up(rows, chosen):
    """Move the rows that are chosen, in order, to the first places."""
    for i in range(len(chosen)):
        if chosen[i] != i:
            row, out = rows[chosen[i]], rows[i]
            for u in range(len(out)):
                out[u] = row[u]


@inlined
def _between(first, last, s):
    """The value at s between two that are linked by a straight line, true at both ends."""
    return first + s * (last - first) if s <= 0.5 else last + (1.0 - s) * (first - last)


@inlined
def _bends(lines, line, s, columns, u):
    """By how much the kinks of a line bend entry u at s down."""
    total = 0.0
    for k in range(lines.start[line], lines.start[line + 1]):
        weight = lines.change[k] * min(s, lines.s[k]) * (1.0 - max(s, lines.s[k]))
        total += weight * columns[lines.unit[k], u]
    return total


@inlined
def _on_edge(values, v, u):
    """Entry u at a vertex that is stored or lies on an edge."""
    rows, edges, n = values.rows, values.edges, len(values.rows)
    if v < n:
        return rows[v, u]
    line, s = values.line[v - n], edges.s[values.kink[v - n]]
    straight = _between(rows[edges.ends[line, 0], u], rows[edges.ends[line, 1], u], s)
    return straight - _bends(edges, line, s, values.columns, u)


@inlined
def value(values, vertex, u):
    """Entry u at a vertex of which the row may not be stored."""
    n, chords = len(values.rows), values.chords
    v = values.number[vertex] if len(values.number) > 0 else np.int64(vertex)
    if v < n or values.line[v - n] < len(values.edges.ends):
        return _on_edge(values, v, u)
    line, s = values.line[v - n] - len(values.edges.ends), chords.s[values.kink[v - n]]
    first = _on_edge(values, np.int64(chords.ends[line, 0]), u)
    last = _on_edge(values, np.int64(chords.ends[line, 1]), u)
    return _between(first, last, s) - _bends(chords, line, s, values.columns, u)


@kernel
def _each_value(values, vertices, entries, found):
    for i in range(len(vertices)):
        found[i] = value(values, vertices[i], entries[i])
