"""From a torch module to the piecewise-affine graph."""

from typing import Any

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.from_torch.calls import TRANSLATIONS
from inscape.models.from_torch.recorder import Recorder
from inscape.models.graph.network import Foreign, Graph, folded, needed
from inscape.models.graph.trace import HEADS, Trace, agree, infinite_node

N_ROWS = 3  # enough to tell the batch axis from axes of size one or two


def trace(module: torch.nn.Module, input_shape: Shape, *, n_rows: int | None = None) -> Trace:
    """The graph of a module on inputs of one shape, or why it has none.

    Args:
        module: runs once; call this with the module in the state that it is to be read in (eval mode).
        input_shape: the shape of one point.
        n_rows: the only batch length that the module takes, if it is fixed.

    The graph must reproduce the module's own output on the rows that were recorded; a module that computes
    something outside torch, so out of sight, fails that and counts as foreign.
    """
    like = next(module.parameters(), next(module.buffers(), torch.zeros(())))
    dtype = like.dtype if like.dtype.is_floating_point else torch.float32
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(n_rows or N_ROWS, *input_shape, generator=noise).to(like.device, dtype)
    recorder = Recorder(x, {m: name for name, m in module.named_modules()}, TRANSLATIONS)
    rows = x.detach().cpu().clone()
    with torch.no_grad(), recorder.paths(), recorder:
        out = module(x)
    out = getattr(out, "logits", out)
    return _trace_of(recorder, rows, out, input_shape)


def _trace_of(recorder: Recorder, rows: Tensor, out: Any, input_shape: Shape) -> Trace:
    value = recorder.value(out) if isinstance(out, Tensor) else None
    if value is None or value.merged:
        kind = "" if isinstance(out, Tensor) else f" (a {type(out).__name__})"
        return Trace(None, (Foreign(f"an output{kind} that torch does not compute from the input", ""),))
    output, head = _before_head(recorder, value.node, out)
    nodes, foreign = recorder.nodes, list(recorder.branches)
    foreign += [f for i, f in sorted(recorder.opaque.items()) if i in needed(nodes, output)]
    if foreign:
        return Trace(None, tuple(foreign))
    nodes, output = folded(nodes, output)
    graph = Graph(nodes, output=output, input_shape=input_shape, head=head)
    strange = infinite_node(graph, rows)
    if strange is not None:
        return Trace(None, (strange,))
    scores = graph.evaluate(rows.double())
    if not agree(scores if head is None else HEADS[head](scores), out):
        return Trace(None, (Foreign("an operation that torch does not record", ""),))
    return Trace(graph)


def _before_head(recorder: Recorder, node: int, out: Tensor) -> tuple[int, str | None]:
    """The scores before a final softmax, log-softmax or sigmoid, which changes no label."""
    current = node
    while recorder.nodes[current].op.name == "reshape":
        current = recorder.nodes[current].inputs[0]
    found = recorder.opaque.get(current)
    if found is None or found.operation not in HEADS or out.ndim > 2:
        return node, None
    return recorder.nodes[current].inputs[0], found.operation
