"""A small convolutional network."""

from torch import nn

from inscape.training.networks.shared_layers import Head, conv_norm, scaled


def cnn(channels: int, n_classes: int, width: float) -> nn.Sequential:
    """Three convolutions with batch-norm and ReLU, the second and third with stride 2, and a linear head."""
    sizes = [scaled(c, width) for c in (32, 64, 128)]
    return nn.Sequential(
        conv_norm(channels, sizes[0], activation=nn.ReLU()),
        conv_norm(sizes[0], sizes[1], stride=2, activation=nn.ReLU()),
        conv_norm(sizes[1], sizes[2], stride=2, activation=nn.ReLU()),
        Head(sizes[2], n_classes),
    )
