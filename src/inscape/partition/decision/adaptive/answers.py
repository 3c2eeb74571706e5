"""What a model said of the samples of adaptive counting, in the order in which it was asked."""

from collections.abc import Callable, Iterator
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints, Shape
from inscape.errors import NonFiniteScoresError, warn
from inscape.models import Model
from inscape.models.base import Prediction
from inscape.parallel import Tell, in_order, is_parallel, single_products, spread
from inscape.partition.decision.adaptive.first_look import Trial

FEWEST_IN_BATCH = 32
"""Points for which threads are worth their calls."""
N_TRIED = 32
"""Points about which each of two threads asks a model, once, to see whether that changes its answers."""


class Answers:
    """Labels and margins of samples; the arrays grow by doubling.

    Attributes:
        n: how many samples there are.
        labels: (room,), of which the first n are known.
        margins: comparable scores, see `Trial.margins`, (room, c); without columns if only labels count.
        has_scores: whether there are margins.
    """

    def __init__(self, model: Model, trial: Trial, shape: Shape) -> None:
        self.n = 0
        self.has_scores = trial.rule != "labels"
        self.labels: Ints = np.empty(0, np.int64)
        self.margins: Floats = np.empty((0, trial.n_classes if self.has_scores else 0))
        self._model, self._trial, self._shape = model, trial, shape

    def ask(
        self, n_points: int, write: Callable[[slice, npt.NDArray[Any]], None], name: Callable[[int], str]
    ) -> None:
        """Evaluate `n_points` more samples, in one stream of batches.

        Args:
            n_points: how many.
            write: writes the points of some of these rows, flattened, into an array.
            name: says in an error where the point of a row is.
        """
        start, size = self.n, int(np.prod(self._shape))
        self._make_room(start + n_points)
        length = self._length(n_points, size)
        batches = [slice(i, min(i + length, n_points)) for i in range(0, n_points, length)]

        def points_of(rows: slice) -> npt.NDArray[Any]:
            points = np.empty((rows.stop - rows.start, size), np.result_type(self._model.dtype, np.float32))
            write(rows, points)
            return points.reshape(-1, *self._shape)

        def told_of(rows: slice) -> Prediction:
            try:
                return self._model.predict_batch(points_of(rows), self.has_scores)
            except NonFiniteScoresError as error:
                where = f"{error} (there: {name(rows.start + error.rows[0])})"
                raise NonFiniteScoresError(where, error.rows) from error

        if len(batches) > 1 and is_parallel():
            self._try_two_threads(*(points_of(slice(b.start, b.start + N_TRIED)) for b in batches[:2]))
        for rows, told in zip(batches, self._in_order(told_of, batches), strict=True):
            self.labels[start + rows.start : start + rows.stop] = told.labels
            if told.scores is not None:
                self.margins[start + rows.start : start + rows.stop] = self._trial.margins(told.scores)
            self._trial.asked(start + rows.stop)
        self.n = start + n_points

    def _length(self, n_points: int, size: int) -> int:
        """How many points of a size go into a batch; where threads ask, batches are alike, by fours."""
        model = self._model
        most = model.batch_length(size)
        if not model.is_concurrent or model.batch_size is not None or model.fixed_batch is not None:
            return most
        n_batches = 4 * -(-n_points // (4 * most)) if n_points >= 4 * FEWEST_IN_BATCH else 2
        return most if n_points < 2 * FEWEST_IN_BATCH else -(-n_points // n_batches)

    def _in_order(self, told_of: Callable[[slice], Prediction], batches: list[slice]) -> Iterator[Prediction]:
        """What the model says of each batch; of several at a time if it can be asked so."""
        if not self._model.is_concurrent:
            yield from map(told_of, batches)
            return
        with single_products():
            yield from in_order(partial(_job, partial(told_of, rows)) for rows in batches)

    def _try_two_threads(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> None:
        """Find out, once, whether a model can be asked by two threads at a time.

        It is asked about the first points of two batches so, and again about one after the other: a function
        that keeps what it computes in memory of its own gives other answers then.
        """
        model = self._model
        if not model.is_concurrent or model.concurrency_seen:
            return
        model.concurrency_seen = True
        together = Barrier(2)

        def tell_of(points: npt.NDArray[Any], wait: Callable[[float], object]) -> Prediction:
            wait(1.0)
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


def _job(told: Callable[[], Prediction], tell: Tell) -> Prediction:
    tell(None)
    return told()


def _are_equal(a: Prediction, b: Prediction) -> bool:
    if a.scores is None or b.scores is None:
        return a.scores is b.scores and np.array_equal(a.labels, b.labels)
    return np.array_equal(a.labels, b.labels) and np.array_equal(a.scores, b.scores)


def grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    """A copy with `capacity` rows, of which the new ones are not set."""
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
