"""Late in training linear regions leave the data (Patel, Montufar 2025, Fig. 3, 8, 9, 10 and 12).

The setting is that of the authors' public code: the network ends in a softmax, whose probabilities the
cross-entropy takes for scores; inputs are normalised; AdamW decays weights, not biases. The same with the
cross-entropy of scores runs beside it, since what falls and what rises depends on the loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Array, Points
from inscape.errors import StudyError
from inscape.studies.local_complexity.grokking.outcome import (
    CLAIMS,
    ETA,
    N_ATTACKED,
    PIXEL_ATTACKS,
    SIGMA,
    THRESHOLDS,
    summarise,
)
from inscape.studies.local_complexity.training_curves import (
    NetworkMeasurement,
    RankThreshold,
    image_split,
    watch,
)
from inscape.sweeps.checkpoints import checkpoint_of
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    from inscape.models import Model

PUBLISHED_LOSS, PLAIN = "softmax-cross-entropy", "cross-entropy"
MEAN, DEVIATION = 0.1307, 0.3081
"""Of the pixels of MNIST, by which the published code normalises."""
RADIUS = round(80 / 255 * DEVIATION, 4)
"""Of the published attack, in pixels of 0..1: 80/255 of normalised ones. It takes ten steps of an eighth."""
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
    "small": {"data": "mnist", "n_train": 1000, "n_test": 1000, "n_points": 50, "n_noise": 4},
    "medium": {"data": "mnist", "n_train": 1000, "n_test": 1000, "n_points": 40, "n_noise": 4},
    "paper": {"data": "mnist", "n_train": 1000, "n_test": 1000, "n_points": 500, "n_noise": 16},
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
    loss: str = PUBLISHED_LOSS


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "smoke": (
        Setting(depth=4, width=32, he_scale=2.0, n_steps=1_000, n_times=8, n_runs=1),
        Setting(depth=4, width=32, he_scale=2.0, n_steps=1_000, n_times=8, n_runs=1, loss=PLAIN),
        Setting(depth=3, width=32, he_scale=1.0, n_steps=800, n_times=8, n_runs=1),
        Setting(depth=4, width=4, he_scale=1.0, n_steps=800, n_times=8, n_runs=1),
        Setting(depth=4, width=32, he_scale=1.0, n_steps=800, n_times=8, n_runs=2),
    ),
    "small": (
        Setting(depth=4, width=200, he_scale=2.0, n_steps=100_000, n_times=24, n_runs=1),
        Setting(depth=4, width=200, he_scale=2.0, n_steps=100_000, n_times=24, n_runs=1, loss=PLAIN),
        Setting(depth=3, width=200, he_scale=1.0, n_steps=20_000, n_times=16, n_runs=1),
        Setting(depth=4, width=5, he_scale=1.0, n_steps=12_000, n_times=16, n_runs=1),
        Setting(depth=4, width=200, he_scale=1.0, n_steps=12_000, n_times=16, n_runs=4),
        Setting(depth=4, width=200, he_scale=3.0, n_steps=40_000, n_times=18, n_runs=1),
    ),
    # as long as published, with fewer points per measurement: three to six hours of a core
    "medium": (
        Setting(depth=4, width=200, he_scale=2.0, n_steps=1_000_000, n_times=40, n_runs=3),
        Setting(depth=4, width=200, he_scale=2.0, n_steps=1_000_000, n_times=40, n_runs=3, loss=PLAIN),
        Setting(depth=4, width=200, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=1),
        Setting(depth=4, width=200, he_scale=3.0, n_steps=1_000_000, n_times=40, n_runs=1),
    ),
    "paper": (
        Setting(depth=4, width=200, he_scale=2.0, n_steps=1_000_000, n_times=40, n_runs=3),
        Setting(depth=4, width=200, he_scale=2.0, n_steps=1_000_000, n_times=40, n_runs=3, loss=PLAIN),
        Setting(depth=3, width=200, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=3),
        Setting(depth=4, width=10, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=3),
        Setting(depth=4, width=200, he_scale=1.0, n_steps=1_000_000, n_times=40, n_runs=8),
        Setting(depth=4, width=200, he_scale=3.0, n_steps=1_000_000, n_times=40, n_runs=3),
    ),
}


def configurations(
    scale: str,
    loss: str | None = None,
    normalise: Any = True,
    decay_biases: Any = False,
    tolerance: Any = THRESHOLDS[0].eps,
    attack: Any = RADIUS,
) -> list[Configuration]:
    """MLPs of depth 4 at several He scales and losses, one of depth 3, a narrow one; with replicates."""
    if loss not in (None, PUBLISHED_LOSS, PLAIN):
        raise StudyError(f"loss={loss!r} is not known: give {PUBLISHED_LOSS} or {PLAIN}")
    chosen = {
        "normalise": _yes_or_no(normalise, "normalise"),
        "decay_biases": _yes_or_no(decay_biases, "decay_biases"),
        "tolerance": _positive(tolerance, "tolerance"),
        "attack": _positive(attack, "attack"),
    }
    every = [
        {
            "depth": s.depth,
            "width": s.width,
            "he_scale": s.he_scale,
            "n_steps": s.n_steps,
            "n_times": s.n_times,
            "loss": loss or s.loss,
            **(_COMMON | FIXED[scale]),
            **chosen,
            "replicate": i,
        }
        for s in SETTINGS[scale]
        for i in range(s.n_runs)
    ]
    return [c for i, c in enumerate(every) if c not in every[:i]]


def _yes_or_no(given: Any, name: str) -> bool:
    known = {"true": True, "yes": True, "false": False, "no": False}
    if str(given).lower() not in known:
        raise StudyError(f"{name}={given!r} must be true or false")
    return known[str(given).lower()]


def _positive(given: Any, name: str) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = 0.0
    if not value > 0:
        raise StudyError(f"{name}={given!r} must be a number above 0")
    return value


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run, watched."""
    from inscape.training.networks import mlp

    unit = DEVIATION if c["normalise"] else 1.0
    centre = MEAN if c["normalise"] else 0.0
    split = image_split(c, (centre, unit))
    hidden = (c["width"],) * c["depth"]
    net = mlp(split.x_train.shape[1], hidden, split.n_classes, random_state=c["seed"], scale=c["he_scale"])
    chosen = RankThreshold(c["tolerance"])
    box = (
        min(-centre / unit, float(np.asarray(split.x_test).min())),
        max((1 - centre) / unit, float(np.asarray(split.x_test).max())),
    )
    measured = NetworkMeasurement(
        x=split.x_test[: c["n_points"]],
        sigma=SIGMA,
        n_noise=c["n_noise"],
        variations=("probabilities", "hidden"),
        thresholds=tuple(dict.fromkeys((chosen, *THRESHOLDS))),
        also=(
            _Accuracies(split.train, split.test, c["attack"], unit, box),
            Lipschitz(split.x_test[:1]),
        ),
    )
    measures = {"accuracy": {}, "region_count": {"n_probes": 2 * c["n_points"]}}
    columns = watch(net, split.train, split.test, c, measured, measures, checkpoint_of(c))
    return columns | _whole_theorem(net, split.x_test[:20], c["n_noise"])


@dataclass(frozen=True, eq=False)
class _Accuracies:
    """Accuracy on training points, and on test points under attacks.

    "attacked_published" climbs the cross-entropy of probabilities, as the published code does,
    "attacked_margin" a loss that does not saturate within the same radius, "attacked_0.02" and so on the
    latter within others. Radii are in pixels of 0..1, of which one is 1 / `unit` of the inputs.
    """

    train: tuple[Points, Array]
    test: tuple[Points, Array]
    radius: float
    unit: float
    box: tuple[float, float]

    def __call__(self, model: "Model") -> dict[str, float]:
        from inscape.measures.accuracy import correct

        row = {"train_accuracy": float(correct(model, *self.train).mean())}
        row["attacked_published"] = self._attacked(model, self.radius, 8, "softmax-cross-entropy")
        row["attacked_margin"] = self._attacked(model, self.radius, 8, "margin")
        return row | {f"attacked_{r:g}": self._attacked(model, r, 4, "margin") for r in PIXEL_ATTACKS}

    def _attacked(self, model: "Model", radius: float, n_steps_to_edge: int, loss: str) -> float:
        from inscape.measures.robustness import adversarial_accuracy

        x, y = (v[:N_ATTACKED] for v in self.test)
        eps = radius / self.unit
        how: dict[str, Any] = {"eps": eps, "steps": 10, "step_size": eps / n_steps_to_edge, "random_state": 0}
        return adversarial_accuracy(model, x, y, loss=loss, box=self.box, budget=None, **how).value


@dataclass(frozen=True, eq=False)
class Lipschitz:
    """max_l C_l of Theorem 7, as the paper estimates it (eq. 42), and a true upper bound of it."""

    x: Array

    def __call__(self, model: Any) -> dict[str, float]:
        """Both constants of a network."""
        from inscape.theory import layers_of

        layers = layers_of(model.module, self.x)
        return {
            "lipschitz_stated": layers.rest_bound(corrected=False),
            "lipschitz_corrected": layers.rest_bound(corrected=True),
        }


def _whole_theorem(net: Any, x: Array, n_noise: int) -> dict[str, float]:
    """Theorem 7 at the end with all its terms, in both forms: the left side, which is to be at most LC."""
    from inscape.theory import lc_theorem7, moments

    terms = moments(net, x, sigma=SIGMA, eta=ETA, n_noise=n_noise, random_state=0)
    forms = ("stated", "corrected")
    return {f"theorem_7_{form}": float(lc_theorem7(terms, form=form).lhs) for form in forms}


STUDY = Study(
    name="grokking",
    title="Local complexity, robustness and decision regions late in training",
    paper="Patel and Montufar 2025, Fig. 3, 8, 9, 10 and 12",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    scales=("smoke", "small", "medium", "paper"),
    options={
        "loss": f"{PUBLISHED_LOSS} or {PLAIN} for all runs; by default the first, and both at He scale 2",
        "normalise": "whether pixels are normalised; true by default",
        "decay_biases": "whether biases decay too; false by default",
        "tolerance": f"the threshold of the local rank of findings; {THRESHOLDS[0].eps} by default",
        "attack": f"the radius of the published attack, in pixels of 0..1; {RADIUS} by default",
    },
)
