"""Means, fractions and comparisons with their errors."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for 95 % intervals."""


def mean_with_error(values: npt.NDArray[Any]) -> tuple[float, float, tuple[float, float]]:
    """The mean, its standard error, and its 95 % interval from Student's t; NaN errors for one value.

    >>> mean, error, (low, high) = mean_with_error(np.array([1, 2, 3]))
    >>> round(mean, 3), round(error, 3), round(low, 3), round(high, 3)
    (2.0, 0.577, -0.484, 4.484)
    """
    from scipy.special import stdtrit

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return mean, math.nan, (math.nan, math.nan)
    error = float(np.std(values, ddof=1) / math.sqrt(n))
    reach = float(stdtrit(n - 1, 0.975)) * error
    return mean, error, (mean - reach, mean + reach)


def wilson(n_right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a fraction by Wilson's score method, which stays within 0 and 1.

    >>> low, high = wilson(10, 10)
    >>> round(low, 3), round(high, 3)
    (0.722, 1.0)
    """
    centre = (n_right + Z**2 / 2) / (n + Z**2)
    reach = Z * math.sqrt(n_right * (n - n_right) / n + Z**2 / 4) / (n + Z**2)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def probability_less(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    """The probability that the mean of `a` is below that of `b`, from n paired samples.

    With differences d = b - a it is T(mean(d) / se(d)), T Student's distribution function with n - 1 degrees
    of freedom; but never more than 1 - 2^-(n+1), the posterior of n differences of one sign.

    >>> probability_less(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 4]))
    0.5
    """
    from scipy.special import stdtr

    d = (b - a).astype(np.float64)
    error = float(np.std(d, ddof=1)) / math.sqrt(len(d))
    if error == 0:
        p = 0.5 if d[0] == 0 else float(d[0] > 0)
    else:
        p = float(stdtr(len(d) - 1, np.mean(d) / error))
    doubt = 0.5 ** (len(d) + 1)
    return min(max(p, doubt), 1 - doubt)
