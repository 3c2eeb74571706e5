"""From a torch module to the piecewise-affine graph: one recorded forward pass.

The vocabulary is that of ATen, family by family: what moves entries, adds them up, multiplies them with
weights, bends, and what may end a model.
"""

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.from_torch.bends import BENDS
from inscape.models.from_torch.endings import ENDINGS
from inscape.models.from_torch.matrices import MATRICES
from inscape.models.from_torch.moving import MOVES
from inscape.models.from_torch.recorder import Translation
from inscape.models.from_torch.sums import SUMS
from inscape.models.from_torch.tracing import recorded
from inscape.models.from_torch.writes import REPLACEMENTS
from inscape.models.graph.trace import Trace

TRANSLATIONS: dict[str, Translation] = {**MOVES, **SUMS, **MATRICES, **BENDS, **REPLACEMENTS, **ENDINGS}
"""How each ATen call becomes nodes, by its name without overload."""


def trace(
    module: torch.nn.Module, input_shape: Shape, *, n_rows: int | None = None, points: Tensor | None = None
) -> Trace:
    """The graph of a module on inputs of one shape, or why it has none; see `recorded`."""
    return recorded(module, input_shape, TRANSLATIONS, n_rows=n_rows, points=points)


__all__ = ["trace"]
