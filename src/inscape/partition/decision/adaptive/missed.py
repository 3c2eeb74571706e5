"""How many regions are still missed: an estimate from the looks that were only just taken."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.partition.decision.adaptive.first_look import Trial
from inscape.status import CONVERGED, NOT_CONVERGED, NOT_DETERMINISTIC, Status, not_shown

PRIOR_HITS, PRIOR_LOOKS = 0.2, 20.0
"""Before any look, one in a hundred is taken to find a region, with the weight of twenty looks."""


@dataclass
class Doubt:
    """Looks at places whose urgency was at most twice that which asks for a look, and what they found.

    A place whose urgency falls short of a look by less than a factor of two is like one whose urgency
    exceeds it by less than that, only less likely to hide a region. So the share of such looks that found
    one, times the number of places that were left so, estimates, from above, the regions still missed.

    Attributes:
        n_looks: the looks.
        n_found: those that met a label which neither end of the place has.
    """

    n_looks: int = 0
    n_found: int = 0

    def note(self, excess: npt.NDArray[np.float64], found: npt.NDArray[np.bool_]) -> None:
        """Add looks: the urgency of each over that which asks for a look, and whether it found a region."""
        only_just = excess <= 2
        self.n_looks += int(only_just.sum())
        self.n_found += int((only_just & found).sum())

    @property
    def chance(self) -> float:
        """The share of these looks that found a region, with a little prior knowledge."""
        return (self.n_found + PRIOR_HITS) / (self.n_looks + PRIOR_LOOKS)

    def basis(self, n_left: int) -> str:
        """What the estimate rests on, in words."""
        return (
            f"{n_left} places fall short of a look by less than a factor of 2; of {self.n_looks} looks "
            f"that exceeded it by less, {self.n_found} found a region"
        )


@dataclass(frozen=True)
class StepDoubt:
    """What is known of the regions still missed on a block of segments where the model has steps only.

    Samples a step h apart meet a region of width w < h with the chance w / h. So each one that they met
    stands for h / w like it (Horvitz and Thompson 1952), of which h / w - 1 were not met: as many regions
    each as are lost without it, two between equal labels, else one. Looks have found some of those since.
    Where a place that was followed down to rounding hid a region, so do others on its segment: halving meets
    about every second one, and most places between equal labels are not followed. Places that still ask for
    a look but are as fine as allowed hide two regions each, with their chance.

    Attributes:
        unmet: the regions that the first samples are estimated not to have met, on each segment, (b,).
        n_narrow: how many narrow regions they met, from which that was estimated.
        n_late: how many regions were found after the first samples.
        chance_left: the chances of hidden regions where samples are as near as allowed, summed, (b,).
        n_hiding: how many places that were followed down to rounding hid a region, on each segment, (b,).
    """

    unmet: npt.NDArray[np.float64]
    n_narrow: int
    n_late: int
    chance_left: npt.NDArray[np.float64]
    n_hiding: npt.NDArray[np.int64]

    def missed(self) -> npt.NDArray[np.float64]:
        """The regions still missed on each segment, (b,)."""
        total = float(self.unmet.sum())
        left = max(LEAST_LEFT, 1 - self.n_late / total) if total > 0 else 0.0
        return np.asarray(left * self.unmet + 2 * self.chance_left + PER_HIDING * self.n_hiding)

    def basis(self) -> str:
        """What the estimate rests on, in words."""
        at_finest, n_hiding = 2 * self.chance_left.sum(), int(self.n_hiding.sum())
        return (
            f"the first samples met {self.n_narrow} regions narrower than their step, and {self.n_late} were "
            f"found later; places of the finest size may hide {at_finest:.2g}; {n_hiding} places hid a "
            "region down to rounding"
        )


MOST_STOOD_FOR = 10.0
"""How many regions one narrower than the first step stands for at most."""
LEAST_LEFT = 0.25
"""Of the regions that the first samples did not meet, the least share that looks are taken to have left."""
PER_HIDING = 2.0
"""Regions missed for each place that was followed and hid one: two are lost where one is not met."""


def unmet_regions(
    width: npt.NDArray[np.float64],
    n_lost: npt.NDArray[np.int64],
    step: float,
    most: float = MOST_STOOD_FOR,
) -> npt.NDArray[np.float64]:
    """How many regions were not met for each one that was: see `StepDoubt`.

    >>> unmet_regions(np.array([0.5, 0.01, 0.0025]), np.array([1, 2, 2]), 0.005).tolist()
    [0.0, 0.0, 2.0]
    """
    stood_for = np.minimum(step / np.maximum(width, step / most), most)
    return np.asarray(n_lost * np.maximum(0.0, stood_for - 1))


MOST_STOOD_FOR_ON_PLANES = 5.0
"""The same where the area of a region is known from few cells."""
LATE = (
    "as many as were found that hold none of the first samples, and for each that holds some but is smaller "
    "than the part of one, as many as it stands for"
)


def status_of(trial: Trial, n_open: int, missed: float, *, is_spent: bool = False) -> Status:
    """Whether the count on a probe has converged, and if not, why.

    Args:
        trial: what is known of the model.
        n_open: places that ask for a look but are as fine as allowed.
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
