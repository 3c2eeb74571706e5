"""Take a planar complex apart into chunks that fit the memory, and put chunks together again."""

import itertools
from dataclasses import replace

import numpy as np

from inscape.arrays import Ints
from inscape.partition.linear.planes.complex.half_edges import (
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
)


def chunk_ranges(planar: PlanarComplex, most: int) -> list[tuple[int, int]]:
    """Ranges of faces with at most about `most` vertices each; neighbouring faces have near numbers."""
    corners = np.cumsum(np.diff(planar.start))
    n = max(1, int(np.ceil(len(planar.xy) / most)))
    bounds = np.unique(np.searchsorted(corners, np.linspace(0, corners[-1], n + 1)[1:-1]) + 1)
    every = [0, *(int(b) for b in bounds if b < planar.n_faces), planar.n_faces]
    return list(itertools.pairwise(every))


def chunk(planar: PlanarComplex, first: int, last: int) -> tuple[PlanarComplex, Ints]:
    """The faces first, ..., last - 1 as a complex of their own, and the vertices that it has."""
    loop = planar.loop[planar.start[first] : planar.start[last]]
    edges, number = np.unique(edge_of.py_func(loop), return_inverse=True)
    used = np.bincount(number, minlength=len(edges))
    sides = np.bincount(planar.loop_edges, minlength=len(planar.ends))[edges]
    vertices, ends = np.unique(planar.ends[edges], return_inverse=True)
    own = replace(
        planar,
        xy=planar.xy[vertices],
        ends=ends.reshape(-1, 2).astype(np.int32),
        born=planar.born[edges],
        start=planar.start[first : last + 1] - planar.start[first],
        loop=half_edge.py_func(number, direction_of.py_func(loop)).astype(np.int32),
        shared=planar.shared[edges] | (used < sides),
        fixed=planar.fixed[vertices],
    )
    return own, vertices.astype(np.int64)


def joined(chunks: list[PlanarComplex]) -> PlanarComplex:
    """Chunks as one complex: vertices and edges on shared edges are known by their coordinates."""
    if len(chunks) == 1:
        return chunks[0]
    # (1) everything side by side, numbered through
    n_v, n_e = (np.cumsum([0, *(len(getattr(c, name)) for c in chunks)]) for name in ("xy", "ends"))
    xy = np.concatenate([c.xy for c in chunks])
    ends = np.concatenate([c.ends + n for c, n in zip(chunks, n_v[:-1], strict=True)])
    shared = np.concatenate([c.shared for c in chunks])
    loop = np.concatenate([c.loop + 2 * n for c, n in zip(chunks, n_e[:-1], strict=True)])
    starts = np.cumsum([0, *(c.start[-1] for c in chunks)])
    # (2) the first vertex at each place stands for all, and the first edge between two vertices
    touched = np.unique(ends[shared])
    _, first, same = np.unique(xy[touched], axis=0, return_index=True, return_inverse=True)
    vertex = np.arange(len(xy))
    vertex[touched] = touched[first][same.reshape(-1)]
    ends = vertex[ends]
    on = np.flatnonzero(shared)
    low, high = np.sort(ends[on], axis=1).T
    _, first, same = np.unique(low * len(xy) + high, return_index=True, return_inverse=True)
    edge = np.arange(len(ends))
    edge[on] = on[first][same]
    turned = ends[np.arange(len(ends)), 0] != ends[edge, 0]
    # (3) what stands for itself is numbered anew
    edges, vertices = (np.flatnonzero(a == np.arange(len(a))) for a in (edge, vertex))
    new_edge, new_vertex = np.zeros(len(ends), np.int64), np.zeros(len(xy), np.int64)
    new_edge[edges], new_vertex[vertices] = np.arange(len(edges)), np.arange(len(vertices))
    old, direction = edge_of.py_func(loop), direction_of.py_func(loop)
    return PlanarComplex(
        xy=xy[vertices],
        ends=new_vertex[ends[edges]].astype(np.int32),
        born=np.concatenate([c.born for c in chunks])[edges],
        start=np.concatenate([[0], *(c.start[1:] + n for c, n in zip(chunks, starts[:-1], strict=True))]),
        loop=half_edge.py_func(new_edge[edge[old]], direction ^ turned[old]).astype(np.int32),
        shared=np.zeros(len(edges), bool),
        fixed=np.concatenate([c.fixed for c in chunks])[vertices],
    )
