"""What a walk over a plane needs to know of a network: what is read when, and how large it is."""

import math
from dataclasses import dataclass
from functools import cached_property

from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Clip, Leaky
from inscape.partition.linear.fusion import Fusion, fusions
from inscape.partition.linear.planes.values.scratch import Scratch
from inscape.probes.plane import Plane


@dataclass(frozen=True, eq=False)
class Plan:
    """A network, up to the node where a walk ends.

    Attributes:
        graph: the network.
        plane: where coordinates lie in the input space.
        layers: the piecewise-linear nodes that are taken into account, in order.
        last: the last node that is evaluated.
        has_output: whether its value is wanted, not only where its units change.
        memory: bytes that tensors may take.
        scratch: where the large ones are.
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
        """Whether a node's tensor is read after the node given."""
        return self.goes_on(after) and self.graph.last_use[node] > after

    def goes_on(self, node: int) -> bool:
        """Whether tensors are needed after a node."""
        return self.last > node or self.has_output

    def matrix_after(self, node: int) -> Fusion | None:
        """The linear map right after an elementwise node, if it is a matrix product that is evaluated."""
        fusion = fusions(self.graph).get(node)
        return None if fusion is None or fusion.geometry is not None or fusion.last > self.last else fusion

    def elementwise_after(self, node: int) -> Bend | None:
        """The elementwise node right after a node, if that is what reads it."""
        following = self.graph.nodes[node + 1] if node + 1 in self.layers else None
        if following is None or following.inputs != (node,):
            return None
        return following.op if isinstance(following.op, Leaky | Clip) else None

    def ends_with_signs(self, node: int) -> bool:
        """Whether all that is wanted of a node is its signs, for the elementwise node after it, the last."""
        return self.elementwise_after(node) is not None and not self.goes_on(node + 1)

    def chunk_vertices(self, node: int) -> int:
        """How many vertices a chunk may have from a piecewise-linear node on, all its tensors being kept."""
        each, largest = 0, self.sizes[node]
        for k in range(node, self.last + 1):
            largest = max(largest, self.sizes[k])
            if k == self.last or not self.graph.nodes[k + 1].is_affine:
                each, largest = each + 3 * largest, 0
        return max(64, self.memory // (8 * max(1, each)))

    def stage_bytes(self, node: int, kept: list[int]) -> int:
        """Bytes per vertex from a piecewise-linear node to the next: its tensors and those kept for later."""
        largest, k = self.sizes[node], node + 1
        while k <= self.last and self.graph.nodes[k].is_affine:
            largest, k = max(largest, self.sizes[k]), k + 1
        return 8 * (sum(self.sizes[k] for k in kept) + 3 * largest)
