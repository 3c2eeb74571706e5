"""Grid counting against its floor: the bare forward passes over the same points."""

import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import torch
from torch import nn

import inscape
from benchmarks.timing import best_times, report
from inscape.measures.region_count import Counter
from inscape.partition.decision.grid import components
from inscape.partition.decision.grid.lattice import lattice_on

BATCH_SIZES = (32, 64, 128, 256, 512)


class Block(nn.Module):
    """A residual block of two 3x3 convolutions."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(n_in, n_out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Body plus skip connection."""
        return torch.relu(self.body(x) + self.skip(x))


def small_resnet(width: int = 16) -> nn.Module:
    """A residual network of three stages for 32x32 images."""
    w = width
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, w, 3, 1, 1, bias=False),
        nn.BatchNorm2d(w),
        nn.ReLU(),
        Block(w, w, 1),
        Block(w, 2 * w, 2),
        Block(2 * w, 4 * w, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * w, 10),
    ).eval()


def forward_only(net: nn.Module, points: torch.Tensor, batch_size: int) -> None:
    """Bare forward passes."""
    with torch.no_grad():
        for i in range(0, len(points), batch_size):
            net(points[i : i + batch_size])


def counting_on_a_resnet() -> None:
    """100 segments of 200 points through a residual network, in one thread."""
    net = small_resnet()
    x = np.random.default_rng(0).uniform(size=(200, 3, 32, 32))
    probes = inscape.sample_probes(x, n=100, random_state=0)
    model = inscape.wrap(net)
    counter = Counter(probes=probes, method="grid")
    Counter(probes=probes[:2], method="grid").count(model)  # compiles the counting
    lattice = lattice_on(probes[0], None)
    points = torch.from_numpy(
        np.concatenate([lattice.weights @ p.generators.reshape(2, -1) for p in probes]).astype(np.float32)
    ).reshape(-1, 3, 32, 32)
    sample = points[:2048]
    speeds = best_times(*[lambda b=b: forward_only(net, sample, b) for b in BATCH_SIZES], repeats=2)
    best = BATCH_SIZES[int(np.argmin(speeds))]
    counting, bare = best_times(
        lambda: counter.count(model), lambda: forward_only(net, points, best), repeats=3
    )
    chosen = model.batch_length(3 * 32 * 32)
    print(f"small ResNet, width 16: {len(points)} points; batch {best} is best, ours {chosen}; {bare:.2f} s")
    report("region_count over bare forward passes at the best batch size", counting / bare, "at most 1.10")
    labels = np.random.default_rng(0).integers(3, size=(100, 200))
    grid = (lattice.sites, lattice.neighbours("face"), lattice.bordered_size)
    (labelling,) = best_times(lambda: components(labels, *grid), repeats=5)
    report("labels into counts, of the forward passes", 100 * labelling / bare, "under 2 %", "%")


def counting_triangles() -> None:
    """1,000 triangles of 30x30 labels against a breadth-first search in Python."""
    breadth_first = import_module("tests.oracles.breadth_first").count_breadth_first
    lattice = lattice_on(inscape.Simplex(np.eye(3)), 30)
    rng = np.random.default_rng(0)
    height = lattice.weights @ rng.normal(size=(3, 1000 * 4))
    labels = np.sin(6 * height).reshape(len(lattice), 1000, 4).argmax(axis=2).T.copy()
    grids = np.full((1000, 30, 30), -1)
    grids[:, *lattice.coordinates.T] = labels
    grid = (lattice.sites, lattice.neighbours("face"), lattice.bordered_size)
    counts = components(labels, *grid)[1]
    searched: list[int] = []

    def search() -> None:
        searched[:] = [breadth_first(g, "face", True) for g in grids]

    ours, python = best_times(lambda: components(labels, *grid), search, repeats=2)
    assert searched == counts.tolist()
    print(f"1,000 triangles of 30x30 labels, {counts.mean():.1f} regions on average: equal counts")
    report("breadth-first search in Python over ours", python / ours, "at least 50")


def importing() -> None:
    """What `import inscape` brings in, and how long it takes beside numpy."""
    heavy = "matplotlib pandas sklearn onnxruntime torch numba"
    code = f"import inscape, sys; print(' '.join(m for m in '{heavy}'.split() if m in sys.modules) or 'none')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    ours, numpy = best_times(
        *[
            lambda m=m: subprocess.run([sys.executable, "-c", f"import {m}"], check=True)
            for m in ("inscape", "numpy")
        ]
    )
    print(f"import inscape loads of {heavy}: {loaded}")
    report("import inscape over import numpy", ours / numpy, "light")


def main() -> None:
    """Print every figure."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", inscape.InscapeWarning)  # untrained networks may predict one class only
    counting_on_a_resnet()
    counting_triangles()
    importing()
