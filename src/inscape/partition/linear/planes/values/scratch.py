"""Memory for the large tensors of a walk.

New memory costs time when it is first written, since the system clears it: for a quarter of a gigabyte about
a tenth of what a walk takes that needs so much. So the chunks of a plane take turns with it, and a network
whose planes are walked one after the other keeps the memory of the last walk, if that is not too much, as
long as it lives and no other network is walked.
"""

from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from inscape.models.graph import Graph

_ASKED_FOR = 4
"""How many times the memory that a tensor needs is asked for: what is not written costs nothing."""

KEPT_BYTES = 2**28
"""How many bytes are kept at most."""

KEPT: WeakKeyDictionary[Graph, Tensor] = WeakKeyDictionary()
"""Network -> the memory of its last walk; of one network at most."""


def empty(shape: tuple[int, ...]) -> Tensor:
    """A float64 tensor in memory from numpy, which asks for huge pages: first use is four times cheaper."""
    return torch.from_numpy(np.empty(shape))


class Scratch:
    """Memory for the large tensors of one walk with a network."""

    def __init__(self, graph: Graph, memory: int) -> None:
        """`memory` is how many bytes they may take."""
        self._graph, self._memory = graph, memory
        kept = KEPT.pop(graph, None)
        self._free: list[Tensor] = [] if kept is None else [kept]
        self._taken: list[Tensor] = []
        KEPT.clear()

    def rows(self, n: int, h: int) -> Tensor:
        """Memory for n rows of h numbers, at the start of what may be larger."""
        fitting = [tensor for tensor in self._free if tensor.numel() >= n * h]
        if fitting:
            tensor = min(fitting, key=Tensor.numel)
        else:
            tensor = empty((max(n * h, min(_ASKED_FOR * n * h, self._memory // 8)),))
        self._free = [other for other in fitting if other is not tensor]
        self._taken = [*self._taken[-1:], tensor]  # how long earlier ones are in use is not known
        return tensor[: n * h].view(n, h)

    def hold(self) -> None:
        """What was taken so far stays in use."""
        self._taken = []

    def release(self) -> None:
        """What was taken since is not needed any more."""
        self._free, self._taken = (self._free + self._taken)[-2:], []

    def keep(self) -> None:
        """The walk is done, and its tensors are not needed any more."""
        self.release()
        tensor = max(self._free, key=Tensor.numel, default=None)
        if tensor is not None and 8 * tensor.numel() <= KEPT_BYTES:
            KEPT[self._graph] = tensor
