"""The units of a network, the entries at which it bends, and random perturbations of biases and weights.

A perturbed bias is b_i = beta_i + N(0, sigma^2), as in Def. 1.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Shape
from inscape.errors import MeasureError, unknown_name
from inscape.models.graph import Graph, Node

KINDS = ("bias", "bias+weights")


@dataclass(frozen=True, eq=False)
class Layer:
    """The units of one elementwise piecewise-linear node; unit i reads entry i of the node `source`.

    Attributes:
        node: the number of the bend in the graph.
        source: the number of the node that it reads.
        shape: the shape of a point of both.
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
    for i, bend in graph.bends.items():
        if bend.kinks:
            node = graph.nodes[i]
            path = node.path or f"{bend.name} {len(layers) + 1}"
            layers.append(Layer(i, node.inputs[0], graph.shapes[i], bend.kinks, path))
    return tuple(layers)


def window_nodes(graph: Graph) -> int:
    """How many max-pooling nodes the graph has: their kinks belong to no unit."""
    return sum(not bend.is_elementwise for bend in graph.bends.values())


@dataclass(frozen=True)
class Draws:
    """How often and how a network is perturbed; `sigma=None` is the network as it is, once.

    Two consumers with equal draws see the same perturbed networks.
    """

    sigma: float | None = None
    n: int = 1
    kind: str = "bias"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MeasureError(unknown_name("noise", self.kind, KINDS))
        if self.sigma is not None:
            sigma = positive_number(self.sigma, "sigma", MeasureError, ": the spread of the biases")
            object.__setattr__(self, "sigma", sigma)

    @classmethod
    def on_biases(cls, sigma: float | None, n: int, seed: int) -> Self:
        """`n` draws of the biases, perturbed, or the network as it is if `sigma` is None."""
        return (
            cls() if sigma is None else cls(sigma, whole_number(n, "n_noise", 1, MeasureError), "bias", seed)
        )

    def biases(self, k: int, layers: tuple[Layer, ...], dtype: torch.dtype) -> list[Tensor] | None:
        """What draw k adds to the bias of each unit, one (1, *shape) per layer; None if nothing."""
        if self.sigma is None or not layers:
            return None
        rng = np.random.default_rng([self.seed, k])
        perturbation = rng.standard_normal(sum(layer.size for layer in layers)) * self.sigma
        by_layer = np.split(perturbation, np.cumsum([layer.size for layer in layers])[:-1])
        return [
            torch.from_numpy(p).to(dtype).reshape(1, *layer.shape)
            for p, layer in zip(by_layer, layers, strict=True)
        ]

    def graph(self, k: int, graph: Graph) -> Graph:
        """The graph whose weights are those of draw k; the graph itself if only biases are perturbed."""
        if self.sigma is None or self.kind == "bias":
            return graph
        rng = np.random.default_rng([self.seed, k, 1])
        nodes = [_perturbed(node, self.sigma, rng) for node in graph.nodes]
        return Graph(nodes, output=graph.output, input_shape=graph.input_shape, head=graph.head)


def _perturbed(node: Node, sigma: float, rng: np.random.Generator) -> Node:
    """The node with N(0, sigma^2) added to each of its weights, if it has any."""
    op = node.affine
    if op is None or op.weight is None:
        return node
    perturbation = torch.from_numpy(rng.standard_normal(tuple(op.weight.shape)) * sigma)
    constants = (op.weight.double() + perturbation, *op.constants[1:])
    return replace(node, op=replace(op, constants=constants, then=None))
