"""Gradient flow of univariate nets, to its limit direction."""

from inscape.univariate.flow.flow import gradient_flow
from inscape.univariate.flow.result import Flow

__all__ = ["Flow", "gradient_flow"]
