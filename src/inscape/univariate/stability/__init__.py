"""Which minima of the square loss gradient descent can stay at, and how smooth they are."""

from inscape.univariate.stability.flattest import Flattest, flattest
from inscape.univariate.stability.stability import Stability, stability
from inscape.univariate.stability.weight import population_weight, weight

__all__ = ["Flattest", "Stability", "flattest", "population_weight", "stability", "weight"]
