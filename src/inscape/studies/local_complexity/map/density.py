"""The density of linear regions of a coordinate network (Patel, Montufar 2025, Fig. 1, 4, 5 and 6).

It is compared with the length of the edges of the exact linear regions in each square of a grid.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.studies.local_complexity.map.coordinate_network import (
    HALF_SIDE,
    fingerprint,
    fitted,
    patch,
    perturbed,
    weights_of,
)
from inscape.studies.local_complexity.map.resemblance import CLAIMS, SIGMAS, at_sigma, summarise
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    from torch import nn

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
"""`n_cells` are squares per side: rows in stores are known by this name."""
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
    regions = linear_regions(net, patch(), budget=None)
    row: dict[str, Any] = {"loss": loss, "n_regions": regions.n_regions, "weights": weights_of(net)}
    for sigma in SIGMAS:
        for noise in NOISES:
            for form in ("theorem", "norms"):
                densities = density_map(
                    net,
                    patch(),
                    c["resolution"],
                    sigma=sigma,
                    noise=noise,
                    n_noise=c["n_noise"],
                    form=form,
                    precision="float32",
                    random_state=c["seed"],
                    budget=None,
                )
                row[map_name(sigma, noise, form)] = np.round(densities.density, 4)
        row |= {at_sigma(key, sigma): value for key, value in compared(net, c, sigma).items()}
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
    points = -HALF_SIDE + 2 * HALF_SIDE * (corners + rng.random(corners.shape)) / (n * PER_SQUARE)
    complexity = local_complexity(
        net, points, sigma=sigma, n_noise=c["n_networks"], random_state=c["seed"], budget=None
    )
    density = complexity.density.reshape(n, PER_SQUARE, n, PER_SQUARE).mean(axis=(1, 3))
    lengths = [edge_lengths(perturbed(net, sigma, rng), n) for _ in range(c["n_networks"])]
    return {"density": density.ravel(), "length": np.round(np.array(lengths).reshape(len(lengths), -1), 6)}


def lengths_in_squares(starts: Floats, ends: Floats, low: float, high: float, n_squares: int) -> Floats:
    """The length of segments within each square of a grid on [low, high]^2, (n_squares, n_squares).

    Between the lines of the grid that a segment crosses, each stretch belongs to the square of its middle.
    Exact up to rounding; a segment along a line of the grid belongs to one of the two squares.

    Args:
        starts: one end of each segment, (m, 2).
        ends: the other.
        low: where the square begins, on both axes.
        high: where it ends.
        n_squares: squares per axis; the first axis of the result is that of the first coordinate.

    >>> lengths_in_squares(np.array([[0.0, 0.25]]), np.array([[1.0, 0.25]]), 0.0, 1.0, 2).tolist()
    [[0.5, 0.0], [0.5, 0.0]]
    """
    lines = np.linspace(low, high, n_squares + 1)
    steps = ends - starts
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (lines - starts[:, :, None]) / steps[:, :, None]
    crossings = np.nan_to_num(crossings, nan=0.0, posinf=1.0, neginf=0.0).reshape(len(starts), -1)
    borders = np.sort(
        np.clip(np.column_stack([np.zeros(len(starts)), crossings, np.ones(len(starts))]), 0, 1)
    )
    share, middle = np.diff(borders), (borders[:, 1:] + borders[:, :-1]) / 2
    places = starts[:, None] + middle[..., None] * steps[:, None]
    at = np.floor((places - low) / (high - low) * n_squares).astype(np.int64)
    inside = ((at >= 0) & (at < n_squares)).all(axis=2) & (share > 0)
    lengths = share * np.linalg.norm(steps, axis=1)[:, None]
    flat = at[inside] @ np.array([n_squares, 1])
    sums = np.bincount(flat, weights=lengths[inside], minlength=n_squares**2)
    return np.asarray(sums, dtype=np.float64).reshape(n_squares, n_squares)


def edge_lengths(net: "nn.Sequential", n_squares: int) -> Floats:
    """The length of the edges of the exact linear regions per area, in each square, flat."""
    from inscape.partition import linear_regions

    regions = linear_regions(net, patch(), budget=None)
    inner = regions.edges[regions.edge_layers > 0]
    a, b = regions.vertices[inner[:, 0]], regions.vertices[inner[:, 1]]
    area = (2 * HALF_SIDE / n_squares) ** 2
    return lengths_in_squares(a, b, -HALF_SIDE, HALF_SIDE, n_squares).ravel() / area


STUDY = Study(
    name="local-complexity-map",
    title="The density of linear regions of a coordinate network",
    paper="Patel and Montufar 2025, Fig. 1, 4, 5 and 6",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    options={"image": "an image file to fit instead of the one that is drawn, a .npy file, or FILE.npz:NAME"},
)
