"""Maxima over windows: cut faces where the winner of a window changes.

The entries of a window compete one after the other: entry k against the best so far, a unit of its own
kind. Edges between faces on which every window has the same winner in the end are taken away again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph.piecewise import Windows
from inscape.partition.linear.bending import window_table
from inscape.partition.linear.planes.complex.chunks import Agreement
from inscape.partition.linear.planes.complex.dissolve import dissolve
from inscape.partition.linear.planes.complex.half_edges import Cells
from inscape.partition.linear.planes.layer.cut import split
from inscape.partition.linear.planes.rounding import NodeNoise
from inscape.partition.linear.planes.values.rows import Interpolation, flat
from inscape.partition.linear.planes.values.values import Values

_ZERO = np.zeros(1)


@dataclass(frozen=True, eq=False)
class Contest:
    """A subdivision on each of whose faces every window has one winner.

    Attributes:
        cells: the subdivision.
        parent: the face before that each one is part of.
        patterns: the position of the winner in each window, (f, windows), uint8 or uint16.
        value: the maxima at the vertices.
        live: other tensors at the vertices.
        is_tied: whether any face went the slower way for ties.
    """

    cells: Cells
    parent: Ints
    patterns: Any
    value: Tensor
    live: dict[int, Tensor]
    is_tied: bool


def contest(
    cells: Cells,
    z: Tensor,
    op: Windows,
    noise: NodeNoise,
    live: dict[int, Tensor],
    layer: int,
    agreement: Agreement,
    most: float,
) -> Contest | None:
    """Cut the faces where the winner of a window changes; None if that makes more than `most` faces."""
    table = window_table(op, tuple(z.shape[1:]))
    order = np.argsort(table < 0, axis=1, kind="stable")  # padding last
    table = np.take_along_axis(table, order, axis=1)
    entries = torch.from_numpy(flat(z))
    rounds = _Rounds(cells, entries, table, table, noise, live, layer, agreement, most)
    if not rounds.run():
        return None
    patterns = np.take_along_axis(order[None], rounds.winner[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    value = rounds.best.reshape(-1, *op(z[:1]).shape[1:])
    return Contest(
        rounds.cells, rounds.parent, patterns.astype(rounds.winner.dtype), value, rounds.live, rounds.is_tied
    )


def decide(
    cells: Cells, scores: Tensor, noise: NodeNoise, layer: int, agreement: Agreement
) -> tuple[Cells, Ints, Ints, bool, bool]:
    """Cut the faces where the largest score changes; a single score competes with 0.

    Returns:
        the subdivision, each face's parent, its label, whether two scores tie on a whole face, and whether
        any face went the slower way for ties.
    """
    n_scores = scores.shape[1]
    known = np.arange(n_scores)[None]
    if n_scores == 1:
        scores, known = torch.cat([torch.zeros_like(scores), scores], dim=1), np.array([[-1, 0]])
    table = np.arange(scores.shape[1])[None]
    rounds = _Rounds(cells, scores, table, known, noise, {}, layer, agreement, np.inf)
    rounds.run()
    labels = rounds.winner[:, 0].astype(np.int64)
    return rounds.cells, rounds.parent, labels, rounds.has_tie(), rounds.is_tied


class _Rounds:
    """The entries of windows compete in rounds; the subdivision and its tensors change with each."""

    def __init__(
        self,
        cells: Cells,
        entries: Tensor,
        table: Ints,
        known: Ints,
        noise: NodeNoise,
        live: dict[int, Tensor],
        layer: int,
        agreement: Agreement,
        most: float,
    ) -> None:
        self.cells, self.entries, self.table, self.known, self.noise = cells, entries, table, known, noise
        self.live, self.layer, self.agreement, self.most = live, layer, agreement, most
        self.best = entries[:, table[:, 0]]
        kind = np.uint8 if table.shape[1] < 256 else np.uint16
        self.winner = np.zeros((cells.n_faces, len(table)), kind)
        self.parent = np.arange(cells.n_faces)
        self.is_tied = False

    def run(self) -> bool:
        """All rounds; False if there would be too many faces."""
        return all(self._round(k) for k in range(1, self.table.shape[1]))

    def _round(self, k: int) -> bool:
        challenger = np.flatnonzero(self.table[:, k] >= 0)
        lead = self.entries[:, self.table[challenger, k]] - self.best[:, challenger]
        rising = (lead > 0).any(dim=0).numpy()
        challenger, lead = challenger[rising], lead[:, torch.from_numpy(rising)]
        if not len(challenger):
            return True
        noise = _WindowNoise(self.noise, self.cells.xy, self.known[challenger])
        agree = self.agreement.at((self.layer, k), challenger)
        part = split(self.cells, Values.stored(flat(lead)), _ZERO, noise, self.layer, agree, self.most)
        if part is None:
            return False
        self.is_tied |= part.is_tied
        if len(part.cells.xy) > part.n_old:
            every, carry = np.arange(len(part.cells.xy)), Interpolation.of(part)
            self._change(lambda tensor: carry.carry(tensor, every))
        wins = np.unpackbits(part.words.view(np.uint8), axis=1, bitorder="little")[:, : len(challenger)]
        self.winner, self.parent = self.winner[part.parent], self.parent[part.parent]
        self.winner[:, challenger] = np.where(wins, k, self.winner[:, challenger])
        rival = self.entries[:, self.table[challenger, k]]
        self.best[:, challenger] = torch.maximum(self.best[:, challenger], rival)
        self._merge(part.cells)
        return True

    def _change(self, function: Callable[[Tensor], Tensor]) -> None:
        self.entries, self.best = function(self.entries), function(self.best)
        self.live = {name: function(value) for name, value in self.live.items()}

    def _merge(self, cells: Cells) -> None:
        """Take the layer's edges between faces with the same winners away."""
        left, right = cells.sides().T
        gone = (cells.born == self.layer) & (left >= 0) & (right >= 0)
        gone[gone] = (self.winner[left[gone]] == self.winner[right[gone]]).all(axis=1)
        self.cells = cells
        if gone.any():
            self.cells, kept, faces = dissolve(cells, gone)
            rows = torch.from_numpy(kept)
            self._change(lambda tensor: tensor[rows])
            self.winner, self.parent = _of_new(self.winner, faces), _of_new(self.parent, faces)

    def has_tie(self) -> bool:
        """Whether an entry equals the winner at all corners of a face, but for rounding."""
        gap = self.best - self.entries
        near = (gap <= 2.0**10 * torch.finfo(torch.float64).eps * self.best.abs()).numpy()
        count = np.logical_and.reduceat(near[self.cells.corners], self.cells.start[:-1], axis=0).sum(axis=1)
        return bool((count > 1).any())


def _of_new(values: Any, faces: Ints) -> Any:
    """Values of old faces for the new ones; old faces that were joined have the same."""
    out = np.empty((int(faces.max()) + 1, *values.shape[1:]), values.dtype)
    out[faces] = values
    return out


@dataclass(frozen=True, eq=False)
class _WindowNoise:
    """Rounding errors of differences within windows."""

    noise: NodeNoise
    xy: Floats
    table: Ints

    def may_be_zero(self, scale: float) -> bool:
        """Whether every difference, of this scale at most, may be zero but for rounding."""
        return self.noise.may_be_zero(scale)

    def __call__(self, vertices: Ints, entries: Ints) -> Floats:
        """The bounds for pairs of a vertex and a window, (m,)."""
        own = NodeNoise(self.noise.graph, self.noise.plane, self.xy, self.noise.node)
        return 2 * own.largest(vertices, self.table[entries])
