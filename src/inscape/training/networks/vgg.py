"""VGG19 with batch-norm (Simonyan and Zisserman 2015)."""

from torch import nn

from inscape.training.networks.shared_layers import Head, conv_norm, scaled


def vgg19(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Sixteen convolutions, a max-pool after the 2nd, 4th, 8th, 12th and 16th, and one linear layer.

    The pools round up, so that images below 32x32 do not vanish; at 32x32 that changes nothing.
    """
    layers: list[nn.Module] = []
    c_in = channels
    for size, depth in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        c_out = scaled(size, width)
        for _ in range(depth):
            layers.append(conv_norm(c_in, c_out, bias=True, activation=nn.ReLU()))
            c_in = c_out
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*layers, Head(c_in, n_classes))
