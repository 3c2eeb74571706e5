"""Both sides of an inequality from means over random draws, with the error of their difference."""

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.theory.check import Check, compare

Sides = Callable[[Any], tuple[float, float]]


def compare_means(name: str, draws: Mapping[str, Floats], sides: Sides, **more: Any) -> Check:
    """The check of lhs <= rhs where both are functions of means over m draws.

    The interval of the slack is the jackknife's: the sides without each draw in turn, whatever functions of
    the means they are, and Student's t with m - 1 degrees of freedom.

    Args:
        name: the statement.
        draws: quantity -> its value in each draw, (m, ...).
        sides: from the means, as attributes, to (lhs, rhs).
        more: for `compare`.

    >>> rolls = {"die": np.array([1.0, 6.0, 2.0, 5.0])}
    >>> compare_means("rolls", rolls, lambda mean: (mean.die, 3.0)).verdict
    'undecided'
    """
    m = len(next(iter(draws.values())))
    means = {key: np.mean(values, axis=0) for key, values in draws.items()}
    lhs, rhs = sides(SimpleNamespace(**means))
    interval = None
    if m > 1 and math.isfinite(rhs - lhs):
        without = []
        for i in range(m):
            rest = {key: mean + (mean - draws[key][i]) / (m - 1) for key, mean in means.items()}
            low, high = sides(SimpleNamespace(**rest))
            without.append(high - low)
        interval = _around(rhs - lhs, np.array(without))
    return compare(name, lhs, rhs, interval=interval, **more)


def _around(slack: float, without: Floats) -> tuple[float, float]:
    from scipy.special import stdtrit

    m, away = len(without), without - without.mean()
    largest = float(np.abs(away).max())
    spread = float(np.linalg.norm(away / largest)) * largest if largest > 0 else 0.0  # squares may overflow
    reach = float(stdtrit(m - 1, 0.975)) * math.sqrt((m - 1) / m) * spread
    return slack - reach, slack + reach
