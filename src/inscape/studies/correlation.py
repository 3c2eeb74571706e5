"""How strongly two columns of a study go together, with an interval."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.seeding import RandomState, as_generator


@dataclass(frozen=True)
class Correlation:
    """Pearson's r of n pairs and its 95 % bootstrap interval; NaN where a column does not vary."""

    value: float
    interval: tuple[float, float]
    n: int


def pearson(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    *,
    n_resamples: int = 4000,
    random_state: RandomState = 0,
) -> Correlation:
    """Pearson's correlation, with the percentile interval of a bootstrap over pairs.

    >>> pearson(np.arange(10.0), 2 * np.arange(10.0)).value
    1.0
    """
    rng = as_generator(random_state)
    value = float(_pearson(x[None], y[None])[0])
    picks = rng.integers(len(x), size=(n_resamples, len(x)))
    resampled = _pearson(x[picks], y[picks])
    resampled = resampled[np.isfinite(resampled)]
    if not np.isfinite(value) or len(resampled) == 0:
        return Correlation(value, (float("nan"), float("nan")), len(x))
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Correlation(value, (float(low), float(high)), len(x))


def _pearson(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The correlation of each pair of rows; NaN for a row that is constant."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    size = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip((x * y).sum(axis=1) / size, -1.0, 1.0))
