"""A first look at a model: has it scores that tell how near a boundary is, and does it repeat itself?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from inscape.errors import warn
from inscape.models import Model
from inscape.models.base import Array, check_size
from inscape.probes import Patch, Probe

N_POINTS = 8
"""Points at which a model is tried; each is evaluated twice, and once more right next to it."""
STEP_TO_NEIGHBOUR = 2e-5
"""The step to the point next to it, as a fraction of the probe."""
_TINY = 1e-300
_DIFFERENT = 1e-2


@dataclass(frozen=True)
class Trial:
    """What eight points tell of a model.

    Attributes:
        rule: "scores" that bend; "steps" if they are constant between jumps; "labels" if they say nothing.
        reason: why bends do not decide, else "".
        is_deterministic: whether the same points gave the same prediction twice.
        n_classes: the number of score columns, 2 if there are none or one.
        as_logarithms: whether the scores are probabilities, whose logarithms are compared.
        rounding: the unit of rounding of the scores.
        n_probes: on how many probes the model was tried.
        asked: is told, after each batch, at how many samples of its block the model has been evaluated.
    """

    rule: str
    reason: str
    is_deterministic: bool
    n_classes: int
    as_logarithms: bool
    rounding: float
    n_probes: int
    asked: Callable[[int], None] = field(default=lambda n_samples: None, compare=False)

    def n_evaluations_on(self, i: int) -> int:
        """How many evaluations the trial took on probe i."""
        return 3 * _points_each(self.n_probes) if i < self.n_probes else 0

    def margins(self, scores: Array) -> npt.NDArray[np.float64]:
        """Scores (n, c) whose differences can be compared along a line: logarithms of probabilities.

        One column s reads as (-s / 2, s / 2). The order of the columns is that of the scores.
        """
        if scores.shape[1] == 1:
            return np.concatenate([-scores / 2, scores / 2], axis=1).astype(np.float64)
        values = scores.astype(np.float64)
        return np.log(np.maximum(values, _TINY)) if self.as_logarithms else values


def try_out(model: Model, probes: Sequence[Probe]) -> Trial:
    """Look at a model on the first probes, at about `3 * N_POINTS` evaluations in all.

    A model whose scores do not move at all between most points and their neighbours is piecewise constant,
    as trees and nearest neighbours are: it has no bends, only jumps. One that predicts the
    same points differently a second time has no regions to count; the warning says so.
    """
    shape = probes[0].input_shape
    check_size(model, shape)
    some = list(takewhile(lambda p: p.input_shape == shape, probes[:N_POINTS]))
    points, near = (
        np.concatenate([_points(p, step, len(some)) for p in some]) for step in (0.0, STEP_TO_NEIGHBOUR)
    )
    told = model.predict(np.concatenate([points, near, points]), with_scores=True)  # one draw of randomness
    n = len(points)
    if told.scores is None:
        same = bool((told.labels[:n] == told.labels[2 * n :]).all())
        return _warned(Trial("labels", "the model has no scores", same, 2, False, 0.0, len(some)), model)
    scores = told.scores
    spread = float(np.ptp(scores))
    same = bool((np.abs(scores[:n] - scores[2 * n :]) <= _DIFFERENT * spread).all())
    moves = (scores[:n] != scores[n : 2 * n]).any(axis=1)
    best = np.take_along_axis(scores, told.labels[:, None], axis=1)[:, 0] if scores.shape[1] > 1 else 0
    rounding = float(np.finfo(scores.dtype).eps)
    agrees = scores.shape[1] == 1 or bool((best >= scores.max(axis=1) - 8 * rounding * spread).all())
    rule, reason = "scores", ""
    if not agrees:
        rule, reason = "labels", "the label is not that of the highest score"
    elif 2 * moves.sum() <= n:
        rule, reason = "steps", "the scores are piecewise constant"
    sums = scores.astype(np.float64).sum(axis=1)
    are_shares = scores.shape[1] > 1 and bool((scores >= 0).all() and (np.abs(sums - 1) < 1e-3).all())
    as_logarithms = are_shares and rule == "scores"  # jumps of shares are alike near 0 and near 1
    n_classes = max(2, scores.shape[1])
    return _warned(Trial(rule, reason, same, n_classes, as_logarithms, rounding, len(some)), model)


def _points_each(n_probes: int) -> int:
    return -(-N_POINTS // n_probes)


def _points(probe: Probe, step: float, n_probes: int) -> Array:
    """A few fixed pseudo-random points of a probe, moved by `step` towards its centre."""
    n = _points_each(n_probes)
    rng = np.random.default_rng(0)
    if isinstance(probe, Patch):
        weights = np.column_stack([np.ones(n), rng.uniform(size=(n, 2))])
        centre = np.array([1.0, 0.5, 0.5])
    else:
        weights = rng.dirichlet(np.ones(probe.dim + 1), size=n)
        centre = np.full(probe.dim + 1, 1 / (probe.dim + 1))
    return np.tensordot(weights + step * (centre - weights), probe.generators, axes=1)


def _warned(trial: Trial, model: Model) -> Trial:
    if model.is_random:  # it was found out and said already
        return replace(trial, is_deterministic=False)
    if not trial.is_deterministic:
        warn(
            f"{model.name} is not deterministic, as with dropout left on: the same points were predicted "
            "differently a second time, so that its regions mean nothing"
        )
    return trial
