"""The weight g under which stable minima are smooth, for samples and for whole distributions.

Mulayoff, Michaeli, Soudry 2021, eqs. (22) and (23): g(x) = min(g-, g+) inside the range of the data, 0
outside, with g-(x) = P(X < x)^2 E[x - X | X < x] sqrt(1 + E[X | X < x]^2) and g+ mirrored. With F = P(X < x)
and M = E[X; X < x] this is g- = (x F - M) sqrt(F^2 + M^2), which divides by nothing.

What high and low mean: where the weight is high a stable minimum has to be smooth; where it is 0, outside of
the data, it may bend as it likes. When it does not hold: it is the weight of one theorem, on one input and
the square loss.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import UnivariateError, unknown_name

Density = Callable[[float], float]

_ROOT3, _ROOT2 = math.sqrt(3.0), math.sqrt(2.0)


def _least(x: Floats, below: Floats, below_x: Floats, above: Floats, above_x: Floats) -> Floats:
    """The smaller of g- and g+ from P(X < x), E[X; X < x], P(X > x) and E[X; X > x]."""
    left = (x * below - below_x) * np.hypot(below, below_x)
    right = (above_x - x * above) * np.hypot(above, above_x)
    return np.maximum(np.minimum(left, right), 0.0)


def weight(at: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
    """G at the places `at` for the sample x; points at the place itself count on neither side.

    >>> weight([-2, -0.5, 0, 0.5, 2], [-1, 0, 1]).round(4).tolist()
    [0.0, 0.0786, 0.1571, 0.0786, 0.0]
    """
    places, data = np.asarray(at, dtype=np.float64), np.sort(np.asarray(x, dtype=np.float64))
    n = len(data)
    sums = np.concatenate([[0.0], np.cumsum(data)]) / n
    first, last = np.searchsorted(data, places, "left"), np.searchsorted(data, places, "right")
    return _least(places, first / n, sums[first], 1 - last / n, sums[n] - sums[last])


def population_weight(
    at: npt.ArrayLike, distribution: str | Density, *, support: tuple[float, float] | None = None
) -> Floats:
    """G at the places `at` for a whole distribution.

    Args:
        at: places, any shape.
        distribution: "uniform", "gaussian" or "laplace" with mean 0 and variance 1, in closed form; or a
            density, integrated numerically (it is divided by its own integral).
        support: the interval on which a density is positive; the real line if None.

    >>> float(population_weight(0.0, "gaussian").round(4))
    0.2552
    """
    places = np.asarray(at, dtype=np.float64)
    if callable(distribution):
        below, below_x, total_x = _integrated(places, distribution, support or (-math.inf, math.inf))
    elif distribution in _MOMENTS:
        (below, below_x), total_x = _MOMENTS[distribution](places), 0.0
    else:
        raise UnivariateError(unknown_name("distribution", distribution, _MOMENTS))
    return _least(places, below, below_x, 1 - below, total_x - below_x)


def _uniform(x: Floats) -> tuple[Floats, Floats]:
    inside = np.clip(x, -_ROOT3, _ROOT3)
    return (inside + _ROOT3) / (2 * _ROOT3), (inside**2 - 3) / (4 * _ROOT3)


def _gaussian(x: Floats) -> tuple[Floats, Floats]:
    from scipy.special import ndtr

    return ndtr(x), -np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _laplace(x: Floats) -> tuple[Floats, Floats]:
    tail = np.exp(-_ROOT2 * np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail), -tail * (np.abs(x) + 1 / _ROOT2)


_MOMENTS = {"uniform": _uniform, "gaussian": _gaussian, "laplace": _laplace}


def _integrated(
    places: Floats, density: Density, support: tuple[float, float]
) -> tuple[Floats, Floats, float]:
    """P(X < x) and E[X; X < x] at each place and E[X], adding up integrals between neighbouring places."""
    from scipy.integrate import quad

    low, high = support
    if not low < high:
        raise UnivariateError(f"support={support} is no interval: its ends must ascend")
    inner, where = np.unique(np.clip(places.reshape(-1), low, high), return_inverse=True)
    ends = np.concatenate([[low], inner, [high]])
    integrals = np.zeros((2, len(ends) - 1))
    for i, (a, z) in enumerate(itertools.pairwise(ends)):
        if a < z:
            integrals[0, i] = quad(density, a, z, epsabs=1e-13, limit=200)[0]
            integrals[1, i] = quad(lambda t: t * density(t), a, z, epsabs=1e-13, limit=200)[0]
    mass, first = np.cumsum(integrals, axis=1)
    if not (np.isfinite(mass[-1]) and mass[-1] > 0 and np.isfinite(first[-1])):
        raise UnivariateError("the density has no finite positive integral or no mean on its support")
    shape = places.shape
    return (
        (mass[where] / mass[-1]).reshape(shape),
        (first[where] / mass[-1]).reshape(shape),
        float(first[-1] / mass[-1]),
    )
