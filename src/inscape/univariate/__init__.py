"""The laboratory for univariate networks f(x) = sum_j v_j relu(w_j x + b_j) + c."""

from inscape.univariate.descent import Descent, DescentHistory, gradient_descent
from inscape.univariate.flow import Flow, FlowHistory, gradient_flow
from inscape.univariate.initialisation import TheoremSizes, theorem_sizes
from inscape.univariate.kkt import KKTResidual, kkt_residual
from inscape.univariate.limit_regions import (
    LimitRegions,
    effective_linear_regions,
    label_changes,
    limit_regions,
    region_bound,
)
from inscape.univariate.net import RegionTable, ShallowNet
from inscape.univariate.stability import (
    Flattest,
    LinearStability,
    Stability,
    StrongStability,
    flattest,
    linear_stability,
    population_weight,
    stability,
    strong_stability,
    weight,
)
from inscape.univariate.teacher import (
    alternating_teacher,
    labels_of,
    least_error,
    population_error,
    random_teacher,
    shortest_interval,
    strict_teacher_of,
    teacher_of,
)

__all__ = [
    "Descent",
    "DescentHistory",
    "Flattest",
    "Flow",
    "FlowHistory",
    "KKTResidual",
    "LimitRegions",
    "LinearStability",
    "RegionTable",
    "ShallowNet",
    "Stability",
    "StrongStability",
    "TheoremSizes",
    "alternating_teacher",
    "effective_linear_regions",
    "flattest",
    "gradient_descent",
    "gradient_flow",
    "kkt_residual",
    "label_changes",
    "labels_of",
    "least_error",
    "limit_regions",
    "linear_stability",
    "population_error",
    "population_weight",
    "random_teacher",
    "region_bound",
    "shortest_interval",
    "stability",
    "strict_teacher_of",
    "strong_stability",
    "teacher_of",
    "theorem_sizes",
    "weight",
]
