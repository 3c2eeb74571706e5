"""From a torch module to the piecewise-affine graph: one recorded forward pass.

The vocabulary is that of ATen, family by family: what moves entries, adds them up and multiplies them with
weights, replaces some of them, bends, and what may end a model.
"""

from typing import Any

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.from_torch.moving import MOVING
from inscape.models.from_torch.nonlinear import BENDS, ENDINGS
from inscape.models.from_torch.obstacles import called
from inscape.models.from_torch.recorder import CallTranslation, Recorder, Value
from inscape.models.from_torch.sums_and_products import MATRICES, SUMS
from inscape.models.from_torch.writes import REPLACEMENTS
from inscape.models.graph.affine import MOVES, by_torch
from inscape.models.graph.gates import Positive
from inscape.models.graph.network import (
    Foreign,
    Graph,
    NotSupportedYet,
    OnlyRounding,
    WritesEntries,
    folded,
    needed,
)
from inscape.models.graph.trace import (
    HEADS,
    PROBABILITIES,
    Trace,
    agree,
    is_residue,
    scores_and_infinite_node,
)
from inscape.models.outputs import labels_of, scores_among

TRANSLATIONS: dict[str, CallTranslation] = {**MOVING, **SUMS, **MATRICES, **BENDS, **REPLACEMENTS, **ENDINGS}
"""How each ATen call becomes nodes, by its name without overload."""
_LAYERS = (
    "linear conv conv_transpose batch_norm addmm mm bmm matmul convolution native_batch_norm "
    "_native_batch_norm_legit_no_training cudnn_batch_norm"
)
LAYERS = frozenset(_LAYERS.split())
"""Operations with weights, by the names of nodes and ATen's calls."""
N_POINTS = 3  # enough to tell the batch axis from axes of size one or two


def trace(
    module: torch.nn.Module, input_shape: Shape, *, n_points: int | None = None, points: Tensor | None = None
) -> Trace:
    """The graph of a module on inputs of one shape, or why it has none.

    Args:
        module: runs once; call this with the module in the state that it is to be read in (eval mode).
        input_shape: the shape of one point.
        n_points: the only batch length that the module takes, if it is fixed.
        points: the batch to record, (n, *input_shape); by default a few random ones.

    The graph must reproduce the module's own output on the points that were recorded; a module that computes
    something outside torch, so out of sight, fails that and counts as foreign.
    """
    like = next(module.parameters(), next(module.buffers(), torch.zeros(())))
    dtype = like.dtype if like.dtype.is_floating_point else torch.float32
    random = torch.Generator().manual_seed(0)
    x = torch.randn(n_points or N_POINTS, *input_shape, generator=random) if points is None else points
    x = x.to(like.device, dtype)
    traced = _run(module, module, x.clone())
    if not any(issubclass(f.kind, WritesEntries) for f in traced.foreign):
        return traced
    try:  # the same without side effects: a write into part of a tensor makes a new one
        return _run(module, torch.func.functionalize(module), x)
    except RuntimeError:  # not every module can be rewritten so
        return traced


def _run(module: torch.nn.Module, function: Any, x: Tensor) -> Trace:
    """What is recorded of one call of a function, in which a module runs."""
    recorder = Recorder(x, {m: name for name, m in module.named_modules()}, TRANSLATIONS)
    recorded = x.detach().cpu().clone()
    with torch.no_grad(), recorder.paths(), recorder:
        out = scores_among(function(x))
    with by_torch():
        return _trace_of(recorder, recorded, out, tuple(recorded.shape[1:]))


def _trace_of(recorder: Recorder, recorded: Tensor, out: Any, input_shape: Shape) -> Trace:
    value = recorder.value(out) if isinstance(out, Tensor) else None
    if value is None or value.at(0) != Value(0):
        kind = "" if isinstance(out, Tensor) else f" (a {type(out).__name__})"
        reason = f"an output{kind} that torch does not compute from the input"
        return Trace(None, (Foreign(reason, "", NotSupportedYet),))
    output, head = _before_head(recorder, value.node, out)
    ending = head or _ending(recorder, value.node)
    nodes, foreign = recorder.nodes, list(recorder.branches)
    foreign += [f for i, f in sorted(recorder.opaque.items()) if i in needed(nodes, output)]
    if foreign:
        return Trace(None, tuple(dict.fromkeys(foreign)), ending)
    nodes, output = folded(nodes, output)
    graph = Graph(nodes, output=output, input_shape=input_shape, head=head)
    scores, strange = scores_and_infinite_node(graph, recorded)
    if strange is not None:
        return Trace(None, (strange,), ending)
    if torch.finfo(recorded.dtype).bits < (torch.finfo(out.dtype).bits if out.is_floating_point() else 0):
        out = out.to(recorded.dtype)  # what is cast to more digits in the end has no more right ones
    if not _is_reproduced(graph, scores, out):
        return Trace(None, (_difference(graph, recorded, out),))
    return Trace(graph, ending=ending)


def _difference(graph: Graph, recorded: Tensor, out: Tensor) -> Foreign:
    """Why the graph does not give a module's own output."""
    if graph.head not in ("argmax", "positive") and is_residue(graph, recorded, out):
        return Foreign(f"scores no larger than {float(out.abs().max()):.1g}", "", OnlyRounding)
    return Foreign("an operation that torch does not record", "", NotSupportedYet)


def _is_reproduced(graph: Graph, scores: Tensor, out: Tensor) -> bool:
    """Whether the graph's scores are a module's own, or give its labels, on the points that were recorded."""
    if graph.head in ("argmax", "positive"):
        labels = labels_of(scores.reshape(len(scores), -1).numpy(), "the graph")
        return bool((labels == out.cpu().reshape(-1).numpy()).all())
    return agree(scores if graph.head is None else HEADS[graph.head](scores), out)


def _before_head(recorder: Recorder, node: int, out: Tensor) -> tuple[int, str | None]:
    """The scores before a final operation that changes no label, and which that is."""
    moves = _last_moves(recorder, node)
    current = recorder.nodes[moves[-1]].inputs[0] if moves else node
    head, condition = recorder.heads.get(current), recorder.conditions.get(current)
    names = {recorder.nodes[i].op.name for i in moves}
    if isinstance(condition, Positive) and out.numel() == len(out) and names <= {"reshape", "select"}:
        return condition.node, "positive"
    if head is None or out.ndim > 2:
        return node, None
    if names <= {"reshape"} or (head == "argmax" and names <= {"reshape", "select"}):
        return recorder.before_head(current), head
    return node, None


def _last_moves(recorder: Recorder, node: int) -> list[int]:
    """The last operations that only move entries, from the output backwards."""
    moves = []
    while node not in recorder.opaque and recorder.nodes[node].op.only_moves:
        moves.append(node)
        node = recorder.nodes[node].inputs[0]
    return moves


def _ending(recorder: Recorder, node: int) -> str | None:
    """What makes the output, its entries moved at most: a head, or "weights" of a layer; None if neither.

    Operations behind a foreign one are no nodes, but the name of the call is kept.
    """
    while True:
        op, inputs = recorder.nodes[node].op.name, recorder.nodes[node].inputs
        name = recorder.calls_behind.get(node, op)
        if name in LAYERS or (name in ("add", "sub") and len(inputs) == 1 and _is_layer(recorder, inputs[0])):
            return "weights"
        if node in recorder.heads or called(name) in PROBABILITIES:
            return recorder.heads.get(node, called(name))
        if name not in MOVES or len(inputs) != 1:
            return None
        node = inputs[0]


def _is_layer(recorder: Recorder, node: int) -> bool:
    return recorder.calls_behind.get(node, recorder.nodes[node].op.name) in LAYERS
