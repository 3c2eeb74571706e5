"""Compiled loops of adaptive cells: simplices that are cut in two, which of them to cut, and the last cuts.

Vertices have integer coordinates 0..2^L in the unit cube; each is found by its key in a table with open
addressing.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math
from typing import Any

import numpy as np

from inscape.compiled import compiled
from inscape.partition.decision.adaptive.segment_kernels import is_step, overtaken, same_label, third_label


@compiled
def _slot(key, keys):
    """Where `key` is in the table, or the empty slot where it belongs."""
    mask = len(keys) - 1
    x = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((x ^ (x >> np.uint64(29))) & np.uint64(mask))
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@compiled
def table_of(vertices, n, probe, side):
    """A table of the first n vertices, at most a quarter full: keys and vertex numbers."""
    size = 64
    while size < 8 * n:
        size *= 2
    keys, values = np.full(size, -1, np.int64), np.empty(size, np.int64)
    for v in range(n):
        key = np.int64(probe[v])
        for c in vertices[v]:
            key = key * side + c
        at = _slot(key, keys)
        keys[at], values[at] = key, v
    return keys, values


@compiled
def _middle(v, w, vertices, probe, side):
    """The key of the middle of two vertices, -1 if it is not on the lattice."""
    key = np.int64(probe[v])
    for c in range(vertices.shape[1]):
        total = vertices[v, c] + vertices[w, c]
        if total % 2:
            return -1
        key = key * side + total // 2
    return key


@compiled
def has_hanging(cell, vertices, probe, side, keys):
    """Whether the middle of an edge of the cell is a vertex already."""
    for p in range(len(cell)):
        for q in range(p):
            key = _middle(cell[q], cell[p], vertices, probe, side)
            if key >= 0 and keys[_slot(key, keys)] == key:
                return True
    return False


@compiled
def cut(marked, cells, tag, level, last, fresh, n, vertices, probe, n_vertices, touched, keys, values, side):
    """Cut the marked cells in two, as Maubach (1995) does: at the middle of the edge from 0 to `tag`.

    The first child takes the place of its parent, the second goes behind the n cells; arrays are long enough
    for them. `touched` marks the ends of the edges that are cut. Returns the numbers of cells and vertices;
    the new vertex of each marked cell is `last[cell, 0, 2]`.
    """
    d = vertices.shape[1]
    for m in marked:
        # (1) the vertex in the middle of the edge, unless another cell has made it
        g = tag[m]
        v, w = cells[m, 0], cells[m, g]
        touched[v] = touched[w] = True
        key = _middle(v, w, vertices, probe, side)
        at = _slot(key, keys)
        if keys[at] != key:
            keys[at], values[at] = key, n_vertices
            probe[n_vertices] = probe[v]
            for c in range(d):
                vertices[n_vertices, c] = (vertices[v, c] + vertices[w, c]) // 2
            n_vertices += 1
        z = values[at]
        # (2) two children: the first without the edge's far end, the second without its near one
        for k in range(d + 1):
            cells[n, k] = cells[m, k]
        for k in range(g):
            cells[n, k] = cells[m, k + 1]
        cells[n, g], cells[m, g] = z, z
        # (3) what the children remember: the last two edges that were cut, the next one, the level
        for k in range(3):
            last[m, 1, k] = last[n, 1, k] = last[m, 0, k]
        last[m, 0, 0], last[m, 0, 1], last[m, 0, 2] = v, w, z
        last[n, 0, 0], last[n, 0, 1], last[n, 0, 2] = v, w, z
        tag[m] = tag[n] = g - 1 if g > 1 else d
        level[m] += 1
        level[n] = level[m]
        fresh[m] = fresh[n] = True
        n += 1
    return n, n_vertices


@compiled
def hanging(n, cells, vertices, probe, touched, keys, side):
    """The cells, of the first n, with a vertex in the middle of an edge between two touched vertices."""
    hanging_cells = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        n_touched = 0
        for v in cells[i]:
            n_touched += touched[v]
        if n_touched > 1 and has_hanging(cells[i], vertices, probe, side, keys):
            hanging_cells[m] = i
            m += 1
    return hanging_cells[:m]


@compiled
def _curvature_of(last, margins, curvature):
    """The curvature of each score by the last two cuts: four times how far a middle is off its chord."""
    for side in range(2):
        v, w, z = last[side]
        for c in range(margins.shape[1]):
            curvature[side, c] = 0.0
            if z >= 0:
                curvature[side, c] = 4.0 * margins[z, c] - 2.0 * (margins[v, c] + margins[w, c])


@compiled
def scan_cells(chosen, cells, last, vertices, labels, margins, rounding, side, urgency, blur):
    """How urgent it is to cut each of the chosen cells, and how far its boundary may be from its chords.

    Every edge is inspected as an interval of a segment, see `segment_kernels.scan`, with the curvature that
    the last two cuts showed. `blur` is a fraction of the unit cube's side.
    """
    curvature = np.empty((2, margins.shape[1]))
    for m in range(len(chosen)):
        cell = cells[chosen[m]]
        _curvature_of(last[chosen[m]], margins, curvature)
        urgency[m] = blur[m] = 0.0
        for p in range(len(cell)):
            for q in range(p):
                # (1) between two vertices of one label another one may lead
                i, j = cell[q], cell[p]
                a, b = labels[i], labels[j]
                bound = 8.0 * rounding * max(abs(margins[i, a]), abs(margins[j, b]))
                if a == b:
                    urgency[m] = max(urgency[m], same_label(i, j, a, margins, curvature, bound)[0])
                    continue
                # (2) between two labels a third one may; how far off its chord the boundary may lie
                urgency[m] = max(urgency[m], third_label(i, j, a, b, margins, curvature, bound)[0])
                total = (margins[i, a] - margins[i, b]) + (margins[j, b] - margins[j, a])
                sag = max(abs(curvature[0, a] - curvature[0, b]), abs(curvature[1, a] - curvature[1, b]))
                longest = 0  # along any axis
                for k in range(vertices.shape[1]):
                    longest = max(longest, abs(vertices[i, k] - vertices[j, k]))
                length = longest / (side - 1)
                blur[m] = max(blur[m], length * (min(1.0, 0.25 * sag / total) if total > 0.0 else 1.0))


@compiled
def _add_change(i, j, top, scores, spread):
    """Add the squared changes, from sample i to j, of the lead of class `top` over each; whether any is."""
    for c in range(scores.shape[1]):
        change = (scores[j, top] - scores[i, top]) - (scores[j, c] - scores[i, c])
        spread[c] += change * change
    return is_step(i, j, scores)


@compiled
def scan_step_cells(chosen, cells, last, labels, margins, chance):
    """The chance that each of the chosen cells hides a region, where scores are constant between jumps.

    As on segments, see `segment_kernels.scan_steps`: what is seen along the edges of the cell, and along the
    last two that were cut to make it, tells how many jumps to expect on an edge and how large they are.
    """
    spread = np.empty(margins.shape[1])
    for m in range(len(chosen)):
        cell, chance[m] = cells[chosen[m]], 0.0
        for first in range(len(cell)):
            # (1) the number and the size of jumps, in leads of the label of one corner
            a, n, n_steps = labels[cell[first]], 0, 0
            spread[:] = 0.0
            for p in range(len(cell)):
                for q in range(p):
                    n += 1
                    n_steps += _add_change(cell[q], cell[p], a, margins, spread)
            own_steps = n_steps
            for side in range(2):
                v, w, z = last[chosen[m], side]
                if z >= 0:
                    n += 2
                    n_steps += _add_change(v, z, a, margins, spread) + _add_change(z, w, a, margins, spread)
            share = min((n_steps + 0.5) / (n + 1.0), 0.95)
            expected = -math.log(1.0 - share)
            # (2) one jump more than is seen, or two where none is
            more = 1.0 - math.exp(-expected)
            if own_steps == 0:
                more -= expected * math.exp(-expected)
            # (3) what they do on the edges from this corner
            for q in range(len(cell)):
                if q != first:
                    i, j = cell[first], cell[q]
                    hidden = overtaken(i, j, a, labels[j], margins, spread / n)
                    chance[m] = max(chance[m], more * hidden)


@compiled
def crossed(chosen, cells, labels):
    """Whether each of the chosen cells has vertices of different labels."""
    out = np.zeros(len(chosen), np.bool_)
    for m in range(len(chosen)):
        cell = cells[chosen[m]]
        for p in range(1, len(cell)):
            out[m] |= labels[cell[p]] != labels[cell[0]]
    return out


@compiled
def joined(n, cells, labels, n_vertices):
    """The component of each vertex: vertices of one label are joined by the edges of the cells; its root."""
    parent = np.arange(n_vertices)
    for m in range(n):
        for p in range(cells.shape[1]):
            for q in range(p):
                # (1) an edge between two vertices of one label
                v, w = cells[m, q], cells[m, p]
                if labels[v] != labels[w]:
                    continue
                # (2) the roots of both; paths are halved on the way
                while parent[v] != v:
                    parent[v] = parent[parent[v]]
                    v = parent[v]
                while parent[w] != w:
                    parent[w] = parent[parent[w]]
                    w = parent[w]
                # (3) the later root becomes a child of the earlier one
                if v < w:
                    parent[w] = v
                else:
                    parent[v] = w
    # (4) the root of each vertex: parents come before their children
    for v in range(n_vertices):
        parent[v] = parent[parent[v]]
    return parent


def work_of_painting(cells: Any, x: Any, labels: Any, regions: Any, margins: Any, image: Any) -> float:
    """What an image has to do: ten entries for each pixel, which lies in the boxes of about two triangles.

    >>> work_of_painting(np.zeros((5, 3)), *[None] * 4, np.zeros((100, 100)))
    100015.0
    """
    return float(cells.size + 10 * image.size)


@compiled(work=work_of_painting)
def paint(cells, x, labels, regions, margins, image):
    """Write the region of each pixel (i, j) of an image of the unit square, from its triangle.

    Inside a triangle the scores of its corners' labels are interpolated, and the highest wins; without
    scores the nearest corner does.

    Args:
        cells: triangles, (n, 3).
        x: coordinates of the vertices in the unit square, (v, 2).
        labels: of the vertices.
        regions: of the vertices.
        margins: of the vertices, (v, c), c = 0 without scores.
        image: (r, r); pixels outside of all triangles are left as they are.
    """
    r = len(image)
    weight = np.empty(3)
    for m in range(len(cells)):
        a, b, c = x[cells[m, 0]], x[cells[m, 1]], x[cells[m, 2]]
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        low = [max(0, int(np.floor(min(a[k], b[k], c[k]) * (r - 1) - 1e-6))) for k in range(2)]
        high = [min(r - 1, int(np.ceil(max(a[k], b[k], c[k]) * (r - 1) + 1e-6))) for k in range(2)]
        for i in range(low[0], high[0] + 1):
            for j in range(low[1], high[1] + 1):
                px, py = i / (r - 1) - a[0], j / (r - 1) - a[1]
                weight[1] = (px * (c[1] - a[1]) - py * (c[0] - a[0])) / area
                weight[2] = (py * (b[0] - a[0]) - px * (b[1] - a[1])) / area
                weight[0] = 1.0 - weight[1] - weight[2]
                if weight.min() >= -1e-9:
                    image[i, j] = regions[_winner(cells[m], weight, labels, margins)]


@compiled
def _winner(cell, weight, labels, margins):
    """The vertex of a triangle whose label leads at a point, the nearest of that label."""
    lead = labels[cell[np.argmax(weight)]]
    if margins.shape[1]:
        best = -np.inf
        for p in range(3):
            k = labels[cell[p]]
            value = (
                weight[0] * margins[cell[0], k]
                + weight[1] * margins[cell[1], k]
                + weight[2] * margins[cell[2], k]
            )
            if value > best:
                best, lead = value, k
    nearest, winner = -1.0, cell[0]
    for p in range(3):
        if labels[cell[p]] == lead and weight[p] > nearest:
            nearest, winner = weight[p], cell[p]
    return winner


@compiled
def third_leads(chosen, cells, labels, margins):
    """The edges, of the chosen cells, on which a third label leads where those of the ends cross.

    Scores are interpolated along the edge. A label that leads anywhere between the two of the ends leads at
    their crossing, too: its line is below that of either end there, and lines cross once.

    Returns:
        The ends of each edge, the smaller first (an edge of two cells occurs twice); the fraction of it at
        which they cross; and by how much the third leads, as a fraction of what the first label loses along
        the edge.
    """
    capacity = len(chosen) * cells.shape[1] * (cells.shape[1] - 1) // 2
    edges, where, lead = np.empty((capacity, 2), np.int64), np.empty(capacity), np.empty(capacity)
    m = 0
    for t in chosen:
        for p in range(cells.shape[1]):
            for q in range(p):
                # (1) an edge between two labels
                i, j = min(cells[t, p], cells[t, q]), max(cells[t, p], cells[t, q])
                a, b = labels[i], labels[j]
                fall = (margins[i, a] - margins[i, b]) + (margins[j, b] - margins[j, a])
                if a == b or fall <= 0.0:
                    continue
                # (2) where the scores of these cross, and by how much a third one leads there
                x = (margins[i, a] - margins[i, b]) / fall
                best = -np.inf
                for k in range(margins.shape[1]):
                    if k not in (a, b):
                        best = max(best, margins[i, k] + x * (margins[j, k] - margins[i, k]))
                best -= margins[i, a] + x * (margins[j, a] - margins[i, a])
                if best <= 0.0:
                    continue
                # (3) keep the edge
                edges[m, 0], edges[m, 1], where[m], lead[m] = i, j, x, best / fall
                m += 1
    return edges[:m], where[:m], lead[:m]


@compiled
def cut_at_edges(cells, edges, n_vertices):
    """Cut every cell at each of its edges among `edges`; the new vertex of the edge e is n_vertices + e.

    Edges are taken in their order, so that what two cells share is cut alike on either side.

    Args:
        cells: the vertices of each cell, (m, d + 1).
        edges: pairs of vertices in the order of `np.unique`, the smaller vertex first, (e, 2).
        n_vertices: how many vertices there are.

    Returns:
        The cells, new ones behind the others, and for each new one the cell that it was cut off.
    """
    # (1) the edges by their smaller vertex
    start = np.zeros(n_vertices + 1, np.int64)  # edges start[v] .. start[v + 1] have the smaller vertex v
    for e in range(len(edges)):
        start[edges[e, 0] + 1] += 1
    for v in range(n_vertices):
        start[v + 1] += start[v]
    out = np.concatenate((cells, np.empty((64, cells.shape[1]), np.int64)))
    parents = np.arange(len(out))
    n = len(cells)
    t = 0
    while t < n:
        # (2) the first edge that a cell has; with none left the cell is done
        e, p, q = _first_edge(out[t], edges, start)
        if e < 0:
            t += 1
            continue
        if n == len(out):
            out, parents = np.concatenate((out, out)), np.concatenate((parents, parents))
        # (3) a copy of the cell behind all others; each takes the new vertex at one end of the edge
        for k in range(out.shape[1]):
            out[n, k] = out[t, k]
        parents[n] = parents[t]
        out[t, p] = out[n, q] = n_vertices + e
        n += 1
    return out[:n], parents[len(cells) : n]


@compiled
def _first_edge(cell, edges, start):
    """The first of the edges that the cell has, and its two corners; -1 if it has none."""
    edge, at_p, at_q = -1, 0, 0
    for p in range(len(cell)):
        if cell[p] >= len(start) - 1:
            continue
        for e in range(start[cell[p]], start[cell[p] + 1]):
            for q in range(len(cell)):
                if cell[q] == edges[e, 1] and (edge < 0 or e < edge):
                    edge, at_p, at_q = e, p, q
    return edge, at_p, at_q
