"""Networks of the size that people have: adaptive counts beside the bare forward passes that they need.

Run `python -m benchmarks architectures`: for each network evaluations, time and peak memory of the region
count on random segments, and the time of as many forward passes in batches of the same length; then the
cost of an exact walk along a short stretch of a full-width ResNet-18 segment, foreseen and measured. Weights
are random; the statistics of batch-norm are those of the points, as training leaves them, and scores are
shifted so that classes are about equally frequent. What a process does once, such as loading compiled
loops, is done before. SEGMENTS in the environment gives the number of segments (100), NETWORKS names some
of the networks, or "exact".
"""

import os
import resource
import time

import numpy as np
import torch
from torch import Tensor, nn

import inscape
from benchmarks.networks import resnet18, seeded
from benchmarks.timing import report
from inscape.compiled import compile_at_once
from inscape.training.networks import build

N_SEGMENTS = int(os.environ.get("SEGMENTS", "100"))
TIME_BAR, MEMORY_BAR, COST_BAR = 1.15, 2.0, 0.25
N_TIMED = 10
"""Forward passes before the count, and as many after it, so that a machine that slows down slows both."""
PIECES_WALKED = 1500
"""Of the exact stretch, of which some hundred are walked to foresee the time of the rest."""


class Transformer(nn.Module):
    """A small transformer on embeddings of tokens (n, length, width), by the mean of its last layer."""

    def __init__(self, width: int, n_heads: int, depth: int, n_classes: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, n_heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of a batch."""
        scores: Tensor = self.head(self.encoder(x).mean(dim=1))
        return scores


class VisionTransformer(nn.Module):
    """ViT-Tiny: patches of 16 x 16 pixels, width 192, 12 layers of 3 heads."""

    def __init__(self, n_classes: int = 1000, side: int = 224) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.places = nn.Parameter(0.02 * torch.randn(1, (side // 16) ** 2, 192))
        self.body = Transformer(192, 3, 12, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of a batch."""
        scores: Tensor = self.body(self.patches(x).flatten(2).transpose(1, 2) + self.places)
        return scores


class ConvNeXtBlock(nn.Module):
    """x + pointwise(GELU(pointwise(norm(depthwise(x)))))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.pointwise = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """The block on a batch."""
        y: Tensor = self.pointwise(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        return x + y.permute(0, 3, 1, 2)


def convnext(
    widths: tuple[int, ...] = (40, 80, 160, 320), depths: tuple[int, ...] = (2, 2, 6, 2)
) -> nn.Module:
    """A ConvNeXt of the width and depth that is called Atto, for 1,000 classes."""
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4)]
    for k, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if k:
            layers.append(nn.Conv2d(widths[k - 1], width, 2, 2))
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 1000))


class Bottleneck(nn.Module):
    """relu(x' + 1x1(relu(3x3(relu(1x1(x)))))), every convolution followed by batch-norm.

    The scale of the last batch-norm is 0, from which training starts (Goyal et al. 2017, arXiv 1706.02677,
    section 5.1). With 1 there sixteen such blocks are chaotic: more than 160 regions on a segment.
    """

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(n_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, n_out, 1, bias=False), nn.BatchNorm2d(n_out)),
        )
        same = stride == 1 and n_in == n_out
        self.shortcut: nn.Module = nn.Identity()
        if not same:
            self.shortcut = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )
        nn.init.zeros_(self.body[-1].weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """The block on a batch."""
        return torch.relu(self.shortcut(x) + self.body(x))


def resnet50() -> nn.Module:
    """ResNet-50 for 224 x 224 pixels and 1,000 classes."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    n_in = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for block in range(depth):
            layers.append(Bottleneck(n_in, 64 * 2**stage, 2 if stage and not block else 1))
            n_in = 256 * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, 1000))


class Settled(nn.Module):
    """A network with the statistics of batch-norm and scores of mean 0 over some points.

    Statistics of a network that was never trained are 0 and 1: a deep one is then chaotic, with a region
    every few hundredths of a segment, and prefers one class.
    """

    def __init__(self, module: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.module = module
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = None  # the mean over batches, of which there is one
        with torch.no_grad():
            module.train()(x)
            self.register_buffer("mean", module.eval()(x).mean(dim=0))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of a batch."""
        scores: Tensor = self.module(x) - self.mean
        return scores


def networks() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """Name -> network and shape of a point."""
    with seeded(0):
        return {
            "ResNet-18, 32 x 32": (resnet18(), (3, 32, 32)),
            "MobileNetV2, 32 x 32": (build("mobilenet_v2", (3, 32, 32), 10, random_state=0), (3, 32, 32)),
            "transformer, 32 tokens": (Transformer(64, 4, 4, 10), (32, 64)),
            "ConvNeXt-Atto, 224 x 224": (convnext(), (3, 224, 224)),
            "ViT-Tiny, 224 x 224": (VisionTransformer(), (3, 224, 224)),
            "ResNet-50, 224 x 224": (resnet50(), (3, 224, 224)),
        }


def is_wanted(name: str) -> bool:
    """Whether NETWORKS in the environment names a network; without it all are wanted."""
    wanted = os.environ.get("NETWORKS", "").lower()
    return not wanted or any(word.strip() in name.lower() for word in wanted.split(","))


def count(name: str, module: nn.Module, shape: tuple[int, ...]) -> None:
    """Print what the adaptive count of a network takes, beside its forward passes."""
    x = np.random.default_rng(0).normal(size=(64, *shape)).astype(np.float32)
    module = Settled(module, torch.from_numpy(x[:16])).eval()
    model = inscape.wrap(module)
    length = model.batch_length(x[0].size)
    model.labels(x[:length])
    batch, bare = torch.from_numpy(np.resize(x, (length, *shape))), []
    bare.append(seconds_of_batch(module, batch))
    start = time.perf_counter()
    result = inscape.region_count(
        model, x, n_probes=N_SEGMENTS, method="adaptive", random_state=0, progress=False
    )
    seconds = time.perf_counter() - start
    bare.append(seconds_of_batch(module, batch))
    forward = sum(bare) / 2 * result.n_evaluations / length
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:26s} {result.mean:6.2f} regions, {result.n_evaluations:,} evaluations, {N_SEGMENTS} segments "
        f"in {seconds:.1f} s, forward passes {forward:.1f} s, batches of {length}"
    )
    report(f"  {name}: time beside the forward passes", seconds / forward, f"at most {TIME_BAR}")
    report(f"  {name}: peak memory of the process", peak, f"at most {MEMORY_BAR:g}", "GB")


def seconds_of_batch(module: nn.Module, batch: Tensor) -> float:
    """The mean of some forward passes over a batch, after a first."""
    with torch.no_grad():
        module(batch)
        start = time.perf_counter()
        for _ in range(N_TIMED):
            module(batch)
    return (time.perf_counter() - start) / N_TIMED


def exact_stretch() -> None:
    """Print the cost of an exact walk along a short stretch, foreseen and as it is."""
    from inscape.partition.cost_table import exact_segments_cost

    module, rng = resnet18(), np.random.default_rng(0)
    ends = rng.normal(size=(2, 3, 32, 32)).astype(np.float32)
    whole = inscape.Segment(ends[0], ends[1])
    model = inscape.wrap(module)
    foreseen = exact_segments_cost(model, [whole])
    share = min(1.0, PIECES_WALKED / foreseen["n_pieces"])
    stretch = inscape.Segment(ends[0], ends[1], span=(0.3, 0.3 + share))
    foreseen = exact_segments_cost(model, [stretch])
    start = time.perf_counter()
    regions = inscape.linear_regions(model, stretch)
    seconds = time.perf_counter() - start
    print(
        f"exact, {share:.2%} of a ResNet-18 segment: foreseen {foreseen['n_pieces']:,} linear pieces and "
        f"{foreseen['seconds']:.1f} s, found {regions.n_regions:,} in {seconds:.1f} s"
    )
    report("  pieces foreseen / found - 1", foreseen["n_pieces"] / regions.n_regions - 1, f"+-{COST_BAR}")
    report("  seconds foreseen / taken - 1", foreseen["seconds"] / seconds - 1, f"+-{COST_BAR}")


def main() -> None:
    """Print the tables."""
    compile_at_once()
    points = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    inscape.region_count(nn.Linear(4, 3), points, n_probes=4, method="adaptive", random_state=0)
    for name, (module, shape) in networks().items():
        if is_wanted(name):
            count(name, module, shape)
    if is_wanted("exact"):
        exact_stretch()


if __name__ == "__main__":
    main()
