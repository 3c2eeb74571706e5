"""A torch module behind its preparation, as one module that torch differentiates."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.models.base import LAYOUTS
from inscape.models.preparing.preprocessing import Preparation


class InPrecision(torch.nn.Module):
    """A module that prepares points; one without numbers of its own computes in the precision of the model.

    Args:
        function: the module; it is not copied.
        dtype: of the model that it prepares points for.
    """

    def __init__(self, function: Any, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self.function = function
        if not [*function.parameters(), *function.buffers()]:
            kind = torch.float64 if dtype == np.float64 else torch.float32
            self.register_buffer("precision", torch.zeros(1, dtype=kind))

    def forward(self, x: Tensor) -> Any:
        """The points that the model is given."""
        return self.function(x)


class PreparedModule(torch.nn.Module):
    """Transposes and normalises points, then asks the network, whose parameters it has, by their names.

    Args:
        network: the module that predicts; it is not copied.
        preparation: what happens to points first.
        function: the module that stands in the preparation, or None for a normalisation.
    """

    def __init__(
        self, network: torch.nn.Module, preparation: Preparation, function: torch.nn.Module | None
    ) -> None:
        super().__init__()
        self.network = network
        self.preparation = preparation
        self.function = function

    def forward(self, x: Tensor) -> Any:
        """What the network makes of data points (n, ...)."""
        layout = self.preparation.layout
        if layout is not None:
            self.preparation.turned(tuple(x.shape[1:]))
            x = x.permute(0, *(a + 1 for a in LAYOUTS[layout])).contiguous()  # vmap takes no other
        if self.function is not None:
            return self.network(self.function(x))
        factor, offset = (
            torch.from_numpy(c).to(x) for c in self.preparation.coefficients(tuple(x.shape[1:]))
        )
        return self.network(x * factor + offset)

    def named_parameters(self, *args: Any, **options: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters of the network alone: what prepares the points is not trained."""
        return self.network.named_parameters(*args, **options)
