"""Networks for images that papers use, with a 3x3 stem for small images, for large ones as in their papers.

Of residual blocks: ResNet18 and ResNet34 (He et al. 2016), SENet18 (Hu et al. 2018), RegNetX_200MF
(Radosavovic et al. 2020), and SimpleDLA: deep layer aggregation (Yu et al. 2018) whose trees aggregate two
nodes each. Made for small machines: MobileNetV1 (Howard et al. 2017) and V2 (Sandler et al. 2018),
EfficientNetB0 (Tan and Le 2019), ShuffleNetV2 (Ma et al. 2018).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from inscape.training.networks.shared_layers import (
    PooledLinear,
    SqueezeExcite,
    conv_norm,
    convolution,
    scaled,
    stem,
)


class Residual(nn.Module):
    """Two convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.body = self._convolutions(c_in, c_out, stride)
        same = stride == 1 and c_in == c_out
        self.shortcut = nn.Identity() if same else conv_norm(c_in, c_out, 1, stride=stride)
        self.relu = nn.ReLU()

    def _convolutions(self, c_in: int, c_out: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            conv_norm(c_in, c_out, stride=stride, activation=nn.ReLU()), conv_norm(c_out, c_out)
        )

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
    return nn.Sequential(*layers, PooledLinear(c_in, n_classes))


def resnet18(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Two blocks in each of four stages."""
    return _network(Residual, (2, 2, 2, 2), channels, n_classes, width, large)


def resnet34(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """3, 4, 6 and 3 blocks."""
    return _network(Residual, (3, 4, 6, 3), channels, n_classes, width, large)


def senet18(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Pre-activated blocks with squeeze and excitation: a sigmoid inside, so not piecewise-affine."""
    return _network(PreActivated, (2, 2, 2, 2), channels, n_classes, width, large)


class AggregationTree(nn.Module):
    """Two subtrees, one after the other, whose outputs a 1x1 convolution joins."""

    def __init__(self, c_in: int, c_out: int, level: int, stride: int) -> None:
        super().__init__()
        if level == 1:
            self.left: nn.Module = Residual(c_in, c_out, stride)
            self.right: nn.Module = Residual(c_out, c_out, 1)
        else:
            self.left = AggregationTree(c_in, c_out, level - 1, stride)
            self.right = AggregationTree(c_out, c_out, level - 1, 1)
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
        layers.append(AggregationTree(c_in, c_out, level, stride))
        c_in = c_out
    return nn.Sequential(*layers, PooledLinear(c_in, n_classes))


GROUP = 8


class GroupedResidual(Residual):
    """1x1, grouped 3x3 and 1x1 convolutions, beside such a shortcut."""

    def _convolutions(self, c_in: int, c_out: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            conv_norm(c_in, c_out, 1, activation=nn.ReLU()),
            conv_norm(c_out, c_out, stride=stride, groups=c_out // GROUP, activation=nn.ReLU()),
            conv_norm(c_out, c_out, 1),
        )


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
    return nn.Sequential(*layers, PooledLinear(c_in, n_classes))


# channels and stride of each block
MOBILENET_V1_BLOCKS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)


def mobilenet_v1(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """A 3x3 stem, and thirteen blocks that filter each channel with 3x3, then mix them with 1x1."""
    c_in = scaled(32, width)
    layers = stem(channels, c_in, large, activation=nn.ReLU())
    for size, stride in MOBILENET_V1_BLOCKS:
        c_out = scaled(size, width)
        layers += [
            conv_norm(c_in, c_in, stride=stride, groups=c_in, activation=nn.ReLU()),
            conv_norm(c_in, c_out, 1, activation=nn.ReLU()),
        ]
        c_in = c_out
    return nn.Sequential(*layers, PooledLinear(c_in, n_classes))


# expansion, channels, blocks, stride of the first block
MOBILENET_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(nn.Module):
    """Expand with 1x1, filter each channel with 3x3, project with 1x1; a shortcut where the size stays."""

    def __init__(self, c_in: int, c_out: int, expansion: int, stride: int) -> None:
        super().__init__()
        c = expansion * c_in
        self.body = nn.Sequential(
            conv_norm(c_in, c, 1, activation=nn.ReLU6()),
            conv_norm(c, c, stride=stride, groups=c, activation=nn.ReLU6()),
            conv_norm(c, c_out, 1),
        )
        self.shortcut: nn.Module | None = None
        if stride == 1:
            self.shortcut = nn.Identity() if c_in == c_out else conv_norm(c_in, c_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The projection, and the shortcut if there is one."""
        y: Tensor = self.body(x)
        return y if self.shortcut is None else y + self.shortcut(x)


def mobilenet_v2(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Seven stages of inverted residuals with ReLU6, between a 3x3 stem and a 1x1 convolution."""
    c_in, last = scaled(32, width), scaled(1280, width)
    layers = stem(channels, c_in, large, activation=nn.ReLU6())
    for stage, (expansion, size, depth, stride) in enumerate(MOBILENET_STAGES):
        first = 2 if large and stage == 1 else stride  # the paper halves here too
        for i in range(depth):
            c_out = scaled(size, width)
            layers.append(InvertedResidual(c_in, c_out, expansion, first if i == 0 else 1))
            c_in = c_out
    return nn.Sequential(
        *layers, conv_norm(c_in, last, 1, activation=nn.ReLU6()), PooledLinear(last, n_classes)
    )


# expansion, channels, blocks, kernel, stride of the first block
EFFICIENTNET_STAGES = (
    (1, 16, 1, 3, 1),
    (6, 24, 2, 3, 2),
    (6, 40, 2, 5, 2),
    (6, 80, 3, 3, 2),
    (6, 112, 3, 5, 1),
    (6, 192, 4, 5, 2),
    (6, 320, 1, 3, 1),
)
DROP_RATE = 0.2


class DropPath(nn.Module):
    """In training, zero for some of the images, the others scaled so that the mean stays."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """The input, or zero."""
        if not self.training or self.rate == 0:
            return x
        keep = torch.rand(len(x), 1, 1, 1, dtype=x.dtype, device=x.device) >= self.rate
        return x * keep / (1 - self.rate)


class ExcitedResidual(nn.Module):
    """An inverted residual with SiLU and squeeze-excitation."""

    def __init__(self, c_in: int, c_out: int, expansion: int, kernel: int, stride: int, drop: float) -> None:
        super().__init__()
        c = expansion * c_in
        expand = [] if expansion == 1 else [conv_norm(c_in, c, 1, activation=nn.SiLU())]
        self.body = nn.Sequential(
            *expand,
            conv_norm(c, c, kernel, stride=stride, groups=c, activation=nn.SiLU()),
            SqueezeExcite(c, max(1, c_in // 4), nn.SiLU()),
            conv_norm(c, c_out, 1),
        )
        self.adds = stride == 1 and c_in == c_out
        self.drop = DropPath(drop)

    def forward(self, x: Tensor) -> Tensor:
        """The body, added to the input where the shapes agree."""
        y: Tensor = self.body(x)
        return self.drop(y) + x if self.adds else y


def efficientnet_b0(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Seven stages behind a 3x3 stem; SiLU and sigmoids inside, so not piecewise-affine."""
    c_in = scaled(32, width)
    layers = stem(channels, c_in, large, activation=nn.SiLU())
    n_blocks = sum(stage[2] for stage in EFFICIENTNET_STAGES)
    for expansion, size, depth, kernel, stride in EFFICIENTNET_STAGES:
        for i in range(depth):
            c_out, drop = scaled(size, width), DROP_RATE * (len(layers) - 1) / n_blocks
            layers.append(ExcitedResidual(c_in, c_out, expansion, kernel, stride if i == 0 else 1, drop))
            c_in = c_out
    return nn.Sequential(*layers, nn.Dropout(DROP_RATE), PooledLinear(c_in, n_classes))


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


def shufflenet_v2(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Three stages of 4, 8 and 4 units, between a 3x3 stem and a 1x1 convolution."""
    c_in, last = scaled(24, width), scaled(1024, width)
    layers = stem(channels, c_in, large, activation=nn.ReLU(), pool=True)
    for size, depth in ((116, 3), (232, 7), (464, 3)):
        c_out = scaled(size, width, 4)
        layers += [Down(c_in, c_out), *[Keep(c_out) for _ in range(depth)]]
        c_in = c_out
    return nn.Sequential(
        *layers, conv_norm(c_in, last, 1, activation=nn.ReLU()), PooledLinear(last, n_classes)
    )
