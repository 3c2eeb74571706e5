"""The density of linear regions of a coordinate network (Patel, Montufar 2025, Fig. 1, 4, 5 and 6)."""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.studies.cell_lengths import cell_lengths
from inscape.studies.grey_image import drawn_image, fingerprint, read_image
from inscape.studies.local_complexity_map_summary import CLAIMS, summarise
from inscape.studies.study import Configuration, Study

if TYPE_CHECKING:
    from torch import nn

SIGMAS = (0.025, 0.05, 0.1)
NOISES = ("bias", "bias+weights")
PROBE = 1.0
"""Coordinates run from -1 to 1."""
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"size": 24, "depth": 2, "width": 16, "epochs": 60, "learning_rate": 3e-3, "resolution": 24}
    | {"n_noise": 4, "n_cells": 6, "n_networks": 8, "replicates": 1},
    "small": {"size": 64, "depth": 4, "width": 32, "epochs": 150, "learning_rate": 1e-3, "resolution": 80}
    | {"n_noise": 16, "n_cells": 12, "n_networks": 40, "replicates": 4},
    "paper": {"size": 256, "depth": 4, "width": 200, "epochs": 1000, "learning_rate": 1e-4, "resolution": 300}
    | {"n_noise": 64, "n_cells": 30, "n_networks": 200, "replicates": 6},
}
PER_CELL = 12
"""The density in a cell is the mean over so many strips by so many, a random point in each square of them."""


def configurations(scale: str, image: str | None = None) -> list[Configuration]:
    """A network for each replicate, fitted to the image."""
    s = {k: v for k, v in _SCALES[scale].items() if k != "replicates"}
    picture = {"image": "drawn"} if image is None else {"image": image, "image_hash": fingerprint(image)}
    return [{**picture, **s, "replicate": i} for i in range(_SCALES[scale]["replicates"])]


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


def cell(c: Configuration) -> dict[str, Any]:
    """Maps of one fitted network at every sigma, and its density against measured lengths."""
    from inscape.measures import density_map
    from inscape.partition import linear_regions

    net, loss = fitted(c)
    regions = linear_regions(net, patch())
    row: dict[str, Any] = {"loss": loss, "n_regions": regions.n_regions, "weights": weights_of(net)}
    for sigma in SIGMAS:
        for noise in NOISES:
            for form in ("theorem", "norms"):
                found = density_map(
                    net,
                    patch(),
                    c["resolution"],
                    sigma=sigma,
                    noise=noise,
                    n_noise=c["n_noise"],
                    form=form,
                    precision="float32",
                    random_state=c["seed"],
                )
                row[map_name(sigma, noise, form)] = np.round(found.density, 4)
        row |= {f"{key}_{sigma:g}": value for key, value in compared(net, c, sigma).items()}
    row["plain_length"] = edge_lengths(net, c["n_cells"])
    return row


def map_name(sigma: float, noise: str, form: str) -> str:
    """The column of a map."""
    return f"map_{sigma:g}_{noise}_{'density' if form == 'theorem' else 'norms'}"


def patch() -> Any:
    """The square of all coordinates."""
    from inscape.probes import Patch

    return Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], ((-PROBE, PROBE), (-PROBE, PROBE)))


def compared(net: "nn.Sequential", c: Configuration, sigma: float) -> dict[str, Floats]:
    """In each cell of a grid: f, and the length of boundary per area in each of many noisy networks."""
    from inscape.measures import local_complexity

    n, rng = c["n_cells"], np.random.default_rng([c["seed"], round(1e6 * sigma)])
    t = np.arange(n * PER_CELL)
    corners = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    points = -PROBE + 2 * PROBE * (corners + rng.random(corners.shape)) / (n * PER_CELL)
    found = local_complexity(net, points, sigma=sigma, n_noise=c["n_networks"], random_state=c["seed"])
    density = found.density.reshape(n, PER_CELL, n, PER_CELL).mean(axis=(1, 3))
    lengths = [edge_lengths(with_noise(net, sigma, rng), n) for _ in range(c["n_networks"])]
    return {"density": density.ravel(), "length": np.round(np.array(lengths).reshape(len(lengths), -1), 6)}


def with_noise(net: "nn.Sequential", sigma: float, rng: np.random.Generator) -> "nn.Sequential":
    """A copy whose hidden biases have moved by N(0, sigma^2) each."""
    import torch

    noisy = copy.deepcopy(net)
    linear = [m for m in noisy if isinstance(m, torch.nn.Linear)]
    with torch.no_grad():
        for layer in linear[:-1]:
            layer.bias.add_(torch.from_numpy(sigma * rng.standard_normal(len(layer.bias))))
    return noisy


def edge_lengths(net: "nn.Sequential", n_cells: int) -> Floats:
    """The length of the edges of the exact linear regions per area, in each cell, flat."""
    from inscape.partition import linear_regions

    regions = linear_regions(net, patch())
    inner = regions.edges[regions.edge_layers > 0]
    a, b = regions.vertices[inner[:, 0]], regions.vertices[inner[:, 1]]
    area = (2 * PROBE / n_cells) ** 2
    return cell_lengths(a, b, -PROBE, PROBE, n_cells).ravel() / area


def weights_of(net: "nn.Sequential") -> Floats:
    """All parameters in one row."""
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()]).round(6)


def with_weights(c: Mapping[str, Any], weights: npt.ArrayLike) -> "nn.Sequential":
    """The network of a configuration with these parameters."""
    import torch

    net = network(c)
    torch.nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float64), net.parameters())
    return net


STUDY = Study(
    name="local-complexity-map",
    title="The density of linear regions of a coordinate network",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    options={"image": "a grey or colour image file to fit instead of the one that is drawn"},
)
