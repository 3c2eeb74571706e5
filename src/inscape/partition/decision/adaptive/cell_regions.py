"""Decision regions on adaptive cells: the result, and how it is read off the cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Ints
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.partition.decision.adaptive.cells import Cells, limits_for
from inscape.partition.decision.adaptive.first_look import Trial
from inscape.partition.decision.adaptive.mesh import weights_at
from inscape.partition.decision.adaptive.missed import LATE, status_of
from inscape.partition.decision.regions import DecisionRegions, plane_frame
from inscape.probes import Patch, Probe

PIXELS = 600
_CELLS = 2**19
_NUMBERS = 2**22


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellRegions(DecisionRegions):
    """Decision regions on a mesh of simplices that is fine where a boundary is.

    Attributes:
        weights: of the probe's generators at each sample: the samples are `weights @ generators`, (p, k).
        cells: the samples at the corners of each cell, (m, d + 1).
        sample_labels: the label at each sample, (p,).
        sample_regions: the region of each sample, an index into `labels`, (p,).
        sample_margins: comparable scores at each sample, (p, c): c = 0 if only labels count.
    """

    weights: npt.NDArray[np.float64] = field()
    cells: npt.NDArray[np.int64]
    sample_labels: npt.NDArray[np.int64]
    sample_regions: npt.NDArray[np.int64]
    sample_margins: npt.NDArray[np.float64]

    @property
    def corner_labels(self) -> npt.NDArray[np.int64]:
        """The labels at the samples that are generators themselves: on a simplex, its vertices."""
        alone = (self.weights == 1).any(axis=1) & ((self.weights != 0).sum(axis=1) == 1)
        return np.asarray(self.sample_labels[alone])

    def image(self, resolution: int = PIXELS) -> npt.NDArray[np.int64]:
        """The regions as an array (resolution, resolution) of indices into `labels`, -1 outside the probe.

        Inside a cell scores are interpolated, so that boundaries are far crisper than the cells; without
        scores a pixel belongs to the nearest corner of its cell.
        """
        from inscape.partition.decision.adaptive.mesh_kernels import paint

        self._check_plane()
        image = np.full((resolution, resolution), -1, dtype=np.int64)
        x = np.ascontiguousarray(self.weights[:, 1:])
        paint(self.cells, x, self.sample_labels, self.sample_regions, self.sample_margins, image)
        return image

    def plot(self, ax: Any = None) -> Any:
        """Draw the filled regions, the spanning points (images shown as images) and a class legend."""
        from inscape.drawing.planes.grid import draw_plane

        self._check_plane()
        frame, domain, marks = plane_frame(self.probe)
        return draw_plane(
            self.image(),
            self.labels,
            frame,
            names={int(label): self._name(int(label)) for label in np.unique(self.labels)},
            marks=marks,
            images=self.probe.anchors,
            domain=domain,
            ax=ax,
        )

    def _check_plane(self) -> None:
        if self.probe.dim != 2:
            raise PartitionError(
                f"a probe of dimension {self.probe.dim} has no picture: plot one of dimension 1 or 2"
            )


def cell_block_length(probe: Probe, trial: Trial, resolution: int | None) -> int:
    """How many probes fit into one block: of their cells, of their scores and of their generators."""
    budget = limits_for(probe, trial.by_labels().rule, resolution).budget
    cells, scores = budget * int(3 ** (probe.dim - 1)), budget * trial.n_classes
    return max(1, min(_CELLS // cells, _NUMBERS // scores, _NUMBERS // probe.generators.size))


def cell_block(
    model: Model, trial: Trial, probes: Sequence[Probe], resolution: int | None, first: int
) -> Iterator[dict[str, Any]]:
    """What a `CellRegions` holds beyond the common, for each probe of a block."""
    trial = trial.by_labels()
    cells = Cells(model, trial, probes, limits_for(probes[0], trial.rule, resolution), first)
    if trial.is_deterministic:
        cells.refine()
    mesh, a, b = cells.mesh, cells.answers, len(probes)
    roots = _roots(mesh.cells[: mesh.n_cells], a.labels, a.n)
    by_vertex, vertices = _grouped(mesh.probe[: a.n], b)
    by_cell, owned = _grouped(mesh.probe_of_cells(), b)
    late = None if a.has_scores else _late(cells, roots)
    is_open = _open(cells)
    position = np.empty(a.n, np.int64)
    position[by_vertex] = np.arange(a.n) - vertices[mesh.probe[by_vertex]]
    weights = weights_at(mesh.coordinates(slice(0, a.n)), isinstance(probes[0], Patch))
    for i in range(b):
        own = by_vertex[vertices[i] : vertices[i + 1]]
        cell = by_cell[owned[i] : owned[i + 1]]
        heads, regions = np.unique(roots[own], return_inverse=True)
        urgency = cells.urgency[cell]
        near = int(((urgency > 0.5) & (urgency <= 1)).sum())
        missed = near * cells.doubt.chance if late is None else float(late[i])
        placed_weights = np.empty((len(own), weights.shape[1]))
        placed_weights[:, cells.order[i]] = weights[own]
        yield {
            "labels": a.labels[heads],
            "weights": placed_weights,
            "cells": position[mesh.cells[cell]],
            "sample_labels": a.labels[own],
            "sample_regions": regions.reshape(-1),
            "sample_margins": a.margins[own],
            "n_evaluations": len(own),
            "status": status_of(trial, int(is_open[cell].sum()), missed, is_spent=bool(cells.spent[i])),
            "missed": missed,
            "missed_basis": cells.doubt.basis(near) if late is None else LATE,
        }


def _roots(cells: Ints, labels: Ints, n: int) -> Ints:
    from inscape.partition.decision.adaptive.mesh_kernels import joined

    return np.asarray(joined(len(cells), cells, labels, n))


def _grouped(owner: Ints, n: int) -> tuple[Ints, Ints]:
    """The rows sorted by owner, and where each owner's begin, (n + 1,)."""
    order = np.argsort(owner, kind="stable")
    return order, np.searchsorted(owner[order], np.arange(n + 1))


def _open(cells: Cells) -> npt.NDArray[np.bool_]:
    """Which cells still ask for a cut, away from all boundaries; next to one, it would only bend that."""
    from inscape.partition.decision.adaptive.mesh_kernels import crossed

    mesh = cells.mesh
    all_cells = mesh.cells[: mesh.n_cells]
    at_boundary = np.zeros(mesh.n_vertices, np.bool_)
    at_boundary[all_cells[crossed(np.arange(mesh.n_cells), all_cells, cells.answers.labels)]] = True
    return np.asarray((cells.urgency[: mesh.n_cells] > 1) & ~at_boundary[all_cells].any(axis=1))


def _late(cells: Cells, roots: Ints) -> Ints:
    """How many regions of each probe hold none of the first samples."""
    mesh, n = cells.mesh, cells.answers.n
    holds = np.zeros(n, np.bool_)
    holds[roots[: cells.n_start]] = True
    heads = np.flatnonzero((roots == np.arange(n)) & ~holds)
    return np.bincount(mesh.probe[heads], minlength=len(cells.spent))
