"""The largest eigenvalues of a Hessian that is known by its products."""

from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.errors import MeasureError
from inscape.progress import Meter

_ROUGH = 1e-4
"""The residual, relative to the eigenvalue, that products in float32 reach safely."""
MANY, _START = 1000, 0.1
"""Points from which on the iteration starts from a part of them, and the residual that is enough there."""
_LONGEST, _BASIS = 60, 2**28
"""Vectors, and bytes, that the basis of a run in float32 may have."""


def dense(hessian: Any, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues and their residuals, from the whole matrix."""
    matrix = hessian.matrix()
    if not np.isfinite(matrix).all():
        raise MeasureError("the Hessian of the loss has NaN or infinite entries: it has no eigenvalues")
    values, vectors = np.linalg.eigh(matrix)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return values[::-1][:k].copy(), residuals[::-1][:k].copy()


def rough_start(rough: list[Any], k: int, tolerance: float, start: Floats, show: Meter) -> Floats:
    """Approximate eigenvectors (size, k) from products in float32, at half the cost; else `start`.

    Many points are first looked at in part: the Hessian of an eighth of them has similar eigenvectors.
    """
    for hessian in rough:
        most = min(_LONGEST, hessian.size, _BASIS // (8 * hessian.size))
        last = hessian is rough[-1]
        first = start if start.ndim == 1 else start.sum(axis=1)
        found = _plain_lanczos(hessian, k, max(tolerance, _ROUGH) if last else _START, first, most, show)
        if found is None:
            return first
        start = found
    return start


def _plain_lanczos(
    hessian: Any, k: int, tolerance: float, start: Floats, most: int, show: Meter
) -> Floats | None:
    """Orthonormal Ritz vectors (size, k) of a Lanczos run that keeps its basis and stops at the tolerance.

    With H Q = Q T + beta q e_m', the residual of the Ritz vector Q s is beta |s_m|: no product is needed to
    know it. None if the basis may not grow long enough or a product is not finite.
    """
    if most < k + 1:
        return None
    basis = np.empty((most, hessian.size))
    small = np.zeros((most, most))
    v = start / np.linalg.norm(start)
    for m in range(1, most + 1):
        basis[m - 1] = v
        w = hessian.product(v)
        show(m, most)
        if not np.isfinite(w).all():
            return None
        small[:m, m - 1] = basis[:m] @ w
        w -= small[:m, m - 1] @ basis[:m]
        w -= (basis[:m] @ w) @ basis[:m]  # once more: the basis stays orthogonal to rounding
        beta = float(np.linalg.norm(w))
        t = np.triu(small[:m, :m])
        values, turn = np.linalg.eigh(np.triu(t, 1).T + t)
        scale = max(float(np.abs(values).max()), 1e-300)
        if (
            beta <= 1e-12 * scale
            or (m >= k and beta * np.abs(turn[-1, -k:]).max() <= tolerance * scale)
            or m == most
        ):
            break
        v = w / beta
    return None if m < k else np.asarray((turn[:, -k:].T @ basis[:m]).T)


def lanczos(
    hessian: Any, k: int, tolerance: float, max_products: int, start: Floats, show: Meter
) -> tuple[Floats, Floats]:
    """The k largest eigenvalues and their residuals, from a start vector or k approximate eigenvectors."""
    if start.ndim == 2:
        values, residuals = _ritz(hessian, start)
        if residuals.max() <= 1.1 * tolerance * np.abs(values).max():
            return values, residuals
        start = start.sum(axis=1)
    values, vectors = _eigsh(hessian, k, tolerance, max_products, start, show)
    if len(values) < k:  # the best that is known, with residuals that say how good it is
        best = _plain_lanczos(hessian, k, tolerance, start, min(hessian.size, k + 10), show)
        vectors = np.linalg.qr(np.tile(start, (k, 1)).T)[0] if best is None else best
    return _ritz(hessian, vectors)


def _eigsh(
    hessian: Any, k: int, tolerance: float, max_products: int, start: Floats, show: Meter
) -> tuple[Floats, Floats]:
    """The eigenvalues that converged and their vectors, in no order."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    def product(v: Floats) -> Floats:
        show(min(hessian.n_products, max_products), max_products)
        return np.asarray(hessian.product(v))

    size = hessian.size
    ncv = min(size, max(2 * k + 1, k + 7))
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    try:
        found = eigsh(
            operator, k=k, which="LA", tol=tolerance, ncv=ncv, v0=start, maxiter=max(1, max_products // ncv)
        )
    except ArpackNoConvergence as error:
        found = error.eigenvalues, error.eigenvectors
    except ArpackError:  # products that are not finite
        found = np.empty(0), np.empty((size, 0))
    return found[0], found[1]


def _ritz(hessian: Any, vectors: Floats) -> tuple[Floats, Floats]:
    """The best eigenvalues in the span of orthonormal vectors (size, k), descending, and their residuals."""
    images = np.stack([hessian.product(v) for v in vectors.T], axis=1)
    small = vectors.T @ images
    values, turn = np.linalg.eigh(0.5 * (small + small.T))
    residuals = np.linalg.norm(images @ turn - vectors @ turn * values, axis=0)
    return values[::-1].copy(), residuals[::-1].copy()
