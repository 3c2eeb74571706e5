"""How many regions are still missed: an estimate from the refinements that were only just made."""

from dataclasses import dataclass

import numpy as np

from inscape.arrays import Bools, Floats
from inscape.partition.decision.adaptive.answers import Trial
from inscape.status import CONVERGED, NOT_CONVERGED, NOT_DETERMINISTIC, Status, not_shown

PRIOR_HITS, PRIOR_REFINEMENTS = 0.2, 20.0
"""Before any refinement, one in a hundred is taken to meet a region, with the weight of twenty."""


@dataclass
class Doubt:
    """Refinements of intervals and cells of at most twice the urgency at which these are refined: their hits.

    One whose urgency falls short of that by less than a factor of two is like one whose urgency exceeds it by
    less than that, only less likely to hide a region. So the share of such refinements that met a region,
    times the number of those that were left so, estimates, from above, the regions still missed.

    Attributes:
        n_refined: the refinements: another evaluation inside an interval or a cell.
        n_hits: those that met a label which none of its ends has.
    """

    n_refined: int = 0
    n_hits: int = 0

    def note(self, excess: Floats, is_hit: Bools) -> None:
        """Add refinements: the urgency of each, of which 1 asks for it, and whether it met a region."""
        only_just = excess <= 2
        self.n_refined += int(only_just.sum())
        self.n_hits += int((only_just & is_hit).sum())

    @property
    def chance(self) -> float:
        """The share of these refinements that met a region, with a little prior knowledge."""
        return (self.n_hits + PRIOR_HITS) / (self.n_refined + PRIOR_REFINEMENTS)

    def basis(self, n_left: int) -> str:
        """What the estimate rests on, in words."""
        return (
            f"{n_left} places fall short of a refinement by less than a factor of 2; of {self.n_refined} "
            f"refinements that exceeded it by less, {self.n_hits} met a region"
        )


@dataclass
class StepDoubt:
    """What is known of the regions still missed on a block of segments where the model has steps only.

    Every interval has a chance to hide a region, which `scan_steps` states much too high. Refinements tell by
    how much: they met n_hits regions where chances added up to `chance`. A refinement meets about every
    second one that is there, so that 2 n_hits / chance is what a stated chance is worth. The chances of the
    intervals that are left, at that worth, estimate the regions still missed: two each between equal labels,
    else one.

    Attributes:
        chance: the sum of the chances stated for the intervals that were refined.
        n_refined: how many these were.
        n_hits: how many met a label that neither end has.
    """

    chance: float = 0.0
    n_refined: int = 0
    n_hits: int = 0

    def note(self, chance: Floats, is_hit: Bools) -> None:
        """Add refinements: the chance stated of each, and whether it met a region."""
        self.chance += float(chance.sum())
        self.n_refined += len(chance)
        self.n_hits += int(is_hit.sum())

    @property
    def worth(self) -> float:
        """The fraction of a stated chance that is true, with a little prior knowledge."""
        return 2 * (self.n_hits + PRIOR_STEP_HITS) / (self.chance + PRIOR_CHANCE)

    def basis(self, left: float, n_slivers: int) -> str:
        """What the estimate rests on, in words; `left` is the sum of the chances on one segment."""
        slivers = f"; {n_slivers} narrower than 2^-20 of their segment were left out" if n_slivers else ""
        return (
            f"{self.n_refined} refinements met {self.n_hits} regions where their chances add up to "
            f"{self.chance:.3g}; those of the places that are left add up to {left:.2g}{slivers}"
        )


PRIOR_STEP_HITS, PRIOR_CHANCE = 1.0, 30.0
"""Before any refinement between steps: one region is met where the stated chances add up to thirty."""
MOST_STOOD_FOR = 5.0
"""On planes, a region of a smaller area than one of the first samples stands for at most this many."""


def unmet_regions(area: Floats, share: float) -> Floats:
    """How many regions were not met for each one that was, on planes.

    Samples each of which stands for a `share` of the plane meet a smaller region of area A with the chance
    A / share. So each one that they met stands for share / A like it (Horvitz and Thompson 1952), of which
    share / A - 1 were not met.

    >>> unmet_regions(np.array([0.5, 0.01, 0.0025]), 0.005).tolist()
    [0.0, 0.0, 1.0]
    """
    return np.asarray(np.maximum(1.0, share / np.maximum(area, share / MOST_STOOD_FOR)) - 1)


JUMPS_OF_LABELS = 2.4
"""Taken for the jumps per edge where there are no scores to show them: as many as in 100 trees."""


def calibrated(unmet: Floats, jumps: Floats) -> Floats:
    """How many regions of a plane were missed.

    Where few small regions are met most have been; where many are, most have not, since smaller ones still
    are more, and the more so the denser the steps of the scores are: how small a region can be is a matter of
    these. The curve was fitted to the exact counts of trees and forests on planes.

    Args:
        unmet: the number that the regions which were found stand for.
        jumps: of the scores, per edge between two of the first samples.

    >>> calibrated(np.array([0.0, 2.0, 8.0, 8.0]), np.array([1.0, 1.0, 1.0, 2.0])).round(1).tolist()
    [0.0, 0.3, 3.1, 7.3]
    """
    return np.asarray(0.11 * unmet**1.6 * jumps**1.25)


LATE_REGIONS = (
    "regions that hold none of the first samples, what those stand for that are smaller than the part of "
    "one, and how dense the steps of the scores are, by a curve that was fitted to trees and forests"
)


def status_of(trial: Trial, n_open: int, missed: float, *, is_spent: bool = False) -> Status:
    """Whether the count on a probe has converged, and if not, why.

    Args:
        trial: what is known of the model.
        n_open: places that ask for refinement but are as fine as allowed.
        missed: the estimate of the regions still missed.
        is_spent: whether the budget of evaluations was reached.
    """
    if not trial.is_deterministic:
        return NOT_DETERMINISTIC
    if is_spent:
        return Status(
            "not_converged", "the budget of evaluations was reached; raise resolution, which sets it"
        )
    if n_open:
        return Status(
            "not_converged", f"narrow regions could hide at {n_open} places; raise resolution to look closer"
        )
    if missed >= 0.5:
        return NOT_CONVERGED
    return not_shown(trial.reason) if trial.reason else CONVERGED
