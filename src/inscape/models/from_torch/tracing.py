"""A module runs once, and what was recorded becomes a graph."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.base import labels_of
from inscape.models.from_torch.recorder import WRITES, Recorder, Translation, Value
from inscape.models.graph.gates import Positive
from inscape.models.graph.network import Foreign, Graph, NotSupportedYet, folded, needed
from inscape.models.graph.trace import HEADS, ONE_SIGN, Trace, agree, infinite_node

N_ROWS = 3  # enough to tell the batch axis from axes of size one or two


def recorded(
    module: torch.nn.Module,
    input_shape: Shape,
    translations: dict[str, Translation],
    *,
    n_rows: int | None = None,
) -> Trace:
    """The graph of a module on inputs of one shape, or why it has none.

    Args:
        module: runs once; call this with the module in the state that it is to be read in (eval mode).
        input_shape: the shape of one point.
        translations: how each ATen call becomes nodes, by its name without overload.
        n_rows: the only batch length that the module takes, if it is fixed.

    The graph must reproduce the module's own output on the rows that were recorded; a module that computes
    something outside torch, so out of sight, fails that and counts as foreign.
    """
    like = next(module.parameters(), next(module.buffers(), torch.zeros(())))
    dtype = like.dtype if like.dtype.is_floating_point else torch.float32
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(n_rows or N_ROWS, *input_shape, generator=noise).to(like.device, dtype)
    found = _run(module, module, x.clone(), translations)
    if not any(WRITES in f.operation for f in found.foreign):
        return found
    try:  # the same without side effects: a write into part of a tensor makes a new one
        return _run(module, torch.func.functionalize(module), x, translations)
    except RuntimeError:  # not every module can be rewritten so
        return found


def _run(module: torch.nn.Module, function: Any, x: Tensor, translations: dict[str, Translation]) -> Trace:
    """What is recorded of one call of a function, in which a module runs."""
    recorder = Recorder(x, {m: name for name, m in module.named_modules()}, translations)
    rows = x.detach().cpu().clone()
    with torch.no_grad(), recorder.paths(), recorder:
        out = function(x)
    return _trace_of(recorder, rows, getattr(out, "logits", out), tuple(rows.shape[1:]))


def _trace_of(recorder: Recorder, rows: Tensor, out: Any, input_shape: Shape) -> Trace:
    value = recorder.value(out) if isinstance(out, Tensor) else None
    if value is None or value.at(0) != Value(0):
        kind = "" if isinstance(out, Tensor) else f" (a {type(out).__name__})"
        reason = f"an output{kind} that torch does not compute from the input"
        return Trace(None, (Foreign(reason, "", NotSupportedYet.verdict),))
    output, head = _before_head(recorder, value.node, out)
    nodes, foreign = recorder.nodes, list(recorder.branches)
    foreign += [f for i, f in sorted(recorder.opaque.items()) if i in needed(nodes, output)]
    if foreign:
        return Trace(None, tuple(dict.fromkeys(foreign)))
    nodes, output = folded(nodes, output)
    graph = Graph(nodes, output=output, input_shape=input_shape, head=head)
    strange = infinite_node(graph, rows)
    if strange is not None:
        return Trace(None, (strange,))
    if not _reproduces(graph, rows, out):
        reason = "an operation that torch does not record"
        return Trace(None, (Foreign(reason, "", NotSupportedYet.verdict),))
    return Trace(graph)


def _reproduces(graph: Graph, rows: Tensor, out: Tensor) -> bool:
    """Whether the graph gives a module's own scores, or its labels, on the rows that were recorded."""
    scores = graph.evaluate(rows.double())
    if graph.head in ("argmax", "positive"):
        found = labels_of(scores.reshape(len(rows), -1).numpy(), "the graph")
        return bool((found == out.cpu().reshape(-1).numpy()).all())
    return agree(scores if graph.head is None else HEADS[graph.head](scores), out)


def _before_head(recorder: Recorder, node: int, out: Tensor) -> tuple[int, str | None]:
    """The scores before a final operation that changes no label, and which that is."""
    current = node
    while recorder.nodes[current].op.name in ("reshape", "select"):
        current = recorder.nodes[current].inputs[0]
    head, condition = recorder.heads.get(current), recorder.conditions.get(current)
    n_scores = out.numel() // max(len(out), 1)
    if isinstance(condition, Positive) and n_scores == 1:
        return condition.node, "positive"
    if head is None or out.ndim > 2 or (recorder.nodes[node].op.name == "select" and head != "argmax"):
        return node, None
    if n_scores == 1 and head in ONE_SIGN:
        found = recorder.opaque[current]
        reason = f"{found.operation} of one score, which is {ONE_SIGN[head]} everywhere,"
        recorder.opaque[current] = replace(found, operation=reason)
        return node, None
    return recorder.nodes[current].inputs[0], head
