"""Gradient flow of univariate nets, to its limit direction."""

from inscape.univariate.flow.flow import Flow, FlowHistory, gradient_flow

__all__ = ["Flow", "FlowHistory", "gradient_flow"]
