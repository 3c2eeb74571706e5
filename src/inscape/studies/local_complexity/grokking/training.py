"""Late in training linear regions leave the data (Patel, Montufar 2025, Fig. 3, 8, 9, 10 and 12)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from inscape.studies.local_complexity.grokking.outcome import CLAIMS, ETA, SIGMA, summarise
from inscape.studies.local_complexity.training_curves import Look, image_split, watch
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    from inscape.models import Model

RANK_EPS = (0.1, 1.0)
ATTACKS = (0.02, 0.05, 0.1)
"""Radii of the attack, in pixels of 0..1."""
_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "optimiser": "adamw", "weight_decay": 0.01}
FIXED: dict[str, dict[str, Any]] = {
    "smoke": {
        "data": "digits",
        "n_train": 300,
        "n_test": 150,
        "n_points": 16,
        "n_noise": 2,
        "learning_rate": 1e-3,
    },
    "small": {
        "data": "mnist",
        "n_train": 1000,
        "n_test": 1000,
        "n_points": 100,
        "n_noise": 4,
    },
    "paper": {
        "data": "mnist",
        "n_train": 1000,
        "n_test": 1000,
        "n_points": 500,
        "n_noise": 16,
    },
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A network, how it starts, how long it is trained and how often it is measured; `n_runs` of it."""

    depth: int
    width: int
    he_scale: float
    n_steps: int
    n_times: int
    n_runs: int


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "smoke": (
        Setting(depth=4, width=32, he_scale=2.0, n_steps=1_500, n_times=8, n_runs=1),
        Setting(depth=3, width=32, he_scale=1.0, n_steps=800, n_times=8, n_runs=1),
        Setting(depth=4, width=4, he_scale=1.0, n_steps=800, n_times=8, n_runs=1),
        Setting(depth=4, width=32, he_scale=1.0, n_steps=800, n_times=8, n_runs=2),
        Setting(depth=4, width=32, he_scale=3.0, n_steps=1_500, n_times=8, n_runs=1),
    ),
    "small": (
        Setting(depth=4, width=200, he_scale=2.0, n_steps=100_000, n_times=22, n_runs=1),
        Setting(depth=3, width=200, he_scale=1.0, n_steps=20_000, n_times=16, n_runs=1),
        Setting(depth=4, width=5, he_scale=1.0, n_steps=12_000, n_times=16, n_runs=1),
        Setting(depth=4, width=200, he_scale=1.0, n_steps=12_000, n_times=16, n_runs=8),
        Setting(depth=4, width=200, he_scale=3.0, n_steps=40_000, n_times=18, n_runs=1),
    ),
    "paper": (
        Setting(depth=4, width=200, he_scale=2.0, n_steps=1_000_000, n_times=40, n_runs=8),
        Setting(depth=3, width=200, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=8),
        Setting(depth=4, width=10, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=8),
        Setting(depth=4, width=200, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=8),
        Setting(depth=4, width=200, he_scale=3.0, n_steps=1_000_000, n_times=40, n_runs=8),
    ),
}


def configurations(scale: str) -> list[Configuration]:
    """MLPs of depth 4 at He scale 1, 2 and 3, one of depth 3 and a narrow one; each with its replicates."""
    return [
        {
            "depth": s.depth,
            "width": s.width,
            "he_scale": s.he_scale,
            "n_steps": s.n_steps,
            "n_times": s.n_times,
            **(_COMMON | FIXED[scale]),
            "replicate": i,
        }
        for s in SETTINGS[scale]
        for i in range(s.n_runs)
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
        also=(_Accuracies(*split.train, *split.test), Lipschitz(split.x_test[:1])),
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
class Lipschitz:
    """max_l C_l of Theorem 7, as the paper estimates it (eq. 42), and a true upper bound of it."""

    x: npt.NDArray[Any]

    def __call__(self, model: Any) -> dict[str, float]:
        """Both constants of a network."""
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
    paper="Patel and Montufar 2025, Fig. 3, 8, 9, 10 and 12",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
