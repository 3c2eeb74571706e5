"""Gradient descent on univariate nets."""

from inscape.univariate.descent.descent import Descent, gradient_descent

__all__ = ["Descent", "gradient_descent"]
