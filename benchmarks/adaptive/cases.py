"""The networks of the benchmark, trained from seed 0."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn

import inscape
from benchmarks.networks import gelu_mlp, mlp, narrow_cnn, narrow_resnet
from inscape.models import Model
from inscape.training import load_data

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A trained network, the data that span its probes, and what is asked of it.

    Attributes:
        name: what it is and what it was trained on.
        net: the network.
        x: the points that span probes.
        is_hard: whether its labels are random.
        has_exact: whether exact counts are possible.
        speed: how many times faster than a grid of 200 points segments must be.
        fine: points per axis of the grid that says what a plane looks like, None for no planes.
        n_planes: how many planes.
        part: how much of the side of a plane is taken, around its middle.
    """

    name: str
    net: nn.Module
    x: Floats
    is_hard: bool = False
    has_exact: bool = True
    speed: float | None = None
    fine: int | None = None
    n_planes: int = 30
    part: float = 1.0

    def model(self) -> Model:
        """The network, wrapped; counts take its batch length, grids and ours alike."""
        return inscape.wrap(self.net, input_shape=self.x.shape[1:])


def trained_cases() -> Iterator[Case]:
    """Every network, trained from seed 0."""
    rng = np.random.default_rng(0)
    data = load_data("digits")
    x, y = np.asarray(data.x).reshape(len(data), -1), np.asarray(data.y)
    random = rng.integers(10, size=len(y))
    yield Case("MLP 64-100x3, digits", trained(mlp(64, 100, 100, 100, 10), x, y, 800), x, speed=3.0, fine=801)
    yield Case(
        "MLP 64-100x3, digits, random labels",
        trained(mlp(64, 100, 100, 100, 10), x, random, 3000),
        x,
        is_hard=True,
        speed=3.0,
        fine=801,
    )
    yield Case(
        "MLP 64-100x6, digits, random labels",
        trained(mlp(64, *[100] * 6, 10), x, random, 3000),
        x,
        is_hard=True,
        speed=3.0,
        fine=801,
    )
    yield Case(
        "GELU 64-100x3, digits", trained(gelu_mlp(64, 100, 100, 100, 10), x, y, 800), x, has_exact=False
    )
    yield Case(
        "GELU 64-100x3, digits, random l.",
        trained(gelu_mlp(64, 100, 100, 100, 10), x, random, 3000),
        x,
        is_hard=True,
        has_exact=False,
        fine=1601,
    )
    yield from image_cases(Path(os.environ.get("INSCAPE_DATA", "-")), rng)


def image_cases(folder: Path, rng: np.random.Generator) -> Iterator[Case]:
    """The networks on MNIST and CIFAR-10."""
    if (folder / "mnist.npz").is_file():
        x, y = images(folder / "mnist.npz", 10000)
        x = x.reshape(len(x), -1)
        net = trained(mlp(784, 200, 200, 200, 200, 10), x, y, 600)
        yield Case("MLP 784-200x4, MNIST", net, x, speed=3.0, fine=801)
        few = x[:2000]
        net = trained(mlp(784, 200, 200, 200, 200, 10), few, rng.integers(10, size=2000), 1500)
        yield Case("MLP 784-200x4, MNIST, random l.", net, few, is_hard=True, speed=3.0)
    if (folder / "cifar10.npz").is_file():
        x, y = images(folder / "cifar10.npz", 10000)
        x = ((x - x.mean(axis=(0, 1, 2))) / x.std(axis=(0, 1, 2))).transpose(0, 3, 1, 2).copy()
        yield Case(
            "CNN, CIFAR-10", trained(narrow_cnn(), x, y, 1200), x, speed=5.0, fine=601, n_planes=6, part=0.4
        )
        yield Case("ResNet of width 4, CIFAR-10", trained(narrow_resnet(), x, y, 900), x, speed=4.0)


def images(path: Path, n: int) -> tuple[Floats, Ints]:
    """The first n training images, in 0..1, and their classes."""
    with np.load(path) as data:
        return data["x_train"][:n] / 255.0, data["y_train"][:n].astype(np.int64)


def trained(net: nn.Module, x: Floats, y: Ints, steps: int) -> nn.Module:
    """The network after some steps of Adam on batches of 128 points."""
    rng = np.random.default_rng(0)
    points, labels = torch.from_numpy(x).float(), torch.from_numpy(y)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    net.train()
    for _ in range(steps):
        batch = torch.from_numpy(rng.integers(len(x), size=128))
        optimizer.zero_grad()
        F.cross_entropy(net(points[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return net.eval()
