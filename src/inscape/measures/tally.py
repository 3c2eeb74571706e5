"""Counting on many probes, by each method: what the region count is made of."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import InscapeWarning
from inscape.measures.statistics import Z
from inscape.models import Model
from inscape.partition.decision.adaptive import adaptive_regions
from inscape.partition.decision.exact import exact_regions
from inscape.partition.decision.grid.grid import labelled_blocks
from inscape.probes import Probe
from inscape.progress import Meter
from inscape.status import COMPLETE, HEADINGS, NOT_DETERMINISTIC, Status

UNSEEN = 6.0
"""Regions that n probes together may lack without a sign of it where the model has steps only: what is met on
none of n probes happens on fewer than 3 / n of them, with 95 % confidence, and loses two regions there."""


@dataclass
class Tally:
    """The count on each probe, and what was seen on the way.

    Attributes:
        counts: the count on each probe.
        n_evaluations: at how many points the model was asked.
        coarse_mean: on a grid, the mean count on every second point; None if not known.
        resolution: on a grid, points per axis.
        missed: the estimated number of regions missed per probe; None if there is no estimate.
        missed_interval: the 95 % interval of that number; None likewise.
        missed_basis: what it rests on.
        not_shown: "convergence not shown" and why, where the model has steps only; None where scores tell.
        status: of exact counts, and of adaptive ones with something special; None where it depends on the
            errors.
        anywhere: the labels that were predicted.
        at_corners: those that were predicted at a corner of a probe.
    """

    counts: list[int] = field(default_factory=list)
    n_evaluations: int = 0
    coarse_mean: float | None = None
    resolution: int | None = None
    missed: float | None = None
    missed_interval: tuple[float, float] | None = None
    missed_basis: str | None = None
    not_shown: Status | None = None
    status: Status | None = None
    anywhere: set[int] = field(default_factory=set)
    at_corners: set[int] = field(default_factory=set)

    def see(self, labels: Ints, at_corners: Ints) -> None:
        """Note which labels were predicted."""
        self.anywhere.update(np.unique(labels).tolist())
        self.at_corners.update(np.unique(at_corners).tolist())

    def warn_if_constant(self, model: Model, name: str) -> None:
        """Warn, two callers up, if only one label was seen."""
        if len(self.anywhere) == 1:
            (label,) = self.anywhere
            warnings.warn(
                f"{name} predicts class {model.class_name(label)} everywhere on the probes: "
                "its region count is 1, which says nothing about its complexity",
                InscapeWarning,
                stacklevel=4,
            )


def count_on_grid(
    model: Model, probes: Sequence[Probe], resolution: int | None, connectivity: str, meter: Meter
) -> Tally:
    """Count on the grid of each probe, and again on every second point of the same evaluations."""
    tally, coarse = Tally(), []
    for block in labelled_blocks(model, probes, resolution, meter=meter, with_scores=True):
        tally.counts += block.components(connectivity)[1].tolist()
        coarse.append(block.coarse_counts(connectivity))
        tally.see(block.labels, block.labels[:, block.lattice.corners()])
        tally.n_evaluations += block.labels.size
        tally.resolution = block.lattice.resolution
        tally.not_shown = tally.not_shown or block.not_shown
    tally.status = NOT_DETERMINISTIC if model.is_random else None
    known = [c for c in coarse if c is not None]
    tally.coarse_mean = float(np.mean(np.concatenate(known))) if known else None
    return tally


def count_exactly(model: Model, probes: Sequence[Probe], precision: str, meter: Meter) -> Tally:
    """Count every region on each probe; the status says on how many there was something special."""
    tally, special = Tally(), []
    for r in exact_regions(model, probes, precision=precision, meter=meter):
        tally.counts.append(r.n_regions)
        tally.see(r.labels, r.corner_labels)
        tally.n_evaluations += r.n_evaluations
        if r.status != COMPLETE:
            special.append(r.status)
    tally.status = _of_exact_counts(special, len(tally.counts))
    return tally


def _of_exact_counts(special: list[Status], n: int) -> Status:
    """The status of n exact counts, of which some have something special."""
    if not special:
        return COMPLETE
    first = special[0]
    detail = f"{len(special)} of {n} probes special, such as: {first.detail}"
    return Status(first.kind, detail, text=f"{COMPLETE}; {detail}")


def count_adaptively(model: Model, probes: Sequence[Probe], resolution: int | None, meter: Meter) -> Tally:
    """Count on each probe where the scores say that a region could hide; the status says where more could."""
    tally, special, missed, basis = Tally(resolution=resolution), [], [], ""
    for r in adaptive_regions(model, probes, resolution=resolution, meter=meter):
        tally.counts.append(r.n_regions)
        tally.see(r.labels, r.corner_labels)
        tally.n_evaluations += r.n_evaluations
        missed.append(r.missed or 0.0)
        basis = r.missed_basis or ""
        if r.status.kind == "not_shown":
            tally.not_shown = r.status
        elif r.status.detail:
            special.append(r.status)
    n = len(tally.counts)
    tally.missed, tally.missed_interval = _mean_missed(
        np.array(missed), has_steps=tally.not_shown is not None
    )
    tally.missed_basis = f"over {n} probes, each like the last: {basis}"
    if special:
        tally.status = _of_adaptive_counts(special, n)
    return tally


def _of_adaptive_counts(special: list[Status], n: int) -> Status:
    """The status of n adaptive counts, of which some did not converge, or whose model is random."""
    first = special[0]
    if first.kind != "not_converged":
        return first
    where = f"on {len(special)} of {n} probes: {first.detail}"
    return Status(first.kind, where, text=f"{HEADINGS[first.kind]} {where}")


def _mean_missed(missed: Floats, *, has_steps: bool) -> tuple[float, tuple[float, float]]:
    """The mean of what was missed on each probe, and its 95 % interval; see `UNSEEN`."""
    n, mean = len(missed), float(missed.mean())
    error = float(np.std(missed, ddof=1)) / math.sqrt(n) if n > 1 else mean
    return mean, (max(0.0, mean - Z * error), mean + Z * error + UNSEEN / n * has_steps)
