"""The implicit part of a step of gradient flow: how the points share the pull after the step.

The flow of the log-loss moves theta by sum_i q_i grad m_i, m_i = y_i f(x_i), with weights q_i that sum to
one: the softmax of -m for the exponential loss, sigmoid(-m_i) normalised for the logistic one. As margins
grow these weights react ever faster, so a step takes those of its *end*: q = weights(m + h K q), K the Gram
matrix of the margins. For the exponential loss this is the optimality condition of the convex problem
min over the simplex of h/2 q'Kq + m'q + sum q log q, and for h K -> infinity of the steepest ascent of the
least margin.
"""

import numpy as np

from inscape.arrays import Floats

_NEWTON_STEPS = 25
_COOLING = 5.0
_RIDGE = 1e-13
"""Of the mean diagonal: where the matrix is singular up to rounding, the least weights are taken."""
_FLOOR = -690.0  # log of the least weight that is told from zero


def log_weights(margins: Floats, loss: str) -> Floats:
    """The logarithms of the weights of the points, which sum to one."""
    from scipy.special import logsumexp

    raw = -margins if loss == "exponential" else -np.logaddexp(0.0, margins)
    return np.asarray(raw - logsumexp(raw))


def log_loss(margins: Floats, loss: str) -> float:
    """The logarithm of the mean loss, also where the loss underflows."""
    from scipy.special import logsumexp

    if loss == "exponential":
        each = -margins
    else:
        each = np.where(margins > 30, -margins, np.log(np.logaddexp(0.0, -np.minimum(margins, 30.0))))
    return float(logsumexp(each) - np.log(len(margins)))


def implicit_weights(
    stiff: Floats, margins: Floats, start: Floats, loss: str, tolerance: float = 1e-9
) -> Floats | None:
    """Solve z = A(m + hK exp z) - mu, sum exp z = 1 for z, the logarithms of the weights.

    Newton's method from `start`; where that is too far off, from equal weights through a row of problems with
    both m and hK divided by less and less (an entropy that counts for less and less).

    Args:
        stiff: h K, (n, n).
        margins: m before the step, (n,).
        start: a guess of z, (n,).
        loss: "exponential", A(s) = -s, or "logistic", A(s) = -log(1 + exp s).
        tolerance: the largest error of a weight, or ten times that of the move relative to the whole one.

    Returns:
        z, or None if that did not get there: take a smaller step.
    """
    n = len(margins)
    stiff = stiff + (_RIDGE * np.trace(stiff) / n) * np.eye(n)
    direct = _newton(stiff, margins, start, loss, tolerance)
    if direct is not None:
        return direct
    level = margins - margins.min()
    share = 1 / max(1.0, float(stiff.max()), float(level.max()))
    z: Floats | None = np.full(n, -np.log(n))
    while share < 1 and z is not None:
        z = _newton(share * stiff, share * level, z, "exponential", max(tolerance, 1e-6))
        share *= _COOLING
    return None if z is None else _newton(stiff, margins, z, loss, tolerance)


def _newton(stiff: Floats, margins: Floats, start: Floats, loss: str, tolerance: float) -> Floats | None:
    """Damped Newton steps; each is a positive definite system in the n weights, scaled by their roots."""
    from scipy.linalg.lapack import dposv

    z = np.maximum(start, _FLOOR)
    n = len(z)
    for _ in range(_NEWTON_STEPS):
        q = np.exp(z)
        s = margins + stiff @ q
        if loss == "exponential":
            a, raw = np.ones(n), -s
        else:
            a, raw = 1 / (1 + np.exp(-np.clip(s, -700, 700))), -np.logaddexp(0.0, s)
        a = np.maximum(a, 1e-12)
        mu = float(q @ (raw - z) / q.sum())
        residual = z - raw + mu
        root = np.sqrt(a * q)
        matrix = root[:, None] * stiff * root
        matrix[np.diag_indices(n)] += 1 + 1e-14 * np.trace(matrix)
        sides = np.stack([root * residual / a, root / a], axis=1)
        _, solved, failed = dposv(matrix, sides, lower=1)
        if failed:
            return None
        solved *= root[:, None]
        rate = (q.sum() - 1 - solved[:, 0].sum()) / solved[:, 1].sum()
        moved = -solved[:, 0] - rate * solved[:, 1]
        row = -residual - rate - a * (stiff @ moved)  # loses digits to rounding where h K is huge
        dz = np.where(q > 1e-8, moved / q, row)
        if not np.isfinite(dz).all():
            return None
        relevant = np.maximum(z, np.minimum(z + dz, 0.0)) > -14
        length = min(1.0, 2.0 / max(float(np.abs(dz[relevant]).max(initial=0.0)), 1e-300))
        z = np.where(relevant, z + length * dz, np.minimum(z + dz, -14.0))
        z = np.clip(z, _FLOOR, 0.0)
        change = np.exp(z) - q
        shift = float(np.abs(stiff @ change).max())
        if length == 1.0 and (
            np.abs(change).max() < tolerance or shift < 0.1 * tolerance * float(np.abs(s - margins).max())
        ):
            return np.asarray(z - np.log(np.exp(z).sum()))
    return None
