"""How time and memory of exact counts on segments grow with what is asked, each over two decades.

Run `python -m benchmarks growth`, on Linux. One thing is varied at a time around a relu network of 50 inputs,
two layers of 50 units and 10 classes, and 20 segments; for depth the layers have 16 units. An exponent is the
slope of least squares through the logarithms over the upper decade, with its 95 % interval: below it, time is
that of a call. Time is the processor's, of the one thread that counts, so that other work on the machine
hardly changes it. Memory is the peak above what the process had before.
"""

import ctypes
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import inscape
from benchmarks.networks import mlp
from inscape.compiled import compile_at_once

BASE = {"probes": 20, "inputs": 50, "width": 50, "depth": 2, "classes": 10, "models": 1}
VARIED = {"probes": 100, "inputs": 100, "width": 10, "depth": 2, "classes": 10, "models": 1}
"""The least of each; the largest is a hundred times as much."""
N_POINTS = 7
EXPECTED = {
    "probes": "1: probes are independent",
    "inputs": "0 to 1: only the first layer sees them",
    "width": "2 to 3: breakpoints times what a layer costs at each",
    "depth": "2: breakpoints times layers after each",
    "classes": "0 to 1: only the last layer and the labels see them",
    "models": "1: models are independent",
}


class Point(NamedTuple):
    """What one call took."""

    size: int
    seconds: float
    megabytes: float


class Fit(NamedTuple):
    """The exponent of a power law, and its 95 % interval."""

    exponent: float
    low: float
    high: float


def main() -> None:
    """Print the table."""
    print(f"{'varied':8} {'size':>6} {'seconds':>9} {'MB':>7}")
    for name, points in measured().items():
        for point in points:
            print(f"{name:8} {point.size:6d} {point.seconds:9.4f} {point.megabytes:7.1f}", flush=True)
        for what, values in (
            ("time", [p.seconds for p in points]),
            ("memory", [p.megabytes for p in points]),
        ):
            fit = fitted([p.size for p in points], values)
            expected = f"   expected {EXPECTED[name]}" if what == "time" else ""
            print(f"  {what:6} ~ {name}^{fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]{expected}")


def measured() -> dict[str, list[Point]]:
    """Time and memory of each."""
    compile_at_once()
    found: dict[str, list[Point]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a network of random weights predicts one class
        call(**BASE)()
        for name, least in VARIED.items():
            sizes = np.unique(np.geomspace(least, 100 * least, N_POINTS).round().astype(int)).tolist()
            base = BASE | {"width": 16} if name == "depth" else BASE
            found[name] = [_point(size, call(**(base | {name: size}))) for size in sizes]
    return found


def call(*, probes: int, inputs: int, width: int, depth: int, classes: int, models: int) -> Callable[[], Any]:
    """A count on segments between random points, of each of some networks."""
    x = np.random.default_rng(0).normal(size=(200, inputs))
    nets = [inscape.wrap(mlp(inputs, *[width] * depth, classes, seed=k)) for k in range(models)]
    settings: dict[str, Any] = {"n_probes": probes, "method": "exact", "random_state": 0, "n_jobs": 1}

    def count() -> None:
        for net in nets:
            inscape.region_count(net, x, **settings)

    return count


def _point(size: int, job: Callable[[], Any]) -> Point:
    """The best of five calls, or of some that take long, after a first one, which reads the networks."""
    job()
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 2.0:
        before = reset_peak()
        start = time.process_time()
        job()
        seconds.append(time.process_time() - start)
    return Point(size, min(seconds), max(0.1, (memory_used() - before) / 1e6))


def reset_peak() -> float:
    """Have the kernel forget the most memory that the process had; returns the bytes that it has."""
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system
    Path("/proc/self/clear_refs").write_text("5")
    return _of_process("VmRSS")


def memory_used() -> float:
    """The most bytes that the process had since then."""
    return _of_process("VmHWM")


def _of_process(name: str) -> float:
    return 1024.0 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def fitted(sizes: list[int], values: list[float]) -> Fit:
    """The slope through the logarithms of the last three points or more, at least a decade of sizes."""
    upper = [i for i, size in enumerate(sizes) if size >= sizes[-1] / 11]
    line = stats.linregress(np.log(np.array(sizes)[upper]), np.log(np.array(values)[upper]))
    reach = stats.t.ppf(0.975, max(1, len(upper) - 2)) * line.stderr
    return Fit(float(line.slope), float(line.slope - reach), float(line.slope + reach))


if __name__ == "__main__":
    main()
