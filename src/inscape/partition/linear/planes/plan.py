"""The plan of a walk over a plane: which tensors are read when and how large they are; and their memory.

New memory costs time when it is first written, since the system clears it: for a quarter of a gigabyte about
a tenth of the time of a walk that needs so much. So the chunks of a plane use the same memory in turn, and a
network whose planes are walked one after the other, by each of several threads, keeps the memory of its last
walks, if that is not too much, until the network is gone or another one is walked.
"""

import math
import threading
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from inscape.models.graph import Graph
from inscape.models.graph.network import Fusion
from inscape.models.graph.piecewise import Bend
from inscape.probes.plane import Plane

_MEMORY_AHEAD = 4
"""How many times the memory that a tensor needs is requested: what is not written costs nothing."""

KEPT_BYTES = 2**28
"""How many bytes of one walk are kept at most ..."""

N_KEPT = 4
"""... and of how many walks, since several threads may walk in parallel."""

KEPT: WeakKeyDictionary[Graph, list[Tensor]] = WeakKeyDictionary()
"""Network -> the memory of its last walks; of one network at most."""

_KEEPING = threading.Lock()


def empty(shape: tuple[int, ...]) -> Tensor:
    """A float64 tensor in memory from numpy, which asks for huge pages: first use is four times cheaper."""
    return torch.from_numpy(np.empty(shape))


class Scratch:
    """Memory for the large tensors of one walk with a network."""

    def __init__(self, graph: Graph, memory: int) -> None:
        """`memory` is how many bytes they may take."""
        self._graph, self._memory = graph, memory
        self._taken: list[Tensor] = []
        with _KEEPING:
            kept = KEPT.pop(graph, [])
            KEPT.clear()
            self._free = kept[:1]
            if kept[1:]:
                KEPT[graph] = kept[1:]

    def vectors(self, n: int, h: int) -> Tensor:
        """Memory for n vectors of h numbers, at the start of memory that may be larger."""
        large_enough = [tensor for tensor in self._free if tensor.numel() >= n * h]
        if large_enough:
            tensor = min(large_enough, key=Tensor.numel)
        else:
            tensor = empty((max(n * h, min(_MEMORY_AHEAD * n * h, self._memory // 8)),))
        self._free = [other for other in large_enough if other is not tensor]
        self._taken = [*self._taken[-1:], tensor]  # earlier ones may still be in use
        return tensor[: n * h].view(n, h)

    def hold(self) -> None:
        """Leave in use what was taken so far."""
        self._taken = []

    def release(self) -> None:
        """Free what was taken since, which nothing reads any more."""
        self._free, self._taken = (self._free + self._taken)[-2:], []

    def keep(self) -> None:
        """Keep the memory of a walk that is done for the next."""
        self.release()
        tensor = max(self._free, key=Tensor.numel, default=None)
        if tensor is not None and 8 * tensor.numel() <= KEPT_BYTES:
            with _KEEPING:
                KEPT[self._graph] = [*KEPT.get(self._graph, []), tensor][-N_KEPT:]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a walk reads of a network, up to the node where it ends.

    Attributes:
        graph: the network.
        plane: where coordinates lie in the input space.
        layers: the piecewise-linear nodes that are taken into account, in order.
        last: the last node that is evaluated.
        has_output: whether the value of that node is wanted, not only where its units change.
        memory: bytes that tensors may take.
        scratch: the memory of the large ones.
    """

    graph: Graph
    plane: Plane
    layers: tuple[int, ...]
    last: int
    has_output: bool
    memory: int
    scratch: Scratch

    @cached_property
    def sizes(self) -> list[int]:
        """How many numbers each node has per point."""
        return [max(1, math.prod(s)) for s in self.graph.shapes]

    def is_needed(self, node: int, after: int) -> bool:
        """Whether a node's tensor is read by a node that comes later than `after`."""
        return self.continues_after(after) and self.graph.last_use[node] > after

    def continues_after(self, node: int) -> bool:
        """Whether tensors are needed after a node."""
        return self.last > node or self.has_output

    def matrix_after(self, node: int) -> Fusion | None:
        """The linear map right after an elementwise node, if it is a matrix product that is evaluated."""
        fusion = self.graph.fusions.get(node)
        return None if fusion is None or fusion.geometry is not None or fusion.last > self.last else fusion

    def elementwise_after(self, node: int) -> Bend | None:
        """The elementwise node right after a node, if there is one and it reads that node."""
        following = self.graph.nodes[node + 1] if node + 1 in self.layers else None
        if following is None or following.inputs != (node,):
            return None
        return following.bend if following.op.is_elementwise else None

    def ends_with_signs(self, node: int) -> bool:
        """Whether only the signs of a node are wanted, by an elementwise node after it that is the last."""
        return self.elementwise_after(node) is not None and not self.continues_after(node + 1)

    def chunk_vertices(self, node: int) -> int:
        """How many vertices a chunk may have from a piecewise-linear node on, all its tensors being kept."""
        per_vertex, largest = 0, self.sizes[node]
        for k in range(node, self.last + 1):
            largest = max(largest, self.sizes[k])
            if k == self.last or not self.graph.nodes[k + 1].is_affine:
                per_vertex, largest = per_vertex + 3 * largest, 0
        return max(64, self.memory // (8 * max(1, per_vertex)))

    def stage_bytes(self, node: int, kept: list[int]) -> int:
        """Bytes per vertex from a piecewise-linear node to the next: its tensors and those kept for later."""
        largest, k = self.sizes[node], node + 1
        while k <= self.last and self.graph.nodes[k].is_affine:
            largest, k = max(largest, self.sizes[k]), k + 1
        return 8 * (sum(self.sizes[k] for k in kept) + 3 * largest)
