"""From an ONNX file to the piecewise-affine graph, operation by operation.

The vocabulary is that of the standard, family by family; trees in a file are read as trees.
"""

import math
from pathlib import Path
from typing import Any

import torch

from inscape.arrays import Array, Shape
from inscape.errors import MissingExtraError
from inscape.models.from_onnx import (
    activations,
    arithmetic,
    linear_models,
    products,
    shapes,
    windows,
)
from inscape.models.from_onnx.steps import (
    ComparisonMask,
    Head,
    NodeTranslation,
    Reader,
    Varying,
    needed_nodes,
    stored,
    tensor,
)
from inscape.models.from_onnx.tree_nodes import read_tree_node, tree_node
from inscape.models.graph import affine
from inscape.models.graph.gates import Not, Positive
from inscape.models.graph.network import (
    Foreign,
    Graph,
    MixesPoints,
    NotSupportedYet,
    OnlyRounding,
    Unreadable,
    folded,
)
from inscape.models.graph.trace import HEADS, Trace, agree, is_residue, scores_and_infinite_node

__all__ = ["check", "read_onnx", "read_tree_node", "tree_node"]

TRANSLATIONS: dict[str, NodeTranslation] = {
    **shapes.TRANSLATIONS,
    **arithmetic.TRANSLATIONS,
    **products.TRANSLATIONS,
    **windows.TRANSLATIONS,
    **activations.TRANSLATIONS,
    **linear_models.TRANSLATIONS,
}
"""How each node of a file becomes nodes of the graph, by the name of its operation."""


def read_onnx(content: bytes, folder: Path, input_shape: Shape, *, output: str | None = None) -> Trace:
    """The graph of an ONNX file on points of one shape, or why it has none.

    Args:
        content: what the file holds.
        folder: where it lies; weights that it keeps in other files are read from there.
        input_shape: the shape of one point. If it has as many axes as the file's input, that input has no
            batch axis.
        output: the name of the output to follow, by default the first.

    The output's scores are vectors (c,), whatever shape the file gives them. That the points of a batch do
    not influence each other is left to the caller to check, who can run the file.
    """
    try:
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
    except ImportError as error:
        raise MissingExtraError("onnx", "onnx", "reading the operations of an .onnx model") from error
    try:
        model = onnx.load_model_from_string(content)
        load_external_data_for_model(model, str(folder))
        if model.functions:
            from onnx.inliner import inline_local_functions

            model = inline_local_functions(model)
    except Exception as error:  # protobuf, file system and checker each have classes of their own
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return _refused(f"a file that the onnx package cannot read ({line})")
    return _trace_of(model, input_shape, output)


def _trace_of(model: Any, input_shape: Shape, output: str | None) -> Trace:
    graph, constants = model.graph, stored(model.graph)
    inputs = [i for i in graph.input if i.name not in constants]
    name = output or graph.output[0].name
    if len(inputs) != 1:
        return _refused(f"{len(inputs)} inputs")
    batch, shape = _batch_of(inputs[0], input_shape)
    opsets = {o.domain: o.version for o in model.opset_import}
    reader = Reader(input_shape, opsets, TRANSLATIONS, batch, _dtype_of(inputs[0]))
    reader.values.update(constants)
    reader.values[inputs[0].name] = Varying(0, shape)
    reader.read(needed_nodes(graph, name))
    value = reader.values.get(name)
    if reader.foreign:
        return Trace(None, tuple(reader.foreign))
    if isinstance(value, ComparisonMask):
        value = _by_sign(reader, value)
    if value is None:
        return _refused(f"an output {name!r} of comparisons")
    if not isinstance(value, Varying):
        return _refused(f"an output {name!r} that does not depend on the input")
    flat = (math.prod(reader.shape(value.node)),)
    nodes, end = folded(reader.nodes, reader.laid(value.node, flat, ""))
    head = value.head.name if value.head is not None else None
    return Trace(Graph(nodes, output=end, input_shape=input_shape, head=head))


def _by_sign(reader: Reader, compared: ComparisonMask) -> Varying | None:
    """The score whose sign is what a comparison says of a point; None if it says more."""
    condition, sign = compared.condition, 1.0
    while isinstance(condition, Not):
        condition, sign = condition.condition, -sign
    if not isinstance(condition, Positive) or math.prod(compared.shape) > 1:
        return None
    node = (
        condition.node if sign > 0 else reader.emit(affine.scale(torch.tensor(sign)), (condition.node,), "")
    )
    return Varying(node, compared.shape, Head("positive", compared.origin))


def _refused(reason: str, kind: type[Unreadable] = NotSupportedYet) -> Trace:
    return Trace(None, (Foreign(reason, "", kind),))


def _batch_of(info: Any, input_shape: Shape) -> tuple[int | None, Shape]:
    """The number of points that the file takes at once (None: any), and the shape of its input for one."""
    declared = info.type.tensor_type
    sizes = [d.dim_value for d in declared.shape.dim] if declared.HasField("shape") else None
    if sizes is not None and len(sizes) == len(input_shape) and all(sizes):
        return 1, input_shape
    return (sizes[0] or None) if sizes else None, (1, *input_shape)


def _dtype_of(info: Any) -> torch.dtype:
    """The precision of an input."""
    from onnx import TensorProto

    kinds = {TensorProto.DOUBLE: torch.float64, TensorProto.FLOAT16: torch.float16}
    return kinds.get(info.type.tensor_type.elem_type, torch.float32)


def check(graph: Graph, x: Array, scores: Array | None) -> Trace:
    """The graph, refused if it disagrees with the file's scores (n, c), if any, at points (n, ...)."""
    points = tensor(x)
    strange = scores_and_infinite_node(graph, points)[1]
    if strange is not None:
        return Trace(None, (strange,))
    if scores is None:
        return Trace(graph)
    out = tensor(scores)
    if out.dtype == torch.float64 and points.dtype == torch.float32:
        out = out.float()  # what is cast to more digits in the end has no more right ones
    computed = graph.evaluate(points if points.dtype == torch.float64 else points.float())
    if graph.head == "order":
        same = bool((computed.argmax(1) == out.argmax(1)).all())
    elif graph.head == "positive":
        same = bool(((computed > 0) == (out > 0)).all())
    else:
        same = agree(computed if graph.head is None else HEADS[graph.head](computed), out)
        if not same and is_residue(graph, points, out):
            return _refused(f"scores no larger than {float(out.abs().max()):.1g}", OnlyRounding)
    return Trace(graph) if same else _refused("a result that is not that of each point alone", MixesPoints)
