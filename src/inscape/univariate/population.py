"""The error of a classifier on the whole distribution, integrated between knots: no test points are drawn."""

from collections.abc import Callable

import numpy as np

from inscape.arrays import Floats
from inscape.errors import UnivariateError, unknown_name
from inscape.univariate.net import ShallowNet
from inscape.univariate.teacher import labels_of

_LOSSES = ("zero-one", "exponential", "logistic")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_FAR = 40.0  # beyond this log(1 + exp(-u)) is exp(-u), or -u, to the last digit


def population_error(
    net: ShallowNet,
    teacher: ShallowNet,
    low: float,
    high: float,
    *,
    loss: str = "zero-one",
    density: Callable[[float], float] | None = None,
) -> float:
    """The expected loss of `net` against the sign of `teacher`, for x uniform on [low, high] or of a density.

    The line is cut at the knots and sign changes of both nets. Between them the margin is a straight line:
    the zero-one and the exponential loss have closed forms there, the logistic loss is integrated to
    rounding.

    Args:
        net: the classifier.
        teacher: whose sign is the label.
        low: left end of the support.
        high: right end.
        loss: "zero-one", "exponential" or "logistic".
        density: the density of x on [low, high], integrated numerically on each piece; uniform if None.

    >>> from inscape.univariate.teacher import teacher_of
    >>> population_error(teacher_of([0.25]), teacher_of([0.0]), -1, 1)
    0.125
    """
    if loss not in _LOSSES:
        raise UnivariateError(unknown_name("loss", loss, _LOSSES))
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UnivariateError(f"[{low}, {high}] is no interval: give finite ends that ascend")
    ends = [np.array([low, high]), net.sign_changes(low, high), teacher.sign_changes(low, high)]
    inner = np.concatenate([net.knots, teacher.knots])
    t = np.unique(np.concatenate([*ends, inner[(inner > low) & (inner < high)]]))
    middle = (t[1:] + t[:-1]) / 2
    label = labels_of(teacher, middle)
    if loss == "zero-one":
        wrong = labels_of(net, middle) != label
        return _mass(t[:-1][wrong], t[1:][wrong], low, high, density)
    f = net(t)
    start, end = label * f[:-1], label * f[1:]
    if density is not None:
        return _numerically(t, start, end, loss, density)
    mean = _exponential(start, end) if loss == "exponential" else _logistic(start, end)
    return float(np.diff(t) @ mean / (high - low))


def _mass(
    left: Floats, right: Floats, low: float, high: float, density: Callable[[float], float] | None
) -> float:
    if density is None:
        return float((right - left).sum() / (high - low))
    from scipy.integrate import quad

    return float(
        sum(quad(density, a, z, epsabs=1e-13, limit=200)[0] for a, z in zip(left, right, strict=True))
    )


def _exponential(start: Floats, end: Floats) -> Floats:
    """The mean of exp(-u) over u from start to end."""
    first, rise = np.minimum(start, end), np.abs(end - start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.exp(-first) * np.where(rise > 0, -np.expm1(-rise) / rise, 1.0))


def _logistic(start: Floats, end: Floats) -> Floats:
    """The mean of log(1 + exp(-u)) over u from start to end."""
    half = (end - start)[:, None] / 2
    out = np.logaddexp(0.0, -((start + end)[:, None] / 2 + half * _NODES)) @ _WEIGHTS / 2
    for i in np.flatnonzero(np.abs(end - start) > 2):
        first, last = sorted((start[i], end[i]))
        out[i] = _long_logistic(first, last) / (last - first)
    return np.asarray(out)


def _long_logistic(first: float, last: float) -> float:
    """The integral of log(1 + exp(-u)): closed forms far out, pieces of length 2 between."""
    total = 0.0
    if first < -_FAR:
        total += (first**2 - min(last, -_FAR) ** 2) / 2
    if last > _FAR:
        total += float(np.exp(-max(first, _FAR)) - np.exp(-last))
    low, high = max(first, -_FAR), min(last, _FAR)
    if low < high:
        cuts = np.linspace(low, high, 1 + int(np.ceil((high - low) / 2)))
        half = np.diff(cuts)[:, None] / 2
        u = (cuts[:-1] + cuts[1:])[:, None] / 2 + half * _NODES
        total += float(((np.logaddexp(0.0, -u) * half) @ _WEIGHTS).sum())
    return total


def _numerically(
    t: Floats, start: Floats, end: Floats, loss: str, density: Callable[[float], float]
) -> float:
    from scipy.integrate import quad

    total = 0.0
    for a, z, u, s in zip(t[:-1], t[1:], start, (end - start) / np.diff(t), strict=True):

        def value(x: float, a: float = a, u: float = u, s: float = s) -> float:
            m = u + s * (x - a)
            return float(np.exp(-m) if loss == "exponential" else np.logaddexp(0.0, -m)) * density(x)

        total += quad(value, a, z, epsabs=1e-13, limit=200)[0]
    return float(total)
