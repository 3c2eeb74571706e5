"""Take a subdivision apart, and put parts together again."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import NonGenericError
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.layer.cut_points import Cuts


def parts(cells: Cells, most: int) -> list[tuple[int, int]]:
    """Ranges of faces with at most about `most` vertices each; neighbouring faces have near numbers."""
    corners = np.cumsum(np.diff(cells.start))
    n = max(1, int(np.ceil(len(cells.xy) / most)))
    bounds = np.unique(np.searchsorted(corners, np.linspace(0, corners[-1], n + 1)[1:-1]) + 1)
    every = [0, *(int(b) for b in bounds if b < cells.n_faces), cells.n_faces]
    return list(itertools.pairwise(every))


def faces_between(cells: Cells, first: int, last: int) -> tuple[Cells, Ints]:
    """The faces first, ..., last - 1 as a subdivision of their own, and the vertices that it has."""
    cut = slice(cells.start[first], cells.start[last])
    loop = cells.loop[cut]
    edges, number = np.unique(loop >> 1, return_inverse=True)
    used = np.bincount(number, minlength=len(edges))
    sides = np.bincount(cells.loop >> 1, minlength=len(cells.ends))[edges]
    vertices, ends = np.unique(cells.ends[edges], return_inverse=True)
    part = replace(
        cells,
        xy=cells.xy[vertices],
        ends=ends.reshape(-1, 2).astype(np.int32),
        born=cells.born[edges],
        start=cells.start[first : last + 1] - cells.start[first],
        loop=(2 * number + (loop & 1)).astype(np.int32),
        shared=cells.shared[edges] | (used < sides),
        fixed=cells.fixed[vertices],
    )
    return part, vertices.astype(np.int64)


def joined(cells: list[Cells]) -> Cells:
    """Parts as one subdivision: vertices and edges on shared edges are known by their coordinates."""
    if len(cells) == 1:
        return cells[0]
    n_v, n_e = (np.cumsum([0, *(len(getattr(c, name)) for c in cells)]) for name in ("xy", "ends"))
    xy = np.concatenate([c.xy for c in cells])
    ends = np.concatenate([c.ends + n for c, n in zip(cells, n_v[:-1], strict=True)])
    shared = np.concatenate([c.shared for c in cells])
    touched = np.unique(ends[shared])
    _, first, same = np.unique(xy[touched], axis=0, return_index=True, return_inverse=True)
    number = np.arange(len(xy))
    number[touched] = touched[first][same.reshape(-1)]
    ends = number[ends]
    on = np.flatnonzero(shared)
    low, high = np.sort(ends[on], axis=1).T
    _, first, same = np.unique(low * len(xy) + high, return_index=True, return_inverse=True)
    edge = np.arange(len(ends))
    edge[on] = on[first][same]
    turned = ends[np.arange(len(ends)), 0] != ends[edge, 0]
    loop = np.concatenate([c.loop + 2 * n for c, n in zip(cells, n_e[:-1], strict=True)])
    half = 2 * edge[loop >> 1] + ((loop & 1) ^ turned[loop >> 1])
    edges, vertices = (np.flatnonzero(a == np.arange(len(a))) for a in (edge, number))
    place, spot = np.zeros(len(ends), np.int64), np.zeros(len(xy), np.int64)
    place[edges], spot[vertices] = np.arange(len(edges)), np.arange(len(vertices))
    starts = np.cumsum([0, *(c.start[-1] for c in cells)])
    return Cells(
        xy=xy[vertices],
        ends=spot[ends[edges]].astype(np.int32),
        born=np.concatenate([c.born for c in cells])[edges],
        start=np.concatenate([[0], *(c.start[1:] + n for c, n in zip(cells, starts[:-1], strict=True))]),
        loop=(2 * place[half >> 1] + (half & 1)).astype(np.int32),
        shared=np.zeros(len(edges), bool),
        fixed=np.concatenate([c.fixed for c in cells])[vertices],
    )


class Agreement:
    """Where the edges between parts are cut, so that the second part cuts them as the first did."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, bytes], tuple[bytes, Floats]] = {}

    def at(self, layer: object, names: Ints | None = None) -> Callable[[Cells, Cuts], Cuts]:
        """A function that makes the cuts of one layer agree with those of earlier parts.

        `names` are what the units are called, if their numbers differ between parts.
        """
        return lambda cells, cuts: self._agreed(layer, cells, cuts, names)

    def _agreed(self, layer: object, cells: Cells, cuts: Cuts, names: Ints | None) -> Cuts:
        edges = np.flatnonzero(cells.shared)
        if not len(edges):
            return cuts
        ends = cells.xy[cells.ends[edges]]
        s = cuts.s.copy()
        called = cuts.unit if names is None else names[cuts.unit]
        own = np.stack([called, cuts.node - cuts.nstart[cuts.edge]], axis=1)
        bounds = zip(cuts.start[edges].tolist(), cuts.start[edges + 1].tolist(), strict=True)
        for key, (first, last) in zip(ends, bounds, strict=True):
            units = own[first:last].tobytes()
            found = self._known.setdefault((layer, key.tobytes()), (units, cuts.s[first:last].copy()))
            if found[0] != units:
                raise NonGenericError(
                    "two parts of the plane disagree on where an edge between them is cut: "
                    "give more memory, so that the plane is taken in one part"
                )
            s[first:last] = found[1]
        return replace(cuts, s=s)
