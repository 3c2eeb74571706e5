"""The coordinate network: from a place of the square to the grey value of an image there."""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.studies.local_complexity.map.image import drawn_image, read_image
from inscape.sweeps.study import Configuration

if TYPE_CHECKING:
    from torch import nn

PROBE = 1.0
"""Coordinates run from -1 to 1."""


def image_of(c: Mapping[str, Any]) -> Floats:
    """The image of a configuration."""
    return drawn_image(c["size"]) if c["image"] == "drawn" else read_image(c["image"], c["size"])


def network(c: Mapping[str, Any]) -> "nn.Sequential":
    """A network of two coordinates and one grey value, at its start."""
    from inscape.training.networks import mlp

    net = mlp(2, (c["width"],) * c["depth"], 1, random_state=int(c["seed"]))
    _spread_biases(net, int(c["seed"]))
    return net.double()


def _spread_biases(net: "nn.Sequential", seed: int) -> None:
    """Biases of the first layer uniform in +-1, so that its lines do not all meet in the middle."""
    import torch

    first = next(m for m in net if isinstance(m, torch.nn.Linear))
    with torch.no_grad():
        first.bias.uniform_(-1, 1, generator=torch.Generator().manual_seed(seed))


def fitted(c: Configuration) -> tuple["nn.Sequential", float]:
    """The network after training, and its mean square error."""
    from inscape.training.many import train_many
    from inscape.training.recipe import Recipe

    image, net = image_of(c), network(c).float()
    middles = -PROBE + 2 * PROBE * (np.arange(c["size"]) + 0.5) / c["size"]
    right, up = np.meshgrid(middles, middles)
    x = np.stack([right, up], axis=-1).reshape(-1, 2)
    y = image[::-1].reshape(-1, 1)
    recipe = Recipe(c["learning_rate"], 256, c["epochs"], optimiser="adam")
    history = train_many([net], x, y, [recipe], seeds=[c["seed"]])[0]
    return net.double(), history.loss


def patch() -> Any:
    """The square of all coordinates."""
    from inscape.probes import Patch

    return Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], ((-PROBE, PROBE), (-PROBE, PROBE)))


def with_noise(net: "nn.Sequential", sigma: float, rng: np.random.Generator) -> "nn.Sequential":
    """A copy whose hidden biases have moved by N(0, sigma^2) each."""
    import torch

    noisy = copy.deepcopy(net)
    linear = [m for m in noisy if isinstance(m, torch.nn.Linear)]
    with torch.no_grad():
        for layer in linear[:-1]:
            layer.bias.add_(torch.from_numpy(sigma * rng.standard_normal(len(layer.bias))))
    return noisy


def weights_of(net: "nn.Sequential") -> Floats:
    """All parameters in one row."""
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()]).round(6)


def with_weights(c: Mapping[str, Any], weights: npt.ArrayLike) -> "nn.Sequential":
    """The network of a configuration with these parameters."""
    import torch

    net = network(c)
    torch.nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float64), net.parameters())
    return net
