"""From a torch module to the piecewise-affine graph: one recorded forward pass.

The vocabulary is that of ATen, family by family: what moves entries, adds them up and multiplies them with
weights, replaces some of them, bends, and what may end a model.
"""

from inscape.models.from_torch.tracing import trace

__all__ = ["trace"]
