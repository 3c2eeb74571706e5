"""Local complexity at the end of training against weight decay (Patel, Montufar 2025, Fig. 13)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.studies.correlation import Correlation, bootstrapped, correlation
from inscape.studies.study import Chart, Configuration, Finding, Study, Summary
from inscape.studies.watched import Look, image_split, long_frame, watch

if TYPE_CHECKING:
    import pandas as pd

SIGMA = 1.0
PUBLISHED = 0.6972
LATE = 0.9
"""The drop has come when local complexity is below this part of its largest value."""
_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "optimiser": "adam", "n_noise": 1}
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        "decays": np.geomspace(1e-4, 1e-1, 4),
        "fixed": {"data": "digits", "n_train": 300, "n_test": 150, "width": 100, "n_steps": 1500}
        | {"n_times": 8, "n_points": 50},
        "replicates": 1,
    },
    "small": {
        "decays": np.geomspace(1e-5, 1e-2, 7),
        "fixed": {"data": "mnist", "n_train": 1000, "n_test": 1000, "width": 1000, "n_steps": 5000}
        | {"n_times": 16, "n_points": 200},
        "replicates": 2,
    },
    "paper": {
        "decays": np.geomspace(1e-6, 1e-1, 21),
        "fixed": {"data": "mnist", "n_train": 1000, "n_test": 1000, "width": 1000, "n_steps": 200_000}
        | {"n_times": 40, "n_points": 1000},
        "replicates": 8,
    },
}


def configurations(scale: str) -> list[Configuration]:
    """Weight decays by replicates."""
    s = _SCALES[scale]
    return [
        {"weight_decay": float(f"{decay:.3g}"), **s["fixed"], **_COMMON, "replicate": i}
        for i in range(s["replicates"])
        for decay in s["decays"]
    ]


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run; images and initial weights are those of the replicate, whatever the weight decay."""
    from inscape.training.networks import mlp

    split = image_split(c)
    net = mlp(split.x_train.shape[1], (c["width"],), split.n_classes, seed=c["replicate"])
    look = Look(x=split.x_test[: c["n_points"]], sigma=SIGMA, n_noise=c["n_noise"])
    return watch(net, split.train, split.test, c, look, {"accuracy": {}})


STUDY = Study(
    name="weight-decay",
    title="TITLE",
    configurations=configurations,
    cell=cell,
)
