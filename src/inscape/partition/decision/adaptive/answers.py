"""What a model says: a first look at it, then its answers at all samples, in the order of evaluation.

The first look tells whether its scores say how near a boundary is, and whether it repeats itself: by that its
answers are read.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import takewhile
from threading import Barrier

import numpy as np

from inscape.arrays import Array, Floats, Ints, Shape
from inscape.errors import NonFiniteScoresError, warn
from inscape.models import Model
from inscape.models.base import Prediction, check_size
from inscape.parallel import is_parallel, single_products, spread
from inscape.probes import Patch, Probe

N_POINTS = 8
"""Points at which a model is tried; each is evaluated twice, and once more right next to it."""
STEP_TO_NEIGHBOUR = 2e-5
"""The step to the point next to it, as a fraction of the probe."""
_LEAST_PROBABILITY = 1e-300
"""Whose logarithm is that of 0, too."""
_SAME_WITHIN = 1e-2
"""Of the spread of the scores: what differs by more at a point that is evaluated again is random."""
FEWEST_IN_BATCH = 32
"""Points for which threads are worth their calls."""
N_PER_THREAD = 32
"""Points about which each of two threads asks a model, once, to see whether that changes its answers."""
LONGEST_WAIT = 60.0
"""Seconds that one of these threads waits for the other to begin; on a busy machine that takes a while."""


@dataclass(frozen=True)
class Trial:
    """What eight points tell of a model.

    Attributes:
        rule: "scores" that curve; "steps" if they are constant between jumps; "labels" if they say nothing.
        reason: why curvature does not decide, else "".
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

    def margins(self, scores: Array) -> Floats:
        """Scores (n, c) whose differences can be compared along a line: logarithms of probabilities.

        One column s reads as (-s / 2, s / 2). The order of the columns is that of the scores.
        """
        if scores.shape[1] == 1:
            return np.concatenate([-scores / 2, scores / 2], axis=1).astype(np.float64)
        values = scores.astype(np.float64)
        return np.log(np.maximum(values, _LEAST_PROBABILITY)) if self.as_logarithms else values


def try_out(model: Model, probes: Sequence[Probe]) -> Trial:
    """Try a model on the first probes, at about `3 * N_POINTS` evaluations in all.

    A model whose scores do not move at all between most points and their neighbours is piecewise constant,
    as trees and nearest neighbours are: it has no curvature, only jumps. One that predicts the
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
    same = bool((np.abs(scores[:n] - scores[2 * n :]) <= _SAME_WITHIN * spread).all())
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
    weights = _weights(_points_each(n_probes), probe.dim, step, isinstance(probe, Patch))
    return np.tensordot(weights, probe.generators, axes=1)


@lru_cache
def _weights(n: int, dim: int, step: float, on_patch: bool) -> Floats:
    """Of the generators of a probe, for each of n points of it, (n, k)."""
    rng = np.random.default_rng(0)
    if on_patch:
        weights = np.column_stack([np.ones(n), rng.uniform(size=(n, 2))])
        centre = np.array([1.0, 0.5, 0.5])
    else:
        weights = rng.dirichlet(np.ones(dim + 1), size=n)
        centre = np.full(dim + 1, 1 / (dim + 1))
    return np.asarray(weights + step * (centre - weights))


def _warned(trial: Trial, model: Model) -> Trial:
    if model.is_random:  # it was found out and said already
        return replace(trial, is_deterministic=False)
    if not trial.is_deterministic:
        warn(
            f"{model.name} is not deterministic, as with dropout left on: the same points were predicted "
            "differently a second time, so that its regions mean nothing"
        )
    return trial


class Answers:
    """Labels and margins of samples; the arrays grow by doubling.

    Attributes:
        n: how many samples there are.
        labels: (capacity,), of which the first n are known.
        margins: comparable scores, see `Trial.margins`, (capacity, c); without columns if only labels count.
        has_scores: whether there are margins.
    """

    def __init__(self, model: Model, trial: Trial, shape: Shape) -> None:
        self.n = 0
        self.has_scores = trial.rule != "labels"
        self.labels: Ints = np.empty(0, np.int64)
        self.margins: Floats = np.empty((0, trial.n_classes if self.has_scores else 0))
        self._model, self._trial, self._shape = model, trial, shape

    def ask(self, n_points: int, write: Callable[[slice, Array], None], name: Callable[[int], str]) -> None:
        """Evaluate `n_points` more samples, in one stream of batches.

        Args:
            n_points: how many.
            write: writes the points of a batch of these, flattened, into an array.
            name: says in an error where the point of a number is.
        """
        start, size = self.n, int(np.prod(self._shape))
        self._make_room(start + n_points)
        length = self._length(n_points, size)
        batches = [slice(i, min(i + length, n_points)) for i in range(0, n_points, length)]

        def points_of(batch: slice) -> Array:
            points = np.empty((batch.stop - batch.start, size), np.result_type(self._model.dtype, np.float32))
            write(batch, points)
            return points.reshape(-1, *self._shape)

        def answer(batch: slice) -> None:
            """Fill in the labels and margins of a batch, in any thread."""
            try:
                told = self._model.predict_batch(points_of(batch), self.has_scores)
            except NonFiniteScoresError as error:
                where = f"{error} (there: {name(batch.start + error.rows[0])})"
                raise NonFiniteScoresError(where, error.rows) from error
            own = slice(start + batch.start, start + batch.stop)
            self.labels[own] = told.labels
            if told.scores is not None:
                self.margins[own] = self._trial.margins(told.scores)

        model = self._model
        if len(batches) > 1 and is_parallel() and model.is_concurrent and not model.concurrency_seen:
            self._try_two_threads(*(points_of(slice(b.start, b.start + N_PER_THREAD)) for b in batches[:2]))
        with single_products() if model.is_concurrent else nullcontext():
            spread(
                (partial(answer, batch) for batch in batches),
                lambda n_done: self._trial.asked(start + batches[n_done - 1].stop),
                at_once=not model.is_concurrent,
            )
        self.n = start + n_points

    def _length(self, n_points: int, size: int) -> int:
        """How many points of a size go into a batch; where threads ask, batches are alike, by fours."""
        model = self._model
        most = model.batch_length(size)
        if not model.is_concurrent or model.batch_size is not None or model.fixed_batch is not None:
            return most
        n_batches = 4 * -(-n_points // (4 * most)) if n_points >= 4 * FEWEST_IN_BATCH else 2
        return most if n_points < 2 * FEWEST_IN_BATCH else -(-n_points // n_batches)

    def _try_two_threads(self, one: Array, other: Array) -> None:
        """Find out, once, whether a model can be asked by two threads at a time.

        It is asked about the first points of two batches so, and again about one after the other: a function
        that keeps what it computes in memory of its own gives other answers then.
        """
        model = self._model
        model.concurrency_seen = True
        together = Barrier(2)

        def tell_of(points: Array, wait: Callable[[float], object]) -> Prediction:
            wait(LONGEST_WAIT)
            return model.predict_batch(points.copy(), self.has_scores)

        with single_products():
            try:
                alone = [tell_of(points, lambda seconds: None) for points in (one, other)]
            except Exception:  # it raises the same in its turn, where the error says of which point
                return
            try:
                both = spread([partial(tell_of, points, together.wait) for points in (one, other)])
                model.is_concurrent = all(map(_are_equal, both, alone))
            except Exception:
                model.is_concurrent = False
        if not model.is_concurrent:
            warn(
                f"{model.name} gave other answers when two threads called it at a time, so that one does "
                "from now on; n_jobs=1 says so from the start"
            )

    def _make_room(self, n: int) -> None:
        if n > len(self.labels):
            capacity = max(n, 2 * len(self.labels))
            self.labels, self.margins = grown(self.labels, capacity), grown(self.margins, capacity)


def _are_equal(a: Prediction, b: Prediction) -> bool:
    if a.scores is None or b.scores is None:
        return a.scores is b.scores and np.array_equal(a.labels, b.labels)
    return np.array_equal(a.labels, b.labels) and np.array_equal(a.scores, b.scores)


def grown(array: Array, capacity: int) -> Array:
    """A copy with `capacity` entries, of which the new ones are not set."""
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
