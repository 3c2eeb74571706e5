"""The units of a network: the entries at which it bends."""

import math
from dataclasses import dataclass

from inscape.arrays import Shape
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows


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
    layers: list[Layer] = []
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, Bend) and node.op.kinks:
            path = node.path or f"{node.op.name} {len(layers) + 1}"
            layers.append(Layer(i, node.inputs[0], graph.shapes[i], node.op.kinks, path))
    return tuple(layers)


def window_nodes(graph: Graph) -> int:
    """How many max-pooling nodes the graph has: their kinks belong to no unit."""
    return sum(isinstance(n.op, Windows) for n in graph.nodes)
