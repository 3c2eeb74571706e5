"""Drawing k data points at a time: any, of the same class, or of different classes."""

from collections.abc import Callable

import numpy as np

from inscape.arrays import Ints
from inscape.errors import ProbeError
from inscape.probes.source import PointSource


class DrawAny:
    """k different points, every set equally likely."""

    def __init__(self, source: PointSource, k: int) -> None:
        if len(source) < k:
            raise ProbeError(f"a hull of dimension {k - 1} needs {k} points, the data have {len(source)}")
        self.n, self.k = len(source), k

    def __call__(self, rng: np.random.Generator, n: int) -> Ints:
        """Row numbers of the points of n hulls, (n, k)."""
        return _without_repetition(rng, np.full(n, self.n), self.k)


class DrawSame:
    """A random point and k - 1 others of its class."""

    def __init__(self, source: PointSource, k: int) -> None:
        self.order, self.start, self.size = source.by_class()
        self.eligible = np.flatnonzero(np.repeat(self.size, self.size) >= k)
        self.class_of = np.repeat(np.arange(len(self.size)), self.size)
        self.k = k
        if len(self.eligible) == 0:
            raise ProbeError(f"no class has {k} points: cannot draw {k} of the same class")

    def __call__(self, rng: np.random.Generator, n: int) -> Ints:
        """Row numbers of the points of n hulls, (n, k)."""
        group = self.class_of[rng.choice(self.eligible, size=n)]
        within = _without_repetition(rng, self.size[group], self.k)
        return np.asarray(self.order[self.start[group][:, None] + within])


class DrawDifferent:
    """A random point, then each next one uniform among the points of the classes not yet taken."""

    def __init__(self, source: PointSource, k: int) -> None:
        self.order, self.start, self.size = source.by_class()
        self.class_of = np.repeat(np.arange(len(self.size)), self.size)
        self.k = k
        if len(self.size) < k:
            raise ProbeError(
                f"the data have {len(self.size)} classes: cannot draw {k} points of different classes"
            )

    def __call__(self, rng: np.random.Generator, n: int) -> Ints:
        """Row numbers of the points of n hulls, (n, k)."""
        taken = np.empty((n, 0), dtype=np.int64)
        drawn = np.empty((n, self.k), dtype=np.int64)
        for j in range(self.k):
            start, size = np.sort(self.start[taken], axis=1), self.size[np.sort(taken, axis=1)]
            position = rng.integers(len(self.order) - size.sum(axis=1))
            for b in range(j):
                position += np.where(position >= start[:, b], size[:, b], 0)
            drawn[:, j] = self.order[position]
            taken = np.column_stack([taken, self.class_of[position]])
        return drawn


DRAWS: dict[str, Callable[[PointSource, int], Callable[[np.random.Generator, int], Ints]]] = {
    "any": DrawAny,
    "same": DrawSame,
    "different": DrawDifferent,
}


def _without_repetition(rng: np.random.Generator, n: Ints, k: int) -> Ints:
    """For each row, k different numbers below n[row], uniformly: skip over those drawn before."""
    drawn = np.empty((len(n), 0), dtype=np.int64)
    for j in range(k):
        value = rng.integers(n - j)
        for column in np.sort(drawn, axis=1).T:
            value += value >= column
        drawn = np.column_stack([drawn, value])
    return drawn
