"""Derivatives by the parameters: features, the Gram matrix of the square loss, and its Hessian."""

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.univariate.net import ShallowNet


def activity(net: ShallowNet, x: Floats) -> npt.NDArray[np.bool_]:
    """Which neuron is active at which point, (n, k): w x + b > 0."""
    return np.asarray(x[:, None] * net.w + net.b > 0)


def features(net: ShallowNet, x: Floats, active: npt.NDArray[np.bool_] | None = None) -> Floats:
    """The gradient of f at each point by (w, b, v, c), (n, 3 k + 1), in the mode `active` (n, k)."""
    on = activity(net, x) if active is None else active
    by_b = on * net.v
    by_v = on * np.maximum(x[:, None] * net.w + net.b, 0.0)
    return np.concatenate([by_b * x[:, None], by_b, by_v, np.ones((len(x), 1))], axis=1)


def gram(net: ShallowNet, x: Floats, active: npt.NDArray[np.bool_] | None = None) -> Floats:
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
