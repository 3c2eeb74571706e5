"""Layers that several networks share, and how weights start."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from inscape.errors import ModelError, unknown_name


def scaled(channels: int, width: float, multiple: int = 2) -> int:
    """A number of channels times the width factor, as a multiple of `multiple` and not none.

    >>> scaled(64, 0.5), scaled(116, 1.0), scaled(24, 0.1, 8)
    (32, 116, 8)
    """
    return max(multiple, multiple * round(channels * width / multiple))


class Pixels(nn.Module):
    """The input in pixel space, normalised: (x - mean) / std per channel; images without channels get one."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor, *, images: bool) -> None:
        super().__init__()
        self.images = images
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: Tensor) -> Tensor:
        """Normalised points."""
        if self.images and x.ndim == 3:
            x = x.unsqueeze(1)
        return (x - self.mean) / self.std


def convolution(
    c_in: int, c_out: int, kernel: int = 3, *, stride: int = 1, groups: int = 1, bias: bool = False
) -> nn.Conv2d:
    """A convolution that keeps the size of the image, up to the stride."""
    return nn.Conv2d(c_in, c_out, kernel, stride, padding=kernel // 2, groups=groups, bias=bias)


def conv_norm(
    c_in: int,
    c_out: int,
    kernel: int = 3,
    *,
    stride: int = 1,
    groups: int = 1,
    bias: bool = False,
    activation: nn.Module | None = None,
) -> nn.Sequential:
    """Convolution and batch-norm, and the activation if one is given."""
    layers: list[nn.Module] = [
        convolution(c_in, c_out, kernel, stride=stride, groups=groups, bias=bias),
        nn.BatchNorm2d(c_out),
    ]
    return nn.Sequential(*layers, *([] if activation is None else [activation]))


def stem(
    channels: int, c_out: int, large: bool, *, activation: nn.Module, kernel: int = 3, pool: bool = False
) -> list[nn.Module]:
    """The first layers: a 3x3 convolution, which for large images halves them, with a max-pool twice."""
    if not large:
        return [conv_norm(channels, c_out, activation=activation)]
    first = conv_norm(channels, c_out, kernel, stride=2, activation=activation)
    return [first, nn.MaxPool2d(3, 2, padding=1)] if pool else [first]


class PooledLinear(nn.Module):
    """The mean over the image, then a linear layer."""

    def __init__(self, channels: int, n_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (n, classes)."""
        scores: Tensor = self.linear(x.mean((2, 3)))
        return scores


class SqueezeExcite(nn.Module):
    """Each channel times a number in 0..1 that a small network computes from the means of all channels."""

    def __init__(self, channels: int, squeezed: int, activation: nn.Module) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.Conv2d(channels, squeezed, 1), activation, nn.Conv2d(squeezed, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        """The channels, reweighted."""
        gate: Tensor = self.gate(x.mean((2, 3), keepdim=True))
        return x * gate


INITS = ("he", "torch")


def initialise(module: nn.Module, seed: int, scale: float = 1.0, init: str = "he") -> None:
    """Draw the weights of convolutions and linear maps from a generator of their own, times `scale`.

    "he" is N(0, 2 / fan_in), biases zero (He et al. 2015). "torch" is what torch's layers have by default,
    uniform within 1 / sqrt(fan_in), biases too: a standard deviation that is sqrt(6) = 2.45 times smaller.
    """
    if init not in INITS:
        raise ModelError(unknown_name("init", init, INITS))
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            bound = layer.weight[0].numel() ** -0.5
            if init == "he":
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            else:
                nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            with torch.no_grad():
                layer.weight.mul_(scale)
            if layer.bias is not None:
                reach = 0.0 if init == "he" else bound
                nn.init.uniform_(layer.bias, -reach, reach, generator=generator)


def check_sizes(**sizes: Sequence[Any]) -> None:
    """Refuse numbers of units or classes of which no layer can be made."""
    for name, values in sizes.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ModelError(f"{name}={values!r} must be a list of whole numbers, as {name}=(128, 128)")
        if any(isinstance(n, bool) or not isinstance(n, Integral) or n < 1 for n in values):
            raise ModelError(f"{name}={list(values)} must be whole numbers of at least 1")
