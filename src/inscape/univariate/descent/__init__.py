"""Gradient descent on univariate nets."""

from inscape.univariate.descent.descent import gradient_descent
from inscape.univariate.descent.result import Descent

__all__ = ["Descent", "gradient_descent"]
