"""ResNet18 and ResNet34 (He et al. 2016) and SENet18 (Hu et al. 2018), with a 3x3 stem for small images."""

from collections.abc import Callable

from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, SqueezeExcite, conv_norm, convolution, scaled


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
) -> nn.Sequential:
    sizes = [scaled(c, width) for c in (64, 128, 256, 512)]
    layers: list[nn.Module] = [conv_norm(channels, sizes[0], activation=nn.ReLU())]
    c_in = sizes[0]
    for stage, (c_out, depth) in enumerate(zip(sizes, depths, strict=True)):
        for i in range(depth):
            layers.append(block(c_in, c_out, 2 if stage > 0 and i == 0 else 1))
            c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))


def resnet18(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Two blocks in each of four stages."""
    return _network(Residual, (2, 2, 2, 2), channels, n_classes, width)


def resnet34(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """3, 4, 6 and 3 blocks."""
    return _network(Residual, (3, 4, 6, 3), channels, n_classes, width)


def senet18(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Pre-activated blocks with squeeze and excitation: a sigmoid inside, so not piecewise-affine."""
    return _network(PreActivated, (2, 2, 2, 2), channels, n_classes, width)
