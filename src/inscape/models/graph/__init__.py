"""The piecewise-affine graph: what exact methods need to know of a network, whatever file it came from."""

from inscape.models.graph.network import INPUT, Foreign, Graph, Node, flat

__all__ = ["INPUT", "Foreign", "Graph", "Node", "flat"]
