"""Random probes from data: the hulls of Def. 4, and their variants."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Array, Floats, Ints
from inscape.budget import in_bytes, machine_memory
from inscape.errors import ProbeError, unknown_name
from inscape.probes.probe import Probe, as_interval
from inscape.probes.segment import Segment, known_segment
from inscape.probes.simplex import Simplex
from inscape.probes.source import PointSource
from inscape.seeding import RandomState, as_seed

MOST_PROBES = 10**7
"""In one draw: their mean is then known to a three-thousandth of the spread between probes."""
_MOST_REDRAWS = 100
_PROBES_DRAWN_AT_ONCE = 1024
_PAIRS_FOR_LENGTH = 100
_BYTES_DRAWN_AT_ONCE = 2**20
_PROBE_BYTES = 1000  # of an object with two arrays, beside its points


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
        length: for "direction", how far to go; by default half of the median distance of two points,
            which a result of `region_count` states in its settings.
        y: the class of each point, if `x` does not carry it; needed when `classes` is not "any".
        classes: for "pairs", "same" draws a random point and others of its class; "different" draws
            points of pairwise different classes, each uniform among those that are left.
        random_state: a seed, a generator, or None.

    Points that coincide are drawn again, since they span no hull of that dimension.

    >>> sample_probes([[0.0, 0.0], [1.0, 2.0]], n=1, random_state=0)
    [Segment(input_shape=(2,), span=(0, 1))]
    """
    probes = draw_probes(
        x,
        dim=dim,
        n=n,
        how=how,
        span=span,
        length=length,
        y=y,
        classes=classes,
        random_state=random_state,
    )
    _check_memory(probes)
    return list(probes)


def draw_probes(
    x: Any,
    *,
    dim: int,
    n: int,
    how: str,
    span: tuple[float, float],
    length: float | None,
    y: npt.ArrayLike | None,
    classes: str,
    random_state: RandomState,
) -> "ProbeSample":
    """The probes of `sample_probes`, each built only when it is used."""
    dim, n = whole_number(dim, "dim", 1, ProbeError), whole_number(n, "n", 1, ProbeError)
    if n > MOST_PROBES:
        raise ProbeError(
            f"{n:,} random probes are over the limit of {MOST_PROBES:,}: their mean is as good as known with "
            "far fewer, try 10,000"
        )
    _check_variant(dim, how, span, length, classes)
    source = x if isinstance(x, PointSource) else PointSource(x, y)
    seed = as_seed(random_state)
    rng = np.random.default_rng(seed)
    if how == "direction":
        points, rows = source.take(rng.integers(len(source), size=(n, 1)))
        length = _typical_length(source, seed) if length is None else float(length)
        return ProbeSample(points, rows, as_interval(span, "span"), dim, length, seed)
    draw = DRAWS[classes](source, dim + 1)
    points, rows = source.take(draw(rng, n))
    for _ in range(_MOST_REDRAWS):
        again = _coinciding(points, rows)
        if len(again) == 0:
            return ProbeSample(points, rows, as_interval(span, "span"), dim)
        fresh, new = source.take(draw(rng, len(again)))
        if fresh is not points:  # a data set was asked for more points
            points, new = np.concatenate([points, fresh]), new + len(points)
        rows[again] = new
    raise ProbeError(
        f"found no {dim + 1} different points after {_MOST_REDRAWS} draws: "
        "the data hold (almost) only identical points"
    )


def _typical_length(source: PointSource, seed: int) -> float:
    """Half of the median distance between two different data points, by some random pairs."""
    rng = np.random.default_rng([seed, 1])
    points, rows = source.take(rng.integers(len(source), size=(_PAIRS_FOR_LENGTH, 2)))
    ends = np.asarray(points[rows], dtype=np.float64).reshape(*rows.shape, -1)
    distances = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    if not distances.any():
        raise ProbeError("the data hold (almost) only identical points: give the length of a direction")
    return float(np.median(distances[distances > 0])) / 2


class ProbeSample(Sequence[Probe]):
    """Random probes that are built when they are used: any number of them takes hardly any memory.

    Attributes:
        length: of the random directions; None for hulls.
    """

    def __init__(
        self,
        points: Array,
        rows: Ints,
        span: tuple[float, float],
        dim: int,
        length: float | None = None,
        seed: int = 0,
    ) -> None:
        self._points, self._rows, self._span, self._dim = points, rows, span, dim
        self.length, self._seed = length, seed

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, i: int) -> Probe: ...
    @overload
    def __getitem__(self, i: slice) -> list[Probe]: ...
    def __getitem__(self, i: int | slice) -> Probe | list[Probe]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        corners = np.asarray(self._points[self._rows[i]], dtype=np.float64)
        if self.length is not None:
            corners = np.concatenate([corners, corners + self._steps(i, corners.shape[1:])])
        return Segment(corners[0], corners[1], self._span) if self._dim == 1 else Simplex(corners)

    def __iter__(self) -> Iterator[Probe]:
        """The probes one after the other; segments between data points a few at a time, which is quicker."""
        if self._dim > 1 or self.length is not None or self._points.ndim == 1:
            yield from super().__iter__()
            return
        most = max(1, _BYTES_DRAWN_AT_ONCE // (16 * math.prod(self._points.shape[1:])))
        for first in range(0, len(self), most):
            some = range(first, min(first + most, len(self)))
            corners = np.asarray(self._points[self._rows[first : some.stop]], dtype=np.float64)
            if np.isfinite(corners).all():
                yield from (known_segment(own.copy(), self._span) for own in corners)
            else:  # an error says where
                yield from map(self.__getitem__, some)

    def _steps(self, i: int, shape: tuple[int, ...]) -> Floats:
        """Random directions of the asked length, from a generator of this probe alone."""
        steps = np.random.default_rng([self._seed, i % len(self)]).standard_normal((self._dim, *shape))
        norms = np.linalg.norm(steps.reshape(self._dim, -1), axis=1)
        return np.asarray(steps * (self.length / norms).reshape(-1, *(1,) * len(shape)))


def _check_variant(dim: int, how: str, span: tuple[float, float], length: float | None, classes: str) -> None:
    if how not in ("pairs", "direction"):
        raise ProbeError(unknown_name("how", how, ("pairs", "direction")))
    if classes not in DRAWS:
        raise ProbeError(unknown_name("classes", classes, DRAWS))
    if dim > 1 and as_interval(span, "span") != (0, 1):
        raise ProbeError(f"span={span} extends a line: it needs dim=1, got dim={dim}")
    is_length = isinstance(length, int | float | np.number) and 0 < length < np.inf
    if how == "direction" and length is not None and not is_length:
        raise ProbeError(f"how='direction' needs a positive length, got length={length!r}")
    if how == "pairs" and length is not None:
        raise ProbeError("length belongs to how='direction'; hulls of data points have their own size")
    if how == "direction" and classes != "any":
        raise ProbeError(f"classes={classes!r} belongs to how='pairs': a direction has no class")


def _check_memory(probes: ProbeSample) -> None:
    """Raise an error if a list of all the probes would not fit into half of the memory."""
    memory = machine_memory()
    needed = len(probes) * (probes[0].generators.nbytes + _PROBE_BYTES)
    if memory is not None and needed > memory / 2:
        raise ProbeError(
            f"a list of {len(probes):,} probes takes {in_bytes(needed)}, more than half of the memory of "
            f"{in_bytes(memory)}: draw fewer, or let region_count(..., n_probes=...) build them one by one"
        )


def _coinciding(points: Array, rows: Ints) -> Ints:
    """The hulls in which two of the points are the same."""
    coinciding = []
    for start in range(0, len(rows), _PROBES_DRAWN_AT_ONCE):
        chunk = rows[start : start + _PROBES_DRAWN_AT_ONCE]
        flat = points[chunk].reshape(*chunk.shape, -1)
        pairs = combinations(range(chunk.shape[1]), 2)
        same = np.any([(flat[:, i] == flat[:, j]).all(axis=1) for i, j in pairs], axis=0)
        coinciding.append(start + np.flatnonzero(same))
    return np.concatenate(coinciding)


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


def of_every_kind(probes: Sequence[Probe]) -> Sequence[Probe]:
    """Probes among which every kind occurs: all of a list; of a random sample the first."""
    return probes[:1] if isinstance(probes, ProbeSample) else probes
