"""Counting on many probes, by either method: what the region count is made of."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeWarning
from inscape.models import Model
from inscape.partition.decision.exact import exact_regions
from inscape.partition.decision.grid import labelled_blocks
from inscape.partition.decision.regions import COMPLETE
from inscape.probes import Probe
from inscape.progress import Meter

Ints = npt.NDArray[np.int64]


@dataclass
class Tally:
    """The count on each probe, and what was seen on the way.

    Attributes:
        counts: the count on each probe.
        n_evaluations: at how many points the model was asked.
        coarse_mean: on a grid, the mean count on every second point; None if not known.
        resolution: on a grid, points per axis.
        status: of exact counts; None on a grid, where it depends on the errors.
        anywhere: the labels that were predicted.
        at_corners: those that were predicted at a corner of a probe.
    """

    counts: list[int] = field(default_factory=list)
    n_evaluations: int = 0
    coarse_mean: float | None = None
    resolution: int | None = None
    status: str | None = None
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
    for block in labelled_blocks(model, probes, resolution, meter=meter):
        tally.counts += block.components(connectivity)[1].tolist()
        coarse.append(block.coarse_counts(connectivity))
        tally.see(block.labels, block.labels[:, block.lattice.corners()])
        tally.n_evaluations += block.labels.size
        tally.resolution = block.lattice.resolution
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
    n = len(tally.counts)
    example = special[0].removeprefix(f"{COMPLETE}; ") if special else ""
    tally.status = (
        f"{COMPLETE}; {len(special)} of {n} probes special, such as: {example}" if special else COMPLETE
    )
    return tally
