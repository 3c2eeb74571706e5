"""Gradient flow of univariate nets, to its limit direction."""

from inscape.univariate.flow.flow import Flow, gradient_flow

__all__ = ["Flow", "gradient_flow"]
