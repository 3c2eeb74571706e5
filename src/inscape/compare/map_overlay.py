# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False
"""Two maps of labels on one convex polygon, laid over each other: the planar complex of their overlay.

A map is given by the straight edges across which its label changes, and its border. The plane is cut into
vertical slabs at every end of an edge and at every crossing of an edge of the one map with one of the other,
so that within a slab no two edges cross:

    :    ____:----~~~~:            each slab is a stack of trapezoids; the edge below a trapezoid, and the
    :----    :        :            next edges of either map further below, say which labels it has
    :        :  __..--:
    :__..--~~:~~      :            vertices at one event (the side of a slab) are numbered from below
    event k  k + 1    k + 2

Places that are nearer to each other than `TOLERANCE` of the polygon's extent are one: edges of both maps that
coincide up to rounding become one edge, and nothing lies between them. Nothing else is decided by floats, so
that the faces always fit together.
"""

from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled, grown
from inscape.partition.linear.planes.complex.dissolve import dissolve
from inscape.partition.linear.planes.complex.half_edges import (
    BORDER,
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
    next_around,
    origin,
    target,
    twin,
)

TOLERANCE = 1e-11
"""Of the polygon's extent, far above the rounding of vertices and far below what one could see."""


STRAIGHT = 1e-12
"""The sine of an angle that is straight up to rounding: lines that were cut meet at such angles."""


class LabelMap(NamedTuple):
    """A map of labels: where its edges start and end, (m, 2) each, and the labels beside them, (m,) each."""

    start: Floats
    """Where each edge starts, (m, 2)."""
    end: Floats
    """Where it ends, (m, 2)."""
    left: Ints
    """The label to the left of each edge, -1 outside."""
    right: Ints
    """The label to its right."""

    @classmethod
    def of(cls, planar: PlanarComplex, labels: Ints) -> "LabelMap":
        """The map of a complex with a label for each face, (f,)."""
        edge, left, right = changes(planar.start, planar.loop, len(planar.ends), labels)
        start, end = planar.xy[planar.ends[edge]].transpose(1, 0, 2)
        return cls(start, end, left, right)


@compiled
def changes(start, loop, n_edges, labels):
    """The edges across which the label changes, and the labels to their left and right, -1 outside."""
    beside = np.full(2 * n_edges, -1, np.int64)  # the label to the left of each half-edge
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            beside[loop[i]] = labels[f]
    edge, left, right = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    n = 0
    for e in range(n_edges):
        edge[n], left[n], right[n] = e, beside[half_edge(e, 0)], beside[half_edge(e, 1)]
        n += left[n] != right[n]
    return edge[:n].copy(), left[:n].copy(), right[:n].copy()


class Overlay(NamedTuple):
    """The overlay of two maps: a complex of convex faces, and the two labels of each face, (f, 2)."""

    planar: PlanarComplex
    """The complex."""
    labels: Ints
    """The label of each face in the one map and in the other, (f, 2)."""


def overlaid(first: LabelMap, second: LabelMap, corners: Floats) -> Overlay:
    """The overlay of two maps of one polygon with corners (k, 2)."""
    extent = float(np.ptp(corners, axis=0).max())
    near = TOLERANCE * extent
    edges = _Edges.of(first, second)
    cross = edges.crossings(len(first.start))
    # (1) events: the sides of the slabs
    x = np.concatenate([edges.low[:, 0], edges.high[:, 0], cross.xy[:, 0]])
    events, event_of = _clustered(x, near)
    m = len(edges.low)
    begin, stop, met = event_of[:m], event_of[m : 2 * m], event_of[2 * m :]
    # (2) the stretch of each edge in each slab that it runs through, in the order of slabs and from below
    stretch = _stretches(edges, begin, stop, events, cross, met)
    # (3) vertices, numbered from below at each event
    xy, low, high = _vertices(stretch, events, near)
    # (4) edges and faces between them
    planar, labels = _complex(stretch, xy, low, high, edges, corners)
    coarse, pairs = coarsened(planar, labels[:, 0] * (labels.max() + 1) + labels[:, 1])
    return Overlay(coarse, np.stack(np.divmod(pairs, labels.max() + 1), axis=1))


class _MapCrossings(NamedTuple):
    """Where edges of the one map cross edges of the other: the edges (n,) each, and the places (n, 2)."""

    one: Ints
    """The edge of the one map, (n,)."""
    other: Ints
    """The edge of the other, (n,)."""
    xy: Floats
    """Where they cross, (n, 2)."""


class _Edges(NamedTuple):
    """The edges of both maps, each from its left end to its right one."""

    low: Floats
    """The left end of each, (m, 2)."""
    high: Floats
    """The right end, (m, 2)."""
    above: Ints
    """The label above it, -1 outside, (m,)."""
    below: Ints
    """The label below it, (m,)."""
    is_second: Any
    """Whether it is one of the second map, (m,)."""

    @classmethod
    def of(cls, first: LabelMap, second: LabelMap) -> "_Edges":
        start, end, left, right = (np.concatenate(both) for both in zip(first, second, strict=True))
        turned = start[:, 0] > end[:, 0]
        return cls(
            low=np.where(turned[:, None], end, start),
            high=np.where(turned[:, None], start, end),
            above=np.where(turned, right, left),
            below=np.where(turned, left, right),
            is_second=np.arange(len(start)) >= len(first.start),
        )

    def crossings(self, n_first: int) -> _MapCrossings:
        order = n_first + np.argsort(self.low[n_first:, 0], kind="stable")
        one, other, x, y = edge_crossings(self.low, self.high, order)
        return _MapCrossings(one, other, np.stack([x, y], axis=1))


@compiled(work=lambda low, high, order: len(order) * (len(low) - len(order)))
def edge_crossings(low, high, order):
    """All places where one of the first edges crosses one of the others, away from the ends of both.

    Args:
        low: the left end of each edge, (e, 2).
        high: the right end.
        order: the other edges, which come last, by the x of their left ends.

    Returns:
        of each place its first edge, its other edge, its x and its y.
    """
    n = 0
    one, other, x, y = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024), np.empty(1024)
    for i in range(len(low) - len(order)):
        ax, ay = low[i, 0], low[i, 1]
        ux, uy = high[i, 0] - ax, high[i, 1] - ay
        top, bottom = max(ay, ay + uy), min(ay, ay + uy)
        for k in range(len(order)):
            # (1) only edges that overlap in x and y
            j = order[k]
            if low[j, 0] > high[i, 0]:
                break
            if high[j, 0] < ax or min(low[j, 1], high[j, 1]) > top or max(low[j, 1], high[j, 1]) < bottom:
                continue
            # (2) the places along both at which they cross
            vx, vy = high[j, 0] - low[j, 0], high[j, 1] - low[j, 1]
            det = ux * vy - uy * vx
            if det == 0.0:
                continue
            wx, wy = low[j, 0] - ax, low[j, 1] - ay
            s, t = (wx * vy - wy * vx) / det, (wx * uy - wy * ux) / det
            if s < 0.0 or s > 1.0 or t < 0.0 or t > 1.0:
                continue
            # (3) keep them
            if n == len(one):
                one, other, x, y = grown(one, 2 * n), grown(other, 2 * n), grown(x, 2 * n), grown(y, 2 * n)
            one[n], other[n], x[n], y[n] = i, j, ax + s * ux, ay + s * uy
            n += 1
    return one[:n], other[:n], x[:n], y[:n]


def _clustered(values: Floats, near: float) -> tuple[Floats, Ints]:
    """Values in order, those nearer than `near` to the next as one; and the number of each one's cluster."""
    order = np.argsort(values, kind="stable")
    inside = np.diff(values[order]) <= near
    number = np.empty(len(values), np.int64)
    number[order] = np.concatenate([[0], np.cumsum(~inside)])
    first = order[np.concatenate([[True], ~inside])]
    return values[first], number


class _Stretches(NamedTuple):
    """Edges within slabs: slab, edge, and the heights at both sides of the slab, (n,) each."""

    slab: Ints
    """The slab, (n,)."""
    edge: Ints
    """The edge, (n,)."""
    left: Floats
    """Its height at the left side of the slab, (n,)."""
    right: Floats
    """Its height at the right side, (n,)."""


def _stretches(
    edges: _Edges, begin: Ints, stop: Ints, events: Floats, cross: _MapCrossings, met: Ints
) -> _Stretches:
    crossed, event = np.concatenate([cross.one, cross.other]), np.concatenate([met, met])
    order = np.lexsort((event, crossed))
    known = crossed[order], event[order], np.concatenate([cross.xy[:, 1]] * 2)[order]
    slab, edge, left, right = heights(edges.low, edges.high, begin, stop, events, *known)
    order = np.lexsort((left + right, slab))
    return _Stretches(slab[order], edge[order], left[order], right[order])


@compiled
def heights(low, high, begin, stop, events, crossed, met, height):
    """The slabs that each edge runs through, the edge, and its heights at both sides, edge by edge.

    What is known are the heights of crossed edges at the events where they meet, in the order of both.
    """
    n = (stop - begin).sum()
    slab, edge = np.empty(n, np.int64), np.empty(n, np.int64)
    left, right = np.empty(n), np.empty(n)
    i, k = 0, 0
    for e in range(len(low)):
        x, y, rise = low[e, 0], low[e, 1], high[e, 1] - low[e, 1]
        bottom, top = min(y, high[e, 1]), max(y, high[e, 1])
        at = y
        for event in range(begin[e], stop[e] + 1):
            # (1) the height at the event: that of an end, of a crossing, or on the straight line
            before = at
            while k < len(crossed) and (crossed[k] < e or (crossed[k] == e and met[k] < event)):
                k += 1
            if k < len(crossed) and crossed[k] == e and met[k] == event:
                at = height[k]
            elif event == stop[e] and event > begin[e]:
                at = high[e, 1]
            elif event > begin[e]:
                at = y + rise / (high[e, 0] - x) * (events[event] - x)
            at = min(max(at, bottom), top)
            # (2) a stretch ends here
            if event > begin[e]:
                slab[i], edge[i], left[i], right[i] = event - 1, e, before, at
                i += 1
    return slab, edge, left, right


def _vertices(stretch: _Stretches, events: Floats, near: float) -> tuple[Floats, Ints, Ints]:
    """The vertices (v, 2), and those at the left and right ends of the stretches, (n,) each."""
    n = len(stretch.slab)
    event = np.concatenate([stretch.slab, stretch.slab + 1])
    y = np.concatenate([stretch.left, stretch.right])
    order = np.lexsort((y, event))
    is_new = np.ones(2 * n, bool)
    is_new[1:] = (np.diff(event[order]) > 0) | (np.diff(y[order]) > near)
    number = np.empty(2 * n, np.int64)
    number[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    xy = np.stack([events[event[first]], y[first]], axis=1)
    return xy, risen(number[:n], stretch.slab), risen(number[n:], stretch.slab)


@compiled
def risen(vertex, slab):
    """Vertices that never fall from one stretch to the next in a slab: rounding must not cross them."""
    for i in range(1, len(vertex)):
        if slab[i] == slab[i - 1] and vertex[i] < vertex[i - 1]:
            vertex[i] = vertex[i - 1]
    return vertex


def _complex(
    stretch: _Stretches, xy: Floats, low: Ints, high: Ints, edges: _Edges, corners: Floats
) -> tuple[PlanarComplex, Ints]:
    """The trapezoids as a planar complex, and the labels of each."""
    is_new = np.ones(len(low), bool)
    is_new[1:] = (np.diff(stretch.slab) > 0) | (np.diff(low) > 0) | (np.diff(high) > 0)
    group = np.cumsum(is_new) - 1  # stretches of both maps that coincide are one
    first = np.flatnonzero(is_new)
    above, is_second = edges.above[stretch.edge], edges.is_second[stretch.edge]
    labels, below, over = stacked(stretch.slab, group, above, is_second, len(first))
    n_v = len(xy)
    start, half, ends = trapezoids(below, over, low[first], high[first], n_v)
    n_sides, vertices, ends, loop = renumbered(half, ends, n_v)
    fixed = np.zeros(len(vertices), bool)
    x, y = xy[vertices].T
    fixed[[int((abs(x - a) + abs(y - b)).argmin()) for a, b in corners]] = True
    planar = PlanarComplex(
        xy=xy[vertices],
        ends=ends,
        born=np.where(n_sides == 1, BORDER, 0).astype(np.int32),
        start=start,
        loop=loop,
        shared=np.zeros(len(ends), bool),
        fixed=fixed,
    )
    return planar, labels


@compiled
def stacked(slab, group, above, is_second, n_groups):
    """The labels of the trapezoids inside both maps, (f, 2), and the groups of edges below and above them."""
    labels, below, over = (
        np.empty((n_groups, 2), np.int64),
        np.empty(n_groups, np.int64),
        np.empty(n_groups, np.int64),
    )
    n, a, b = 0, -1, -1
    for i in range(len(slab)):
        # (1) a new slab begins outside
        if i == 0 or slab[i] != slab[i - 1]:
            a, b = -1, -1
        # (2) above an edge is another label of its map
        if is_second[i]:
            b = above[i]
        else:
            a = above[i]
        # (3) a trapezoid lies between this group of edges and the next in the slab
        if i + 1 < len(slab) and slab[i + 1] == slab[i] and group[i + 1] != group[i] and a >= 0 and b >= 0:
            labels[n, 0], labels[n, 1], below[n], over[n] = a, b, group[i], group[i + 1]
            n += 1
    return labels[:n], below[:n], over[:n]


@compiled
def trapezoids(below, over, low, high, n_vertices):
    """The loops of the trapezoids: start and half-edges, and the ends of all edges that there may be.

    Edge v runs from vertex v up to v + 1, at one event; edge n_vertices + g is the group g.
    """
    # (1) how long the loops are
    n = len(below)
    start = np.zeros(n + 1, np.int64)
    for f in range(n):
        b, t = below[f], over[f]
        start[f + 1] = start[f] + 2 + (high[t] - high[b]) + (low[t] - low[b])
    # (2) around each trapezoid: along its bottom, up on the right, back along its top, down on the left
    half = np.empty(start[n], np.int64)
    for f in range(n):
        b, t, i = below[f], over[f], start[f]
        half[i] = 2 * (n_vertices + b)
        i += 1
        for v in range(high[b], high[t]):
            half[i] = 2 * v
            i += 1
        half[i] = 2 * (n_vertices + t) + 1
        i += 1
        for v in range(low[t] - 1, low[b] - 1, -1):
            half[i] = 2 * v + 1
            i += 1
    # (3) the ends of the edges
    ends = np.empty((n_vertices + len(low), 2), np.int64)
    for v in range(n_vertices):
        ends[v, 0], ends[v, 1] = v, v + 1
    for g in range(len(low)):
        ends[n_vertices + g, 0], ends[n_vertices + g, 1] = low[g], high[g]
    return start, half, ends


@compiled
def renumbered(half, ends, n_vertices):
    """The edges that loops of half-edges use, and their vertices, numbered anew without gaps.

    Returns:
        on how many sides each edge has a face; the old number of each vertex; the ends of the edges; and the
        loops.
    """
    # (1) which edges and vertices are used
    n_sides, is_used = np.zeros(len(ends), np.int64), np.zeros(n_vertices, np.bool_)
    for h in half:
        e = edge_of(h)
        n_sides[e] += 1
        is_used[ends[e, 0]] = is_used[ends[e, 1]] = True
    vertices, edges = np.flatnonzero(is_used), np.flatnonzero(n_sides)
    vertex, edge = np.cumsum(is_used) - 1, np.cumsum(n_sides > 0) - 1
    # (2) the same by new numbers
    new_ends, loop = np.empty((len(edges), 2), np.int32), np.empty(len(half), np.int32)
    for k in range(len(edges)):
        new_ends[k, 0], new_ends[k, 1] = vertex[ends[edges[k], 0]], vertex[ends[edges[k], 1]]
    for i in range(len(half)):
        loop[i] = half_edge(edge[edge_of(half[i])], direction_of(half[i]))
    return n_sides[edges], vertices, new_ends, loop


def coarsened(planar: PlanarComplex, labels: Ints) -> tuple[PlanarComplex, Ints]:
    """The complex without edges that are needed neither for labels (f,) nor for convex faces; new labels.

    An edge between two faces of one label can go if the union of both is convex: at both of its ends, the
    edge before it and the edge after it around the union must turn left or go straight on (Hertel and
    Mehlhorn 1983).
    """
    left, right = planar.sides().T
    may_go = (left >= 0) & (right >= 0)
    may_go[may_go] = labels[left[may_go]] == labels[right[may_go]]
    gone = superfluous(planar.xy, planar.ends, planar.start, planar.loop, may_go, STRAIGHT)
    if not gone.any():
        return planar, labels
    coarse, _, faces = dissolve(planar, gone)
    new = np.empty(coarse.n_faces, labels.dtype)
    new[faces] = labels
    return coarse, new


@compiled
def superfluous(xy, ends, start, loop, may_go, straight):
    """Which of the edges that may go do so, one after the other, (e,)."""
    # (1) the half-edges before and after each one around its face
    n = 2 * len(ends)
    before, after = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            h, following = loop[i], loop[next_around(i, start[f], start[f + 1])]
            after[h], before[following] = following, h
    gone = np.zeros(len(ends), np.bool_)
    for e in range(len(ends)):
        if gone[e] or not may_go[e]:
            continue
        # (2) the chain of edges to which the edge belongs, past vertices where only two are left
        first, last = half_edge(e, 0), half_edge(e, 0)
        while before[first] == twin(after[twin(first)]) and before[first] != last:
            first = before[first]
        while after[last] == twin(before[twin(last)]) and after[last] != first:
            last = after[last]
        # (3) without it the loop of one face goes on with that of the other, at both ends
        enters, leaves = before[first], after[twin(first)]
        returns, follows = before[twin(last)], after[last]
        if not turns_left(xy, ends, enters, leaves, straight):
            continue
        if not turns_left(xy, ends, returns, follows, straight):
            continue
        # (4) remove it
        after[enters], before[leaves] = leaves, enters
        after[returns], before[follows] = follows, returns
        h = first
        while True:
            gone[edge_of(h)] = True
            if h == last:
                break
            h = after[h]
    return gone


@compiled
def turns_left(xy, ends, h, g, straight):
    """Whether half-edge g leads on from h to the left, or straight on up to rounding."""
    a, b, c = origin(ends, h), target(ends, h), target(ends, g)
    x, y = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    u, v = xy[c, 0] - xy[b, 0], xy[c, 1] - xy[b, 1]
    return x * v - y * u >= -straight * np.hypot(x, y) * np.hypot(u, v)
