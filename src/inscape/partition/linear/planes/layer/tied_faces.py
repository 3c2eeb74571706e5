"""The faces that are tied, cut one by one and put among the others."""

from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import NonGenericError
from inscape.partition.linear.planes.complex import kernels
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.layer.buffers import Faces, Inside, Lines
from inscape.partition.linear.planes.layer.cut_points import Cuts
from inscape.partition.linear.planes.layer.sign_vectors import Noise, Words
from inscape.partition.linear.planes.layer.ties import cut_tied_face, tied_pairs
from inscape.partition.linear.planes.values.values import Values

Pieces = tuple[Faces, Inside, Lines]


def with_ties(
    cells: Cells,
    values: Values,
    thresholds: Floats,
    zero: Words,
    noise: Noise,
    cuts: Cuts,
    p: Floats,
    words: Words,
    cutting: Words,
    tied: Ints,
    clear: Pieces,
) -> Pieces:
    """The pieces of the tied faces joined to those of the others, in order of the old faces."""
    inside = clear[1]
    h, n_old = values.h, len(cells.xy)
    start, units, vertex, unit = tied_pairs(tied, cells.start, cells.loop, cells.ends, cutting[tied], h)
    errors, sizes = noise(vertex, unit % h), values.at(vertex, unit % h) - thresholds[unit // h]
    base_edge, base_vertex = len(cells.ends) + cuts.nstart[-1], n_old + cuts.nstart[-1]
    n_edges, n_inside = base_edge + len(inside.ends), base_vertex + len(inside.xy)
    edges = cells.ends, cuts.nstart, cuts.of_points(cuts.s), cuts.start, cuts.unit, cuts.node
    parts: list[Pieces] = []
    at = 0
    for t, f in enumerate(tied):
        half_edges = cells.loop[cells.start[f] : cells.start[f + 1]]
        own = units[start[t] : start[t + 1]]
        n = len(half_edges) * len(own)
        here = slice(at, at + n)
        found = cut_tied_face(half_edges, *edges, own, h, sizes[here], errors[here], zero, n_old, p, words[f])
        at += n
        if not found[0]:
            near = p[found[1]].mean(axis=0).tolist()
            raise NonGenericError(
                f"the zero lines of {len(own)} units meet so closely near {near} "
                "(in the probe's coordinates) that float64 cannot order them: move the probe a little"
            )
        parts.append(_numbered(int(f), found[1:], n_edges, n_inside))
        n_edges += len(parts[-1][1].ends)
        n_inside += len(parts[-1][1].xy)
    return _joined(clear, parts)


def _numbered(face: int, found: Any, n_edges: int, n_vertices: int) -> Pieces:
    """The pieces of one face, its own edges and vertices numbered from `n_edges` and `n_vertices` on."""
    node, sizes, loop, words, ends, xy, (line_ends, start, s, kink_unit, change, vertex) = found
    name = np.where(loop >= 0, loop, 2 * n_edges - 1 - loop)
    number = np.concatenate([node, n_vertices + np.arange(len(xy))])
    at = np.where(vertex >= 0, number[vertex], -1)
    return (
        Faces(np.cumsum(sizes), name.astype(np.int32), np.full(len(sizes), face), words),
        Inside(number[ends].astype(np.int32), xy),
        Lines(number[line_ends].astype(np.int32), start[1:], s, kink_unit.astype(np.int32), change, at),
    )


def _joined(clear: Pieces, parts: list[Pieces]) -> Pieces:
    """Pieces of tied faces put after the others; faces in order of their parents."""
    faces, _inside, lines = clear
    every = [clear, *parts]
    start = _running([faces.start, *(f.start for f, _, _ in parts)])
    loop, parent, words = (
        np.concatenate([getattr(f, name) for f, _, _ in every]) for name in ("loop", "parent", "words")
    )
    order = np.argsort(parent, kind="stable")
    start, loop = kernels.reordered(start, loop, order)
    return (
        Faces(start, loop, parent[order], words[order]),
        Inside(*(np.concatenate([i[k] for _, i, _ in every]) for k in range(2))),
        Lines(
            np.concatenate([line.ends for _, _, line in every]),
            _running([lines.start, *(line.start for _, _, line in parts)]),
            *(np.concatenate([line[k] for _, _, line in every]) for k in range(2, 6)),
        ),
    )


def _running(starts: list[Ints]) -> Ints:
    """Offsets of parts one after the other; the first begins with 0, the others with their first end."""
    shift = np.cumsum([0, *(s[-1] if len(s) else 0 for s in starts[:-1])])
    return np.concatenate([s + by for s, by in zip(starts, shift, strict=True)])
