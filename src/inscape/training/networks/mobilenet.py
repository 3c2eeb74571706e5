"""MobileNetV2 (Sandler et al. 2018) for small images."""

from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, conv_norm, scaled

# expansion, channels, blocks, stride of the first block
STAGES = (
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


def mobilenet_v2(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Seven stages of inverted residuals with ReLU6, between a 3x3 stem and a 1x1 convolution."""
    c_in, last = scaled(32, width), scaled(1280, width)
    layers: list[nn.Module] = [conv_norm(channels, c_in, activation=nn.ReLU6())]
    for expansion, size, depth, stride in STAGES:
        for i in range(depth):
            c_out = scaled(size, width)
            layers.append(InvertedResidual(c_in, c_out, expansion, stride if i == 0 else 1))
            c_in = c_out
    return nn.Sequential(*layers, conv_norm(c_in, last, 1, activation=nn.ReLU6()), Head(last, n_classes))
