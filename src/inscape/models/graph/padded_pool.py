"""Max-pooling with padding that differs from side to side, as files have it."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.models.graph.piecewise import MaxPool, Windows


@dataclass(frozen=True, eq=False)
class PaddedMaxPool(Windows):
    """Max-pooling of a row that is first padded with minus infinity.

    Attributes:
        pool: the pooling itself, without padding.
        widths: as `torch.nn.functional.pad` takes them: from the last axis backwards, two per axis.
    """

    pool: MaxPool
    widths: tuple[int, ...]
    name: str = "max_pool"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        return self.pool(F.pad(x, self.widths, value=-math.inf))

    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers of each window in the row before padding."""
        numbers = F.pad(torch.arange(math.prod(shape)).reshape(shape), self.widths, value=-1)
        return numbers.reshape(-1)[self.pool.table(tuple(numbers.shape))]
