"""EfficientNetB0 (Tan and Le 2019) for small images."""

import torch
from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, SqueezeExcite, conv_norm, scaled

# expansion, channels, blocks, kernel, stride of the first block
STAGES = (
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


class Block(nn.Module):
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


def efficientnet_b0(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Seven stages behind a 3x3 stem; SiLU and sigmoids inside, so not piecewise-affine."""
    c_in = scaled(32, width)
    layers: list[nn.Module] = [conv_norm(channels, c_in, activation=nn.SiLU())]
    n_blocks = sum(stage[2] for stage in STAGES)
    for expansion, size, depth, kernel, stride in STAGES:
        for i in range(depth):
            c_out, drop = scaled(size, width), DROP * (len(layers) - 1) / n_blocks
            layers.append(Block(c_in, c_out, expansion, kernel, stride if i == 0 else 1, drop))
            c_in = c_out
    return nn.Sequential(*layers, nn.Dropout(DROP), Head(c_in, n_classes))
