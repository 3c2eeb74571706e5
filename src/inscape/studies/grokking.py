"""Late in training linear regions leave the data (Patel, Montufar 2025, Fig. 3, 8, 9, 10 and 12)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.studies.grokking_summary import CLAIMS, summarise
from inscape.studies.study import Configuration, Study
from inscape.studies.watched import Look, image_split, watch

if TYPE_CHECKING:
    from inscape.models import Model

SIGMA = 1.0
"""Of the noise on biases, as in Fig. 9."""
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
        4 10 1 12000 16 1
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
            **{"depth": int(depth), "width": int(width), "he_scale": float(he)},
            **{"n_steps": int(n_steps), "n_times": int(n_times)},
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
    net = mlp(split.x_train.shape[1], hidden, split.n_classes, seed=c["seed"], scale=c["he_scale"])
    look = Look(
        x=split.x_test[: c["n_points"]],
        sigma=SIGMA,
        n_noise=c["n_noise"],
        rank_eps=RANK_EPS,
        also=(_Accuracies(*split.train, *split.test), lipschitz),
    )
    measures = {"accuracy": {}, "region_count": {"n_probes": 2 * c["n_points"]}}
    return watch(net, split.train, split.test, c, look, measures)


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


def lipschitz(model: "Model") -> dict[str, float]:
    """max_l C_l of Theorem 7, as the paper estimates it (eq. 42), and a true upper bound of it.

    The part of the network after layer l has the weights W_{l+1}, ..., W_{L+1}. The norm of their product is
    no Lipschitz constant, because units that are off may raise it; the product of their norms is.
    """
    weights = [p.detach().double().numpy() for p in model.module.parameters() if p.ndim == 2]
    product, stated, corrected, bound = np.eye(len(weights[-1])), 0.0, 0.0, 1.0
    for w in weights[:0:-1]:
        product = product @ w
        bound *= float(np.linalg.norm(w, 2))
        stated, corrected = max(stated, float(np.linalg.norm(product, 2))), max(corrected, bound)
    return {"lipschitz_stated": stated, "lipschitz_corrected": corrected}


STUDY = Study(
    name="grokking",
    title="Local complexity, robustness and decision regions late in training",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
