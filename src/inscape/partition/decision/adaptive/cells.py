"""Adaptive cells on a block of planes or higher simplices: cut where a boundary could be."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.models import Model
from inscape.partition.decision.adaptive.answers import N_POINTS, Answers, Trial, grown
from inscape.partition.decision.adaptive.mesh import (
    Bridges,
    Mesh,
    joined_by,
    placed,
    points_on,
    possible_bridges,
    weights_at,
)
from inscape.partition.decision.adaptive.missed import (
    JUMPS_OF_LABELS,
    LATE_REGIONS,
    Doubt,
    calibrated,
    status_of,
    unmet_regions,
)
from inscape.probes import Patch, Probe

STEP_CHANCE = 0.1
"""Between steps, the least chance of a hidden region that asks for a cut; see `scan_step_cells`."""
CURVATURE_IN_CELLS = 0.75
"""How many times the curvature that the last two cuts showed is allowed for in a cell, which is smaller."""
PLANE_RESOLUTION = 200
"""By default, boundaries in a plane are crisper than on a grid with this many points per axis."""
BLUR = 0.5
"""How far a boundary may be from where it is drawn, in steps of that grid."""
EXTRA_BISECTIONS = 2
"""Where the scores ask for it, cells are cut this many times more often than that grid needs."""
FIRST_BISECTIONS = 10
"""The first cells are cut this often at most: in planes down to 1/16 of the side, between steps to 1/32."""
BUDGET = 4096
"""By default, most samples per probe in three dimensions and more, as on a grid."""
SHARE_OF_GRID = 0.1
"""In a plane, or where a resolution is given: most evaluations per probe, as a share of those of the grid."""
QUARTER_UP_TO_SAMPLES = 1000
"""Where that is fewer than this, up to a quarter of those of the grid are allowed."""
BRIDGE_SHARE = 0.1
"""Between steps, the share of the budget that is kept for bridges."""
GROWTH_OF_EDGES = 1.5
"""How many times more edges may have to be cut at the end after one more round of cuts."""
MOST_CHANGES = 0.995
"""The largest share of first edges with a jump that tells how many there are."""
BITS_OF_A_KEY = 46
MOST_CELLS_IN_BLOCK = 2**19
MOST_NUMBERS_IN_BLOCK = 2**22


class Limits(NamedTuple):
    """How fine cells on a probe may become, and how many samples they may take.

    Attributes:
        depth: vertices lie on multiples of 2^-depth of the probe's sides.
        start: how often all cells are cut at first.
        blur: how far a boundary may be from where it is drawn, as a fraction of the side.
        budget: the most samples.
    """

    depth: int
    start: int
    blur: float
    budget: int


def limits_for(probe: Probe, rule: str, resolution: int | None) -> Limits:
    """The limits for a probe of dimension d >= 2.

    With `resolution` r, boundaries are placed to 0.5 / r of the side, cells are cut down to a quarter of 1/r
    of it (to 1/r if only labels count), and the budget is a tenth of the samples of a grid with r per axis
    (or a quarter, up to 1,000), less what the first look at the model takes.
    """
    d = probe.dim
    most = BITS_OF_A_KEY // d
    r = resolution or (PLANE_RESOLUTION if d == 2 else 2 ** max(1, most - EXTRA_BISECTIONS))
    depth = math.ceil(math.log2(r)) + (EXTRA_BISECTIONS if rule == "scores" else 0)
    depth = max(1, min(depth, most))
    grid = r**2 if isinstance(probe, Patch) else math.comb(r + d - 1, d)
    budget = (
        BUDGET
        if resolution is None and d > 2
        else max(int(SHARE_OF_GRID * grid), min(grid // 4, QUARTER_UP_TO_SAMPLES))
    )
    budget = max(1, budget - 3 * N_POINTS)
    start = min(FIRST_BISECTIONS, 4 * d, d * depth)
    fine = (2 ** (FIRST_BISECTIONS // 2) + 1) ** 2 // (
        1 if isinstance(probe, Patch) else 2
    )  # first samples, if 1/32 apart
    if rule != "scores" and d == 2 and 2 * fine <= budget:  # between steps nothing but samples tells
        start = min(FIRST_BISECTIONS, d * depth)
    return Limits(depth, start, BLUR / r, budget)


class SampledMeshes:
    """Meshes on a block of probes of one kind, and what the model said at their vertices.

    Attributes:
        mesh: the meshes.
        answers: what the model said at their vertices.
        is_patch: whether the probes are patches.
        urgency: how urgent it is to cut each cell, (capacity,); 1 asks for a cut.
        wanted: whether each cell is to be cut, be it only for a crisp boundary, (capacity,).
        spent: the probes whose budget was reached, (b,).
        n_start: how many of the samples are the first, even ones.
        n_on_bridges: how often the model was evaluated on bridges, (b,).
        doubt: what is known of the regions still missed.
        jumps: of the scores per edge between two first samples, on each probe, (b,).
    """

    def __init__(
        self, model: Model, trial: Trial, probes: Sequence[Probe], limits: Limits, first: int
    ) -> None:
        probe = probes[0]
        self.answers, self.doubt = Answers(model, trial, probe.input_shape), Doubt()
        self.n_on_bridges = np.zeros(len(probes), np.int64)
        self.mesh = Mesh(probe.dim, isinstance(probe, Patch), len(probes), limits.depth)
        self.spent = np.zeros(len(probes), np.bool_)
        self._limits, self._rounding, self._first = limits, trial.rounding, first
        self._rule, self._asking = trial.rule, (model, trial, probe.input_shape)
        self.is_patch = isinstance(probe, Patch)
        placements = [placed(p) for p in probes]
        self.order = [order for _, order in placements]
        self._generators = np.stack([g.reshape(len(g), -1) for g, _ in placements])
        for _ in range(limits.start):
            self.mesh.cut(np.arange(self.mesh.n_cells))
        self.n_start = self.mesh.n_vertices
        self.urgency: Floats = np.zeros(len(self.mesh.cells))
        self.wanted: Bools = np.zeros(len(self.mesh.cells), np.bool_)
        self._crossed_to = self.mesh.depth * probe.dim
        self._ask()
        self.jumps = self._jumps()

    def refine(self) -> None:
        """Cut the cells that ask for it; then the edges on which a third label leads."""
        if self._rule == "steps":  # regions first, crisp boundaries with what is left of the budget
            self._crossed_to = self._limits.start + 1
            self._cut_all()
            self._crossed_to, self.spent[:] = self.mesh.depth * self.mesh.vertices.shape[1], False
            self.mesh.fresh[: self.mesh.n_cells] = True
        self._cut_all()
        if self._rule == "scores":
            self._cut_edges()

    def _cut_all(self) -> None:
        """Cut, round by round, every cell that asks for it; a cell is scanned once."""
        mesh = self.mesh
        while True:
            self._scan()
            marked = np.flatnonzero(self.wanted[: mesh.n_cells])
            marked = marked[~self.spent[mesh.probe[mesh.cells[marked, 0]]]]
            if not len(marked):
                return
            corners, urgency = mesh.cells[marked].copy(), self.urgency[marked].copy()
            kept = self._cut(marked, urgency)
            self._ask()
            labels = self.answers.labels
            new = labels[mesh.last[marked[kept], 0, 2]]
            is_new = (new[:, None] != labels[corners[kept]]).all(axis=1)
            asked = urgency[kept] > 1
            self.doubt.note(urgency[kept][asked], is_new[asked])

    def _cut(self, marked: Ints, urgency: Floats) -> Bools:
        """Cut the marked cells, where the budget ends only the most urgent ones; which ones."""
        mesh = self.mesh
        owner = mesh.probe[mesh.cells[marked, 0]]
        allowed, rank = np.bincount(owner, minlength=len(self.spent)), _ranks(owner, urgency)
        most = (
            self._limits.budget if self._rule == "scores" else int((1 - BRIDGE_SHARE) * self._limits.budget)
        )
        budget, kept = np.full(len(self.spent), most), np.ones(len(marked), np.bool_)
        tight = self._n_samples() + 3 * allowed > budget / 2
        if self._rule == "scores" and tight.any():
            edges, _, _ = self._crossings(tight)
            n_edges = np.bincount(mesh.probe[edges[:, 0]], minlength=len(budget))
            budget -= np.ceil(GROWTH_OF_EDGES * n_edges).astype(np.int64)
        state = mesh.state() if tight.any() else None
        while kept.any():
            mesh.cut(marked[kept])
            over = (self._n_samples() > budget) & (allowed > 0)
            if state is None or not over.any():
                break
            mesh.restore(state)
            state = mesh.state()
            self.spent |= over
            allowed[over] //= 2
            kept = rank < allowed[owner]
        return kept

    def _cut_edges(self) -> None:
        """Cut each edge on which a third label leads, by interpolation, where those of its ends cross.

        That is what is left of a band thinner than the finest cells: the model is evaluated on every edge
        that crosses it, so that its components are joined if, and only if, the label is met between them.
        """
        mesh = self.mesh
        edges, where, lead = self._crossings(np.ones(len(self.spent), np.bool_))
        owner = mesh.probe[edges[:, 0]]
        kept = _ranks(owner, lead) < (self._limits.budget - self._n_samples())[owner]
        self.spent[owner[~kept]] = True
        if not kept.any():
            return
        parents = mesh.cut_edges(edges[kept], where[kept])
        self.urgency = np.concatenate([self.urgency[: mesh.n_cells - len(parents)], self.urgency[parents]])
        self._ask()

    def _crossings(self, which: Bools) -> tuple[Ints, Floats, Floats]:
        """The edges, on some probes, on which a third label leads; see `third_leads`."""
        from inscape.partition.decision.adaptive.mesh_kernels import third_leads

        mesh, a = self.mesh, self.answers
        chosen = np.flatnonzero(which[mesh.probe_of_cells()])
        edges, where, lead = third_leads(chosen, mesh.cells, a.labels, a.margins)
        edges, first = np.unique(edges, axis=0, return_index=True)
        return edges, where[first], lead[first]

    def components(self) -> Ints:
        """The component of each vertex, named by its first one; bands are joined where bridges show it."""
        from inscape.partition.decision.adaptive.mesh_kernels import joined

        mesh, a = self.mesh, self.answers
        roots = np.asarray(joined(mesh.n_cells, mesh.cells, a.labels, a.n))
        if self._rule == "scores":
            return roots
        x, budget = mesh.coordinates(slice(0, a.n)), self._limits.budget - self._n_samples()
        order, begins = _grouped(mesh.probe[: a.n], len(self.spent))
        all_ends: list[Ints] = []
        all_points: list[Floats] = []
        owners: list[Ints] = []
        for i in range(len(self.spent)):
            own = order[begins[i] : begins[i + 1]]  # in the order of vertices, so that roots are first ones
            local = np.searchsorted(own, roots[own])
            bridges = possible_bridges(x[own], a.labels[own], local, 1 / (mesh.side - 1))
            kept = np.cumsum(bridges.n_points) <= budget[i]
            bridges = Bridges(bridges.ends[kept], bridges.n_points[kept])
            points, owner = points_on(x[own], bridges)
            owners.append(owner + sum(len(ends) for ends in all_ends))
            all_ends.append(own[bridges.ends])
            all_points.append(points)
            self.n_on_bridges[i] = len(points)
        ends, owner, at = np.concatenate(all_ends), np.concatenate(owners), np.concatenate(all_points)
        asked = Answers(*self._asking)
        self._evaluate(asked, at, mesh.probe[ends[owner, 0]])
        differs = np.bincount(owner, asked.labels[: asked.n] != a.labels[ends[owner, 0]], len(ends))
        return joined_by(roots, ends[differs == 0])

    def _jumps(self) -> Floats:
        """How many jumps of the scores an edge of the first cells crosses: -log of the share without one."""
        if self._rule != "steps":
            return np.full(len(self.spent), JUMPS_OF_LABELS)
        corners, scores = self.mesh.cells[: self.mesh.n_cells], self.answers.margins
        pairs = list(combinations(range(corners.shape[1]), 2))
        n_changes = sum(
            (scores[corners[:, i]] != scores[corners[:, j]]).any(axis=1).astype(np.float64) for i, j in pairs
        )
        owner = self.mesh.probe_of_cells()
        n = np.bincount(owner, minlength=len(self.spent))
        share = np.bincount(owner, n_changes, len(self.spent)) / (len(pairs) * n)
        return np.asarray(-np.log(1 - np.minimum(share, MOST_CHANGES)))

    def _n_samples(self) -> Ints:
        """How many samples there are on each probe."""
        return np.bincount(self.mesh.probe[: self.mesh.n_vertices], minlength=len(self.spent))

    def _scan(self) -> None:
        from inscape.partition.decision.adaptive.mesh_kernels import crossed, scan_cells, scan_step_cells

        mesh, a = self.mesh, self.answers
        if len(self.urgency) < len(mesh.cells):
            self.urgency = grown(self.urgency, len(mesh.cells))
            self.wanted = grown(self.wanted, len(mesh.cells))
        chosen = np.flatnonzero(mesh.fresh[: mesh.n_cells])
        mesh.fresh[chosen] = False
        urgency, blur = np.zeros(len(chosen)), np.zeros(len(chosen))
        if self._rule == "scores":
            scan_cells(
                chosen,
                mesh.cells,
                mesh.last,
                mesh.vertices,
                a.labels,
                a.margins,
                self._rounding,
                mesh.side,
                urgency,
                blur,
            )
            urgency *= CURVATURE_IN_CELLS
            wanted = (urgency > 1) | (blur > self._limits.blur)
        else:
            wanted = crossed(chosen, mesh.cells, a.labels) & (mesh.level[chosen] < self._crossed_to)
            if self._rule == "steps":
                scan_step_cells(chosen, mesh.cells, mesh.last, a.labels, a.margins, urgency)
                urgency /= STEP_CHANCE
                wanted |= urgency > 1
        can = mesh.level[chosen] < mesh.depth * mesh.vertices.shape[1]
        self.urgency[chosen], self.wanted[chosen] = urgency, wanted & can

    def _ask(self) -> None:
        """Evaluate the vertices that are new."""
        new = slice(self.answers.n, self.mesh.n_vertices)
        self._evaluate(self.answers, self.mesh.coordinates(new), self.mesh.probe[new])

    def _evaluate(self, answers: Answers, x: Floats, probe: Ints) -> None:
        """Ask at coordinates x (m, d) of the unit domain of some probes, in one stream of batches."""
        from inscape.partition.decision.adaptive.segment_kernels import combine

        weights = weights_at(x, self.is_patch)
        answers.ask(
            len(weights),
            lambda batch, out: combine(weights[batch], probe[batch], self._generators, out),
            lambda i: f"probe {self._first + probe[i]} at the weights {weights[i].round(6).tolist()}",
        )


def cell_block_length(probe: Probe, trial: Trial, resolution: int | None) -> int:
    """How many probes fit into one block: of their cells, of their scores and of their generators."""
    budget = limits_for(probe, trial.rule, resolution).budget
    cells, scores = budget * int(3 ** (probe.dim - 1)), budget * trial.n_classes
    return max(
        1,
        min(
            MOST_CELLS_IN_BLOCK // cells,
            MOST_NUMBERS_IN_BLOCK // scores,
            MOST_NUMBERS_IN_BLOCK // probe.generators.size,
        ),
    )


def cell_block(
    model: Model, trial: Trial, probes: Sequence[Probe], resolution: int | None, first: int
) -> Iterator[dict[str, Any]]:
    """What a `DecisionMesh` holds beyond the common, for each probe of a block."""
    cells = SampledMeshes(model, trial, probes, limits_for(probes[0], trial.rule, resolution), first)
    if trial.is_deterministic:
        cells.refine()
    mesh, a, b = cells.mesh, cells.answers, len(probes)
    roots = cells.components()
    by_vertex, vertices = _grouped(mesh.probe[: a.n], b)
    by_cell, owned = _grouped(mesh.probe_of_cells(), b)
    unmet = None if trial.rule == "scores" else _unmet(cells, roots)
    is_open = _open(cells)
    position = np.empty(a.n, np.int64)
    position[by_vertex] = np.arange(a.n) - vertices[mesh.probe[by_vertex]]
    weights = weights_at(mesh.coordinates(slice(0, a.n)), isinstance(probes[0], Patch))
    for i in range(b):
        own = by_vertex[vertices[i] : vertices[i + 1]]
        cell = by_cell[owned[i] : owned[i + 1]]
        names, regions = np.unique(roots[own], return_inverse=True)
        urgency = cells.urgency[cell]
        near = int(((urgency > 0.5) & (urgency <= 1)).sum())
        missed = near * cells.doubt.chance if unmet is None else float(unmet[i])
        placed_weights = np.empty((len(own), weights.shape[1]))
        placed_weights[:, cells.order[i]] = weights[own]
        yield {
            "labels": a.labels[names],
            "weights": placed_weights,
            "cells": position[mesh.cells[cell]],
            "sample_labels": a.labels[own],
            "sample_regions": regions.reshape(-1),
            "sample_margins": a.margins[own],
            "n_evaluations": len(own) + int(cells.n_on_bridges[i]),
            "status": status_of(trial, int(is_open[cell].sum()), missed, is_spent=bool(cells.spent[i])),
            "missed": missed,
            "missed_basis": cells.doubt.basis(near) if unmet is None else LATE_REGIONS,
        }


def _grouped(owner: Ints, n: int) -> tuple[Ints, Ints]:
    """The numbers sorted by owner, and where each owner's begin, (n + 1,)."""
    order = np.argsort(owner, kind="stable")
    return order, np.searchsorted(owner[order], np.arange(n + 1))


def _open(cells: SampledMeshes) -> Bools:
    """Which cells still ask for a cut, away from all boundaries; next to one, it would only bend that."""
    from inscape.partition.decision.adaptive.mesh_kernels import crossed

    mesh = cells.mesh
    all_cells = mesh.cells[: mesh.n_cells]
    at_boundary = np.zeros(mesh.n_vertices, np.bool_)
    at_boundary[all_cells[crossed(np.arange(mesh.n_cells), all_cells, cells.answers.labels)]] = True
    return np.asarray((cells.urgency[: mesh.n_cells] > 1) & ~at_boundary[all_cells].any(axis=1))


def _unmet(cells: SampledMeshes, roots: Ints) -> Floats:
    """How many regions of each probe are estimated not to be met: see `unmet_regions`.

    Those that were found without holding one of the first samples stand for one more each; see `calibrated`.
    """
    mesh, n, b = cells.mesh, cells.answers.n, len(cells.spent)
    per_corner = 0.5 ** mesh.level[: mesh.n_cells] / (mesh.cells.shape[1] * (2 if cells.is_patch else 1))
    corners = mesh.cells[: mesh.n_cells]
    shares = np.repeat(per_corner, corners.shape[1])
    area = np.bincount(roots[corners].ravel(), shares, n).astype(np.float64)
    is_met = np.zeros(n, np.bool_)
    is_met[roots[: cells.n_start]] = True
    firsts = np.flatnonzero(roots == np.arange(n))
    unmet = unmet_regions(area[firsts], b / cells.n_start)
    stand_for = np.bincount(mesh.probe[firsts], np.where(is_met[firsts], unmet, 1.0), b)
    return calibrated(stand_for.astype(np.float64), cells.jumps)


def _ranks(owner: Ints, urgency: Floats) -> Ints:
    """The rank of each among those of its owner, the most urgent first."""
    order = np.lexsort((-urgency, owner))
    first = np.searchsorted(owner[order], owner[order])
    ranks = np.empty(len(owner), np.int64)
    ranks[order] = np.arange(len(owner)) - first
    return ranks
