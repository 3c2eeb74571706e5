"""Univariate nets from and to torch modules."""

from typing import TYPE_CHECKING

import numpy as np

from inscape.arrays import Floats
from inscape.errors import ModelError

if TYPE_CHECKING:
    import torch


_EXPECTED = "expected Linear(1, k), ReLU, Linear(k, 1)"


def read_module(module: "torch.nn.Module") -> tuple[Floats, Floats, Floats, float]:
    """The parameters w, b, v, c of Linear(1, k), ReLU, Linear(k, 1); a layer without bias has bias zero."""
    from torch import nn

    if not isinstance(module, nn.Module):
        raise ModelError(f"{type(module).__name__} is not a torch module: {_EXPECTED}")
    layers = [m for m in module.modules() if not list(m.children()) and not isinstance(m, nn.Identity)]
    if [type(m) for m in layers] != [nn.Linear, nn.ReLU, nn.Linear]:
        names = ", ".join(type(m).__name__ for m in layers) or "no layers"
        raise ModelError(f"cannot read a univariate net from {names}: {_EXPECTED}")
    first, _, last = layers
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    if first.in_features != 1 or last.out_features != 1 or first.out_features != last.in_features:
        shape = f"Linear({first.in_features}, {first.out_features})"
        raise ModelError(f"{shape}, ReLU, Linear({last.in_features}, {last.out_features}): {_EXPECTED}")

    def numbers(p: "torch.Tensor | None", size: int) -> Floats:
        return np.zeros(size) if p is None else p.detach().cpu().double().numpy().reshape(-1)

    k = first.out_features
    c = numbers(last.bias, 1)
    return numbers(first.weight, k), numbers(first.bias, k), numbers(last.weight, k), float(c[0])


def make_module(w: Floats, b: Floats, v: Floats, c: float) -> "torch.nn.Sequential":
    """Linear(1, k), ReLU, Linear(k, 1) in float64 with these parameters."""
    import torch
    from torch import nn

    first, last = nn.Linear(1, len(w)).double(), nn.Linear(len(w), 1).double()
    with torch.no_grad():
        for parameter, value in (
            (first.weight, w[:, None]),
            (first.bias, b),
            (last.weight, v[None, :]),
            (last.bias, np.array([c])),
        ):
            parameter.copy_(torch.tensor(value))
    return nn.Sequential(first, nn.ReLU(), last)
