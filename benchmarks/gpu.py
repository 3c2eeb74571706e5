"""What a GPU makes of it: the table of devices, precisions and throughput that this machine gives.

Run `python -m benchmarks gpu` where torch sees an accelerator; without one it says so, and prints the
processor's rows, of fewer points. For each network: forward passes a second on the processor, on the
accelerator, and there with autocast; the time of a region count by each; whether all labels are the same; the
share of points that autocast evaluates again in full precision; and the longest batch that memory took.
NETWORKS in the environment names some of the networks, POINTS and SEGMENTS give other numbers of these.
"""

import os
import time
from typing import Any

import numpy as np
import torch

import inscape
from benchmarks.architectures import Settled, is_wanted, networks

ON_GPU, WITHOUT_GPU = (512, 20), (64, 2)
"""Points and segments: without an accelerator few, so that it takes minutes and not an hour."""


def accelerator() -> str | None:
    """The first accelerator that torch can use here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def sizes(device: str | None) -> tuple[int, int]:
    """How many points, and segments."""
    points, segments = ON_GPU if device else WITHOUT_GPU
    return int(os.environ.get("POINTS", points)), int(os.environ.get("SEGMENTS", segments))


def throughput(model: Any, x: Any) -> float:
    """Points a second, after one pass that warms up."""
    model.labels(x[:64])
    start = time.perf_counter()
    model.labels(x)
    return len(x) / (time.perf_counter() - start)


def rows(module: torch.nn.Module, shape: tuple[int, ...], device: str | None) -> None:
    """Print a row for each device and precision."""
    n_points, n_segments = sizes(device)
    x = np.random.default_rng(0).normal(size=(n_points, *shape)).astype(np.float32)
    module = Settled(module, torch.from_numpy(x[:16])).eval().requires_grad_(False)
    places = [("cpu", False)] + ([(device, False), (device, True)] if device else [("cpu", True)])
    expected = None
    for place, autocast in places:
        model = inscape.wrap(module, device=place, autocast=autocast or None)
        rate = throughput(model, x)
        labels = model.labels(x)
        expected = labels if expected is None else expected
        start = time.perf_counter()
        count = inscape.region_count(
            model, x, n_probes=n_segments, method="adaptive", random_state=0, progress=False
        )
        seconds = time.perf_counter() - start
        mixed = model.mixed  # type: ignore[attr-defined]
        again = "" if mixed is None else f", {mixed.n_full / mixed.n_points:.0%} in full precision"
        kind = f"{place}{' autocast' if autocast else ''}"
        print(
            f"  {kind:14s} {rate:9,.0f} points/s, R_1 {count.mean:.2f} in {seconds:.1f} s, labels equal "
            f"{np.mean(labels == expected):.2%}{again}, batches of {model.batch_length(x[0].size)}"
        )


def main() -> None:
    """Print the table."""
    device = accelerator()
    if device is None:
        print(
            f"torch {torch.__version__} sees no GPU here (neither CUDA nor MPS): these are the rows of the "
            "processor, with {:,} points and {:,} segments".format(*sizes(device))
        )
    else:
        print(f"torch {torch.__version__}, accelerator: {device}")
    if device == "cuda":
        print(torch.cuda.get_device_name(), f"{torch.cuda.mem_get_info()[0] / 2**30:.1f} GiB free")
    for name, (module, shape) in networks().items():
        if is_wanted(name):
            print(name, flush=True)
            rows(module, shape, device)


if __name__ == "__main__":
    main()
