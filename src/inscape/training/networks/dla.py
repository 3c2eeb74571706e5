"""SimpleDLA: deep layer aggregation (Yu et al. 2018) with trees that aggregate two nodes each."""

import torch
from torch import Tensor, nn

from inscape.training.networks.resnet import Residual
from inscape.training.networks.shared_layers import Head, conv_norm, scaled


class Tree(nn.Module):
    """Two subtrees, one after the other, whose outputs a 1x1 convolution joins."""

    def __init__(self, c_in: int, c_out: int, level: int, stride: int) -> None:
        super().__init__()
        if level == 1:
            self.left: nn.Module = Residual(c_in, c_out, stride)
            self.right: nn.Module = Residual(c_out, c_out, 1)
        else:
            self.left = Tree(c_in, c_out, level - 1, stride)
            self.right = Tree(c_out, c_out, level - 1, 1)
        self.root = conv_norm(2 * c_out, c_out, 1, activation=nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """The joined outputs."""
        left = self.left(x)
        y: Tensor = self.root(torch.cat([left, self.right(left)], 1))
        return y


def simple_dla(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Three convolutions, then trees of 1, 2, 2 and 1 levels."""
    first, second = scaled(16, width), scaled(32, width)
    layers: list[nn.Module] = [
        conv_norm(channels, first, activation=nn.ReLU()),
        conv_norm(first, first, activation=nn.ReLU()),
        conv_norm(first, second, activation=nn.ReLU()),
    ]
    c_in = second
    for size, level, stride in ((64, 1, 1), (128, 2, 2), (256, 2, 2), (512, 1, 2)):
        c_out = scaled(size, width)
        layers.append(Tree(c_in, c_out, level, stride))
        c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))
