"""One layer: cut the faces of a subdivision where its units change sign."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.partition.linear.planes.complex import kernels
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.complex.renumber import nearby
from inscape.partition.linear.planes.layer.buffers import Job, Lines
from inscape.partition.linear.planes.layer.cut_faces import cut_faces
from inscape.partition.linear.planes.layer.cut_points import Cuts, cut_points
from inscape.partition.linear.planes.layer.sign_vectors import Noise, Packed, Words, signs
from inscape.partition.linear.planes.layer.tied_faces import with_ties
from inscape.partition.linear.planes.values.values import Values

_MANY = 2**14
"""So many faces do not stay in the nearest caches."""

_PIECES = 256
"""A face that is cut into so many pieces is large."""


@dataclass(frozen=True, eq=False)
class Split:
    """A subdivision after one layer.

    Attributes:
        cells: the new subdivision; the old vertices come first, then cut points, then vertices inside faces.
        n_old: the number of old vertices.
        parent: the old face that each new one is part of.
        words: the packed signs of the layer's units on each face, (f, words).
        above: those of the units at the old vertices, (n_old, words).
        edges: the old edges as lines with kinks; chords: the new chords that cross others.
        is_tied: whether any face went the slower way for ties.
    """

    cells: Cells
    n_old: int
    parent: Ints
    words: Words
    above: Words
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
    values: Values,
    thresholds: Floats,
    noise: Noise,
    layer: int,
    agree: Any = None,
    most: float = np.inf,
    packed: Packed | None = None,
) -> Split | None:
    """Cut the faces along the zero lines of all units of a layer; None if that makes more than `most` faces.

    Args:
        cells: the subdivision; the values are affine on each face.
        values: of the units' entries at the vertices, (v, h).
        thresholds: where the units change sign; entry u at threshold k is unit k h + u.
        noise: bounds for rounding errors of the values.
        layer: a number for the new edges.
        agree: makes crossings on shared edges the same in all parts.
        most: the largest number of faces.
        packed: the signs of the values, if they are known.
    """
    above, zero = signs(values, thresholds, noise, packed)
    cuts = cut_points(cells, values, thresholds, above, zero, noise)
    if agree is not None:
        cuts = agree(cells, cuts)
    words, cutting, tied = face_signs(cells, cuts, above, zero)
    h, n_old = values.h, len(cells.xy)
    edge, s, unit, change = (cuts.of_points(a) for a in (cuts.edge, cuts.s, cuts.unit, cuts.change))
    p = kernels.with_cut_points(cells.xy, cells.ends, edge, s)
    loop, ends, units = (a.view(np.uint32) for a in (cells.loop, cells.ends, unit))
    around = cells.start, loop, ends, cuts.nstart.astype(np.uint32)
    job = Job(*around, n_old, p, units, change, h, above, words)
    is_complete, faces, inside, lines = cut_faces(job, most, tied)
    is_tied = bool(tied.any())
    if is_complete and is_tied:
        if cutting is None:
            cutting, words = cutting_units(cells, above, zero), above[cells.first_corners]
        which, pieces = np.flatnonzero(tied), (faces, inside, lines)
        known = values, thresholds, zero, noise
        faces, inside, lines = with_ties(cells, *known, cuts, p, words, cutting, which, pieces)
    if not is_complete or len(faces.parent) > most:
        return None
    before = cells.ends, cells.born, cells.shared
    ends, born, shared = kernels.divided(*before, cuts.nstart, edge, n_old, inside.ends, layer)
    fixed = np.zeros(len(p) + len(inside.xy), bool)
    fixed[:n_old] = cells.fixed
    grown = Cells(
        xy=kernels.extended(p, inside.xy),
        ends=ends,
        born=born,
        start=faces.start,
        loop=faces.loop,
        shared=shared,
        fixed=fixed,
    )
    edges = Lines(cells.ends, cuts.start, cuts.s, cuts.unit, cuts.change, n_old + cuts.node)
    found = Split(grown, n_old, faces.parent, faces.words, above, edges, lines, is_tied)
    return _tidied(found, len(p), len(ends) - len(inside.ends)) if _is_large(cells, grown) else found


def _is_large(before: Cells, after: Cells) -> bool:
    """Whether faces were cut into so many pieces that the order of these matters."""
    return after.n_faces >= max(_MANY, _PIECES * before.n_faces)


def _tidied(found: Split, n_vertices: int, n_edges: int) -> Split:
    """The same with near numbers for what is near, but for the vertices and edges that are not inside."""
    cells, name, order = nearby(found.cells, n_vertices, n_edges)
    lines = found.chords
    ends, vertex = name[lines.ends].astype(np.int32), np.where(lines.vertex < 0, -1, name[lines.vertex])
    chords = lines._replace(ends=ends, vertex=vertex)
    return replace(found, cells=cells, parent=found.parent[order], words=found.words[order], chords=chords)


def face_signs(cells: Cells, cuts: Cuts, above: Words, zero: Words) -> tuple[Words, Words | None, Any]:
    """Packed signs of each face, the units that cut it, and whether it is tied.

    Where no unit is zero at any vertex, a face has the signs of its first one: none are given.
    """
    tied = np.zeros(cells.n_faces, bool)
    if not cuts.is_simple:
        merged = np.diff(cuts.start) > np.diff(cuts.nstart)
        tied |= np.logical_or.reduceat(merged[cells.loop >> 1], cells.start[:-1])
    if not len(zero):
        return np.zeros((0, above.shape[1]), np.uint64), None, tied
    words, cutting, through = kernels.signs_of_faces(cells.start, cells.corners, above, zero)
    return words, cutting, tied | through


def cutting_units(cells: Cells, above: Words, zero: Words) -> Words:
    """Packed bits of the units with both signs on each face."""
    none = zero if len(zero) else np.zeros_like(above)
    return np.asarray(kernels.signs_of_faces(cells.start, cells.corners, above, none)[1])
