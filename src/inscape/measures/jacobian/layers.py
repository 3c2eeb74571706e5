"""The units of a network: the entries at which it bends."""

import math
from dataclasses import dataclass

from torch import Tensor

from inscape.arrays import Shape
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Clip, Leaky, Windows


@dataclass(frozen=True, eq=False)
class Layer:
    """The units of one elementwise piecewise-linear node; unit i reads entry i of the node `source`.

    Attributes:
        node: the number of the bend in the graph.
        source: the number of the node that it reads.
        shape: the row shape of both.
        kinks: the thresholds at which a unit bends: 0 for a relu, the bounds of a clip.
        name: the module that holds it, for tables.
    """

    node: int
    source: int
    shape: Shape
    kinks: tuple[float, ...]
    name: str

    @property
    def size(self) -> int:
        """How many units."""
        return math.prod(self.shape)


def unit_layers(graph: Graph) -> tuple[Layer, ...]:
    """The layers of units in order of evaluation.

    Every entry of a relu, leaky relu, prelu, abs, clip or maximum is a unit, so every place of a
    convolutional layer has its own. The windows of max-pooling have no bias and are none.
    """
    found: list[Layer] = []
    for i, node in enumerate(graph.nodes):
        kinks = _kinks(node.op)
        if kinks:
            path = node.path or f"{getattr(node.op, 'name', 'unit')} {len(found) + 1}"
            found.append(Layer(i, node.inputs[0], graph.shapes[i], kinks, path))
    return tuple(found)


def window_nodes(graph: Graph) -> int:
    """How many max-pooling nodes the graph has: their kinks belong to no unit."""
    return sum(isinstance(n.op, Windows) for n in graph.nodes)


def _kinks(op: object) -> tuple[float, ...]:
    if isinstance(op, Leaky):
        straight = bool((op.slope == 1.0).all()) if isinstance(op.slope, Tensor) else op.slope == 1.0
        return () if straight else (0.0,)
    if isinstance(op, Clip):
        return tuple(b for b in (op.low, op.high) if math.isfinite(b))
    return ()
