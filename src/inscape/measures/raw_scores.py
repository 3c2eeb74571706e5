"""Scores before a final softmax or sigmoid: where probabilities saturate, their derivatives are zero."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inscape.models.graph.trace import HEADS


class _LastHead(TorchFunctionMode):
    """Remembers the last softmax, log-softmax or sigmoid that was called: its name, input and output."""

    found: tuple[str, Tensor, Tensor] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = args[0] if args else (kwargs or {}).get("input")
        if name in HEADS and isinstance(given, Tensor) and isinstance(out, Tensor):
            self.found = (name, given, out)
        return out


def scores_before_head(module: torch.nn.Module, x: Tensor) -> tuple[Tensor, str | None]:
    """The scores (n, c) of a module without its final softmax, log-softmax or sigmoid, and which that was.

    >>> net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Softmax(1))
    >>> scores_before_head(net, torch.tensor([[900.0, 0.0]]))
    (tensor([[900.,   0.]]), 'softmax')
    """
    with _LastHead() as last:
        out = module(x)
    out = getattr(out, "logits", out)
    scores: Tensor = out.reshape(len(x), -1)
    if last.found is None:
        return scores, None
    name, given, head = last.found
    if out.data_ptr() != head.data_ptr() or given.numel() != scores.numel():
        return scores, None
    raw = given.reshape(scores.shape)
    with torch.no_grad():
        is_head = torch.allclose(HEADS[name](raw), scores, rtol=1e-3, atol=1e-6)
    return (raw, name) if is_head else (scores, None)
