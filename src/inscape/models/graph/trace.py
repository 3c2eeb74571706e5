"""What a front end found in a model: its graph, or the operations that stand in the way."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.models.graph.ir import Foreign, Graph, refuse

HEADS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "sigmoid": torch.sigmoid,
}
"""What may end a model without changing a label."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What was found: the graph, or the foreign operations that prevent it."""

    graph: Graph | None
    foreign: tuple[Foreign, ...] = ()

    def require(self, name: str) -> Graph:
        """The graph, or an error that says why there is none."""
        if self.graph is None:
            raise refuse(name, self.foreign)
        return self.graph


def agree(scores: Tensor, out: Tensor) -> bool:
    """Whether two results are equal up to the rounding of the model's own precision, that of `out`."""
    if scores.numel() != out.numel():
        return False
    expected = out.detach().cpu().double()
    scale = expected.abs().max().clamp(min=1e-30)
    error = (scores.reshape(expected.shape) - expected).abs().max()
    return bool(error <= math.sqrt(torch.finfo(out.dtype).eps) * scale)
