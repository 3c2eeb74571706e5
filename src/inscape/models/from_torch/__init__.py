"""From a torch module to the piecewise-affine graph: one recorded forward pass."""

from inscape.models.from_torch.tracing import trace

__all__ = ["trace"]
