"""Two models as one, whose label is the pair of theirs: for methods that evaluate a model at points."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from inscape.compare.matching import Matching
from inscape.models import Model
from inscape.models.base import Array

MOST_SCORES = 1024
"""Of a pair: with more, only labels count."""


class PairedModel(Model):
    """A model whose label is n i + j where the first says i and the second j, of n classes.

    The score of a pair is s_i + t_j, the sum of what either model gives to its class: the largest is that of
    the pair of labels, and leads by as much as the model that is less sure. So whatever counts the decision
    regions of a model counts those of the pair.
    """

    def __init__(self, a: Model, b: Model, matching: Matching, n: int) -> None:
        super().__init__(f"{a.name} and {b.name}", input_shape=None, batch_size=None)
        self.a, self.b, self.matching, self.n = a, b, matching, n
        self.dtype = np.result_type(a.dtype, b.dtype)
        self.has_scores = matching.columns is not None and n**2 <= MOST_SCORES

    @property
    def is_random(self) -> bool:
        """Whether either was seen to be."""
        return self.a.is_random or self.b.is_random

    @is_random.setter
    def is_random(self, value: bool) -> None:
        self.a.is_random = value

    @contextmanager
    def session(self) -> Iterator[None]:
        """The state in which batches of both are evaluated."""
        with self.a.session(), self.b.session():
            yield

    def fingerprint(self) -> str:
        """A hash of both."""
        both = f"{self.a.fingerprint()} {self.b.fingerprint()}"
        return hashlib.blake2b(both.encode(), digest_size=8).hexdigest()

    def batch_length(self, point_size: int) -> int:
        """As many points as both take."""
        return min(self.a.batch_length(point_size), self.b.batch_length(point_size))

    def _to_input(self, x: Array) -> Array:
        """Points as they are: the models shape and cast what they are given."""
        return x

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        first = self.a.predict_batch(x.copy(), with_scores)
        second = self.b.predict_batch(x.copy(), with_scores)
        i, j = self.matching.common(first.labels, second.labels)
        labels = self.n * i + j
        if not with_scores or first.scores is None or second.scores is None:
            return labels, None
        one, other = _for_each_class(first.scores), _for_each_class(second.scores)
        if self.matching.columns is not None and len(self.matching.columns) == other.shape[1]:
            other = other[:, self.matching.columns]
        return labels, (one[:, :, None] + other[:, None, :]).reshape(len(x), -1)


def _for_each_class(scores: Array) -> Array:
    """Scores (n, c), one for each class: a single score s reads as (-s/2, s/2)."""
    return np.concatenate([-scores / 2, scores / 2], axis=1) if scores.shape[1] == 1 else scores
