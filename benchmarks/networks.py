"""Networks that the benchmarks run on, with weights that stay: published figures are of these."""

from torch import nn

from tests.fixtures.networks import ResidualBlock, cnn, mlp, resnet18, seeded

__all__ = ["cnn", "gelu_mlp", "mlp", "narrow_cnn", "narrow_resnet", "resnet18", "seeded"]


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
