"""Stability of the linearised dynamics at a minimum: of gradient descent, of SGD, and where neurons toggle.

Near an interpolating minimum of L = 1/(2n) sum (f - y)^2 the Hessian of one point is phi_j phi_j', so a batch
B moves the distance d = theta - theta* by d <- (I - eta H_B) d with H_B = sum_{j in B} phi_j phi_j' / |B|.
All happens in the span of the phi_j; across it nothing moves. A neuron whose knot lies on a data point
toggles with d itself: the Hessian then depends on the mode that d is in, a switching system.

What high and low mean: a rate above 1: small deviations from the minimum grow and descent leaves it; below 1:
they die out. When it does not hold: the dynamics are linearised at an interpolating minimum; far from it, or
where the net does not interpolate, they say nothing.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Bools, Floats
from inscape.errors import UnivariateError
from inscape.pictures import Shown
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_generator
from inscape.serialising import Written
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample
from inscape.univariate.stability.gram import features, toggling

_ROUNDING = 1e-9
_RANK = 1e-10
"""Directions whose singular value is below this fraction of the largest are none of the span."""
MODES_UP_TO = 256
"""Modes beyond this many are a sample of that many, all off and all on among them."""
NUMBERS_KEPT = 2**22
"""Entries of the features of modes that are kept while the system is followed."""
KNOT_TOLERANCE, FIT_TOLERANCE = 1e-8, 1e-5
"""How near a knot is on a data point, and a value fits; see `stability`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearStability(Written, Shown):
    """Whether the linearised dynamics stay at a minimum (Definition 1).

    Attributes:
        is_stable: whether E |theta_t - theta*|^2 stays bounded from every start.
        square_rate: the factor by which that mean grows per step in the long run: the spectral radius of
            S -> E (I - eta H_B) S (I - eta H_B) on the span of the gradients. At most 1 is stable.
        mean_rate: the same of E theta_t - theta*, max |1 - eta lambda| over the eigenvalues lambda of H.
        sharpness: the largest eigenvalue of H.
        limit: 2 / eta, which bounds it where the mean is stable.
        largest_step: the largest step size that is stable; 2 / sharpness for the full batch.
        step_size: eta.
        batch_size: points per step, drawn without replacement; n for gradient descent.
    """

    measure: ClassVar[str] = "linear stability"
    _error: ClassVar = UnivariateError

    is_stable: bool
    square_rate: float
    mean_rate: float
    sharpness: float
    limit: float
    largest_step: float
    step_size: float
    batch_size: int

    def __repr__(self) -> str:
        word = "stable" if self.is_stable else "not stable"
        return (
            f"<linear stability: {word}, squares grow by {self.square_rate:.4g} a step; sharpness "
            f"{self.sharpness:.4g}, 2 / eta = {self.limit:.4g}, batches of {self.batch_size}>"
        )


def linear_stability(
    net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, batch_size: int | None = None
) -> LinearStability:
    """Whether SGD with that step size and batch size stays at the minimum, by its second moment.

    Mulayoff, Michaeli, Soudry 2021, Definition 1. For batches of b points without replacement the second
    moment S of theta - theta* becomes (I - eta H) S (I - eta H) + eta^2 c (1/n sum_j H_j S H_j - H S H) with
    c = (n - b) / (b (n - 1)); its growth is the largest eigenvalue of that map on symmetric matrices, which
    has a positive semi-definite eigenvector. For the full batch it is the square of the mean's, and stability
    is sharpness <= 2 / eta.

    Args:
        net: a net that interpolates.
        x: places, (n,), on none of which a knot lies.
        y: values, (n,).
        step_size: eta.
        batch_size: b; None for all points.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> linear_stability(net, x, net(x), 0.25).is_stable, linear_stability(net, x, net(x), 0.4).is_stable
    (True, False)
    >>> linear_stability(net, x, net(x), 0.25, batch_size=1).is_stable
    False
    """
    places, phi = _at_minimum(net, x, y)
    if toggling(net, places, KNOT_TOLERANCE).any():
        raise UnivariateError("a knot lies on a data point, where the dynamics switch: use strong_stability")
    eta = positive_number(step_size, "step_size", UnivariateError)
    n = len(places)
    b = n if batch_size is None else whole_number(batch_size, "batch_size", 1, UnivariateError)
    if b > n:
        raise UnivariateError(f"batch_size={b} is more than the {n} points: give at most that")
    points = _in_span(phi)
    eigenvalues = np.linalg.eigvalsh(points.T @ points / n)
    square = _square_rate(points, eta, b)
    return LinearStability(
        is_stable=square <= 1 + _ROUNDING,
        square_rate=square,
        mean_rate=float(np.abs(1 - eta * eigenvalues).max()),
        sharpness=float(eigenvalues[-1]),
        limit=2 / eta,
        largest_step=_largest_step(points, b, float(eigenvalues[-1])),
        step_size=eta,
        batch_size=b,
    )


def _at_minimum(net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The places, and the gradients of f there, (n, 3 k + 1); an error if the net does not interpolate."""
    if not isinstance(net, ShallowNet):
        raise UnivariateError(f"net is a {type(net).__name__}: give a ShallowNet")
    places, values = checked_sample(x, y)
    if np.abs(net(places) - values).max() > FIT_TOLERANCE * (1 + np.abs(values).max()):
        raise UnivariateError(
            "the net does not interpolate, so it is no minimum with zero loss: train longer"
        )
    return places, features(net, places)


def _in_span(phi: Floats) -> Floats:
    """The gradients in orthonormal coordinates of their span, (n, r)."""
    u, s, _ = np.linalg.svd(phi, full_matrices=False)
    kept = s > _RANK * s[0]
    return np.asarray(u[:, kept] * s[kept])


def _square_rate(points: Floats, eta: float, batch: int) -> float:
    """The spectral radius of the map of second moments, of gradients (n, r) in the span."""
    n, r = points.shape
    hessian = points.T @ points / n
    share = 0.0 if n == 1 else (n - batch) / (batch * (n - 1))
    step = np.eye(r) - eta * hessian
    if share == 0.0:
        return float(np.abs(np.linalg.eigvalsh(step)).max() ** 2)
    # the map on r x r matrices, which maps symmetric ones to symmetric ones and preserves their order
    single = np.einsum("ja,jb,jc,jd->abcd", points, points, points, points, optimize=True) / n
    whole = np.kron(step, step) + eta**2 * share * (
        single.transpose(0, 3, 1, 2).reshape(r * r, r * r) - np.kron(hessian, hessian)
    )
    return float(np.abs(np.linalg.eigvals(whole)).max())


def _largest_step(points: Floats, batch: int, sharpness: float) -> float:
    """The largest stable step size, between 0 and 2 / sharpness, to a relative accuracy of 1e-6."""
    high = 2 / sharpness
    if batch == len(points):
        return high
    low = 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _square_rate(points, middle, batch) <= 1 else (low, middle)
    return low


@dataclass(frozen=True, eq=False, kw_only=True)
class StrongStability(Written, Shown):
    """Whether gradient descent never goes further from a minimum than it started (Definition 2).

    Attributes:
        is_strongly_stable: True by Lemma 3 (every mode has sharpness at most 2 / eta), False by a start from
            which the switching system goes further away, None if neither is known.
        growth: the largest |theta_t - theta*| / |theta_0 - theta*| that was seen.
        upper: lambda_max^upper, the largest sharpness of a mode that was examined.
        lower: the least u' H_m u over modes, for the top eigenvector u of the sharpest: lambda_lower of
            Lemma 2 with lambda_m = u' H_m u.
        residual: the delta that goes with it, the largest |H_m u - lambda_m u| over modes.
        deviation: delta of Lemma 2 with lambda_m = upper for all m, as in eq. (34): the largest
            |H_m u - upper u| over modes.
        limit: 2 / eta.
        n_modes: how many modes were examined.
        every_mode: whether these are all.
        n_toggling: pairs of a neuron and a data point on which its knot lies.
        step_size: eta.
    """

    measure: ClassVar[str] = "strong stability"
    _error: ClassVar = UnivariateError

    is_strongly_stable: bool | None
    growth: float
    upper: float
    lower: float
    residual: float
    deviation: float
    limit: float
    n_modes: int
    every_mode: bool
    n_toggling: int
    step_size: float

    def __repr__(self) -> str:
        words = {True: "strongly stable", False: "not strongly stable", None: "not known to be either"}
        return (
            f"<strong stability: {words[self.is_strongly_stable]}; sharpness up to {self.upper:.4g} in "
            f"{self.n_modes} modes, 2 / eta = {self.limit:.4g}, distance grew by {self.growth:.4g} at most>"
        )


def strong_stability(
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    step_size: float,
    *,
    n_starts: int = 20,
    n_steps: int = 500,
    random_state: RandomState = 0,
    progress: bool | Meter | None = None,
) -> StrongStability:
    """Whether the switching system of gradient descent stays within the distance at which it starts.

    Mulayoff, Michaeli, Soudry 2021, Definition 2 and Lemma 3. Each neuron whose knot lies on a data point is
    active there where the moved w x + b is positive, so the mode depends on the direction of theta - theta*
    alone: distances scale, and no epsilon is needed. At an interpolating minimum the gradient of every mode
    is zero. The system is followed from the top eigenvector of modes, both ways, and from random directions.

    Args:
        net: a net that interpolates.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        n_starts: random starts.
        n_steps: steps from each start.
        random_state: a seed, a generator, or None, of the starts and, if there are many, of the modes.
        progress: None for a bar after two seconds, False for none; a function gets (starts done, starts).

    >>> hat = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0])  # knots on the points 0 and 1
    >>> x = np.array([-1.0, 0.0, 1.0, 2.0])
    >>> strong_stability(hat, x, hat(x), 0.1).is_strongly_stable
    True
    >>> strong_stability(hat, x, hat(x), 1.0).is_strongly_stable
    False
    """
    places, _ = _at_minimum(net, x, y)
    eta = positive_number(step_size, "step_size", UnivariateError)
    rng = as_generator(random_state)
    modes, every = modes_of(net, places, rng)
    phis = [features(net, places, mode) for mode in modes]
    tops = [np.linalg.svd(phi, full_matrices=False) for phi in phis]
    n = len(places)
    sharpness = np.array([s[0] ** 2 / n for _, s, _ in tops])
    u = tops[int(sharpness.argmax())][2][0]
    moved = [phi.T @ (phi @ u) / n for phi in phis]
    starts = [sign * v[0] for _, _, v in tops[: 2 * n_starts] for sign in (1, -1)]
    starts += list(rng.standard_normal((whole_number(n_starts, "n_starts", 0, UnivariateError), len(u))))
    system = _Switching(net, places, eta)
    growth = 1.0
    with meter(progress, "starts") as show:
        for i, start in enumerate(starts):
            show(i, len(starts))
            growth = max(growth, system.growth(start, n_steps))
    upper = float(sharpness.max())
    held = True if every and upper <= 2 / eta * (1 + _ROUNDING) else None
    return StrongStability(
        is_strongly_stable=False if growth > 1 + 1e-6 else held,
        growth=growth,
        upper=upper,
        lower=float(min(u @ h for h in moved)),
        residual=float(max(np.linalg.norm(h - (u @ h) * u) for h in moved)),
        deviation=float(max(np.linalg.norm(h - upper * u) for h in moved)),
        limit=2 / eta,
        n_modes=len(modes),
        every_mode=every,
        n_toggling=int(toggling(net, places, KNOT_TOLERANCE).sum()),
        step_size=eta,
    )


def modes_of(net: ShallowNet, x: Floats, rng: np.random.Generator) -> tuple[list[Bools], bool]:
    """Which neuron is active at which point, (n, k), in each mode; and whether these are all modes."""
    pairs = toggling(net, x, KNOT_TOLERANCE)
    off = (x[:, None] * net.w + net.b > 0) & ~pairs
    where = np.argwhere(pairs)
    p = len(where)
    if 2**p <= MODES_UP_TO:
        codes = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    else:
        codes = np.concatenate(
            [np.zeros((1, p)), np.ones((1, p)), rng.integers(2, size=(MODES_UP_TO - 2, p))]
        )
    modes = []
    for code in codes.astype(bool):
        mode = off.copy()
        mode[tuple(where[code].T)] = True
        modes.append(mode)
    return modes, 2**p <= MODES_UP_TO


class _Switching:
    """theta - theta* <- (I - eta H_m)(theta - theta*), m the mode of theta."""

    def __init__(self, net: ShallowNet, x: Floats, eta: float) -> None:
        self._net, self._x, self._eta = net, x, eta
        pairs = toggling(net, x, KNOT_TOLERANCE)
        self._off = (x[:, None] * net.w + net.b > 0) & ~pairs
        self._point, self._neuron = np.nonzero(pairs)
        self._known: dict[bytes, Floats] = {}

    def growth(self, start: Floats, n_steps: int) -> float:
        """The largest distance on the way, over that of the start."""
        d = start / np.linalg.norm(start)
        largest = 1.0
        for _ in range(n_steps):
            phi = self._features(d)
            d = d - self._eta * (phi.T @ (phi @ d)) / len(self._x)
            distance = math.sqrt(d @ d)
            largest = max(largest, distance)
            if distance > 1e6 or distance < 1e-12:
                break
        return largest

    def _features(self, d: Floats) -> Floats:
        """Those of the mode. They are kept, as far as memory allows: few modes occur, again and again."""
        on = self._x[self._point] * d[self._neuron] + d[self._net.width + self._neuron] > 0
        phi = self._known.get(key := on.tobytes())
        if phi is None:
            active = self._off.copy()
            active[self._point, self._neuron] = on
            phi = features(self._net, self._x, active)
            if len(self._known) * phi.size < NUMBERS_KEPT:
                self._known[key] = phi
        return phi
