"""Maxima over windows: cut faces where the largest entry of a window changes.

The entries of a window compete one after the other: entry k against the largest so far, as a unit of its own
that is positive where entry k is larger. After each round, edges between faces on which every window has the
same winner are removed again. The label of a network is such a maximum, too, over its scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import flat
from inscape.models.graph.piecewise import Bend
from inscape.partition.linear.planes.complex.dissolve import dissolve
from inscape.partition.linear.planes.complex.half_edges import PlanarComplex
from inscape.partition.linear.planes.layer.cut import cut
from inscape.partition.linear.planes.layer.edge_crossings import SharedEdges
from inscape.partition.linear.planes.values.values import Interpolation, Values
from inscape.partition.linear.rounding import ROUNDING, PlaneRounding

_ZERO = np.zeros(1)


@dataclass(frozen=True, eq=False)
class PooledComplex:
    """A complex on each of whose faces every window has one winner.

    Attributes:
        planar: the complex.
        parent: the face before that each one was cut from.
        patterns: the position of the winner in each window, (f, windows), uint8 or uint16.
        maxima: the largest entries at the vertices.
        live: other tensors at the vertices.
        is_tied: whether any face took the slower path for ties.
    """

    planar: PlanarComplex
    parent: Ints
    patterns: Any
    maxima: Tensor
    live: dict[int, Tensor]
    is_tied: bool


def max_pool(
    planar: PlanarComplex,
    z: Tensor,
    op: Bend,
    table: Ints,
    rounding: PlaneRounding,
    live: dict[int, Tensor],
    layer: int,
    shared_edges: SharedEdges,
    most: float,
) -> PooledComplex | None:
    """Cut the faces where the winner of a window changes; None if that makes more than `most` faces.

    `table` holds the entries of each window of `op`, (n_windows, size).
    """
    order = np.argsort(table < 0, axis=1, kind="stable")  # padding last
    table = np.take_along_axis(table, order, axis=1)
    entries = torch.from_numpy(flat(z))
    rounds = _Rounds(planar, entries, table, table, rounding, live, layer, shared_edges, most)
    if not rounds.run():
        return None
    patterns = np.take_along_axis(order[None], rounds.winner[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    maxima = rounds.largest.reshape(-1, *op(z[:1]).shape[1:])
    patterns = patterns.astype(rounds.winner.dtype)
    return PooledComplex(rounds.planar, rounds.parent, patterns, maxima, rounds.live, rounds.is_tied)


def cut_by_label(
    planar: PlanarComplex, scores: Tensor, rounding: PlaneRounding, layer: int, shared_edges: SharedEdges
) -> tuple[PlanarComplex, Ints, Ints, bool, bool]:
    """Cut the faces where the largest score changes; a single score competes with 0.

    Returns:
        the complex, each face's parent, its label, whether two scores tie on a whole face, and whether
        any face took the slower path for ties.
    """
    n_scores = scores.shape[1]
    of_node = np.arange(n_scores)[None]
    if n_scores == 1:
        scores, of_node = torch.cat([torch.zeros_like(scores), scores], dim=1), np.array([[-1, 0]])
    table = np.arange(scores.shape[1])[None]
    rounds = _Rounds(planar, scores, table, of_node, rounding, {}, layer, shared_edges, np.inf)
    rounds.run()
    labels = rounds.winner[:, 0].astype(np.int64)
    return rounds.planar, rounds.parent, labels, rounds.has_tie(), rounds.is_tied


class _Rounds:
    """The entries of windows compete in rounds; the complex and its tensors change with each."""

    def __init__(
        self,
        planar: PlanarComplex,
        entries: Tensor,
        table: Ints,
        of_node: Ints,
        rounding: PlaneRounding,
        live: dict[int, Tensor],
        layer: int,
        shared_edges: SharedEdges,
        most: float,
    ) -> None:
        """`table` has the entries of each window, (windows, size); `of_node` those of the node that they are.

        An entry -1 of the table is padding, one of `of_node` is known without error.
        """
        self.planar, self.entries, self.table, self.of_node = planar, entries, table, of_node
        self.rounding, self.live, self.layer = rounding, live, layer
        self.shared_edges, self.most = shared_edges, most
        self.largest = entries[:, table[:, 0]]
        kind = np.uint8 if table.shape[1] < 256 else np.uint16
        self.winner = np.zeros((planar.n_faces, len(table)), kind)
        self.parent = np.arange(planar.n_faces)
        self.is_tied = False

    def run(self) -> bool:
        """All rounds; False if there would be too many faces."""
        return all(self._round(k) for k in range(1, self.table.shape[1]))

    def _round(self, k: int) -> bool:
        """Entry k of each window that has one competes where it is larger at any vertex."""
        windows = np.flatnonzero(self.table[:, k] >= 0)
        lead = self.entries[:, self.table[windows, k]] - self.largest[:, windows]
        rising = (lead > 0).any(dim=0).numpy()
        windows, lead = windows[rising], lead[:, torch.from_numpy(rising)]
        if not len(windows):
            return True
        rounding = _WindowRoundingBounds(self.rounding, self.planar.xy, self.of_node[windows])
        agree = self.shared_edges.at((self.layer, k), windows)
        after = cut(self.planar, Values.stored(flat(lead)), _ZERO, rounding, self.layer, agree, self.most)
        if after is None:
            return False
        self.is_tied |= after.is_tied
        if len(after.planar.xy) > after.n_old:
            vertices = np.arange(len(after.planar.xy))
            interpolation = Interpolation.of(after.n_old, len(vertices), after.edges, after.chords)
            self._change(lambda tensor: interpolation.carry(tensor, vertices))
        wins = np.unpackbits(after.signs.view(np.uint8), axis=1, bitorder="little")[:, : len(windows)]
        self.winner, self.parent = self.winner[after.parent], self.parent[after.parent]
        self.winner[:, windows] = np.where(wins, k, self.winner[:, windows])
        entry = self.entries[:, self.table[windows, k]]
        self.largest[:, windows] = torch.maximum(self.largest[:, windows], entry)
        self._dissolve(after.planar)
        return True

    def _change(self, function: Callable[[Tensor], Tensor]) -> None:
        self.entries, self.largest = function(self.entries), function(self.largest)
        self.live = {name: function(value) for name, value in self.live.items()}

    def _dissolve(self, planar: PlanarComplex) -> None:
        """Remove the layer's edges between faces with the same winners."""
        left, right = planar.sides().T
        gone = (planar.born == self.layer) & (left >= 0) & (right >= 0)
        gone[gone] = (self.winner[left[gone]] == self.winner[right[gone]]).all(axis=1)
        self.planar = planar
        if gone.any():
            self.planar, kept, faces = dissolve(planar, gone)
            vertices = torch.from_numpy(kept)
            self._change(lambda tensor: tensor[vertices])
            self.winner, self.parent = _of_joined(self.winner, faces), _of_joined(self.parent, faces)

    def has_tie(self) -> bool:
        """Whether an entry equals the winner at all corners of a face, up to rounding."""
        gap = self.largest - self.entries
        near = (gap <= ROUNDING * torch.finfo(torch.float64).eps * self.largest.abs()).numpy()
        start = self.planar.start[:-1]
        count = np.logical_and.reduceat(near[self.planar.corners], start, axis=0).sum(axis=1)
        return bool((count > 1).any())


def _of_joined(values: Any, faces: Ints) -> Any:
    """Values of faces for those that they were joined to, `faces`; faces that were joined have the same."""
    out = np.empty((int(faces.max()) + 1, *values.shape[1:]), values.dtype)
    out[faces] = values
    return out


@dataclass(frozen=True, eq=False)
class _WindowRoundingBounds:
    """Rounding bounds of differences between two entries of a window at vertices.

    Attributes:
        rounding: the bounds of the node's entries.
        xy: the coordinates of the vertices, (v, 2).
        table: the node's entries in each window, (windows, size); -1 for one that is known without error.
    """

    rounding: PlaneRounding
    xy: Floats
    table: Ints

    def may_be_zero(self, scale: float) -> bool:
        """Whether every difference, of this scale at most, may be zero up to rounding."""
        return self.rounding.may_be_zero(scale)

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """The bounds for pairs of a vertex and a window, (m,)."""
        of_entries = PlaneRounding(self.rounding.graph, self.rounding.plane, self.xy, self.rounding.node)
        return 2 * of_entries.largest(vertices, self.table[entries])
