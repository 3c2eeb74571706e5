"""Networks without branches: perceptrons, a small CNN, VGG19 with batch-norm (Simonyan, Zisserman 2015)."""

from itertools import pairwise

from torch import nn

from inscape.arguments import renamed
from inscape.seeding import RandomState, as_seed, random_state_kept
from inscape.training.networks.shared_layers import Head, check_sizes, conv_norm, initialise, scaled, stem


@renamed(seed="random_state")
def mlp(
    n_inputs: int,
    hidden: tuple[int, ...],
    n_classes: int,
    *,
    random_state: RandomState,
    scale: float = 1.0,
    init: str = "he",
) -> nn.Sequential:
    """A ReLU network on flattened points, initialised from its own generator.

    With init="he" each weight is N(0, scale^2 2 / fan_in) and each bias zero, with "torch" both are as
    torch's layers have them by default; the global generator of torch is not used.

    >>> import torch
    >>> mlp(64, (32, 16), 10, random_state=0)(torch.zeros(5, 64)).shape
    torch.Size([5, 10])
    """
    check_sizes(hidden=hidden, n_classes=(n_classes,))
    layers: list[nn.Module] = [nn.Flatten()]
    with random_state_kept():
        for n_in, n_out in pairwise([n_inputs, *hidden, n_classes]):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    initialise(net, as_seed(random_state), scale, init)
    return net


def cnn(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Three convolutions with batch-norm and ReLU, the second and third with stride 2, and a linear head."""
    sizes = [scaled(c, width) for c in (32, 64, 128)]
    return nn.Sequential(
        *stem(channels, sizes[0], large, activation=nn.ReLU()),
        conv_norm(sizes[0], sizes[1], stride=2, activation=nn.ReLU()),
        conv_norm(sizes[1], sizes[2], stride=2, activation=nn.ReLU()),
        Head(sizes[2], n_classes),
    )


def vgg19(channels: int, n_classes: int, width: float, large: bool = False) -> nn.Sequential:
    """Sixteen convolutions, a max-pool after the 2nd, 4th, 8th, 12th and 16th, and one linear layer.

    The pools round up, so that images below 32x32 do not vanish; at 32x32 that changes nothing. On large
    images the mean over what is left stands in place of the two further linear layers of the paper.
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
