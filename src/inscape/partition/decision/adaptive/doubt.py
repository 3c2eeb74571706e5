"""How many regions are still missed: an estimate from the looks that were only just taken."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.models.base import NOT_DETERMINISTIC
from inscape.partition.decision.adaptive.trial import Trial
from inscape.partition.decision.regions import CONVERGED, NOT_CONVERGED

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


HALVING = "what the last halving of the first samples gained"
LATE = "as many as were found that hold none of the first samples"


def status_of(trial: Trial, n_open: int, missed: float, *, is_spent: bool = False) -> str:
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
        return f"{NOT_CONVERGED}: the budget of evaluations was reached"
    if n_open:
        return f"{NOT_CONVERGED}: {n_open} places of the finest size could hide more"
    return CONVERGED if missed < 0.5 else NOT_CONVERGED
