"""Checks of Safran, Vardi, Lee 2022: the width that gradient flow needs, and where it ends."""

from inscape.theory.effective_regions.flow_limit import (
    el_breakpoints,
    el_corollary51,
    el_example1,
    el_pl_condition,
    el_theorem23,
    el_theorem42,
)
from inscape.theory.effective_regions.sufficient_width import el_theorem31, el_theorem32

__all__ = [
    "el_breakpoints",
    "el_corollary51",
    "el_example1",
    "el_pl_condition",
    "el_theorem23",
    "el_theorem31",
    "el_theorem32",
    "el_theorem42",
]
