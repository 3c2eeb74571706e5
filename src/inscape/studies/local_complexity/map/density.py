"""The density of linear regions of a coordinate network (Patel, Montufar 2025, Fig. 1, 4, 5 and 6)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.studies.local_complexity.map.coordinate_network import (
    PROBE,
    fitted,
    patch,
    weights_of,
    with_noise,
)
from inscape.studies.local_complexity.map.image import fingerprint
from inscape.studies.local_complexity.map.lengths import edge_lengths
from inscape.studies.local_complexity.map.resemblance import CLAIMS, summarise
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    from torch import nn

SIGMAS = (0.025, 0.05, 0.1)
NOISES = ("bias", "bias+weights")
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "size": 24,
        "depth": 2,
        "width": 16,
        "epochs": 60,
        "learning_rate": 3e-3,
        "resolution": 24,
        "n_noise": 4,
        "n_cells": 6,
        "n_networks": 8,
        "replicates": 1,
    },
    "small": {
        "size": 64,
        "depth": 4,
        "width": 32,
        "epochs": 150,
        "learning_rate": 1e-3,
        "resolution": 80,
        "n_noise": 16,
        "n_cells": 12,
        "n_networks": 40,
        "replicates": 4,
    },
    "paper": {
        "size": 256,
        "depth": 4,
        "width": 200,
        "epochs": 1000,
        "learning_rate": 1e-4,
        "resolution": 300,
        "n_noise": 64,
        "n_cells": 30,
        "n_networks": 200,
        "replicates": 6,
    },
}
PER_SQUARE = 12
"""The density in a square is the mean over this many strips by as many, a random point in each."""


def configurations(scale: str, image: str | None = None) -> list[Configuration]:
    """A network for each replicate, fitted to the image."""
    s = {k: v for k, v in SETTINGS[scale].items() if k != "replicates"}
    picture = {"image": "drawn"} if image is None else {"image": image, "image_hash": fingerprint(image)}
    return [{**picture, **s, "replicate": i} for i in range(SETTINGS[scale]["replicates"])]


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


def compared(net: "nn.Sequential", c: Configuration, sigma: float) -> dict[str, Floats]:
    """In each square of a grid: f, and the length of boundary per area in each of many noisy networks."""
    from inscape.measures import local_complexity

    n, rng = c["n_cells"], np.random.default_rng([c["seed"], round(1e6 * sigma)])
    t = np.arange(n * PER_SQUARE)
    corners = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    points = -PROBE + 2 * PROBE * (corners + rng.random(corners.shape)) / (n * PER_SQUARE)
    found = local_complexity(net, points, sigma=sigma, n_noise=c["n_networks"], random_state=c["seed"])
    density = found.density.reshape(n, PER_SQUARE, n, PER_SQUARE).mean(axis=(1, 3))
    lengths = [edge_lengths(with_noise(net, sigma, rng), n) for _ in range(c["n_networks"])]
    return {"density": density.ravel(), "length": np.round(np.array(lengths).reshape(len(lengths), -1), 6)}


STUDY = Study(
    name="local-complexity-map",
    title="The density of linear regions of a coordinate network",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    options={"image": "a grey or colour image file to fit instead of the one that is drawn"},
)
