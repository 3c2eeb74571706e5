"""What a model said of the samples of adaptive counting, in the order in which it was asked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints, Shape
from inscape.errors import NonFiniteScoresError
from inscape.models import Model
from inscape.partition.decision.adaptive.first_look import Trial


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
        length = self._model.batch_length(size)
        for first in range(0, n_points, length):
            rows = slice(first, min(first + length, n_points))
            points = np.empty((rows.stop - first, size), np.result_type(self._model.dtype, np.float32))
            write(rows, points)
            try:
                told = self._model.predict_batch(points.reshape(-1, *self._shape), self.has_scores)
            except NonFiniteScoresError as error:
                where = f"{error} (there: {name(first + error.rows[0])})"
                raise NonFiniteScoresError(where, error.rows) from error
            self.labels[start + first : start + rows.stop] = told.labels
            if told.scores is not None:
                self.margins[start + first : start + rows.stop] = self._trial.margins(told.scores)
            self._trial.asked(start + rows.stop)
        self.n = start + n_points

    def _make_room(self, n: int) -> None:
        if n > len(self.labels):
            capacity = max(n, 2 * len(self.labels))
            self.labels, self.margins = grown(self.labels, capacity), grown(self.margins, capacity)


def grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    """A copy with `capacity` rows, of which the new ones are not set."""
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
