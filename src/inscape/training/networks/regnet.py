"""RegNetX_200MF (Radosavovic et al. 2020) for small images."""

from torch import Tensor, nn

from inscape.training.networks.shared_layers import Head, conv_norm, scaled

GROUP = 8


class Block(nn.Module):
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


def regnet_x_200mf(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """1, 1, 4 and 7 blocks in groups of eight channels, behind a 3x3 stem."""
    c_in = scaled(64, width)
    layers: list[nn.Module] = [conv_norm(channels, c_in, activation=nn.ReLU())]
    for size, depth, stride in ((24, 1, 1), (56, 1, 1), (152, 4, 2), (368, 7, 2)):
        for i in range(depth):
            c_out = scaled(size, width, GROUP)
            layers.append(Block(c_in, c_out, stride if i == 0 else 1))
            c_in = c_out
    return nn.Sequential(*layers, Head(c_in, n_classes))
