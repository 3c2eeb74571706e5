"""Networks with noise added to what every unit reads, as models that can be counted exactly."""

import numpy as np
import torch

from inscape.models.base import Model
from inscape.models.graph import INPUT, Graph, Node
from inscape.models.graph.affine import shift
from inscape.models.outputs import labels_of


class GraphModel(Model):
    """A model that is nothing but its piecewise-affine graph."""

    structure = "piecewise-affine"

    def __init__(self, graph):
        super().__init__("graph", input_shape=graph.input_shape, batch_size=None)
        self._graph = graph

    def graph(self, input_shape):
        return self._graph

    def fingerprint(self):
        return "0"

    def _call(self, x, *, with_scores):
        scores = self._graph.evaluate(torch.from_numpy(np.ascontiguousarray(x))).flatten(1).numpy()
        return labels_of(scores, self.name), scores


def perturbed(graph, layers, noise):
    """The graph in which every unit's bias is raised by its noise, one tensor (1, *shape) per layer."""
    added = {layer.node: n[0] for layer, n in zip(layers, noise, strict=True)}
    nodes, number = [INPUT], {0: 0}
    for i, node in enumerate(graph.nodes[1:], start=1):
        inputs = tuple(number[j] for j in node.inputs)
        if i in added:
            nodes.append(Node(shift(-added[i]), inputs, node.path))
            inputs = (len(nodes) - 1,)
        nodes.append(Node(node.op, inputs, node.path))
        number[i] = len(nodes) - 1
    return Graph(nodes, output=number[graph.output], input_shape=graph.input_shape)
