"""ShuffleNetV2 (Ma et al. 2018) for small images."""

import torch
from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, conv_norm, scaled


def shuffle(x: Tensor) -> Tensor:
    """The channels of both halves in turn."""
    n, c, h, w = x.shape
    return x.reshape(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def _branch(c_in: int, c: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        conv_norm(c_in, c, 1, activation=nn.ReLU()),
        conv_norm(c, c, stride=stride, groups=c),
        conv_norm(c, c, 1, activation=nn.ReLU()),
    )


class Keep(nn.Module):
    """One half of the channels passes, the other is filtered, then they are shuffled."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.n_kept = channels // 2
        self.branch = _branch(self.n_kept, self.n_kept, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return shuffle(torch.cat([x[:, : self.n_kept], self.branch(x[:, self.n_kept :])], 1))


class Down(nn.Module):
    """Both branches see all channels and halve the size."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        c = c_out // 2
        self.left = nn.Sequential(
            conv_norm(c_in, c_in, stride=2, groups=c_in), conv_norm(c_in, c, 1, activation=nn.ReLU())
        )
        self.right = _branch(c_in, c, 2)

    def forward(self, x: Tensor) -> Tensor:
        """More channels on a smaller image."""
        return shuffle(torch.cat([self.left(x), self.right(x)], 1))


def shufflenet_v2(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Three stages of 4, 8 and 4 units, between a 3x3 stem and a 1x1 convolution."""
    c_in, last = scaled(24, width), scaled(1024, width)
    layers: list[nn.Module] = [conv_norm(channels, c_in, activation=nn.ReLU())]
    for size, depth in ((116, 3), (232, 7), (464, 3)):
        c_out = scaled(size, width, 4)
        layers += [Down(c_in, c_out), *[Keep(c_out) for _ in range(depth)]]
        c_in = c_out
    return nn.Sequential(*layers, conv_norm(c_in, last, 1, activation=nn.ReLU()), Head(last, n_classes))
