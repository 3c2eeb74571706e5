"""Exact pieces on segments: what they cost, as ratios measured in one run on one thread.

Run `python -m benchmarks segments`. Each row prints the bar and what was measured. The MLP and the CNN
are trained for a few seconds on MNIST (if `INSCAPE_DATA` has it) or on scikit-learn's digits, enlarged
to the size of the input; ResNet18 has the batch-norm statistics of noise images, on which it has about
as many pieces as on photographs. `INSCAPE_BENCH` may name a folder with the networks of the trusted
counts, else seeded networks of the same sizes stand in.
"""

import copy
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import inscape
from benchmarks.networks import cnn, mlp, resnet18
from inscape.models import Model
from inscape.partition.decision.exact.networks import exact_segments
from inscape.partition.linear import linear_regions
from inscape.probes import Segment

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"{'work':58} {'bar':>10} {'measured':>9}   details")
    against_regioncam()
    name, images, labels = handwritten()
    print(f"the MLP is trained on {name}")
    net = trained(mlp(784, 200, 200, 200, 200, 10), images, labels, steps=600)
    over_forward(
        "trained MLP 784-200x4-10, 10 segments a batch",
        net,
        pairs(images, 40),
        0.5,
        batch=10,
        sizes=(256, 1024),
    )
    colour = np.repeat(digits(32)[:, None], 3, axis=1)
    convolutional = trained(cnn(), colour, digit_labels(), steps=60)
    over_forward("CNN of three convolutions on 3x32x32", convolutional, pairs(colour, 2), 0.9)
    ratio = over_forward(
        "ResNet18 of width 8, 1/20 of a segment", calibrated(resnet18(8)), noise_segment(0.05), 1.1
    )
    peak_memory()
    against_grids(net, pairs(images, 100))
    single_precision(convolutional, pairs(colour, 6, seed=1))
    growth(ratio)


def row(work: str, bar: str, measured: str, details: str) -> None:
    """Print one line of the table."""
    print(f"{work:58} {bar:>10} {measured:>9}   {details}", flush=True)


# data and networks


def digits(size: int) -> Floats:
    """The images of the digits data set, enlarged to size x size, in 0..1."""
    from sklearn.datasets import load_digits

    small = torch.from_numpy(load_digits().images / 16.0)[:, None]
    return F.interpolate(small, size=(size, size), mode="bilinear").squeeze(1).numpy()


def digit_labels() -> npt.NDArray[np.int64]:
    """The classes of the digits data set."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().target)


def handwritten() -> tuple[str, Floats, npt.NDArray[np.int64]]:
    """10,000 images of MNIST if `INSCAPE_DATA` has it, else enlarged digits: name, (n, 784) and classes."""
    path = Path(os.environ.get("INSCAPE_DATA", "-")) / "mnist.npz"
    if not path.is_file():
        return "digits", digits(28).reshape(-1, 784), digit_labels()
    with np.load(path) as data:
        x, y = data["x_train"][:10000], data["y_train"][:10000]
    return "MNIST", x.reshape(-1, 784) / 255.0, y.astype(np.int64)


def trained(net: nn.Module, x: Floats, y: npt.NDArray[np.int64], *, steps: int) -> nn.Module:
    """The network after some steps of Adam on batches of 128 images."""
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(y)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(steps):
        batch = rng.integers(len(x), size=128)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.from_numpy(x[batch]).float()), labels[batch])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return net.eval()


def noise(n: int) -> Floats:
    """Images of independent normal entries, (n, 3, 32, 32)."""
    return np.random.default_rng(0).normal(size=(n, 3, 32, 32))


def calibrated(net: nn.Module) -> nn.Module:
    """The network with the batch-norm statistics of noise images, as after training."""
    net.train()
    with torch.no_grad():
        for _ in range(20):
            net(torch.from_numpy(noise(16)).float())
    return net.eval()


def noise_segment(part: float) -> list[Segment]:
    """A part of the segment between two noise images, from its middle on."""
    start, end = noise(2)
    return [Segment(start, end, span=(0.5, 0.5 + part))]


def pairs(x: Floats, n: int, *, span: tuple[float, float] = (0.0, 1.0), seed: int = 0) -> list[Segment]:
    """Segments between random pairs of data points."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(len(x), size=2, replace=False) for _ in range(n)]
    return [Segment(x[i], x[j], span=span) for i, j in chosen]


# timing


def best(*works: Callable[[], Any], repeats: int = 5) -> list[float]:
    """The shortest time of each work, all of them taken in turn."""
    times = [[] for _ in works]  # type: list[list[float]]
    for k in range(repeats + 1):
        for own, work in zip(times, works, strict=True):
            started = time.perf_counter()
            work()
            if k:  # the first round warms up
                own.append(time.perf_counter() - started)
    return [min(t) for t in times]


def forward(net: nn.Module, x: Tensor, size: int) -> None:
    """The bare network on all points, in batches."""
    with torch.no_grad():
        for start in range(0, len(x), size):
            net(x[start : start + size])


# rows


def against_regioncam() -> None:
    """The bench MLPs, 20 segments in one call, against regioncam in float32."""
    try:
        import regioncam
    except ImportError:
        row("MLPs against regioncam", "1.0", "-", "skipped: pip install regioncam")
        return
    for name, sizes in BENCH_MLPS.items():
        layers, ends = bench_mlp(name, sizes)
        model = inscape.wrap(as_module(layers))
        segments = [Segment(a, b) for a, b in ends]
        single = [(w.T.astype(np.float32).copy(), b.astype(np.float32)) for w, b in layers]
        ends = ends.astype(np.float32)

        def theirs(single: Any = single, ends: Any = ends) -> int:
            return sum(regioncam_pieces(regioncam, single, a, b) for a, b in ends)

        def ours(model: Model = model, segments: list[Segment] = segments) -> int:
            return sum(q.n_regions for q in linear_regions(model, segments))

        a, b = best(theirs, ours, repeats=15)
        details = f"{b * 1e3:.2f} ms float64 against {a * 1e3:.2f} ms; pieces {ours()} and {theirs()}"
        row(
            f"{name}, 20 segments, over regioncam",
            "1.0" if "32x2" not in name else "-",
            f"{b / a:.2f}",
            details,
        )


BENCH_MLPS = {
    "mlp_2_32x2_1": (2, 32, 32, 1),
    "mlp_2_64x3_1": (2, 64, 64, 64, 1),
    "mlp_2_128x3_10": (2, 128, 128, 128, 10),
    "mlp_784_200x4_10": (784, 200, 200, 200, 200, 10),
}


def bench_mlp(name: str, sizes: Sequence[int]) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Layers (weight, bias) and 20 segments (20, 2, d), from the bench folder or from a seed."""
    folder = Path(os.environ.get("INSCAPE_BENCH", "-"))
    if (folder / f"{name}.npz").exists():
        arrays = np.load(folder / f"{name}.npz")
        geometry = "geom_784" if sizes[0] == 784 else "geom_2d"
        ends: Floats = np.load(folder / f"{geometry}.npz")["segments"]
        return [(arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(len(arrays) // 2)], ends
    net = mlp(*sizes).double()
    layers = [m for m in net if isinstance(m, nn.Linear)]
    ends = np.random.default_rng(0).uniform(-1, 1, size=(20, 2, sizes[0]))
    return [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in layers], ends


def as_module(layers: list[tuple[Floats, Floats]]) -> nn.Module:
    """A relu network in float64."""
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0]).double()
        linear.weight.data, linear.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def regioncam_pieces(regioncam: Any, layers: Any, a: Any, b: Any) -> int:
    """The pieces between two points by regioncam."""
    line = regioncam.Regioncam1D(1.0)  # from -1/2 to 1/2
    line.linear((b - a)[None], (a + b) / 2)
    for i, (weight, bias) in enumerate(layers):
        line.linear(weight, bias)
        if i < len(layers) - 1:
            line.relu()
    return int(line.num_edges)


def over_forward(
    work: str,
    net: nn.Module,
    segments: list[Segment],
    bar: float,
    *,
    batch: int | None = None,
    sizes: Sequence[int] = (8, 32, 128),
) -> float:
    """The time of exact pieces over that of the bare float64 network on as many points, at its best."""
    model, double = inscape.wrap(net, input_shape=segments[0].start.shape), copy.deepcopy(net).double()
    batch = batch or len(segments)
    groups = [segments[k : k + batch] for k in range(0, len(segments), batch)]
    n = sum(q.n_regions for g in groups for q in linear_regions(model, g))
    few = min(n, 2048 if len(segments[0].start.shape) == 1 else 128)
    x = torch.from_numpy(
        np.concatenate([s.points(np.linspace(*s.span, -(-few // len(segments)))) for s in segments])
    )
    works: list[Callable[[], Any]] = [lambda: [linear_regions(model, g) for g in groups]]
    works += [lambda size=size: forward(double, x, size) for size in sizes]  # type: ignore[misc]
    ours, *bare = best(*works, repeats=3)
    points = min(bare) * n / len(x)
    per_piece = f"{ours / n * 1e6:.0f} us a piece, forward {points / n * 1e6:.0f} us"
    details = f"{n / len(segments):.0f} pieces a segment, {per_piece}"
    row(f"{work}, over forward", f"{bar}", f"{ours / points:.2f}", details)
    return float(ours / points)


def peak_memory() -> None:
    """How far memory rises during the ResNet18 walk, in a process of its own."""
    code = "from benchmarks.segments import resnet_memory; resnet_memory()"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    row(
        "  memory of that walk in GB, at its peak",
        "1.0",
        out[1],
        f"above {out[0]} GB of the process before it",
    )


def resnet_memory() -> None:
    """Print the resident memory before a ResNet18 walk, and how far its peak lies above, in GB."""
    import resource

    torch.set_num_threads(1)
    model = inscape.wrap(calibrated(resnet18(8)), input_shape=(3, 32, 32))
    linear_regions(model, noise_segment(1e-5))
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    linear_regions(model, noise_segment(0.05))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{before / 1e9:.2f} {(after - before) / 1e9:.2f}")


def against_grids(net: nn.Module, segments: list[Segment]) -> None:
    """Exact decision regions against float32 grids of 200 and 500 points."""
    model = inscape.wrap(net)
    counts = np.array([len(p.labels) for p in exact_segments(model, segments)])

    def grid(resolution: int) -> npt.NDArray[np.int64]:
        results = inscape.decision_regions(model, segments, method="grid", resolution=resolution)
        return np.array([p.n_regions for p in results])

    exact, coarse, fine = best(
        lambda: exact_segments(model, segments), lambda: grid(200), lambda: grid(500), repeats=3
    )
    wrong = [f"{np.mean(grid(r) != counts):.1%}" for r in (200, 500)]
    each = [f"{t / len(segments) * 1e3:.2f}" for t in (exact, coarse, fine)]
    times = f"ms a segment: exact {each[0]}, 200 points {each[1]}, 500 points {each[2]}"
    details = f"{times}; grids wrong on {wrong[0]} and {wrong[1]}"
    row("exact regions of that MLP, over a 500-point grid", "1.0", f"{exact / fine:.2f}", details)


def single_precision(net: nn.Module, segments: list[Segment]) -> None:
    """The speed of float32 over float64 on the CNN, and whether the counts agree."""
    model = inscape.wrap(net, input_shape=segments[0].start.shape)
    double, single = best(
        lambda: linear_regions(model, segments),
        lambda: linear_regions(model, segments, precision="float32"),
        repeats=2,
    )
    pieces = [
        [q.n_regions for q in linear_regions(model, segments, precision=p)] for p in ("float64", "float32")
    ]
    regions = [
        [p.labels.tolist() for p in exact_segments(model, segments, precision=k)]
        for k in ("float64", "float32")
    ]
    same = [sum(a == b for a, b in zip(*v, strict=True)) for v in (pieces, regions)]
    details = f"equal pieces on {same[0]}, equal decision regions on {same[1]} of {len(segments)} segments"
    row("the CNN in float32, speed over float64", ">= 2.0", f"{double / single:.2f}", details)


def growth(ratio: float) -> None:
    """How pieces and time grow with width and depth, and what ResNet18 of width 64 would take.

    Its time is extrapolated in two ways: from a short stretch of a segment, and from its layers, each timed
    on a few rows: their sum, for each piece, times what a walk takes over the bare network at width 8.
    """
    rng = np.random.default_rng(0)
    print("\npieces and milliseconds a segment between random points of R^100")
    for sizes in [(w,) * 3 for w in (50, 100, 200, 400)] + [(100,) * d for d in (1, 2, 4, 8)]:
        model = inscape.wrap(mlp(100, *sizes, 10))
        segments = [Segment(*rng.normal(size=(2, 100))) for _ in range(10)]
        (seconds,) = best(lambda m=model, s=segments: linear_regions(m, s), repeats=3)  # type: ignore[misc]
        n = sum(q.n_regions for q in linear_regions(model, segments)) / 10
        print(f"  {len(sizes)} layers of {sizes[0]:>3}: {n:>6.0f} pieces {seconds / 10 * 1e3:>8.2f} ms")
    print("one segment of ResNet18 between noise images, from a short stretch of it")
    for width, part in ((4, 4e-3), (8, 2e-3), (16, 1e-3), (64, 1e-4)):
        model = inscape.wrap(calibrated(resnet18(width)), input_shape=(3, 32, 32))
        linear_regions(model, noise_segment(part / 100))
        started = time.perf_counter()
        n = linear_regions(model, noise_segment(part))[0].n_regions
        minutes = (time.perf_counter() - started) / part / 60
        layers = ratio * seconds_of_layers(model) * n / part / 60
        times = f"{minutes:>6.1f} minutes; from its layers {layers:>6.1f}"
        print(f"  width {width:>2}: about {n / part:>7.0f} pieces in {times}")


def seconds_of_layers(model: Model, n_rows: int = 8) -> float:
    """The time of all layers of a network on one row, in float64, each layer timed by itself."""
    graph = model.graph((3, 32, 32)).cast(torch.float64)
    values, total = [torch.from_numpy(noise(n_rows))], 0.0
    with torch.no_grad():
        for node in graph.nodes[1 : graph.output + 1]:
            assert node.op is not None
            inputs = [values[j] for j in node.inputs]
            (seconds,) = best(lambda op=node.op, x=inputs: op(*x), repeats=2)  # type: ignore[misc]
            values.append(node.op(*inputs))
            total += seconds
    return total / n_rows


if __name__ == "__main__":
    main()
