"""What a GPU makes of it: the table of devices, precisions and throughput that this machine gives.

Run `python -m benchmarks gpu` where torch sees an accelerator; without one it prints the processor's rows.
For each network: forward passes a second on the processor, on the accelerator, and there with autocast; the
time of a region count by each; whether all labels are the same; the share of points that autocast evaluates
again in full precision; and the longest batch that memory took.
"""

import time
from typing import Any

import numpy as np
import torch

import inscape
from benchmarks.architectures import Settled, networks

N_SEGMENTS = 20
N_POINTS = 512


def accelerator() -> str | None:
    """The first accelerator that torch can use here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def throughput(model: Any, x: Any) -> float:
    """Points a second, after one pass that warms up."""
    model.labels(x[:64])
    start = time.perf_counter()
    model.labels(x)
    return len(x) / (time.perf_counter() - start)


def rows(module: torch.nn.Module, shape: tuple[int, ...], device: str | None) -> None:
    """Print a row for each device and precision."""
    x = np.random.default_rng(0).normal(size=(N_POINTS, *shape)).astype(np.float32)
    module = Settled(module, torch.from_numpy(x[:16])).eval()
    places = [("cpu", False)] + ([(device, False), (device, True)] if device else [("cpu", True)])
    expected = None
    for place, autocast in places:
        model = inscape.wrap(module, device=place, autocast=autocast or None)
        rate = throughput(model, x)
        labels = model.labels(x)
        expected = labels if expected is None else expected
        start = time.perf_counter()
        count = inscape.region_count(
            model, x, n_probes=N_SEGMENTS, method="adaptive", random_state=0, progress=False
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
    print(f"torch {torch.__version__}, accelerator: {device or 'none'}")
    if device == "cuda":
        print(torch.cuda.get_device_name(), f"{torch.cuda.mem_get_info()[0] / 2**30:.1f} GiB free")
    for name, (module, shape) in networks().items():
        print(name)
        rows(module, shape, device)


if __name__ == "__main__":
    main()
