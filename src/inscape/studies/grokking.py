"""Late in training linear regions leave the data (Patel, Montufar 2025, Fig. 3, 8, 9, 10 and 12)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from inscape.studies.grokking_summary import CLAIMS, ETA, SIGMA, summarise
from inscape.studies.study import Configuration, Study
from inscape.studies.watched import Look, image_split, watch

if TYPE_CHECKING:
    from inscape.models import Model

RANK_EPS = (0.1, 1.0)
ATTACKS = (0.02, 0.05, 0.1)
"""Radii of the attack, in pixels of 0..1."""
_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "optimiser": "adamw", "weight_decay": 0.01}
_FIXED: dict[str, dict[str, Any]] = {
    "smoke": {"data": "digits", "n_train": 300, "n_test": 150, "n_points": 16, "n_noise": 2}
    | {"learning_rate": 1e-3},
    "small": {"data": "mnist", "n_train": 1000, "n_test": 1000, "n_points": 100, "n_noise": 4},
    "paper": {"data": "mnist", "n_train": 1000, "n_test": 1000, "n_points": 500, "n_noise": 16},
}
_RUNS: dict[str, str] = {
    "smoke": """
        4 32 2 1500 8 1
        3 32 1 800 8 1
        4 4 1 800 8 1
        4 32 1 800 8 2
        4 32 3 1500 8 1
        """,
    "small": """
        4 200 2 100000 22 1
        3 200 1 20000 16 1
        4 5 1 12000 16 1
        4 200 1 12000 16 8
        4 200 3 40000 18 1
        """,
    "paper": """
        4 200 2 1000000 40 8
        3 200 1 1000000 40 8
        4 10 1 1000000 40 8
        4 200 1 1000000 40 8
        4 200 3 1000000 40 8
        """,
}
"""Depth, width, He scale, steps, looks and runs of each setting."""


def configurations(scale: str) -> list[Configuration]:
    """MLPs of depth 4 at He scale 1, 2 and 3, one of depth 3 and a narrow one; each with its replicates."""
    settings = [line.split() for line in _RUNS[scale].strip().splitlines()]
    return [
        {
            "depth": int(depth),
            "width": int(width),
            "he_scale": float(he),
            "n_steps": int(n_steps),
            "n_times": int(n_times),
            **(_COMMON | _FIXED[scale]),
            "replicate": i,
        }
        for depth, width, he, n_steps, n_times, n_runs in settings
        for i in range(int(n_runs))
    ]


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run, watched."""
    from inscape.training.networks import mlp

    split = image_split(c)
    hidden = (c["width"],) * c["depth"]
    net = mlp(split.x_train.shape[1], hidden, split.n_classes, random_state=c["seed"], scale=c["he_scale"])
    look = Look(
        x=split.x_test[: c["n_points"]],
        sigma=SIGMA,
        n_noise=c["n_noise"],
        rank_eps=RANK_EPS,
        also=(_Accuracies(*split.train, *split.test), _Lipschitz(split.x_test[:1])),
    )
    measures = {"accuracy": {}, "region_count": {"n_probes": 2 * c["n_points"]}}
    columns = watch(net, split.train, split.test, c, look, measures)
    return columns | _whole_theorem(net, split.x_test[:20], c["n_noise"])


@dataclass(frozen=True, eq=False)
class _Accuracies:
    """Accuracy on training points, and on test points under attack."""

    x_train: npt.NDArray[Any]
    y_train: npt.NDArray[Any]
    x_test: npt.NDArray[Any]
    y_test: npt.NDArray[Any]

    def __call__(self, model: "Model") -> dict[str, float]:
        from inscape.measures.accuracy import correct
        from inscape.measures.robustness import adversarial_accuracy

        row = {"train_accuracy": float(correct(model, self.x_train, self.y_train).mean())}
        n = min(500, len(self.x_test))
        for eps in ATTACKS:
            attack: dict[str, Any] = {"eps": eps, "steps": 10, "step_size": eps / 4, "random_state": 0}
            found = adversarial_accuracy(model, self.x_test[:n], self.y_test[:n], box=(0, 1), **attack)
            row[f"attacked_{eps:g}"] = found.value
        return row


@dataclass(frozen=True, eq=False)
class _Lipschitz:
    """max_l C_l of Theorem 7, as the paper estimates it (eq. 42), and a true upper bound of it."""

    x: npt.NDArray[Any]

    def __call__(self, model: Any) -> dict[str, float]:
        from inscape.theory import layers_of

        layers = layers_of(model.module, self.x)
        return {
            "lipschitz_stated": layers.rest_bound(corrected=False),
            "lipschitz_corrected": layers.rest_bound(corrected=True),
        }


def _whole_theorem(net: Any, x: npt.NDArray[Any], n_noise: int) -> dict[str, float]:
    """Theorem 7 at the end with all its terms, in both forms: the left side, which is to be at most LC."""
    from inscape.theory import lc_theorem7, moments

    found = moments(net, x, sigma=SIGMA, eta=ETA, n_noise=n_noise, random_state=0)
    forms = ("stated", "corrected")
    return {f"theorem_7_{form}": float(lc_theorem7(found, form=form).lhs) for form in forms}


STUDY = Study(
    name="grokking",
    title="Local complexity, robustness and decision regions late in training",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
