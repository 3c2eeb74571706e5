"""Exact regions on planes: what they cost, as ratios measured in one run on one thread.

Run `python -m benchmarks planes`. Each row prints the bar and what was measured. `INSCAPE_BENCH` may name a
folder with the networks of the trusted counts, else seeded networks of the same sizes stand in. The
convolutional network is trained for a few seconds on enlarged digits; ResNet18 has the batch-norm
statistics of noise images.
"""

import copy
import itertools
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import inscape
from benchmarks.networks import cnn, mlp, resnet18
from benchmarks.segments import (
    as_module,
    bench_mlp,
    best,
    calibrated,
    digit_labels,
    digits,
    forward,
    noise,
    row,
    trained,
)
from inscape import Patch, Simplex, linear_regions

BARS = {"mlp_2_64x3_1": 0.035, "mlp_2_128x3_10": 0.025, "2_256x4_10": 0.015}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    linear_regions(mlp(2, 8, 8, 2), square())  # compiled, or read from the cache
    print(f"{'work':58} {'bar':>10} {'measured':>9}   details")
    against_regioncam()
    peak_memory()
    colour = np.repeat(digits(32)[:, None], 3, axis=1)
    convolutional = trained(cnn(), colour, digit_labels(), steps=60)
    over_forward(
        "CNN of three convolutions, triangle of three images", convolutional, around(colour[[0, 1, 2]], 0.03)
    )
    pooled = trained(pooling(), colour, digit_labels(), steps=60)
    over_forward("CNN with max-pooling, the same", pooled, around(colour[[0, 1, 2]], 0.03))
    over_forward(
        "ResNet18 of width 8, a plane through noise images", calibrated(resnet18(8)), around(noise(3), 0.004)
    )
    growth()


def square(half: float = 1.0) -> Patch:
    """The square from -half to half."""
    return Patch([0.0, 0.0], np.eye(2), ((-half, half), (-half, half)))


def around(points: Any, part: float) -> Simplex:
    """The triangle of three points, shrunk around its middle to a part of its size."""
    middle = points.mean(axis=0)
    return Simplex(middle + part * (points - middle))


def pooling() -> nn.Sequential:
    """A small network with max-pooling, for 32 x 32 images."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 64, 10),
    )


def deep(width: int, depth: int, seed: int = 0) -> nn.Module:
    """A relu network on the plane with He weights in float64 and biases of deviation 0.3."""
    rng = np.random.default_rng(seed)
    sizes = [2, *[width] * depth, 10]
    return as_module(
        [
            (rng.normal(size=(b, a)) * np.sqrt(2 / a), rng.normal(size=b) * 0.3)
            for a, b in itertools.pairwise(sizes)
        ]
    )


def layers_of(net: nn.Module) -> list[tuple[Any, Any]]:
    """Weights and biases as regioncam takes them, in float32."""
    linear = [m for m in net.modules() if isinstance(m, nn.Linear)]
    return [
        (m.weight.detach().numpy().T.astype(np.float32).copy(), m.bias.detach().numpy().astype(np.float32))
        for m in linear
    ]


def against_regioncam() -> None:
    """The square [-1, 1]^2, against regioncam in float32."""
    try:
        import regioncam
    except ImportError:
        row("MLPs on a square against regioncam", "-", "-", "skipped: pip install regioncam")
        return
    nets: dict[str, nn.Module] = {
        "mlp_2_32x2_1": as_module(bench_mlp("mlp_2_32x2_1", (2, 32, 32, 1))[0]),
        "mlp_2_64x3_1": as_module(bench_mlp("mlp_2_64x3_1", (2, 64, 64, 64, 1))[0]),
        "mlp_2_128x3_10": as_module(bench_mlp("mlp_2_128x3_10", (2, 128, 128, 128, 10))[0]),
        "2_256x4_10": deep(256, 4),
    }
    for name, net in nets.items():
        model, layers = inscape.wrap(net), layers_of(net)

        def theirs(layers: Any = layers) -> Any:
            plane = regioncam.Regioncam(1.0)
            for weight, bias in layers[:-1]:
                plane.linear(weight, bias)
                plane.relu()
            return plane

        def ours(model: Any = model) -> Any:
            return linear_regions(model, square())

        a, b = in_turns(theirs, ours, *((2, 1, 3) if "256" in name else (5, 4, 4)))
        q = ours()
        each = f"{b / q.n_regions * 1e6:.2f} us a region"
        details = (
            f"{b * 1e3:.2f} ms against {a * 1e3:.1f}; {q.n_regions} and {theirs().num_faces} regions; {each}"
        )
        row(f"{name} on a square, over regioncam", str(BARS.get(name, "-")), f"{b / a:.3f}", details)


def in_turns(theirs: Any, ours: Any, rounds: int, n_theirs: int, n_ours: int) -> tuple[float, float]:
    """The best times of two functions: some calls of one, some of the other, over again.

    So a machine that is slow for a while is slow for both.
    """
    times = [(*best(theirs, repeats=n_theirs), *best(ours, repeats=n_ours)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)


def peak_memory() -> None:
    """How far memory rises on the largest of these, in a process of its own."""
    code = "from benchmarks.planes import largest_memory; largest_memory()"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    row(
        "  memory of the last in GB, at its peak",
        "1.0",
        out[1],
        f"above {out[0]} GB of the process before it",
    )


def largest_memory() -> None:
    """Print the resident memory before 2-256x4-10 on the square, and how far its peak lies above, in GB."""
    torch.set_num_threads(1)
    linear_regions(mlp(2, 8, 8, 2), square())
    model = inscape.wrap(deep(256, 4))
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    linear_regions(model, square())
    status = Path("/proc/self/status").read_text()
    after = 1024 * int(status.split("VmHWM:")[1].split()[0])  # of this program only, unlike getrusage
    print(f"{before / 1e9:.2f} {(after - before) / 1e9:.2f}")


def over_forward(work: str, net: nn.Module, triangle: Simplex) -> None:
    """The time of the subdivision over that of the bare float64 network on as many points."""
    model, double = inscape.wrap(net, input_shape=triangle.input_shape), copy.deepcopy(net).double()
    q: Any = linear_regions(model, triangle)
    n = min(q.n_vertices, 256)
    weights = np.random.default_rng(0).dirichlet([1, 1, 1], size=n)
    x = torch.from_numpy(triangle.points(weights))
    times = best(
        lambda: linear_regions(model, triangle),
        *(lambda s=s: forward(double, x, s) for s in (8, 32, 128)),
        repeats=2,
    )
    bare = min(times[1:]) * q.n_vertices / n
    each = f"{times[0] / q.n_regions * 1e6:.0f} us a region, forward {bare / q.n_vertices * 1e6:.0f} us"
    row(
        f"{work}, over forward",
        "3.0",
        f"{times[0] / bare:.2f}",
        f"{q.n_regions} regions, {q.n_vertices} vertices, {each}",
    )


def growth() -> None:
    """Time per region from some 10^3 to 10^6 regions."""
    print("\ntime a region of relu networks on [-1, 1]^2")
    for width, depth in [(32, 2), (64, 3), (128, 3), (256, 3), (256, 4), (384, 5)]:
        model = inscape.wrap(deep(width, depth))
        (seconds,) = best(lambda m=model: linear_regions(m, square()), repeats=2)  # type: ignore[misc]
        n = linear_regions(model, square()).n_regions
        print(
            f"  {depth} x {width:>3}: {n:>8} regions {seconds:>8.3f} s {seconds / n * 1e6:>6.2f} us a region",
            flush=True,
        )


if __name__ == "__main__":
    main()
