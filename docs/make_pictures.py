"""Draw the pictures of README and docs again: `python docs/make_pictures.py`."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import inscape
from inscape.training.networks import mlp

HERE = Path(__file__).parent / "images"


def main() -> None:
    """Draw all of them."""
    draw_plane()
    draw_density()


def draw_density() -> None:
    """The density of kinks of a network that has learned two rings."""
    x = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    y = torch.from_numpy((np.linalg.norm(x, axis=1) % 0.6 > 0.3).astype(np.int64))
    points = torch.from_numpy(x).float()
    net = mlp(2, (40, 40), 2, seed=0)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(1500):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(points), y).backward()
        optimiser.step()
    patch = inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for ax, sigma in zip(figure.subplots(1, 2), (0.05, 0.2), strict=True):
        inscape.density_map(net, patch, 200, sigma=sigma, n_noise=24, random_state=0).plot(ax)
    figure.savefig(HERE / "density.png", dpi=70)


def draw_plane() -> None:
    """The plane of the README."""
    digits = load_digits()
    x, y = digits.images / 16, digits.target
    net = MLPClassifier((64,), max_iter=500, random_state=0).fit(x[:900].reshape(900, -1), y[:900])
    plane = inscape.decision_regions(net, inscape.Patch.through(x[[1025, 1617, 1728]]), resolution=300)
    plane.plot().figure.savefig(HERE / "plane.png", dpi=110)


if __name__ == "__main__":
    main()
