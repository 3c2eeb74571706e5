"""Networks that inscape can train itself."""

from itertools import pairwise

import torch
from torch import nn


def mlp(n_inputs: int, hidden: tuple[int, ...], n_classes: int, *, seed: int) -> nn.Sequential:
    """A ReLU network on flattened points, He-initialised from its own generator.

    Each weight is N(0, 2 / fan_in) and each bias zero; the global generator of torch is not used.
    """
    sizes = [n_inputs, *hidden, n_classes]
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise(sizes):
        linear: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out)  # type: ignore[no-untyped-call]
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
