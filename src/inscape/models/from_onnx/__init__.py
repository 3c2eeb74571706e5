"""From an ONNX file to the piecewise-affine graph, operation by operation."""

from inscape.models.from_onnx.reading import read_onnx

__all__ = ["read_onnx"]
