"""From an ONNX file to the piecewise-affine graph, operation by operation."""

from inscape.models.from_onnx.reading import read_onnx
from inscape.models.from_onnx.tree_nodes import read_tree_node, tree_node

__all__ = ["read_onnx", "read_tree_node", "tree_node"]
