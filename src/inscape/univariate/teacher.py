"""Teachers: nets whose sign is to be learned, the labels they give, and the error of a net against one.

What high and low mean: a high error: the net and its teacher differ on much of the interval; 0: nowhere. A
short shortest interval: the labels change back quickly, and are harder to learn. When it does not hold: the
error is over the stated interval and density, not over the training points.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Bools, Floats
from inscape.errors import UnivariateError, unknown_name
from inscape.seeding import RandomState, as_generator
from inscape.univariate.net import ShallowNet

SUPPORT = (0.0, 2.0)
"""The support of x for `alternating_teacher`."""

_LOSSES = ("zero-one", "exponential", "logistic")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_CLOSED_FORM_FROM = 40.0  # beyond this log(1 + exp(-u)) is exp(-u), or -u, to the last digit


def teacher_of(changes: npt.ArrayLike) -> ShallowNet:
    """The zigzag of width r whose sign changes exactly at the r given places, from -1 on the far left.

    Its slope is 0 left of the first place, then +1 and -1 in turn, with a knot halfway between neighbouring
    places.

    >>> teacher_of([-0.5, 0.25]).sign_changes().tolist()
    [-0.5, 0.25]
    """
    places = np.asarray(changes, dtype=np.float64).reshape(-1)
    if len(places) == 0 or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        raise UnivariateError("changes must be one or more finite places in ascending order")
    knots = np.concatenate([places[:1], (places[1:] + places[:-1]) / 2])
    jumps = 2.0 * (-1.0) ** np.arange(len(places))
    jumps[0] = 1.0
    return ShallowNet(np.ones_like(knots), -knots, jumps)


def strict_teacher_of(changes: npt.ArrayLike) -> ShallowNet:
    """The zigzag with the same changes of sign that is zero nowhere else: Theorem 4.2 asks for y N(x) > 0.

    One more neuron is a constant, so that the left end lies below zero: the width is r + 1.

    >>> teacher = strict_teacher_of([-0.5, 0.25])
    >>> teacher.sign_changes().tolist(), float(teacher(-1.0)) < 0
    ([-0.5, 0.25], True)
    """
    zigzag = teacher_of(changes)
    depth = float(np.diff(zigzag.knots).min()) if zigzag.width > 1 else 1.0
    b = zigzag.b.copy()
    b[0] += depth  # the first piece rises from -depth, and is zero where it was
    return ShallowNet(np.append(zigzag.w, 0.0), np.append(b, 1.0), np.append(zigzag.v, -depth))


def random_teacher(
    n_changes: int,
    *,
    radius: float = 1.0,
    shortest: float | None = None,
    strict: bool = False,
    random_state: RandomState = None,
) -> ShallowNet:
    """A teacher of width r with r changes of sign at random places of [-radius, radius].

    Args:
        n_changes: r.
        radius: R.
        shortest: the least length of an interval of one sign, rho; R / (r + 1), half of what equal intervals
            have, if None. What is left of the length is shared out uniformly.
        strict: whether it is to be zero nowhere but at the changes, which takes a neuron more.
        random_state: seed.

    >>> random_teacher(3, random_state=1).sign_changes().shape
    (3,)
    """
    r = whole_number(n_changes, "n_changes", 1, UnivariateError)
    least = radius / (r + 1) if shortest is None else shortest
    spare = 2 * radius - (r + 1) * least
    if not (0 < radius < np.inf and least >= 0 and spare >= 0):
        raise UnivariateError(
            f"{r + 1} intervals of length {least:g} do not fit into [-{radius:g}, {radius:g}]: "
            "make them shorter"
        )
    places = np.sort(as_generator(random_state).uniform(0, spare, r))
    changes = -radius + places + least * np.arange(1, r + 1)
    return strict_teacher_of(changes) if strict else teacher_of(changes)


def labels_of(net: ShallowNet, x: npt.ArrayLike) -> Floats:
    """The sign of the net at x, -1 or +1; that of 0 is -1, as in the paper.

    >>> labels_of(ShallowNet([1.0], [0.0], [1.0], -1.0), [0.5, 2.0]).tolist()
    [-1.0, 1.0]
    """
    return np.where(net(x) > 0, 1.0, -1.0)


def shortest_interval(net: ShallowNet, low: float, high: float) -> float:
    """Rho, the length of the shortest interval of [low, high] on which the sign of the net does not change.

    >>> shortest_interval(teacher_of([-0.5, 0.25]), -1, 1)
    0.5
    """
    ends = np.concatenate([[low], net.sign_changes(low, high), [high]])
    return float(np.diff(ends).min())


def alternating_teacher(n_changes: int) -> ShallowNet:
    """The teacher of width r that alternates on r + 1 equal intervals of [0, 2].

    It shows why width r is not enough: our construction for Theorem 3.2 of Safran, Vardi, Lee 2022, which the
    text leaves to an appendix that we do not have. Let x be uniform on [0, 2]. A neuron with w < 0 and b < 0
    (probability 1/4 under Assumption 2.1) is zero for all x > 0, has zero gradient at every sample, and so
    never moves: it is dead for ever. With A neurons alive f has at most A knots, so at most A + 1 changes of
    sign on [0, 2], while the labels change r times: `least_error` says what that costs.

    >>> alternating_teacher(3).sign_changes().tolist()
    [0.5, 1.0, 1.5]
    """
    r = whole_number(n_changes, "n_changes", 1, UnivariateError)
    return teacher_of(np.linspace(*SUPPORT, r + 2)[1:-1])


def alive(net: ShallowNet) -> Bools:
    """Which neurons can ever move on data in [0, 2]: those that are positive somewhere on x > 0, (k,)."""
    return np.asarray((net.w > 0) | (net.b > 0))


def least_error(n_changes: int, n_alive: int) -> float:
    """A lower bound of the error on [0, 2] of every net with `n_alive` neurons alive.

    f changes sign at most s = n_alive + 1 times. Suppose it is wrong on fewer than e = ceil((r - s) / 2)
    whole intervals of the teacher. Each other interval has a point where f has the teacher's sign; dropping e
    - 1 intervals from an alternating sequence takes away at most 2 (e - 1) changes, so f changes sign at
    least r - 2 (e - 1) > s times: impossible. So e whole intervals are wrong, each of mass 1 / (r + 1).

    >>> least_error(20, 10)
    0.23809523809523808
    """
    return max(0, math.ceil((n_changes - n_alive - 1) / 2)) / (n_changes + 1)


def stated_loss(alpha: float) -> float:
    """(1 - 0.75 alpha) / 4, which Theorem 3.2 says the population loss reaches with probability >= 1/4."""
    return (1 - 0.75 * alpha) / 4


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

    Between the knots and sign changes of both nets the margin is a straight line: the zero-one and the
    exponential loss have closed forms there, the logistic loss is integrated to rounding.

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
        out[i] = _long_logistic(first, last)
    return np.asarray(out)


def _long_logistic(first: float, last: float) -> float:
    """The mean of log(1 + exp(-u)): closed forms far out, pieces of length 2 between."""
    total, far = 0.0, 0.0
    if first < -_CLOSED_FORM_FROM:  # there it is -u; squares of large u would overflow
        until = min(last, -_CLOSED_FORM_FROM)
        far = -(first / 2 + until / 2) * ((until - first) / (last - first))
    if last > _CLOSED_FORM_FROM:
        total += float(np.exp(-max(first, _CLOSED_FORM_FROM)) - np.exp(-last))
    low, high = max(first, -_CLOSED_FORM_FROM), min(last, _CLOSED_FORM_FROM)
    if low < high:
        places = np.linspace(low, high, 1 + int(np.ceil((high - low) / 2)))
        half = np.diff(places)[:, None] / 2
        u = (places[:-1] + places[1:])[:, None] / 2 + half * _NODES
        total += float(((np.logaddexp(0.0, -u) * half) @ _WEIGHTS).sum())
    return far + total / (last - first)


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
