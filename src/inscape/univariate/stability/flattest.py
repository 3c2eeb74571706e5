"""The flattest implementation of a function over rescalings of its neurons, with a certificate.

(w, b, v) -> (c w, c b, v / c) keeps the function and turns the Gram matrix into
K(s) = K0 + sum_i exp(-s_i) A_i + exp(s_i) B_i with s = -log c^2 and A_i, B_i >= 0, so its top eigenvalue is
convex in s. We minimise mu log tr exp(K(s) / mu) by Newton's method while mu falls. Every density matrix U (U
>= 0, trace 1) gives the lower bound <U, K0> + 2 sum_i sqrt(<U, A_i> <U, B_i>); the one of the current mu
closes the gap, also where the top eigenvalue is multiple.

What high and low mean: a high value: however its neurons are rescaled, this function needs small steps; a low
one: some rescaling of it can be reached with large ones. When it does not hold: it is about the square loss
on these points; the net at hand can be far sharper.
"""

from dataclasses import dataclass

import numpy as np

from inscape.arrays import Bools, Floats
from inscape.progress import Meter, meter
from inscape.univariate.net import ShallowNet
from inscape.univariate.stability.gram import activity

_MU_FIRST, _MU_FACTOR, _MOST_MUS = 1e-1, 0.2, 19  # down to 3e-14
_NEWTON_STEPS = 30
"""For each mu; from the minimum of the mu before, few are needed."""
_NEGLECT_BELOW = (
    1e-25  # a neuron with a smaller product of its two terms can be scaled to add no more than that
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flattest:
    """The least top eigenvalue over neuron rescalings.

    Attributes:
        value: the top eigenvalue that was reached; an upper bound of the least one.
        certified: a proven lower bound of the least one.
        scale: the c > 0 of each neuron that reaches `value`, (k,). Neurons without influence on the matrix in
            the limit (v = 0, or zero at every data point) keep c = 1, and `value` is that limit.
    """

    value: float
    certified: float
    scale: Floats

    @property
    def gap(self) -> float:
        """The relative gap between the two."""
        return max(0.0, (self.value - self.certified) / self.value)


@dataclass(frozen=True, eq=False)
class _Pencil:
    """K(s) as rank-one terms: relu (n, k) belongs to v, and slope (2, n, k) to (w, b), all over sqrt(n)."""

    relu: Floats
    slope: Floats

    @classmethod
    def of(cls, net: ShallowNet, x: Floats) -> tuple["_Pencil", Bools]:
        on = activity(net, x)
        root = np.sqrt(len(x))
        relu = on * (x[:, None] * net.w + net.b) / root
        by_b = on * net.v / root
        slope = np.stack([by_b * x[:, None], by_b])
        used = np.abs(relu).max(axis=0) * np.abs(slope).max(axis=(0, 1)) > _NEGLECT_BELOW
        return cls(relu[:, used], slope[:, :, used]), used

    def matrix(self, s: Floats) -> Floats:
        n = len(self.relu)
        k = np.full((n, n), 1.0 / n) + (self.relu * np.exp(-s)) @ self.relu.T
        for slope in self.slope:
            k += (slope * np.exp(s)) @ slope.T
        return np.asarray(k)

    def start(self) -> Floats:
        """The s at which each neuron's two terms have about equal size."""
        return np.asarray(np.log(np.abs(self.relu).max(axis=0)) - np.log(np.abs(self.slope).max(axis=(0, 1))))

    def certificate(self, vectors: Floats, weights: Floats) -> float:
        """The lower bound of the density matrix with these eigenvectors (columns) and eigenvalues."""
        root = vectors * np.sqrt(weights)
        a = ((root.T @ self.relu) ** 2).sum(axis=0)
        b = sum(((root.T @ slope) ** 2).sum(axis=0) for slope in self.slope)
        return float((root.sum(axis=0) ** 2).sum() / len(root) + 2 * np.sqrt(a * b).sum())


def flattest(
    net: ShallowNet, x: Floats, gap: float = 1e-9, *, progress: bool | Meter | None = None
) -> Flattest:
    """Minimise the top eigenvalue of the Gram matrix over neuron rescalings to a certified relative gap.

    Cost: a few dozen Newton steps of O(k n^2 min(k, n^2) + k^3).

    Args:
        net: the net.
        x: places, (n,).
        gap: to which relative gap.
        progress: None for a bar after two seconds, False for none; a function gets (values of mu done, most
            that there can be).

    >>> one = ShallowNet([1.0], [0.0], [1.0])  # at x = 1: 1 + c^2 + 2 / c^2, least at c^2 = sqrt(2)
    >>> round(flattest(one, np.array([1.0])).value, 9) == round(1 + 2 * 2**0.5, 9)
    True
    """
    pencil, used = _Pencil.of(net, x)
    scale = np.ones(net.width)
    if not used.any():
        return Flattest(value=1.0, certified=1.0, scale=scale)
    s = pencil.start()
    best, best_s, certified = np.inf, s, -np.inf
    mu = _MU_FIRST
    with meter(progress, "flattest implementation") as show:
        for i in range(_MOST_MUS):
            s, value, bound = _newton(pencil, s, mu)
            certified = max(certified, bound)
            if value < best:
                best, best_s = value, s
            show(i + 1, _MOST_MUS)
            if best - certified <= gap * best:
                break
            mu *= _MU_FACTOR
    scale[used] = np.exp(-best_s / 2)
    return Flattest(value=float(best), certified=float(min(certified, best)), scale=scale)


def _newton(pencil: _Pencil, s: Floats, mu: float) -> tuple[Floats, float, float]:
    """Minimise the smoothed top eigenvalue; returns s, the top eigenvalue, and the best certificate met.

    The width of the smoothing is mu times the top eigenvalue at the start, and stays fixed on the way.
    """
    certified = -np.inf
    top = float("nan")
    width = mu * float(np.linalg.eigvalsh(pencil.matrix(s))[-1])

    def objective(at: Floats) -> float:
        values = np.linalg.eigvalsh(pencil.matrix(at))
        return float(values[-1] + width * np.log(np.exp((values - values[-1]) / width).sum()))

    for _ in range(_NEWTON_STEPS):
        values, vectors = np.linalg.eigh(pencil.matrix(s))
        top = float(values[-1])
        weights = np.exp((values - top) / width)
        certified = max(certified, pencil.certificate(vectors, weights / weights.sum()))
        now = top + width * float(np.log(weights.sum()))
        gradient, hessian = _derivatives(pencil, s, values, vectors, weights / weights.sum(), width)
        step = -np.linalg.solve(hessian, gradient)
        slope = float(gradient @ step)
        if -slope <= 1e-15 * top:
            break
        length = min(1.0, 2.0 / float(np.abs(step).max()))
        while length > 1e-10 and objective(s + length * step) > now + 1e-4 * length * slope:
            length /= 2
        if length <= 1e-10:
            break
        s = s + length * step
    return s, top, certified


def _derivatives(
    pencil: _Pencil, s: Floats, values: Floats, vectors: Floats, weights: Floats, width: float
) -> tuple[Floats, Floats]:
    """Gradient and Hessian of width log tr exp(K(s) / width), in the basis of the eigenvectors of K(s)."""
    by_v = (vectors.T @ pencil.relu) * np.exp(-s / 2)
    by_w = [(vectors.T @ slope) * np.exp(s / 2) for slope in pencil.slope]
    n, k = by_v.shape
    down = by_v[:, None, :] * by_v[None, :, :]
    up = sum(w[:, None, :] * w[None, :, :] for w in by_w)
    change = (up - down).reshape(n * n, k)
    p = np.arange(n) * (n + 1)
    gradient = weights @ change[p]
    curvature = weights @ (up + down).reshape(n * n, k)[p]
    apart = values[:, None] - values[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (weights[:, None] - weights[None, :]) / apart
    near = np.abs(apart) <= 1e-7 * width
    mean = (weights[:, None] + weights[None, :]) / (2 * width)
    divided = np.where(near, mean, ratio)
    np.fill_diagonal(divided, 0.0)
    hessian = (change * divided.reshape(-1, 1)).T @ change
    spread = change[p] - gradient
    hessian += (spread * (weights / width)[:, None]).T @ spread
    hessian[np.diag_indices(k)] += curvature
    return gradient, hessian
