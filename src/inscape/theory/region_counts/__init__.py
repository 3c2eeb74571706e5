"""Checks of Li et al. 2025: region count, VC dimension and the edge of stability."""

from inscape.theory.region_counts.two_layer import (
    TwoLayer,
    TwoLayerDescent,
    rc_lemma7,
    rc_lemma8,
    rc_theorem6,
    two_layer_descent,
)
from inscape.theory.region_counts.vc_dimension import rc_theorem5, vc_dimension

__all__ = [
    "TwoLayer",
    "TwoLayerDescent",
    "rc_lemma7",
    "rc_lemma8",
    "rc_theorem5",
    "rc_theorem6",
    "two_layer_descent",
    "vc_dimension",
]
