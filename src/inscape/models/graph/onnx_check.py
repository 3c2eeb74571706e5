"""Compare the graph of an ONNX file with what the file computes."""

import torch

from inscape.models.base import Array, labels_of
from inscape.models.graph.ir import Foreign, Graph
from inscape.models.graph.onnx_constants import tensor
from inscape.models.graph.trace import HEADS, Trace, agree, infinite_node


def check(graph: Graph, x: Array, scores: Array | None, labels: Array | None) -> Trace:
    """The graph, refused if it disagrees with the file's scores (n, c) or labels (n,) at points (n, ...)."""
    points = tensor(x)
    strange = infinite_node(graph, points)
    if strange is not None:
        return Trace(None, (strange,))
    found = graph.evaluate(points if points.dtype == torch.float64 else points.float())
    if scores is not None:
        expected = tensor(scores)
        values = found if graph.head is None else HEADS[graph.head](found)
        if not agree(values, expected):
            return Trace(None, (Foreign("a result that is not that of each point alone", ""),))
    if labels is not None and not _same_labels(found, labels):
        return Trace(None, (Foreign("labels that are not those of the largest score", ""),))
    return Trace(graph)


def _same_labels(scores: torch.Tensor, labels: Array) -> bool:
    return labels.dtype.kind in "iu" and bool((labels_of(scores.numpy(), "the graph") == labels).all())
