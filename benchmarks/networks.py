"""Networks that the benchmarks run on, with weights that stay: published figures are of these."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """relu(x' + conv(relu(conv(x)))), every convolution followed by batch-norm; x' is x or its projection."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The block on a batch."""
        y: Tensor = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.shortcut(x)
        out: Tensor = self.relu(y)
        return out


def resnet18(width: int = 64, n_classes: int = 10, *, seed: int = 0) -> nn.Sequential:
    """ResNet18 for 32 x 32 images: four stages of two blocks with 1, 2, 4 and 8 times `width` channels."""
    with seeded(seed):
        layers: list[nn.Module] = [
            nn.Conv2d(3, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
        n_in = width
        for stage in range(4):
            for block in range(2):
                n_out = width * 2**stage
                layers.append(ResidualBlock(n_in, n_out, 2 if stage and not block else 1))
                n_in = n_out
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_classes)
        ).eval()


def cnn(
    channels: tuple[int, int, int] = (16, 32, 64), n_classes: int = 10, *, seed: int = 0
) -> nn.Sequential:
    """Three convolutions on 32 x 32 images, the second and third with stride 2, and a linear layer."""
    a, b, c = channels
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(3, a, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(a, b, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(b, c, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(c * 64, n_classes),
        ).eval()


def mlp(*sizes: int, seed: int = 0) -> nn.Sequential:
    """A relu network on vectors, layers of the given sizes, weights N(0, 2 / fan-in), biases N(0, 0.1^2)."""
    layers: list[nn.Module] = []
    with seeded(seed):
        for n_in, n_out in pairwise(sizes):
            linear = nn.Linear(n_in, n_out)
            nn.init.normal_(linear.weight, std=(2 / n_in) ** 0.5)
            nn.init.normal_(linear.bias, std=0.1)
            layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def gelu_mlp(*sizes: int, seed: int = 0) -> nn.Sequential:
    """The network of `mlp` with GELU for relu: smooth, so that it has no linear pieces."""
    return nn.Sequential(*[nn.GELU() if isinstance(m, nn.ReLU) else m for m in mlp(*sizes, seed=seed)]).eval()


def narrow_cnn(n_classes: int = 10, *, seed: int = 0) -> nn.Sequential:
    """Convolutions of 8, 16 and 16 channels on 32 x 32 images, two with stride 2, and a linear layer."""
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 64, n_classes),
        ).eval()


def narrow_resnet(width: int = 4, n_classes: int = 10, *, seed: int = 0) -> nn.Sequential:
    """A residual network of three blocks on 32 x 32 images, its first convolution with stride 2."""
    w = width
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(3, w, 3, 2, 1, bias=False),
            nn.BatchNorm2d(w),
            nn.ReLU(inplace=True),
            ResidualBlock(w, w, 1),
            ResidualBlock(w, 2 * w, 2),
            ResidualBlock(2 * w, 4 * w, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * w, n_classes),
        ).eval()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The global generator of torch set for a while, then as it was: layers draw their weights from it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
