"""One layer: cut the faces of a subdivision where its units change sign."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from inscape.errors import NonGenericError
from inscape.partition.linear.plane import kernels
from inscape.partition.linear.plane.bits import pack
from inscape.partition.linear.plane.boundary import boundary_lengths, count_chords
from inscape.partition.linear.plane.cells import Cells, Floats, Ints
from inscape.partition.linear.plane.crossings import edge_crossings
from inscape.partition.linear.plane.cutting import Faces, Inside, Job, Lines, cut_faces
from inscape.partition.linear.plane.ties import cut_tied_face, tied_pairs

Words = npt.NDArray[np.uint64]


class Noise(Protocol):
    """How exactly the values of a layer are known."""

    def may_be_zero(self, scale: float) -> bool:
        """Whether every entry, of this scale at most, may be zero but for rounding."""

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """Bounds for the rounding error of entries at vertices, for each pair (m,)."""


SUSPICIOUS = 1e-10
"""Values this small, against the largest of the layer, may be zero but for rounding."""

CLOSE = 1e-9
"""Cut points this near on an edge, as a part of it, may be one."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """The points where units change sign along the edges.

    Attributes:
        start: where the crossings of each edge start, (e + 1,).
        unit, s, rise: which unit, where from the first end to the second, by how much its value grows, (m,).
        node: the cut point that each crossing belongs to: several units may cross in one, (m,).
        nstart: where the cut points of each edge start, (e + 1,).
        first: the first crossing of each cut point, (k,).
    """

    start: Ints
    unit: npt.NDArray[np.int32]
    s: Floats
    rise: Floats
    node: Ints
    nstart: Ints
    first: Ints

    @property
    def edge(self) -> Ints:
        """The edge of each crossing."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Split:
    """A subdivision after one layer.

    Attributes:
        cells: the new subdivision; the old vertices come first, then cut points, then vertices inside faces.
        n_old: the number of old vertices.
        parent: the old face that each new one is part of.
        words: the packed signs of the layer's units on each face, (f, words).
        edges: the old edges as lines with kinks; chords: the new chords that cross others.
        is_tied: whether any face went the slower way for ties.
    """

    cells: Cells
    n_old: int
    parent: Ints
    words: Words
    edges: Lines
    chords: Lines
    is_tied: bool

    def zeros(self) -> Ints:
        """All pairs of a new vertex and a unit that is zero there, in order of the vertices, (k, 2)."""
        pairs = [
            np.stack([line.vertex, line.unit], axis=1)[line.vertex >= 0] for line in (self.edges, self.chords)
        ]
        every = np.concatenate(pairs)
        return every[np.argsort(every[:, 0], kind="stable")]


def split(
    cells: Cells,
    z: Any,
    thresholds: Floats,
    noise: Noise,
    layer: int,
    agree: Any = None,
    most: float = np.inf,
) -> Split | None:
    """Cut the faces along the zero lines of all units of a layer; None if that makes more than `most` faces.

    Args:
        cells: the subdivision; z is affine on each face.
        z: values at the vertices, (v, h).
        thresholds: where the units change sign; entry u at threshold k is unit k h + u.
        noise: bounds for rounding errors of z.
        layer: a number for the new edges.
        agree: makes crossings on shared edges the same in all parts.
        most: the largest number of faces.
    """
    above, zero = signs(z, thresholds, noise)
    cuts = cut_points(cells, z, thresholds, above, zero, noise)
    if agree is not None:
        cuts = agree(cells, cuts)
    words, cutting, tied = face_signs(cells, cuts, above, zero)
    lengths = boundary_lengths(cells.start, cells.loop, cuts.nstart)
    h, n_old = z.shape[1], len(cells.xy)
    unit = cuts.unit[cuts.first]
    n_units = 64 * above.shape[1]
    found = count_chords(
        cells.start, cells.loop, cells.ends, cuts.nstart, n_old, unit, n_units, lengths, tied
    )
    if cells.n_faces + found.sum() > most:
        return None
    edge = cuts.edge if len(cuts.first) == len(cuts.s) else cuts.edge[cuts.first]
    p = np.concatenate([cells.xy, kernels.points_between(cells.xy, cells.ends[edge], cuts.s[cuts.first])])
    job = Job(
        cells.start,
        cells.loop,
        cells.ends,
        cuts.nstart,
        n_old,
        p,
        unit,
        edge,
        cuts.rise[cuts.first],
        h,
        above,
        words,
    )
    faces, inside, lines = cut_faces(job, lengths, found, tied)
    if tied.any():
        if cutting is None:
            cutting = cutting_units(cells, above, zero)
        faces, inside, lines = _with_ties(
            cells,
            z,
            thresholds,
            zero,
            cuts,
            p,
            words,
            cutting,
            np.flatnonzero(tied),
            noise,
            (faces, inside, lines),
        )
    ends, born, shared = kernels.divided(
        cells.ends, cells.born, cells.shared, cuts.nstart, n_old, inside.ends, layer
    )
    n_new = len(p) - n_old + len(inside.xy)
    grown = Cells(
        xy=np.concatenate([p, inside.xy]),
        ends=ends,
        born=born,
        start=faces.start,
        loop=faces.loop,
        shared=shared,
        fixed=np.concatenate([cells.fixed, np.zeros(n_new, bool)]),
    )
    edges = Lines(cells.ends, cuts.start, cuts.s, cuts.unit, np.abs(cuts.rise), n_old + cuts.node)
    return Split(grown, n_old, faces.parent, faces.words, edges, lines, bool(tied.any()))


def signs(z: Any, thresholds: Floats, noise: Noise) -> tuple[Words, Words]:
    """Packed bits of the units above their threshold and of those on it; (0, words) if there are none."""
    scale = _scale(z, thresholds)
    small = scale * (1.0 if noise.may_be_zero(scale) else SUSPICIOUS)
    above, rows = pack(z, thresholds, small)
    zero = np.zeros((0, above.shape[1]), np.uint64)
    for k, theta in enumerate(thresholds):
        if not len(rows):
            break
        value = np.abs(z[rows] - theta)
        row, entry = np.nonzero(value <= small)
        size = value[row, entry]
        is_zero = size == 0
        doubt = np.flatnonzero(~is_zero)
        if len(doubt):
            is_zero[doubt] = size[doubt] <= noise(rows[row[doubt]], entry[doubt])
        if is_zero.any():
            if not len(zero):
                zero = np.zeros_like(above)
            kernels.mark_zero(above, zero, rows[row[is_zero]], entry[is_zero], k, z.shape[1])
    return above, zero


def _scale(z: Any, thresholds: Floats) -> float:
    """About the largest |z|, from some of the rows."""
    some = z[:: max(1, len(z) // 256)]
    return float(max(np.abs(some).max(initial=0.0), np.abs(thresholds).max(initial=0.0)))


def cut_points(cells: Cells, z: Any, thresholds: Floats, above: Words, zero: Words, noise: Noise) -> Cuts:
    """All crossings on the edges; those that rounding cannot tell apart share a cut point."""
    start, unit, s, rise = edge_crossings(z, thresholds, above, zero, cells.ends)
    node = np.arange(len(s))
    nstart, first = start, node
    close = kernels.close_pairs(start, s, CLOSE)
    if len(close):
        h = z.shape[1]
        edge = np.searchsorted(start, close, side="right") - 1
        error = np.zeros(len(close))
        for k in (close, close + 1):
            a, b = (noise(cells.ends[edge, d].astype(np.int64), unit[k] % h) for d in (0, 1))
            error += (a + s[k] * (b - a)) / np.abs(rise[k])
        same = close[s[close + 1] - s[close] <= error]
        if len(same):
            is_first = np.ones(len(s), bool)
            is_first[same + 1] = False
            node = np.cumsum(is_first) - 1
            first = np.flatnonzero(is_first)
            nstart = np.concatenate([[0], np.cumsum(is_first)])[start]
    return Cuts(start, unit, s, rise, node, nstart, first)


def face_signs(cells: Cells, cuts: Cuts, above: Words, zero: Words) -> tuple[Words, Words | None, Any]:
    """Packed signs of each face, the units that cut it (if sought), and whether it is tied."""
    tied = np.zeros(cells.n_faces, bool)
    if len(cuts.first) < len(cuts.s):
        merged = np.diff(cuts.start) > np.diff(cuts.nstart)
        tied |= np.logical_or.reduceat(merged[cells.loop >> 1], cells.start[:-1])
    if not len(zero):
        return above[cells.first_corners], None, tied
    words, cutting, through = kernels.signs_of_faces(cells.start, cells.corners, above, zero)
    return words, cutting, tied | through


def cutting_units(cells: Cells, above: Words, zero: Words) -> Words:
    """Packed bits of the units with both signs on each face."""
    none = zero if len(zero) else np.zeros_like(above)
    return np.asarray(kernels.signs_of_faces(cells.start, cells.corners, above, none)[1])


def _with_ties(
    cells: Cells,
    z: Any,
    thresholds: Floats,
    zero: Words,
    cuts: Cuts,
    p: Floats,
    words: Words,
    cutting: Words,
    tied: Ints,
    noise: Noise,
    clear: tuple[Faces, Inside, Lines],
) -> tuple[Faces, Inside, Lines]:
    """The pieces of the tied faces joined to those of the others, in order of the old faces."""
    _faces, inside, _lines = clear
    h, n_old = z.shape[1], len(cells.xy)
    start, units, vertex, unit = tied_pairs(tied, cells.start, cells.loop, cells.ends, cutting[tied], h)
    errors = noise(vertex, unit % h)
    base_edge, base_vertex = len(cells.ends) + cuts.nstart[-1], n_old + cuts.nstart[-1]
    n_edges, n_inside = len(inside.ends), len(inside.xy)
    parts: list[tuple[Faces, Inside, Lines]] = []
    at = 0
    for t, f in enumerate(tied):
        half_edges = cells.loop[cells.start[f] : cells.start[f + 1]]
        own = units[start[t] : start[t + 1]]
        n = len(half_edges) * len(own)
        is_clear, node, sizes, loop, own_words, ends, own_unit, xy, chords = cut_tied_face(
            half_edges,
            cells.ends,
            cuts.nstart,
            cuts.s[cuts.first],
            cuts.start,
            cuts.unit,
            cuts.node,
            own,
            z,
            thresholds,
            zero,
            errors[at : at + n],
            n_old,
            p,
            words[f],
        )
        at += n
        if not is_clear:
            raise NonGenericError(
                f"the zero lines of {len(own)} units meet so closely near {p[node].mean(axis=0).tolist()} "
                "(in the probe's coordinates) that float64 cannot order them: move the probe a little"
            )
        name = np.where(loop >= 0, loop, 2 * (base_edge + n_edges) - 1 - loop)
        number = np.concatenate([node, base_vertex + n_inside + np.arange(len(xy))])
        parts.append(
            (
                Faces(np.cumsum(sizes), name.astype(np.int32), np.full(len(sizes), f), own_words),
                Inside(number[ends].astype(np.int32), own_unit.astype(np.int32), xy),
                Lines(
                    number[chords[0]],
                    chords[1][1:],
                    chords[2],
                    chords[3].astype(np.int32),
                    chords[4],
                    np.where(chords[5] >= 0, number[chords[5]], -1),
                ),
            )
        )
        n_edges += len(ends)
        n_inside += len(xy)
    return _joined(clear, parts)


def _joined(
    clear: tuple[Faces, Inside, Lines], parts: list[tuple[Faces, Inside, Lines]]
) -> tuple[Faces, Inside, Lines]:
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
        Inside(*(np.concatenate([i[k] for _, i, _ in every]) for k in range(3))),
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
