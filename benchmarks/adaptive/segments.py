"""Counts on segments against grids: evaluations, wrong segments and time; exact counts are the reference."""

import os
from typing import Any

import numpy as np

import inscape
from benchmarks.adaptive.cases import Case, Ints
from benchmarks.timing import best_times
from inscape.models import Model
from inscape.partition.decision.adaptive import adaptive_regions
from inscape.partition.decision.exact.networks import exact_segments

SEED = 2026
N_PAIRS = int(os.environ.get("INSCAPE_PAIRS", "2000"))


def heading() -> None:
    """What the rows hold."""
    print(
        f"1D: {N_PAIRS} pairs each; bars: at most 40 evaluations a segment, 30 on ordinary networks; wrong "
        "no more than on 500 points;\n    agreement 99.8 %, on random labels 99.5 %; speed over 200 points"
    )
    print(
        f"{'network':34} {'regions':>7} {'evals':>6} {'wrong':>6} {'over':>5} {'of 500':>7} {'of 200':>7} "
        f"{'agree':>8} {'missed':>7} {'estimate':>9} {'speed':>6} {'bar':>4}",
        flush=True,
    )


def on_segments(case: Case) -> None:
    """One row: the counts of one network on fresh pairs."""
    model = case.model()
    probes = inscape.sample_probes(case.x, n=N_PAIRS, random_state=SEED)
    truth = true_counts(case, model, probes)
    found = [*adaptive_regions(model, probes, meter=lambda done, total: None)]
    counts = np.array([p.n_regions for p in found])
    evaluations = sum(p.n_evaluations for p in found) / len(found)
    wrong = {r: int((on_grid(model, probes, r) != truth).sum()) for r in (500, 200)}
    few = probes[:1000]
    ours, theirs = best_times(
        lambda: inscape.decision_regions(model, few, method="adaptive"),
        lambda: inscape.decision_regions(model, few, method="grid", resolution=200),
    )
    missed, estimate = int((truth - counts).clip(0).sum()), sum(p.missed or 0.0 for p in found)
    own = int((counts != truth).sum())
    good = evaluations <= (40 if case.is_hard else 30) and own <= wrong[500]
    good &= own <= (0.005 if case.is_hard else 0.002) * len(probes)
    good &= case.speed is None or theirs / ours >= case.speed
    print(
        f"{case.name:34} {truth.mean():7.3f} {evaluations:6.1f} {own:6d} {int((counts > truth).sum()):5d} "
        f"{wrong[500]:7d} {wrong[200]:7d} {1 - own / len(truth):8.2%} {missed:7d} {estimate:9.2f} "
        f"{theirs / ours:6.1f} {case.speed or '-':>4} {'' if good else '  below a bar'}",
        flush=True,
    )


def true_counts(case: Case, model: Model, probes: list[Any]) -> Ints:
    """The exact counts, or those of a grid of 20,000 points."""
    if case.has_exact:
        return np.array([len(p.labels) for p in exact_segments(model, probes)])
    return on_grid(model, probes, 20000)


def on_grid(model: Model, probes: list[Any], resolution: int) -> Ints:
    """The counts on a grid."""
    return np.array(
        [
            p.n_regions
            for k in range(0, len(probes), 100)
            for p in inscape.decision_regions(
                model, probes[k : k + 100], method="grid", resolution=resolution
            )
        ]
    )
