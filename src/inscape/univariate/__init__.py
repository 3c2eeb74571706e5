"""The laboratory for univariate networks f(x) = sum_j v_j relu(w_j x + b_j) + c."""

from inscape.univariate.descent import Descent, gradient_descent
from inscape.univariate.net import ShallowNet
from inscape.univariate.stability import Stability, stability

__all__ = ["Descent", "ShallowNet", "Stability", "gradient_descent", "stability"]
