"""Random probes from data: the hulls of Def. 4, and their variants."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import ProbeError, unknown_name
from inscape.probes.base import Array, Probe
from inscape.probes.segment import Segment
from inscape.probes.simplex import Simplex
from inscape.probes.source import PointSource
from inscape.seeding import RandomState, as_generator

Indices = npt.NDArray[np.int64]
_REDRAWS = 100


def sample_probes(
    x: Any,
    *,
    dim: int = 1,
    n: int = 100,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    y: npt.ArrayLike | None = None,
    classes: str = "any",
    random_state: RandomState = None,
) -> list[Probe]:
    """Random probes of dimension `dim`: segments for 1, simplices above.

    Args:
        x: data (n, ...): an array, a tensor, a torch data set or a loader of x or (x, y).
        dim: the dimension d.
        n: how many probes.
        how: "pairs" takes hulls of d + 1 different data points, each set equally likely; "direction"
            takes one data point and d random directions of Euclidean length `length` from it.
        span: for segments, the interval of t, where 0 and 1 are the two points.
        length: for "direction", how far to go.
        y: the class of each point, if `x` does not carry it; needed when `classes` is not "any".
        classes: for "pairs", "same" or "different" draws points of equal or of pairwise different class.
        random_state: a seed, a generator, or None.

    Points that coincide are drawn again, since they span no hull of that dimension.

    >>> sample_probes([[0.0, 0.0], [1.0, 2.0]], n=1, random_state=0)
    [Segment(input_shape=(2,), span=(0.0, 1.0))]
    """
    _check_arguments(dim, n, how, span, length, classes)
    source = x if isinstance(x, PointSource) else PointSource(x, y)
    rng = as_generator(random_state)
    if how == "direction":
        assert length is not None
        corners = _along_directions(source, dim, n, length, rng)
    else:
        corners = _hulls(source, dim, n, classes, rng)
    if dim == 1:
        return [Segment(a, b, span) for a, b in corners]
    return [Simplex(c) for c in corners]


def _check_arguments(
    dim: int, n: int, how: str, span: tuple[float, float], length: float | None, classes: str
) -> None:
    if how not in ("pairs", "direction"):
        raise ProbeError(unknown_name("how", how, ("pairs", "direction")))
    if classes not in ("any", "same", "different"):
        raise ProbeError(unknown_name("classes", classes, ("any", "same", "different")))
    if dim < 1:
        raise ProbeError(f"dim={dim} is too small: a probe has dimension 1 or more")
    if n < 1:
        raise ProbeError(f"n={n} is too small: draw at least 1 probe")
    if dim > 1 and tuple(span) != (0, 1):
        raise ProbeError(f"span={span} extends a line: it needs dim=1, got dim={dim}")
    if how == "direction" and (length is None or not length > 0):
        raise ProbeError(f"how='direction' needs a positive length, got length={length}")
    if how == "pairs" and length is not None:
        raise ProbeError("length belongs to how='direction'; hulls of data points have their own size")
    if how == "direction" and classes != "any":
        raise ProbeError(f"classes={classes!r} belongs to how='pairs': a direction has no class")


def _along_directions(
    source: PointSource, dim: int, n: int, length: float, rng: np.random.Generator
) -> Array:
    start = source.points(rng.integers(len(source), size=n))[:, None]
    steps = rng.standard_normal((n, dim, *start.shape[2:]))
    flat = steps.reshape(n, dim, -1)
    flat *= length / np.linalg.norm(flat, axis=2, keepdims=True)
    return np.concatenate([start, start + steps], axis=1)


def _hulls(source: PointSource, dim: int, n: int, classes: str, rng: np.random.Generator) -> Array:
    draw = _DRAWS[classes](source, dim + 1)
    indices = draw(rng, n)
    corners = source.points(indices.ravel()).reshape(n, dim + 1, *source.shape)
    for _ in range(_REDRAWS):
        again = np.flatnonzero(_coincide(corners))
        if len(again) == 0:
            return corners
        fresh = draw(rng, len(again))
        corners[again] = source.points(fresh.ravel()).reshape(len(again), dim + 1, *source.shape)
    raise ProbeError(
        f"found no {dim + 1} different points after {_REDRAWS} draws: "
        "the data hold (almost) only identical points"
    )


def _coincide(corners: Array) -> npt.NDArray[np.bool_]:
    """For each row of k points, whether two of them are the same."""
    flat = corners.reshape(*corners.shape[:2], -1)
    pairs = zip(*np.triu_indices(flat.shape[1], 1), strict=True)
    return np.asarray(np.any([(flat[:, i] == flat[:, j]).all(axis=1) for i, j in pairs], axis=0))


class _DrawAny:
    """k different points, every set equally likely."""

    def __init__(self, source: PointSource, k: int) -> None:
        if len(source) < k:
            raise ProbeError(f"a hull of dimension {k - 1} needs {k} points, the data have {len(source)}")
        self.n, self.k = len(source), k

    def __call__(self, rng: np.random.Generator, n: int) -> Indices:
        return _without_repetition(rng, np.full(n, self.n), self.k)


class _DrawSame:
    """A random point and k - 1 others of its class."""

    def __init__(self, source: PointSource, k: int) -> None:
        self.order, self.start, self.size = source.by_class()
        self.eligible = np.flatnonzero(np.repeat(self.size, self.size) >= k)
        self.class_of = np.repeat(np.arange(len(self.size)), self.size)
        self.k = k
        if len(self.eligible) == 0:
            raise ProbeError(f"no class has {k} points: cannot draw {k} of the same class")

    def __call__(self, rng: np.random.Generator, n: int) -> Indices:
        group = self.class_of[rng.choice(self.eligible, size=n)]
        within = _without_repetition(rng, self.size[group], self.k)
        return np.asarray(self.order[self.start[group][:, None] + within])


class _DrawDifferent:
    """k points of pairwise different classes: each next one uniform among the classes not yet taken."""

    def __init__(self, source: PointSource, k: int) -> None:
        self.order, self.start, self.size = source.by_class()
        self.class_of = np.repeat(np.arange(len(self.size)), self.size)
        self.k = k
        if len(self.size) < k:
            raise ProbeError(
                f"the data have {len(self.size)} classes: cannot draw {k} points of different classes"
            )

    def __call__(self, rng: np.random.Generator, n: int) -> Indices:
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


_DRAWS: dict[str, Callable[[PointSource, int], Callable[[np.random.Generator, int], Indices]]] = {
    "any": _DrawAny,
    "same": _DrawSame,
    "different": _DrawDifferent,
}


def _without_repetition(rng: np.random.Generator, n: Indices, k: int) -> Indices:
    """For each row, k different numbers below n[row], uniformly: skip over those drawn before."""
    drawn = np.empty((len(n), 0), dtype=np.int64)
    for j in range(k):
        value = rng.integers(n - j)
        for column in np.sort(drawn, axis=1).T:
            value += value >= column
        drawn = np.column_stack([drawn, value])
    return drawn
