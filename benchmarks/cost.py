"""What `inscape cost` foresees beside what the same work then takes, for five kinds of models.

Run `python -m benchmarks cost`, on Linux, on an idle machine: evaluations, linear pieces, seconds and
megabytes of each method, foreseen / taken, and the worst factor between the two. What memory a process keeps
from earlier calls is not seen, and that of exact counts is foreseen as the most that they take. MODELS in the
environment names some of the models.
"""

import math
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import inscape
from benchmarks.growth import memory_used, reset_peak
from benchmarks.networks import mlp
from benchmarks.timing import report
from inscape.partition.cost_table import cost_table
from inscape.text_table import TableRow

MOST_SECONDS = 60.0
"""Foreseen, of what is then done."""
LEAST = {"n_evaluations": 100, "n_pieces": 100, "seconds": 0.02}
"""What counts for the worst factor: less is the time of a call."""
BARS = {"n_evaluations": 2.0, "n_pieces": 2.0, "seconds": 3.0}


def models() -> dict[str, Callable[[], tuple[Any, Any, int]]]:
    """By name, what makes a model, its data, and how many segments are counted."""
    rng = np.random.default_rng(0)
    points, images = rng.normal(size=(300, 64)), rng.normal(size=(300, 3, 32, 32)).astype(np.float32)

    def forest() -> Any:
        from sklearn.datasets import load_digits
        from sklearn.ensemble import RandomForestClassifier

        x, y = load_digits(return_X_y=True)
        return RandomForestClassifier(100, random_state=0).fit(x, y), x, 100

    def function() -> Any:
        weights = np.random.default_rng(1).normal(size=(64, 10))
        return lambda x: np.sin(x @ weights / 8), points, 100

    def convolutional() -> Any:
        torch.manual_seed(0)
        layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4096, 10)).eval(), images, 10

    def smooth() -> Any:
        torch.manual_seed(0)
        layers = [torch.nn.Flatten(), torch.nn.Linear(3072, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)]
        return torch.nn.Sequential(*layers).eval(), images, 100

    relu = lambda: (mlp(64, 128, 128, 128, 10, seed=0), points, 100)  # noqa: E731
    return {"mlp": relu, "cnn": convolutional, "gelu": smooth, "forest": forest, "function": function}


def taken(model: Any, x: Any, n_probes: int, row: TableRow) -> dict[str, float | None]:
    """What the work of a row takes; the best of a few runs after a first one."""
    probes: Any = inscape.sample_probes(x, n=n_probes, random_state=0)
    if "plane" in row["probes"]:
        probes = [inscape.Patch.through(x[np.random.default_rng(0).choice(len(x), 3, replace=False)])]
    found: list[Any] = []

    def job() -> None:
        found[:] = inscape.decision_regions(model, probes, method=row["method"], budget=None, progress=False)

    before = reset_peak()
    job()
    memory, seconds, start = memory_used() - before, math.inf, time.perf_counter()
    while math.isinf(seconds) or time.perf_counter() - start < 1.0:
        begun = time.perf_counter()
        job()
        seconds = min(seconds, time.perf_counter() - begun)
    n_pieces = None
    if row["n_pieces"] is not None:
        n_pieces = float(sum(p.n_regions for p in inscape.linear_regions(model, probes, budget=None)))
    n_evaluations = float(sum(p.n_evaluations for p in found))
    return {"n_evaluations": n_evaluations, "n_pieces": n_pieces, "seconds": seconds, "memory": memory}


def main() -> None:
    """Print the table."""
    wanted = os.environ.get("MODELS", "").split(",")
    worst = dict.fromkeys(BARS, 1.0)
    warnings.simplefilter("ignore")  # that a network of random weights predicts one class
    for name, make in models().items():
        if wanted != [""] and name not in wanted:
            continue
        model, x, n_probes = make()
        model = inscape.wrap(model)
        start = time.perf_counter()
        table = cost_table(model, x, n_probes=n_probes, random_state=0, progress=False)
        print(f"{name}: asked in {time.perf_counter() - start:.1f} s", flush=True)
        for row in table.rows:
            if row["seconds"] is None or row["seconds"] > MOST_SECONDS:
                continue
            real = taken(model, x, n_probes, row)
            cells = []
            for what, value in real.items():
                if value is None or row[what] is None:
                    continue
                if value > LEAST.get(what, math.inf):
                    worst[what] = max(worst[what], row[what] / value, value / row[what])
                unit, form = (
                    (1e6, ".1f") if what == "memory" else (1.0, ".3f" if what == "seconds" else ",.0f")
                )
                cells.append(f"{what} {row[what] / unit:{form}} / {value / unit:{form}}")
            print(f"  {row['probes']:12s} {row['method']:8s} {'   '.join(cells)}", flush=True)
    for what, factor in worst.items():
        report(f"worst factor of {what}", factor, f"at most {BARS[what]:g}")


if __name__ == "__main__":
    main()
