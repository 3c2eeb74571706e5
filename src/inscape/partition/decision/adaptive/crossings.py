"""Compiled loops of the last splits of adaptive cells: where a third label leads between two others."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from inscape.compiled import compiled


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
    room = len(chosen) * cells.shape[1] * (cells.shape[1] - 1) // 2
    edges, where, lead = np.empty((room, 2), np.int64), np.empty(room), np.empty(room)
    m = 0
    for t in chosen:
        for p in range(cells.shape[1]):
            for q in range(p):
                # 1. an edge between two labels
                i, j = min(cells[t, p], cells[t, q]), max(cells[t, p], cells[t, q])
                a, b = labels[i], labels[j]
                fall = (margins[i, a] - margins[i, b]) + (margins[j, b] - margins[j, a])
                if a == b or fall <= 0.0:
                    continue
                # 2. where the scores of these cross, and by how much a third one leads there
                x = (margins[i, a] - margins[i, b]) / fall
                best = -np.inf
                for k in range(margins.shape[1]):
                    if k not in (a, b):
                        best = max(best, margins[i, k] + x * (margins[j, k] - margins[i, k]))
                best -= margins[i, a] + x * (margins[j, a] - margins[i, a])
                if best <= 0.0:
                    continue
                # 3. keep the edge
                edges[m, 0], edges[m, 1], where[m], lead[m] = i, j, x, best / fall
                m += 1
    return edges[:m], where[:m], lead[:m]


@compiled
def split_cells(cells, edges, n_vertices):
    """Split every cell at each of its edges among `edges`; the new vertex of the edge e is n_vertices + e.

    Edges are split in their order, so that what two cells share is split alike on either side.

    Args:
        cells: the vertices of each cell, (m, d + 1).
        edges: pairs of vertices in the order of `np.unique`, the smaller vertex first, (e, 2).
        n_vertices: how many vertices there are.

    Returns:
        The cells, new ones behind the others, and the first of those each new one was split off.
    """
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
        e, p, q = _first_edge(out[t], edges, start)
        if e < 0:
            t += 1
            continue
        if n == len(out):
            out, parents = np.concatenate((out, out)), np.concatenate((parents, parents))
        for k in range(out.shape[1]):
            out[n, k] = out[t, k]
        parents[n] = parents[t]
        out[t, p] = out[n, q] = n_vertices + e
        n += 1
    return out[:n], parents[len(cells) : n]


@compiled
def _first_edge(cell, edges, start):
    """The first of the edges that the cell has, and its two corners; -1 if it has none."""
    found, at_p, at_q = -1, 0, 0
    for p in range(len(cell)):
        if cell[p] >= len(start) - 1:
            continue
        for e in range(start[cell[p]], start[cell[p] + 1]):
            for q in range(len(cell)):
                if cell[q] == edges[e, 1] and (found < 0 or e < found):
                    found, at_p, at_q = e, p, q
    return found, at_p, at_q
