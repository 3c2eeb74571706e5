"""Gradient descent on univariate nets."""

from inscape.univariate.descent.descent import Descent, DescentHistory, gradient_descent

__all__ = ["Descent", "DescentHistory", "gradient_descent"]
