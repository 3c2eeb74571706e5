"""The networks of the pictures and tables in docs, trained by code in seconds to a minute each."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from inscape.training.loop import Recipe, train
from inscape.training.networks import mlp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Trained = tuple[nn.Module, Floats, Ints]
"""The network, and the test points and classes."""


def spirals(seed: int = 0) -> Trained:
    """An MLP 2-24-24-24-3 on three spiral arms."""
    rng = np.random.default_rng(seed)
    y = np.arange(1200) % 3
    r = np.sqrt(rng.uniform(0.02, 1, len(y)))
    angle = 2 * np.pi * (y / 3 + 0.75 * r)
    x = r[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.03 * rng.normal(size=(len(y), 2))
    net = mlp(2, (24, 24, 24), 3, random_state=seed)
    train(net, x, y, Recipe(0.05, 64, 200, weight_decay=1e-4), random_state=seed)
    return net, x, y


def digits(seed: int = 0) -> Trained:
    """An MLP 64-64-64-10 on 1,200 of scikit-learn's handwritten digits."""
    data = load_digits()
    x, y = data.images / 16, data.target.astype(np.int64)
    net = mlp(64, (64, 64), 10, random_state=seed)
    train(net, x[:1200], y[:1200], Recipe(0.05, 64, 60), random_state=seed)
    return net, x[1200:], y[1200:]


def noisy_digits(seed: int = 0) -> Trained:
    """An MLP 64-128-128-10 that has learnt 1,200 digits by heart, a tenth of them with a random class."""
    data = load_digits()
    x, y = data.images / 16, data.target.astype(np.int64)
    rng = np.random.default_rng(seed)
    wrong = rng.choice(1200, 120, replace=False)
    learnt = y[:1200].copy()
    learnt[wrong] = rng.integers(0, 10, 120)
    net = mlp(64, (128, 128), 10, random_state=seed)
    train(net, x[:1200], learnt, Recipe(0.05, 32, 100), random_state=seed)
    return net, x[1200:], y[1200:]


def mnist(seed: int = 0) -> Trained | None:
    """An MLP 784-100-100-10 on 20,000 images of MNIST, or None without the data."""
    data = _data("mnist.npz")
    if data is None:
        return None
    x, y = data["x_train"][:20_000] / 255, data["y_train"][:20_000].astype(np.int64)
    net = mlp(784, (100, 100), 10, random_state=seed)
    train(net, x, y, Recipe(0.05, 64, 8), random_state=seed)
    return net, data["x_test"] / 255, data["y_test"].astype(np.int64)


def cifar10(seed: int = 0, width: int = 4) -> Trained | None:
    """A narrow ResNet on 20,000 images of CIFAR-10, or None without the data."""
    data = _data("cifar10.npz")
    if data is None:
        return None
    x, y = _channels_first(data["x_train"][:20_000]), data["y_train"][:20_000].astype(np.int64)
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, width, 4, stride=4, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Residual(width, width, 1),
        Residual(width, 2 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 10),
    )
    train(net, x, y, Recipe(0.1, 128, 15), random_state=seed)
    return net, _channels_first(data["x_test"]), data["y_test"].astype(np.int64)


class Residual(nn.Module):
    """Two 3x3 convolutions with batch-norm, and a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.shortcut = (
            nn.Identity() if n_in == n_out and stride == 1 else nn.Conv2d(n_in, n_out, 1, stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """relu(body(x) + shortcut(x))."""
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def accuracy(net: nn.Module, x: Floats, y: Ints) -> float:
    """The part of points with the right label."""
    with torch.no_grad():
        return float((net(torch.from_numpy(x).float()).argmax(1).numpy() == y).mean())


def three_classes(net: nn.Module, x: Floats, y: Ints, classes: tuple[int, int, int]) -> Floats:
    """For each of three classes the first point that the network gets right."""
    with torch.no_grad():
        right = net(torch.from_numpy(x[:500]).float()).argmax(1).numpy() == y[:500]
    return np.stack([x[np.flatnonzero(right & (y[:500] == c))[0]] for c in classes])


def _channels_first(images: npt.NDArray[np.uint8]) -> Floats:
    return np.ascontiguousarray(np.moveaxis(images / 255, -1, 1))


def _data(name: str) -> Any:
    """A file of the folder INSCAPE_DATA, or None."""
    path = Path(os.environ.get("INSCAPE_DATA", "-")) / name
    return np.load(path) if path.exists() else None
