"""Networks of residual blocks, with a 3x3 stem for small images, for large ones with that of their papers.

ResNet18 and ResNet34 (He et al. 2016), SENet18 (Hu et al. 2018), RegNetX_200MF (Radosavovic et al. 2020), and
SimpleDLA: deep layer aggregation (Yu et al. 2018) with trees that aggregate two nodes each.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, SqueezeExcite, conv_norm, convolution, scaled, stem


class Residual(nn.Module):
    """Two convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(c_in, c_out, stride=stride, activation=nn.ReLU()), conv_norm(c_out, c_out)
        )
        same = stride == 1 and c_in == c_out
        self.shortcut = nn.Identity() if same else conv_norm(c_in, c_out, 1, stride=stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Their sum, rectified."""
        y: Tensor = self.relu(self.body(x) + self.shortcut(x))
        return y


class PreActivated(nn.Module):
    """Batch-norm and ReLU before each convolution; the channels of the result are reweighted, then added."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(c_in), nn.ReLU())
        self.body = nn.Sequential(
            convolution(c_in, c_out, stride=stride),
            nn.BatchNorm2d(c_out),
            nn.ReLU(),
            convolution(c_out, c_out),
            SqueezeExcite(c_out, max(1, c_out // 16), nn.ReLU()),
        )
        same = stride == 1 and c_in == c_out
        self.shortcut = None if same else convolution(c_in, c_out, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Body plus shortcut."""
        a = self.before(x)
        y: Tensor = self.body(a) + (x if self.shortcut is None else self.shortcut(a))
        return y


def _network(
    block: Callable[[int, int, int], nn.Module],
    depths: tuple[int, ...],
    channels: int,
    n_classes: int,
    width: float,
    large: bool,
) -> nn.Sequential:
    sizes = [scaled(c, width) for c in (64, 128, 256, 512)]
    layers = stem(channels, sizes[0], large, activation=nn.ReLU(), kernel=7, pool=True)
    c_in = sizes[0]
    for stage, (c_out, depth) in enumerate(zip(sizes, depths, strict=True)):
        for i in range(depth):
            layers.append(block(c_in, c_out, 2 if stage > 0 and i == 0 else 1))
            c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))


def resnet18(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Two blocks in each of four stages."""
    return _network(Residual, (2, 2, 2, 2), channels, n_classes, width, large)


def resnet34(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """3, 4, 6 and 3 blocks."""
    return _network(Residual, (3, 4, 6, 3), channels, n_classes, width, large)


def senet18(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Pre-activated blocks with squeeze and excitation: a sigmoid inside, so not piecewise-affine."""
    return _network(PreActivated, (2, 2, 2, 2), channels, n_classes, width, large)


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


def simple_dla(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Three convolutions, then trees of 1, 2, 2 and 1 levels."""
    first, second = scaled(16, width), scaled(32, width)
    halved = 2 if large else 1
    layers: list[nn.Module] = [
        conv_norm(channels, first, 7 if large else 3, activation=nn.ReLU()),
        conv_norm(first, first, activation=nn.ReLU()),
        conv_norm(first, second, stride=halved, activation=nn.ReLU()),
    ]
    c_in = second
    for size, level, stride in ((64, 1, halved), (128, 2, 2), (256, 2, 2), (512, 1, 2)):
        c_out = scaled(size, width)
        layers.append(Tree(c_in, c_out, level, stride))
        c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))


GROUP = 8


class GroupedResidual(nn.Module):
    """1x1, grouped 3x3, 1x1, beside a shortcut that is a 1x1 convolution where the shape changes."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(c_in, c_out, 1, activation=nn.ReLU()),
            conv_norm(c_out, c_out, stride=stride, groups=c_out // GROUP, activation=nn.ReLU()),
            conv_norm(c_out, c_out, 1),
        )
        same = stride == 1 and c_in == c_out
        self.shortcut = nn.Identity() if same else conv_norm(c_in, c_out, 1, stride=stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Their sum, rectified."""
        y: Tensor = self.relu(self.body(x) + self.shortcut(x))
        return y


def regnet_x_200mf(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """1, 1, 4 and 7 blocks in groups of eight channels, behind a 3x3 stem."""
    c_in = scaled(64, width)
    layers = stem(channels, c_in, large, activation=nn.ReLU())
    halved = 2 if large else 1
    for size, depth, stride in ((24, 1, halved), (56, 1, halved), (152, 4, 2), (368, 7, 2)):
        for i in range(depth):
            c_out = scaled(size, width, GROUP)
            layers.append(GroupedResidual(c_in, c_out, stride if i == 0 else 1))
            c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))
