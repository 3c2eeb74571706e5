"""Adaptive counting against grids: evaluations, wrong counts, boundaries and time.

Run `python -m benchmarks adaptive`; it takes about half an hour on one core, most of it for the
references. The settings are the package's defaults. They were fixed on other networks, other pairs and other
planes (seeds 1 to 5 and 777); the networks here are trained from seed 0, their 2,000 pairs are drawn from
seed 2026 and their planes from seed 2027. Every network is reported. The adaptive method looks at scores
only, never at the structure of a network; GELU networks are compared with a grid of 20,000 points. The planes
of the CNN are cut down to their middle: the exact count on all of one did not come to an end. MNIST and
CIFAR-10 are taken from the folder `INSCAPE_DATA`; without it their rows are left out. `INSCAPE_PAIRS` may
lower the number of pairs.
"""

import numpy as np
import torch

import inscape
from benchmarks.adaptive import planes, segments
from benchmarks.adaptive.cases import trained_cases
from benchmarks.networks import mlp


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    x = np.random.default_rng(0).normal(size=(9, 4))
    for dim in (1, 2):  # compiles
        inscape.decision_regions(
            mlp(4, 5, 3), inscape.sample_probes(x, dim=dim, n=2, random_state=0), method="adaptive"
        )
    cases = list(trained_cases())
    segments.heading()
    for case in cases:
        segments.on_segments(case)
    planes.heading()
    for case in cases:
        if case.fine is not None:
            planes.on_planes(case)
