"""The linear part of an affine operation, as an operation."""

import torch
from torch import Tensor

from inscape.models.graph.affine import Affine


def linear_part(op: Affine) -> Affine:
    """The operation d -> op(x + d) - op(x), which does not depend on x.

    >>> from inscape.models.graph.affine import linear
    >>> linear_part(linear(torch.eye(2), torch.ones(2)))(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """
    if op.name in ("linear", "conv", "conv_transpose"):
        return Affine(op.name, op.function, op.constants[:1])
    if op.name == "batch_norm":
        factor, offset = op.constants
        return Affine(op.name, op.function, (factor, torch.zeros_like(offset)))
    if op.name in ("add", "concat") and op.constants:
        return Affine(op.name, op.function, tuple(torch.zeros_like(c) for c in op.constants))
    if op.name == "pad":

        def apply(d: Tensor) -> Tensor:
            return op(d) - op(torch.zeros_like(d[:1]))

        return Affine(op.name, apply)
    return op
