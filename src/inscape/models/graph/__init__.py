"""The piecewise-affine graph: what exact methods need to know of a network, whatever file it came from."""

from inscape.models.graph.ir import Foreign, Graph, Node

__all__ = ["Foreign", "Graph", "Node"]
