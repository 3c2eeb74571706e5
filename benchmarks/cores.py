"""What two threads gain over one, for each engine, measured in turns in one run.

Run `python -m benchmarks cores` on a machine of two quiet cores. A bar is how many times faster two threads
are to be. Beside each row stands what the machine itself gains right then: for the work of the row, done by
two processes at a time, one thread in each, which share no interpreter and wait for nobody; for steps in
registers; and for products of matrices that do not fit the cache of a core, which both cores fetch from one
memory. An engine cannot gain more than the machine does. ROWS in the environment names some of the rows, such
as `mlp,forest`.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier

import inscape
from benchmarks.networks import mlp, narrow_cnn
from benchmarks.planes import deep, square
from benchmarks.segments import digit_labels, digits, pairs, trained
from benchmarks.timing import best_times
from inscape.compiled import compile_at_once, kernel
from inscape.parallel import single_products, spread, working


def main() -> None:
    """Print the table."""
    compile_at_once()
    columns = "one thread, two threads; the machine: this work, steps, products"
    print(f"{'work':52} {'bar':>5} {'gain':>6}   {columns}")
    wanted = os.environ.get("ROWS", "").lower().split(",")
    for name, row in ROWS.items():
        if any(word in name for word in wanted):
            row()


def mlp_segments() -> None:
    """Exact counts of a trained perceptron."""
    on_segments("200 segments of the MLP 784-200x4-10", perceptron(), flat_digits(), 10)


def forest_segments() -> None:
    """Exact counts of a forest."""
    forest = RandomForestClassifier(100, random_state=0).fit(flat_digits(), digit_labels())
    on_segments("200 segments of a forest of 100 trees", inscape.wrap(forest), flat_digits(), 40)


def cnn_segments() -> None:
    """Exact counts of a small convolutional network."""
    colour = np.repeat(digits(32)[:, None], 3, axis=1)
    cnn = inscape.wrap(trained(narrow_cnn(), colour, digit_labels(), steps=60), input_shape=(3, 32, 32))
    on_segments("200 segments of a CNN of 8, 16 and 16 channels", cnn, colour, 2)


def one_plane() -> None:
    """One large plane."""
    model = inscape.wrap(deep(256, 4))
    compared(
        "a plane of 321,296 regions, 2-256x4-10",
        "1.6",
        lambda n: inscape.linear_regions(model, square(), n_jobs=n),
        5,
    )


def many_planes() -> None:
    """Planes side by side."""
    model = inscape.wrap(deep(128, 3))
    places = [inscape.Patch([0.1 * k, 0.0], np.eye(2)) for k in range(20)]
    compared("20 planes, 2-128x3-10", "1.6", lambda n: inscape.linear_regions(model, places, n_jobs=n), 6)


def adaptive_segments() -> None:
    """Adaptive counts of a function on arrays."""
    model, x = inscape.wrap(numpy_network()), flat_digits()
    compared(
        "adaptive, 200 segments of a numpy model 784-200x4-10",
        "1.6",
        lambda n: inscape.region_count(model, x, n_probes=200, method="adaptive", random_state=0, n_jobs=n),
        10,
    )


def complexity() -> None:
    """Local complexity."""
    model, x = perceptron(), flat_digits()[:100]
    compared(
        "local complexity at 100 points of the MLP",
        "-",
        lambda n: inscape.local_complexity(model, x, sigma=0.1, n_noise=8, random_state=0, n_jobs=n),
        2,
    )


def flat_digits() -> Any:
    """Images of digits, a row each."""
    images = digits(28)
    return images.reshape(len(images), -1)


@cache
def perceptron() -> Any:
    """The perceptron 784-200x4-10, trained on digits."""
    module = mlp(784, 200, 200, 200, 200, 10)
    return inscape.wrap(trained(module, flat_digits(), digit_labels(), steps=60))


def compared(work: str, bar: str, job: Callable[[int], Any], repeats: int) -> None:
    """Print a row: one thread and two take turns, after a first look that counts for nothing."""
    if repeats > 1:
        job(2)
    one, two = best_times(lambda: job(1), lambda: job(2), repeats=repeats)
    both = seconds_of_two_processes(lambda: job(1), repeats)
    free = f"{2 * one / both:.2f}, {gain_of(steps):.2f}, {gain_of(products):.2f}"
    print(f"{work:52} {bar:>5} {one / two:6.2f}   {one:.4f} s, {two:.4f} s; {free}", flush=True)


def seconds_of_two_processes(job: Callable[[], Any], repeats: int) -> float:
    """How long two processes take for a job each, both at a time; the shortest of some tries."""
    fork = multiprocessing.get_context("fork")  # the job and all that it needs are there
    together, tell = fork.Barrier(2), fork.SimpleQueue()

    def work() -> None:
        torch.set_num_threads(1)  # a forked process has none of the threads that torch would wait for
        job()
        seconds = []
        for _ in range(repeats):
            together.wait()
            start = time.perf_counter()
            job()
            seconds.append(time.perf_counter() - start)
        tell.put(seconds)

    processes = [fork.Process(target=work, daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    a, b = tell.get(), tell.get()
    for process in processes:
        process.join()
    return float(min(map(max, a, b)))


def gain_of(job: Callable[[], None]) -> float:
    """What two threads gain for jobs that share nothing."""

    def run(n: int) -> None:
        with working(n), single_products():
            spread([job] * 12)

    one, two = best_times(lambda: run(1), lambda: run(2), repeats=3)
    return one / two


def steps() -> None:
    """Some ten milliseconds in registers."""
    _follow(np.ones(1), 3_000_000)


@kernel
def _follow(x: Any, n: int) -> None:
    """Take n steps, each of which waits for the one before."""
    at = x[0]
    for _ in range(n):
        at = at * 0.999999 + 1e-6
    x[0] = at


def products() -> None:
    """Products of 2,600 x 200 and 200 x 200 numbers, in memory that a thread keeps."""
    if not hasattr(_OWN, "matrices"):
        _OWN.matrices = [torch.ones(n, 200, dtype=torch.float64) for n in (2600, 200, 2600)]
    a, b, out = _OWN.matrices
    for _ in range(3):
        torch.mm(a, b, out=out)


_OWN = threading.local()


def on_segments(work: str, model: Any, x: Any, repeats: int) -> None:
    """The row of exact counts on 200 segments between data points."""
    probes = pairs(x, 200)
    inscape.decision_regions(model, probes[:1], method="exact")
    compared(
        work,
        "1.7",
        lambda n: inscape.decision_regions(model, probes, method="exact", budget=None, n_jobs=n),
        repeats,
    )


def numpy_network() -> Callable[[Any], Any]:
    """The perceptron with weights at random, as a function on arrays."""
    rng = np.random.default_rng(0)
    sizes = [784, 200, 200, 200, 200, 10]
    weights = [rng.normal(size=(a, b)) * np.sqrt(2 / a) for a, b in pairwise(sizes)]

    def network(x: Any) -> Any:
        for w in weights[:-1]:
            x = np.maximum(x @ w, 0)
        return x @ weights[-1]

    return network


ROWS = {
    "mlp": mlp_segments,
    "forest": forest_segments,
    "plane": one_plane,
    "planes": many_planes,
    "adaptive": adaptive_segments,
    "complexity": complexity,
    "cnn": cnn_segments,
}
"""The rows of the table, in order."""


if __name__ == "__main__":
    main()
