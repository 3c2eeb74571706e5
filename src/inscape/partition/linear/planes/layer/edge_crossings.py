"""Where units change sign along the edges of a complex, and the points at which this cuts the edges."""

# mypy: allow-untyped-defs, allow-incomplete-defs

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from inscape.arrays import Floats, Int32s, Ints, SignVectors
from inscape.compiled import choosing, compiled, inlined, kernel
from inscape.errors import NonGenericError
from inscape.parallel import are_shared, in_stretches, spread
from inscape.partition.linear.planes.complex.half_edges import PlanarComplex
from inscape.partition.linear.planes.layer.sign_vectors import count_bits, lowest_bit
from inscape.partition.linear.planes.values.values import Values, value
from inscape.partition.linear.rounding import RoundingBounds

ONE_POINT_WITHIN = 1e-9
"""Crossings this near to each other on an edge, relative to its length, may be one point."""

SHARED_FROM_EDGES = 2**14
"""From this many edges on, several threads share the search for crossings."""


@dataclass(frozen=True, eq=False)
class Crossings:
    """Where units change sign along the edges.

    Several units may cross an edge in one point, as far as rounding can tell.

    Attributes:
        start: where the crossings of each edge start, (e + 1,).
        edge: of each crossing, (m,).
        unit: which unit changes sign, (m,).
        s: how far along the edge, from its first end (0) to its second (1), (m,).
        change: by how much the unit's value changes along the whole edge, (m,).
        point: the crossing point that each crossing belongs to, (m,).
        point_start: where the crossing points of each edge start, (e + 1,).
        first: the first crossing of each crossing point, (k,).
    """

    start: Ints
    edge: Int32s
    unit: Int32s
    s: Floats
    change: Floats
    point: Ints
    point_start: Ints
    first: Ints

    @property
    def is_simple(self) -> bool:
        """Whether each crossing has a crossing point of its own."""
        return len(self.first) == len(self.s)

    def of_points(self, values: Any) -> Any:
        """Values of crossings for the crossing points."""
        return values if self.is_simple else values[self.first]


def crossings(
    planar: PlanarComplex,
    values: Values,
    kinks: Floats,
    above: SignVectors,
    zero: SignVectors,
    rounding: RoundingBounds,
) -> Crossings:
    """All crossings on the edges; those that rounding cannot separate share a crossing point."""
    start, edge, unit, s, change, is_close = _edge_crossings(values, kinks, above, zero, planar.ends)
    point = np.arange(len(s))
    point_start, first = start, point
    if is_close:
        close = _close_pairs(start, s, ONE_POINT_WITHIN)
        ends = planar.ends[edge[close]].astype(np.int64)
        error = np.zeros(len(close))
        for k in (close, close + 1):
            a, b = (rounding(ends[:, d], unit[k] % values.h) for d in (0, 1))
            error += (a + s[k] * (b - a)) / change[k]
        same = close[s[close + 1] - s[close] <= error]
        if len(same):
            is_first = np.ones(len(s), bool)
            is_first[same + 1] = False
            point = np.cumsum(is_first) - 1
            first = np.flatnonzero(is_first)
            point_start = np.concatenate([[0], np.cumsum(is_first)])[start]
    return Crossings(start, edge, unit, s, change, point, point_start, first)


class SharedEdges:
    """Where the edges between chunks are crossed, so that the second chunk cuts them as the first did."""

    def __init__(self) -> None:
        self._first_cuts: dict[tuple[object, bytes], tuple[bytes, Floats]] = {}

    def at(self, layer: object, names: Ints | None = None) -> Callable[[PlanarComplex, Crossings], Crossings]:
        """A function that makes the crossings of one layer agree with those of earlier chunks.

        `names` identifies the units if their numbers differ between chunks.
        """
        return lambda planar, crossings: self._agreed(layer, planar, crossings, names)

    def _agreed(
        self, layer: object, planar: PlanarComplex, crossings: Crossings, names: Ints | None
    ) -> Crossings:
        edges = np.flatnonzero(planar.shared)
        if not len(edges):
            return crossings
        ends = planar.xy[planar.ends[edges]]
        s = crossings.s.copy()
        unit = crossings.unit if names is None else names[crossings.unit]
        unit_and_point = np.stack([unit, crossings.point - crossings.point_start[crossings.edge]], axis=1)
        bounds = zip(crossings.start[edges].tolist(), crossings.start[edges + 1].tolist(), strict=True)
        for edge, (first, last) in zip(ends, bounds, strict=True):
            units, key = unit_and_point[first:last].tobytes(), (layer, edge.tobytes())
            cut = units, crossings.s[first:last].copy()
            first_units, first_s = self._first_cuts.setdefault(key, cut)
            if first_units != units:
                raise NonGenericError(
                    "two chunks of the plane disagree on where an edge between them is cut",
                    remedy="give more memory, so that the plane is taken in one chunk",
                )
            s[first:last] = first_s
        return replace(crossings, s=s)


@inlined
def sort_along(s, first, last, a, b):
    """Sort s[first:last], and the same range of two arrays with it: Shell's sort with gaps 1, 4, 13, ..."""
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(first + gap, last):
            item, item_a, item_b = s[k], a[k], b[k]
            i = k
            while i >= first + gap and s[i - gap] > item:
                s[i], a[i], b[i] = s[i - gap], a[i - gap], b[i - gap]
                i -= gap
            s[i], a[i], b[i] = item, item_a, item_b
        gap //= 3


@inlined
def _changed(above, zero, a, b, w):
    """The bits of word w that differ between two vertices, and are zero at neither."""
    changed = above[a, w] ^ above[b, w]
    return changed & ~(zero[a, w] | zero[b, w]) if len(zero) > 0 else changed


@kernel
def _count(above, zero, ends, first, start, crossed):
    """Write where the crossings of each edge start, and which edges have any, `first` being the first edge.

    Returns how many edges have any, and how many crossings there are.
    """
    n, total = 0, 0
    for e in range(len(ends)):
        start[e] = total
        for w in range(above.shape[1]):
            total += count_bits(_changed(above, zero, ends[e, 0], ends[e, 1], w))
        crossed[n] = first + e
        n += total > start[e]
    return n, total


def entry(values: Any, vertex: int, u: int) -> Any:
    """Entry u at a vertex: of an array (v, h), or of `Values` that are not all stored."""
    return values[vertex, u] if isinstance(values, np.ndarray) else value(values, vertex, u)


@choosing(entry)
def _entry(values, vertex, u):
    if hasattr(values, "ndim"):  # the type of an array
        return lambda values, vertex, u: values[vertex, u]
    return lambda values, vertex, u: value(values, vertex, u)


@kernel
def _fill(values, h, kinks, above, zero, ends, crossed, near, start, edge, unit, s, change):
    """Write the crossings of the edges `crossed`; returns whether any two on an edge are close."""
    per, is_close = (h + 63) // 64, False
    for i in range(len(crossed)):
        e = crossed[i]
        a, b, m = ends[e, 0], ends[e, 1], start[e]
        # (1) each unit whose bit differs between the ends: where its value is that of the kink
        for k in range(len(kinks)):
            for w in range(per):
                changed = _changed(above, zero, a, b, k * per + w)
                while changed:
                    u = 64 * w + lowest_bit(changed)
                    changed &= changed - np.uint64(1)
                    first, last = entry(values, a, u) - kinks[k], entry(values, b, u) - kinks[k]
                    edge[m], unit[m] = e, k * h + u
                    s[m], change[m] = first / (first - last), abs(last - first)
                    m += 1
        # (2) in order along the edge
        if m - start[e] > 1:
            sort_along(s, start[e], m, unit, change)
            for k in range(start[e] + 1, m):
                is_close |= s[k] - s[k - 1] <= near
    return is_close


def _edge_crossings(
    values: Values, kinks: Floats, above: SignVectors, zero: SignVectors, ends: Any
) -> tuple[Any, ...]:
    """The units that change sign between the ends of each edge, in order from its first end.

    Args:
        values: at the vertices, (v, h).
        kinks: (k,); unit number h k + u is entry u at kink k.
        above: packed bits (v, words) of the units above their kink.
        zero: packed bits of those on it, (v, words), or (0, words) if there are none.
        ends: of the edges, (e, 2).

    Returns:
        start, edge, unit, s and change as in `Crossings`; whether any two crossings of an edge are close.
    """
    start, crossed = np.empty(len(ends) + 1, np.int64), np.empty(len(ends), np.int32)
    source = values.vectors if values.is_stored else values

    read = source, values.h, kinks, above, zero, ends
    if not are_shared(len(ends), SHARED_FROM_EDGES):
        n, m = _count(above, zero, ends, 0, start, crossed)
        start[-1] = m
        written = start, np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m), np.empty(m)
        return *written, _fill(*read, crossed[:n], ONE_POINT_WITHIN, *written)

    def count(begin: int, stop: int) -> tuple[int, int, int, int]:
        edges = slice(begin, stop)
        return begin, stop, *_count(above, zero, ends[edges], begin, start[edges], crossed[edges])

    def fill(begin: int, stop: int, n: int, first: int) -> Any:
        start[begin:stop] += first
        return _fill(*read, crossed[begin : begin + n], ONE_POINT_WITHIN, *written)

    counted = in_stretches(len(ends), SHARED_FROM_EDGES, count)
    *firsts, m = accumulate((counts[-1] for counts in counted), initial=0)
    start[-1] = m
    written = start, np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m), np.empty(m)
    is_close = spread(partial(fill, *counts[:3], k) for counts, k in zip(counted, firsts, strict=True))
    return *written, any(is_close)


@compiled
def _close_pairs(start, s, near):
    """The crossings k whose successor on the same edge is at most `near` further on, (m,)."""
    is_close = np.zeros(len(s), np.bool_)
    for e in range(len(start) - 1):
        for k in range(start[e], start[e + 1] - 1):
            is_close[k] = s[k + 1] - s[k] <= near
    return np.flatnonzero(is_close)
