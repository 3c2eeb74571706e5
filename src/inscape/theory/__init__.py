"""Each theorem of four papers as a check: left side, right side, does it hold."""

from inscape.theory.check import Check
from inscape.theory.check_all import CheckTable, check_all
from inscape.theory.el_limit import el_corollary51, el_example1, el_theorem42
from inscape.theory.el_width import el_theorem31, el_theorem32
from inscape.theory.layers import Layers, layers_of
from inscape.theory.lc_decay import lc_corollary10
from inscape.theory.lc_density import lc_corollary3_lower, lc_corollary3_upper, lc_gradient_bound
from inscape.theory.lc_moments import Moments, moments
from inscape.theory.lc_rank import lc_corollary14, lc_theorem5_lower, lc_theorem5_upper
from inscape.theory.lc_variation import lc_proposition6, lc_theorem7
from inscape.theory.lc_weights import lc_proposition8, lc_proposition9, lc_proposition17
from inscape.theory.ms_stability import ms_lemma1, ms_lemma4, ms_theorem1, ms_theorem2
from inscape.theory.rc_edge import rc_lemma7, rc_lemma8, rc_theorem6
from inscape.theory.rc_vc import rc_theorem5, vc_dimension
from inscape.theory.survey import Survey, survey
from inscape.theory.two_layer import TwoLayer
from inscape.theory.two_layer_descent import TwoLayerDescent, two_layer_descent

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
