"""Checks of Patel and Montufar (submission of 2024): local complexity, and what bounds it."""

from inscape.theory.local_complexity.gradient_bounds import (
    lc_corollary3_lower,
    lc_corollary3_upper,
    lc_corollary14,
    lc_good_at_start,
    lc_gradient_bound,
    lc_proposition6,
    lc_theorem5_lower,
    lc_theorem5_upper,
    lc_theorem7,
)
from inscape.theory.local_complexity.moments import Moments, moments
from inscape.theory.local_complexity.representation_cost import (
    RepresentationCost,
    lc_theorem18,
    margin_kkt,
    representation_cost,
)
from inscape.theory.local_complexity.vertices import VertexDensity, vertex_density
from inscape.theory.local_complexity.weight_bounds import (
    lc_corollary10,
    lc_proposition8,
    lc_proposition9,
    lc_proposition17,
)

__all__ = [
    "Moments",
    "RepresentationCost",
    "VertexDensity",
    "lc_corollary3_lower",
    "lc_corollary3_upper",
    "lc_corollary10",
    "lc_corollary14",
    "lc_good_at_start",
    "lc_gradient_bound",
    "lc_proposition6",
    "lc_proposition8",
    "lc_proposition9",
    "lc_proposition17",
    "lc_theorem5_lower",
    "lc_theorem5_upper",
    "lc_theorem7",
    "lc_theorem18",
    "margin_kkt",
    "moments",
    "representation_cost",
    "vertex_density",
]
