"""Jacobians of any differentiable network by reverse differentiation: few outputs, many inputs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inscape.errors import NotApplicableError, PartitionError
from inscape.measures.measurement import check_weights
from inscape.models import Model
from inscape.models.outputs import scores_among
from inscape.models.torch_module import eval_copy

Scores = Callable[[Tensor], Tensor]
NUMBERS_SENT_BACK_AT_ONCE = 2**22
"""Numbers in the unit vectors that are sent back at once."""


def differentiable_scores(model: Model, input_shape: tuple[int, ...], measure: str) -> Scores:
    """The scores of a model as a function of float64 tensors (n, *input_shape) that torch differentiates.

    The piecewise-affine graph if there is one (without a final softmax), else a copy of the torch module.
    """
    check_weights(model)
    try:
        graph = model.graph(input_shape).cast(torch.float64)
    except PartitionError:
        scores: Scores = private_copy(model, measure)
        return scores
    return lambda x: graph.differentiable(x).flatten(1)


def private_copy(model: Model, measure: str) -> Any:
    """A copy of the model's torch module in float64 and eval mode; calling it gives scores (n, c)."""
    module = getattr(model, "module", None)
    if not isinstance(module, torch.nn.Module):
        raise NotApplicableError(
            f"{measure} needs derivatives, and {model.name} is a {model.structure} model without any: "
            "give a torch module or an ONNX file of affine and piecewise-linear layers"
        )
    copied = eval_copy(module).cpu().double()
    for p in copied.parameters():
        p.requires_grad_(False)
    return _ScoresModule(copied)


class _ScoresModule(torch.nn.Module):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return scores_among(self.module(x)).reshape(len(x), -1)  # type: ignore[no-any-return]


def jacobian(values: Tensor, x: Tensor) -> Tensor:
    """The Jacobian (n, c, d) of values (n, c), computed from x (n, ...) point by point, at every point."""
    n, c = values.shape
    size = max(1, min(c, NUMBERS_SENT_BACK_AT_ONCE // max(1, n * c)))
    rows = []
    for start in range(0, c, size):
        k = min(size, c - start)
        seeds = torch.zeros(k, n, c, dtype=values.dtype)
        seeds[torch.arange(k), :, start + torch.arange(k)] = 1.0
        (g,) = torch.autograd.grad(values, x, seeds, is_grads_batched=True, retain_graph=True)
        rows.append(g.reshape(k, n, -1))
    return torch.cat(rows).transpose(0, 1)


def weighted_values(scores: Any, x: Tensor) -> list[tuple[str, Tensor]]:
    """What each linear map and convolution of a module copy returns, in order of calls, but the last one.

    The last one's values are the scores. Names are those of the modules.
    """
    values: list[tuple[str, Tensor]] = []

    def note(name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, args: Any, out: Any) -> None:
            if isinstance(out, Tensor):
                values.append((name, out))

        return hook

    hooks = [
        m.register_forward_hook(note(name))
        for name, m in scores.module.named_modules()
        if isinstance(getattr(m, "weight", None), Tensor) and m.weight.ndim >= 2
    ]
    try:
        scores(x)
    finally:
        for hook in hooks:
            hook.remove()
    return values[:-1]
