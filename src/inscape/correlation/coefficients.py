"""How strongly two columns correlate, with an interval from a bootstrap over clusters.

A resample is a vector of counts: how often each cluster, and so each of its points, was drawn. All three
coefficients are written for weighted points, so that thousands of resamples are a few matrix products.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Floats
from inscape.budget import MEMORY
from inscape.errors import StudyError, unknown_name
from inscape.pictures import Shown
from inscape.seeding import RandomState, as_generator
from inscape.serialising import plain_fields, restored_fields

if TYPE_CHECKING:
    import pandas as pd

N_RESAMPLES = 2000
FEWEST_CLUSTERS = 4
"""Resamples of fewer clusters are mostly degenerate: no interval is better than a wrong one."""
_ROWS_COMPARED_AT_ONCE = 512  # rows of pairwise comparisons at a time


@dataclass(frozen=True, repr=False)
class Correlation(Shown):
    """A coefficient of n points and its 95 % bootstrap interval.

    The value is NaN where a column does not vary, the interval also where there are fewer than four clusters.

    Attributes:
        value: the coefficient.
        interval: its 95 % interval.
        n: over how many points.

    >>> Correlation(0.82, (0.28, 1.0), 12).known_interval
    (0.28, 1.0)
    """

    value: float
    interval: tuple[float, float]
    n: int

    @property
    def known_interval(self) -> tuple[float, float] | None:
        """The interval, None where there is none."""
        return None if np.isnan(self.interval[0]) else self.interval

    def __iter__(self) -> Iterator[Any]:
        """Value and interval, for unpacking."""
        return iter((self.value, self.interval))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; None for what is not defined; `from_dict` reads it back."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The coefficient that `to_dict` wrote."""
        result: Self = restored_fields(cls, data, what="correlation", error=StudyError)
        return result

    def __repr__(self) -> str:
        return f"<correlation {self} of {self.n} points>"

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "not defined"
        if np.isnan(self.interval[0]):
            return f"{self.value:+.2f} (no interval)"
        return f"{self.value:+.2f} [{self.interval[0]:+.2f}, {self.interval[1]:+.2f}]"


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    kind: str = "pearson",
    clusters: npt.ArrayLike | None = None,
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> Correlation:
    """The correlation of two columns and the percentile interval of a bootstrap over clusters.

    Args:
        x: one column, (n,).
        y: the other.
        kind: "pearson"; "spearman", Pearson's of the ranks, ties sharing their mean rank; or "kendall",
            tau-b.
        clusters: what each point belongs to; points of a cluster are drawn together. Default: each its own.
        n_resamples: how many resamples.
        random_state: seed of the resamples.

    >>> correlation([1, 2, 3, 4], [2, 4, 6, 8]).value
    1.0
    """
    if kind not in KINDS:
        raise StudyError(unknown_name("correlation", kind, KINDS))
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return bootstrapped(
        lambda weights: KINDS[kind](weights, a, b), len(a), clusters, n_resamples, random_state
    )


def bootstrapped(
    statistic: Callable[[Floats], Floats],
    n: int,
    clusters: npt.ArrayLike | None,
    n_resamples: int,
    random_state: RandomState,
) -> Correlation:
    """A statistic of weighted points, (resamples, n) -> (resamples,), of all points and of resamples."""
    value = float(statistic(np.ones((1, n)))[0]) if n else float("nan")
    if not np.isfinite(value):
        return Correlation(value, (float("nan"), float("nan")), n)
    owner = np.unique(np.arange(n) if clusters is None else np.asarray(clusters), return_inverse=True)[1]
    k = int(owner.max()) + 1
    if k < FEWEST_CLUSTERS:
        return Correlation(value, (float("nan"), float("nan")), n)
    drawn = as_generator(random_state).multinomial(k, np.full(k, 1 / k), size=n_resamples)
    resampled = statistic(drawn[:, owner].astype(np.float64))
    resampled = resampled[np.isfinite(resampled)]
    if len(resampled) == 0:
        return Correlation(value, (float("nan"), float("nan")), n)
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Correlation(value, (float(low), float(high)), n)


def _pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r for each row of weights; x and y are (n,) or one row per row of weights."""
    total = weights.sum(axis=1)
    a = x - ((weights * x).sum(axis=1) / total)[:, None]
    b = y - ((weights * y).sum(axis=1) / total)[:, None]
    spread_a, spread_b = (weights * a * a).sum(axis=1), (weights * b * b).sum(axis=1)
    product = (weights * a * b).sum(axis=1)
    # a constant column keeps the rounding of its mean, which must not pass for variation
    tiny = (len(x) * np.finfo(np.float64).eps) ** 2 * total
    flat = (spread_a <= tiny * (x * x).max()) | (spread_b <= tiny * (y * y).max())
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(flat, np.nan, np.clip(product / np.sqrt(spread_a * spread_b), -1.0, 1.0))


def _spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    return _pearson(weights, _ranks(weights, x), _ranks(weights, y))


def _ranks(weights: Floats, x: Floats) -> Floats:
    """The mid-rank of each point among the weighted points, (resamples, n)."""
    order = np.argsort(x, kind="stable")
    values, first = np.unique(x[order], return_index=True)
    shares = np.add.reduceat(weights[:, order], first, axis=1)  # the weight of each value
    below = np.cumsum(shares, axis=1) - shares
    ranks: Floats = (below + shares / 2)[:, np.searchsorted(values, x)]
    return ranks


def _kendall(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Tau-b: concordant minus discordant pairs over the geometric mean of the pairs untied in x and in y."""
    agree, in_x, in_y = np.zeros((3, len(weights)))
    for i in range(0, len(x), _ROWS_COMPARED_AT_ONCE):
        rows = slice(i, i + _ROWS_COMPARED_AT_ONCE)
        sign_x, sign_y = np.sign(x[rows, None] - x), np.sign(y[rows, None] - y)
        for total, pairs in ((agree, sign_x * sign_y), (in_x, np.abs(sign_x)), (in_y, np.abs(sign_y))):
            total += ((weights @ pairs.T) * weights[:, rows]).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(agree / np.sqrt(in_x * in_y))


def partial_correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    controls: Floats,
    *,
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> Correlation:
    """Pearson's correlation of what a linear regression on the controls, (n, p), leaves of x and of y.

    NaN where the controls leave nothing.
    """
    columns = np.column_stack([np.ones(len(controls)), controls, np.asarray(x), np.asarray(y)])
    columns = columns / np.maximum(np.abs(columns).max(axis=0), np.finfo(np.float64).tiny)
    n, p = columns.shape
    at_once = max(1, MEMORY // (8 * p * p))
    fits = at_once >= n
    products = (columns[:, :, None] * columns[:, None, :]).reshape(n, p * p) if fits else None

    def moments_of(weights: Floats) -> Floats:
        if products is not None:
            return np.asarray((weights @ products).reshape(-1, p, p))
        return np.stack([(w[:, None] * columns).T @ columns for w in weights])

    def statistic(weights: Floats) -> Floats:
        """The memory holds the moments of so many resamples at once."""
        blocks = (weights[i : i + at_once] for i in range(0, len(weights), at_once))
        return np.concatenate([of_moments(moments_of(block)) for block in blocks])

    def of_moments(moments: Floats) -> Floats:
        z, zx = moments[:, :-2, :-2], moments[:, :-2, -2:]
        left = moments[:, -2:, -2:] - np.swapaxes(zx, 1, 2) @ np.linalg.pinv(z, hermitian=True) @ zx
        spread = np.diagonal(left, axis1=1, axis2=2)
        nothing = (spread <= 1e-10 * np.diagonal(moments, axis1=1, axis2=2)[:, -2:]).any(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            r = left[:, 0, 1] / np.sqrt(spread[:, 0] * spread[:, 1])
        return np.where(nothing, np.nan, np.clip(r, -1.0, 1.0))

    return bootstrapped(statistic, n, None, n_resamples, random_state)


def granulated_kendall(
    frame: "pd.DataFrame", measure: str, target: str, by: Sequence[str], fixed: Sequence[str] = ()
) -> dict[str, float]:
    """For each hyper-parameter the mean of Kendall's tau over all settings of the others.

    The granulated coefficient of Jiang et al. 2020 (arXiv 1912.02178): with hyper-parameter i free and all
    others held, tau = 1 / (k (k - 1)) sum over ordered pairs of sign(measure - measure') times
    sign(target - target'), a pair that is tied in either counting zero; psi_i is the mean of these tau.
    Settings of the others that hold fewer than two runs say nothing and are left out.

    Args:
        frame: one row per configuration.
        measure: a column of it.
        target: another.
        by: the hyper-parameters.
        fixed: columns that are always held, such as the model.

    >>> import pandas as pd
    >>> grid = {"rate": [1, 1, 2, 2], "size": [1, 2, 1, 2]}
    >>> frame = pd.DataFrame(grid | {"m": [1, 2, 3, 4], "t": [1, 3, 5, 2]})
    >>> granulated_kendall(frame, "m", "t", ["rate", "size"])
    {'rate': 0.0, 'size': 0.0}
    """
    means = {}
    for name in by:
        held = [*fixed, *(other for other in by if other != name)]
        groups = [g for _, g in frame.groupby(held, dropna=False)] if held else [frame]
        taus = [tau_a(g[measure].to_numpy(), g[target].to_numpy()) for g in groups if len(g) > 1]
        means[name] = float(np.mean(taus)) if taus else float("nan")
    return means


def tau_a(x: Array, y: Array) -> float:
    """Kendall's tau over all pairs, a tied pair counting zero.

    >>> tau_a(np.array([1, 2, 3]), np.array([1, 3, 2]))
    0.3333333333333333
    """
    n = len(x)
    agree = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    return float(agree.sum() / (n * (n - 1)))


KINDS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}
