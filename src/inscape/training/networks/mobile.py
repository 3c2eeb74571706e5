"""Networks made for small machines, for small images, and with the strides of their papers for large ones.

MobileNetV1 (Howard et al. 2017) and V2 (Sandler et al. 2018), EfficientNetB0 (Tan and Le 2019),
ShuffleNetV2 (Ma et al. 2018).
"""

import torch
from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, SqueezeExcite, conv_norm, scaled, stem

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
    return nn.Sequential(*layers, Head(c_in, n_classes))


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
    return nn.Sequential(*layers, conv_norm(c_in, last, 1, activation=nn.ReLU6()), Head(last, n_classes))


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
DROP = 0.2


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
            c_out, drop = scaled(size, width), DROP * (len(layers) - 1) / n_blocks
            layers.append(ExcitedResidual(c_in, c_out, expansion, kernel, stride if i == 0 else 1, drop))
            c_in = c_out
    return nn.Sequential(*layers, nn.Dropout(DROP), Head(c_in, n_classes))


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
    return nn.Sequential(*layers, conv_norm(c_in, last, 1, activation=nn.ReLU()), Head(last, n_classes))
