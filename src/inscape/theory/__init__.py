"""Each theorem of four papers as a check: left side, right side, does it hold."""

from inscape.theory.check import Check
from inscape.theory.check_all import CheckTable, check_all
from inscape.theory.effective_regions import (
    el_corollary51,
    el_example1,
    el_theorem31,
    el_theorem32,
    el_theorem42,
)
from inscape.theory.layers import Layers, layers_of
from inscape.theory.local_complexity import (
    Moments,
    lc_corollary3_lower,
    lc_corollary3_upper,
    lc_corollary10,
    lc_corollary14,
    lc_gradient_bound,
    lc_proposition6,
    lc_proposition8,
    lc_proposition9,
    lc_proposition17,
    lc_theorem5_lower,
    lc_theorem5_upper,
    lc_theorem7,
    moments,
)
from inscape.theory.minima_stability import ms_lemma1, ms_lemma4, ms_theorem1, ms_theorem2
from inscape.theory.region_counts import (
    TwoLayer,
    TwoLayerDescent,
    rc_lemma7,
    rc_lemma8,
    rc_theorem5,
    rc_theorem6,
    two_layer_descent,
    vc_dimension,
)
from inscape.theory.survey import Survey, survey

__all__ = [
    "Check",
    "CheckTable",
    "Layers",
    "Moments",
    "Survey",
    "TwoLayer",
    "TwoLayerDescent",
    "check_all",
    "el_corollary51",
    "el_example1",
    "el_theorem31",
    "el_theorem32",
    "el_theorem42",
    "layers_of",
    "lc_corollary3_lower",
    "lc_corollary3_upper",
    "lc_corollary10",
    "lc_corollary14",
    "lc_gradient_bound",
    "lc_proposition6",
    "lc_proposition8",
    "lc_proposition9",
    "lc_proposition17",
    "lc_theorem5_lower",
    "lc_theorem5_upper",
    "lc_theorem7",
    "moments",
    "ms_lemma1",
    "ms_lemma4",
    "ms_theorem1",
    "ms_theorem2",
    "rc_lemma7",
    "rc_lemma8",
    "rc_theorem5",
    "rc_theorem6",
    "survey",
    "two_layer_descent",
    "vc_dimension",
]
