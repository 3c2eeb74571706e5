"""Which minima of the square loss gradient descent can stay at, and how smooth they are."""

from inscape.univariate.stability.flattest import Flattest, flattest
from inscape.univariate.stability.linearised import (
    LinearStability,
    StrongStability,
    linear_stability,
    strong_stability,
)
from inscape.univariate.stability.smoothness_weight import population_weight, weight
from inscape.univariate.stability.stability import Stability, stability

__all__ = [
    "Flattest",
    "LinearStability",
    "Stability",
    "StrongStability",
    "flattest",
    "linear_stability",
    "population_weight",
    "stability",
    "strong_stability",
    "weight",
]
