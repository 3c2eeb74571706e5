"""What two threads gain over one, for each engine, measured in turns in one run.

Run `python -m benchmarks cores` on a machine of two quiet cores. The first row is what the machine itself
gains for products that share nothing: no engine can gain more. A bar is how many times faster two threads are
to be.
"""

from collections.abc import Callable
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
from inscape.compiled import compile_at_once
from inscape.parallel import single_products, spread, working


def main() -> None:
    """Print the table."""
    compile_at_once()
    print(f"{'work':52} {'bar':>5} {'gain':>6}   one thread, two threads")
    compared("products of 2,600 x 200 and 200 x 200, nothing else", "-", products, 5)
    images, labels = digits(28), digit_labels()
    flat = images.reshape(len(images), -1)
    perceptron = inscape.wrap(trained(mlp(784, 200, 200, 200, 200, 10), flat, labels, steps=60))
    on_segments("200 segments of the MLP 784-200x4-10", perceptron, flat, 5)
    forest = inscape.wrap(RandomForestClassifier(100, random_state=0).fit(flat, labels))
    on_segments("200 segments of a forest of 100 trees", forest, flat, 5)
    plane = inscape.wrap(deep(256, 4))
    compared(
        "a plane of 321,296 regions, 2-256x4-10",
        "1.6",
        lambda n: inscape.linear_regions(plane, square(), n_jobs=n),
        5,
    )
    small = inscape.wrap(deep(128, 3))
    places = [inscape.Patch([0.1 * k, 0.0], np.eye(2)) for k in range(20)]
    compared("20 planes, 2-128x3-10", "1.6", lambda n: inscape.linear_regions(small, places, n_jobs=n), 3)
    adaptive = inscape.wrap(numpy_network())
    compared(
        "adaptive, 200 segments of a numpy model 784-200x4-10",
        "1.6",
        lambda n: inscape.region_count(
            adaptive, flat, n_probes=200, method="adaptive", random_state=0, n_jobs=n
        ),
        5,
    )
    compared(
        "local complexity at 100 points of the MLP",
        "-",
        lambda n: inscape.local_complexity(
            perceptron, flat[:100], sigma=0.1, n_noise=8, random_state=0, n_jobs=n
        ),
        2,
    )
    colour = np.repeat(digits(32)[:, None], 3, axis=1)
    convolutional = inscape.wrap(trained(narrow_cnn(), colour, labels, steps=60), input_shape=(3, 32, 32))
    on_segments("200 segments of a CNN of 8, 16 and 16 channels", convolutional, colour, 2)


def compared(work: str, bar: str, job: Callable[[int], Any], repeats: int) -> None:
    """Print a row: one thread and two take turns, after a first look that counts for nothing."""
    if repeats > 1:
        job(2)
    one, two = best_times(lambda: job(1), lambda: job(2), repeats=repeats)
    print(f"{work:52} {bar:>5} {one / two:6.2f}   {one:.3f} s, {two:.3f} s", flush=True)


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


def products(n: int) -> None:
    """Twenty jobs of products."""

    def job() -> None:
        a, b = torch.ones(2600, 200, dtype=torch.float64), torch.ones(200, 200, dtype=torch.float64)
        out = torch.empty(2600, 200, dtype=torch.float64)
        for _ in range(5):
            torch.mm(a, b, out=out)

    with working(n), single_products():
        spread([job] * 20)


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


if __name__ == "__main__":
    main()
