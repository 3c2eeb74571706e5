"""Networks that inscape can train itself: an MLP, a small CNN, and the CIFAR forms of nine known ones.

`build` makes one by its name, for points of a shape; those without branches stand here, VGG19 with batch-norm
(Simonyan, Zisserman 2015) among them.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from inscape.arguments import renamed
from inscape.errors import ModelError, unknown_name
from inscape.seeding import RandomState, as_seed, random_state_kept
from inscape.training.networks.image_networks import (
    efficientnet_b0,
    mobilenet_v1,
    mobilenet_v2,
    regnet_x_200mf,
    resnet18,
    resnet34,
    senet18,
    shufflenet_v2,
    simple_dla,
)
from inscape.training.networks.shared_layers import (
    Pixels,
    PooledLinear,
    check_sizes,
    conv_norm,
    initialise,
    scaled,
    stem,
)

__all__ = ["NETWORKS", "build", "mlp"]


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
    """Three convolutions with batch-norm and ReLU, the second and third with stride 2, and a linear layer."""
    sizes = [scaled(c, width) for c in (32, 64, 128)]
    return nn.Sequential(
        *stem(channels, sizes[0], large, activation=nn.ReLU()),
        conv_norm(sizes[0], sizes[1], stride=2, activation=nn.ReLU()),
        conv_norm(sizes[1], sizes[2], stride=2, activation=nn.ReLU()),
        PooledLinear(sizes[2], n_classes),
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
    return nn.Sequential(*layers, PooledLinear(c_in, n_classes))


_IMAGE_NETWORKS: dict[str, Callable[[int, int, float, bool], nn.Sequential]] = {
    "cnn": cnn,
    "resnet18": resnet18,
    "resnet34": resnet34,
    "vgg19": vgg19,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "senet18": senet18,
    "shufflenet_v2": shufflenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "regnet_x_200mf": regnet_x_200mf,
    "simple_dla": simple_dla,
}
NETWORKS = ("mlp", *_IMAGE_NETWORKS)
LARGE_IMAGE = 128
"""Pixels each way from which on image networks have the stems and strides of their papers, made for 224;
below they have those that are usual for CIFAR."""
MeanAndDeviation = tuple[npt.ArrayLike, npt.ArrayLike]


@renamed(seed="random_state")
def build(
    name: str,
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    hidden: Sequence[int] = (128, 128),
    scale: float = 1.0,
    init: str = "he",
    normalise: MeanAndDeviation | None = None,
    random_state: RandomState,
) -> nn.Sequential:
    """A network for points of shape `input_shape`, initialised from a generator of its own.

    Normalisation is the network's first layer: what it takes are pixels, and so probes are in pixel space.

    Args:
        name: one of `NETWORKS`.
        input_shape: of one point; images are (channels, height, width) or (height, width). From 128 pixels
            on, networks have the stem and the strides of their papers: 224 pixels become 7.
        n_classes: how many scores.
        width: factor on the number of channels (mlp: of hidden units).
        hidden: the hidden layers of an mlp.
        scale: factor on the initial weights.
        init: "he", or "torch" for what torch's layers have by default, 2.45 times smaller; under batch-norm
            that changes how far a step of a given learning rate goes.
        normalise: mean and standard deviation, numbers or one per channel; None leaves the input as it is.
        random_state: a seed, a generator, or None, of the initial weights.

    >>> net = build("resnet18", (3, 32, 32), 10, width=0.25, random_state=0)
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if name not in NETWORKS:
        raise ModelError(unknown_name("network", name, NETWORKS))
    if not width > 0 or not math.isfinite(width):
        raise ModelError(f"width={width} is not possible: give a positive factor")
    check_sizes(hidden=hidden, n_classes=(n_classes,))
    shape = tuple(int(n) for n in input_shape)
    first: list[nn.Module] = []
    if name == "mlp":
        if normalise is not None:
            first = [_pixels(normalise, shape, images=False)]
        sizes = tuple(scaled(h, width, 1) for h in hidden)
        body = mlp(math.prod(shape), sizes, n_classes, random_state=random_state, scale=scale, init=init)
    else:
        if len(shape) not in (2, 3):
            raise ModelError(
                f"{name} needs images, (channels, height, width) or (height, width), not {shape}"
            )
        channels = shape[0] if len(shape) == 3 else 1
        if normalise is not None or len(shape) == 2:
            first = [_pixels(normalise or (0.0, 1.0), shape, images=True)]
        with random_state_kept():  # torch's own initialisation draws from the global generator
            large = min(shape[-2:]) >= LARGE_IMAGE
            body = _IMAGE_NETWORKS[name](channels, n_classes, width, large)
        initialise(body, as_seed(random_state), scale, init)
    return nn.Sequential(*first, *body)


def _pixels(normalise: MeanAndDeviation, shape: tuple[int, ...], *, images: bool) -> Pixels:
    mean, std = (_per_channel(v, shape) for v in normalise)
    if not bool((std > 0).all()):
        raise ModelError("normalise=(mean, std) needs a positive std in every channel")
    return Pixels(mean, std, images=images)


def _per_channel(value: npt.ArrayLike, shape: tuple[int, ...]) -> Any:
    values = torch.as_tensor(np.asarray(value), dtype=torch.get_default_dtype())
    if values.ndim == 0 or len(values) == 1:
        return values.reshape(())
    if len(shape) != 3 or values.shape != (shape[0],):
        raise ModelError(f"normalise has {len(values)} channels, the points have the shape {shape}")
    return values.reshape(-1, 1, 1)
