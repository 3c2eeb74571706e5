"""Derivatives by the parameters: features, Gram matrix, Hessian; its modes where knots lie on data points."""

from dataclasses import dataclass

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.univariate.net import ShallowNet


def activity(net: ShallowNet, x: Floats) -> Bools:
    """Which neuron is active at which point, (n, k): w x + b > 0."""
    return np.asarray(x[:, None] * net.w + net.b > 0)


def features(net: ShallowNet, x: Floats, active: Bools | None = None) -> Floats:
    """The gradient of f at each point by (w, b, v, c), (n, 3 k + 1), in the mode `active` (n, k)."""
    on = activity(net, x) if active is None else active
    by_b = on * net.v
    by_v = on * np.maximum(x[:, None] * net.w + net.b, 0.0)
    return np.concatenate([by_b * x[:, None], by_b, by_v, np.ones((len(x), 1))], axis=1)


def gram(net: ShallowNet, x: Floats, active: Bools | None = None) -> Floats:
    """K / n with K_jl = 1 + sum_i [relu_ij relu_il + v_i^2 (1 + x_j x_l) 1_ij 1_il], (n, n).

    At an interpolating minimum of L = 1/(2n) sum (f - y)^2 the Hessian is Phi Phi' / n, whose non-zero
    eigenvalues are those of this matrix.
    """
    phi = features(net, x, active)
    return np.asarray(phi @ phi.T / len(x))


def hessian(net: ShallowNet, x: Floats, y: Floats) -> Floats:
    """The Hessian of L = 1/(2n) sum (f(x_j) - y_j)^2 by (w, b, v, c), dense, (3 k + 1, 3 k + 1)."""
    n, k = len(x), net.width
    on = activity(net, x)
    phi = features(net, x, on)
    residual = (net(x) - y) / n
    out = phi.T @ phi / n
    i = np.arange(k)
    for row, mixed in (
        (i, (residual * x) @ on),
        (i + k, residual @ on),
    ):  # d2f / dw dv = x 1, d2f / db dv = 1
        out[row, i + 2 * k] += mixed
        out[i + 2 * k, row] += mixed
    return np.asarray(out)


def top_eigenvalue(matrix: Floats) -> float:
    """The largest eigenvalue of a symmetric matrix."""
    from scipy.linalg import eigh

    last = len(matrix) - 1
    return float(eigh(matrix, eigvals_only=True, subset_by_index=[last, last])[0])


_ENUMERATE_UP_TO = 10  # p toggling pairs, or groups of them, are tried in all 2^p ways up to here


@dataclass(frozen=True, kw_only=True)
class Modes:
    """The top eigenvalues over all modes.

    Attributes:
        n_toggling: how many knots lie on a data point.
        low: at most the least top eigenvalue over modes.
        high: at least the largest one.
        is_exact: whether both are attained; otherwise they enclose.
        high_is_exact: whether the largest one is attained.
    """

    n_toggling: int
    low: float
    high: float
    is_exact: bool
    high_is_exact: bool


def toggling(net: ShallowNet, x: Floats, tolerance: float, reach: float | None = None) -> Bools:
    """Which neuron has its knot on which point, (n, k): |w x + b| <= tolerance (|w| reach + |b|), v != 0.

    `reach` is the size of the data, by default the largest |x|: a knot at 1e-18 is on the point 0.
    """
    reach = float(np.abs(x).max()) if reach is None else reach
    scale = np.abs(net.w) * (reach or 1.0) + np.abs(net.b)
    near = np.abs(x[:, None] * net.w + net.b) <= tolerance * scale
    return np.asarray(near & (net.v != 0))


def sharpness_modes(net: ShallowNet, x: Floats, knot_tolerance: float) -> Modes:
    """The bracket of the Gram form's top eigenvalue over the modes.

    Each toggling pair of a neuron and a point is active or not. At an entry (j, l) of the matrix all pairs
    push the same way, by v^2 (1 + x_j x_l), so every mode's matrix lies entrywise between "all off" and "all
    on". If 1 + x_j x_l >= 0 throughout, these two attain the bracket (Perron-Frobenius). Otherwise up to 10
    pairs are enumerated, and beyond that groups of them for the largest: whatever the unit vector u, u'Ku is
    a sum over neurons, and of those that are active at the same points and toggle on the same one all gain
    by being active there, or none does. So the sharpest mode has each such group on or off as a whole, up to
    what `knot_tolerance` leaves of its neurons at the point. What cannot be enumerated is enclosed: above, by
    the top eigenvalue of the entrywise largest absolute values; below, by u'Ku minimised over the modes
    neuron by neuron, for the top u of "all off".
    """
    pairs = toggling(net, x, knot_tolerance)
    off = (x[:, None] * net.w + net.b > 0) & ~pairs
    p = int(pairs.sum())
    k_off, k_on = gram(net, x, off), gram(net, x, off | pairs)
    if p == 0 or (1 + np.outer(x, x) >= 0).all():
        ends = top_eigenvalue(k_off), top_eigenvalue(k_on)
        return Modes(n_toggling=p, low=ends[0], high=ends[1], is_exact=True, high_is_exact=True)
    if p <= _ENUMERATE_UP_TO:
        tops = _tops(net, x, off, [np.array([pair]) for pair in np.argwhere(pairs)])
        return Modes(n_toggling=p, low=min(tops), high=max(tops), is_exact=True, high_is_exact=True)
    groups = _alike(off, pairs)
    is_known = len(groups) <= _ENUMERATE_UP_TO
    high = (
        max(_tops(net, x, off, groups))
        if is_known
        else top_eigenvalue(np.maximum(np.abs(k_off), np.abs(k_on)))
    )
    low = _lower(net, x, off, pairs, k_off)
    return Modes(n_toggling=p, low=low, high=high, is_exact=False, high_is_exact=is_known)


def _alike(off: Bools, pairs: Bools) -> list[Ints]:
    """The toggling pairs (point, neuron), (m, 2) each, of neurons that are active and toggle alike.

    A neuron that toggles on several points has each of its pairs to itself.
    """
    several = pairs.sum(axis=0) > 1
    groups: dict[tuple[int, ...], list[list[int]]] = {}
    for j, i in np.argwhere(pairs):
        key = (int(j), int(i)) if several[i] else (int(j), -1, *np.flatnonzero(off[:, i]).tolist())
        groups.setdefault(key, []).append([j, i])
    return [np.array(group) for group in groups.values()]


def _tops(net: ShallowNet, x: Floats, off: Bools, groups: list[Ints]) -> list[float]:
    """The top eigenvalue of every mode in which each group of pairs is on or off."""
    tops = []
    for code in range(2 ** len(groups)):
        mode = off.copy()
        for bit, group in enumerate(groups):
            mode[group[:, 0], group[:, 1]] = bool(code >> bit & 1)
        tops.append(top_eigenvalue(gram(net, x, mode)))
    return tops


def _lower(net: ShallowNet, x: Floats, off: Bools, pairs: Bools, k_off: Floats) -> float:
    """The least u'Ku over modes, for the top u of "all off", less what several toggles of one may take."""
    u = np.linalg.eigh(k_off)[1][:, -1]

    def slopes(on: Bools) -> Floats:
        return np.asarray(net.v**2 * ((u @ on) ** 2 + ((u * x) @ on) ** 2))

    several = pairs.sum(axis=0) > 1
    least = np.where(several, 0.0, np.minimum(slopes(off), slopes(off | pairs)))
    return float(u @ k_off @ u + (least - slopes(off)).sum() / len(x))
