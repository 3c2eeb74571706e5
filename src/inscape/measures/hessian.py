"""The Hessian of a loss over data in the parameters of a torch module: products and largest eigenvalues.

Apart from `sharpness`, since this imports torch and importing the measures must not.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.errors import DataError, MeasureError, ModelError
from inscape.models.device import in_precision, is_out_of_memory
from inscape.models.module_wrappers import scores_before_head
from inscape.models.outputs import scores_among
from inscape.models.torch_module import eval_copy
from inscape.progress import Meter

Loss = Callable[[Tensor, Tensor], Tensor]
_BYTES_IN_PRODUCT = 2**29
"""What one double differentiation may take: so many points are a batch."""
_FLOAT32_RESIDUAL = 1e-4
"""The residual, relative to the eigenvalue, that products in float32 reach safely."""
START_ON_SOME_FROM_POINTS, _RESIDUAL_ON_SOME = 1000, 0.1
"""Points from which on the iteration starts on every eighth, and the residual that is enough there."""
_MOST_BASIS_VECTORS, _MOST_BASIS_BYTES = 60, 2**28
"""Vectors, and bytes, that the basis of a run in float32 may have."""


def cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy of a batch of scores before softmax; the logistic loss if there is one score."""
    if scores.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(scores[:, 0], y.to(scores.dtype))
    return F.cross_entropy(scores, y)


def half_square(scores: Tensor, y: Tensor) -> Tensor:
    """1 / (2 n) times the sum of squared errors of a batch of n; classes become 0-1 targets."""
    if y.ndim == 1 and scores.shape[1] > 1:
        if y.is_floating_point():
            raise DataError(
                f"y has one number per point for {scores.shape[1]} scores: give (n, {scores.shape[1]})"
            )
        if int(y.min()) < 0 or int(y.max()) >= scores.shape[1]:
            raise DataError(
                f"y holds classes {int(y.min())} to {int(y.max())} for {scores.shape[1]} scores: "
                f"give 0 to {scores.shape[1] - 1}"
            )
        y = F.one_hot(y, scores.shape[1])
    if y.numel() != scores.numel():
        raise DataError(
            f"y has shape {tuple(y.shape)} for {tuple(scores.shape)} scores: give one target per score"
        )
    return 0.5 * (scores - y.reshape(scores.shape).to(scores.dtype)).square().sum() / len(scores)


class LossHessian:
    """The Hessian H of the mean loss of n points, as a linear map v -> H v.

    A private copy of the module in eval mode is differentiated twice. If all points fit into one batch the
    graph of the first derivative is kept, so that a product is one more backward pass.

    Attributes:
        size: the number of parameters.
        n_products: how many products were made.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        x: Floats,
        y: Floats | Ints,
        loss: Loss,
        *,
        dtype: torch.dtype,
        batch_size: int | None,
    ) -> None:
        self.module = in_precision(eval_copy(module), dtype)
        self.parameters = [p for p in self.module.parameters() if p.requires_grad]
        if not self.parameters:
            self.parameters = list(self.module.requires_grad_().parameters())
        if not self.parameters:
            raise ModelError(f"{type(module).__name__} has no parameters: its loss has no Hessian")
        self.size = sum(p.numel() for p in self.parameters)
        self.n_products = 0
        device = self.parameters[0].device
        self.x = torch.from_numpy(x).to(device, dtype)
        self.y = torch.from_numpy(y).to(device)
        self.loss, self.dtype = loss, dtype
        self.batch = batch_size or self._batch_size()
        self._kept: list[Tensor] | None = None

    def _batch_size(self) -> int:
        """As many points as keep the numbers of one double differentiation within memory."""
        seen = 0

        def count(module: torch.nn.Module, args: object, out: object) -> None:
            nonlocal seen
            seen += out.numel() if isinstance(out, Tensor) else 0

        hooks = [m.register_forward_hook(count) for m in self.module.modules()]
        with torch.no_grad():
            self.module(self.x[:1])
        for hook in hooks:
            hook.remove()
        numbers = 6 * (seen + self.x[0].numel())
        return max(1, min(len(self.x), _BYTES_IN_PRODUCT // (numbers * self.x.element_size())))

    def _gradients(self) -> Iterator[list[Tensor]]:
        """The gradient of each batch's share of the mean loss, differentiable again."""
        n = len(self.x)
        for i in range(0, n, self.batch):
            x, y = self.x[i : i + self.batch], self.y[i : i + self.batch]
            value = self.loss(self._scores(x), y) * (len(x) / n)
            grads = torch.autograd.grad(value, self.parameters, create_graph=True, allow_unused=True)
            yield [
                torch.zeros_like(p) if g is None else g for g, p in zip(grads, self.parameters, strict=True)
            ]

    def _scores(self, x: Tensor) -> Tensor:
        """What the loss reads, (n, c); for cross-entropy without a final softmax, or sigmoid of one score."""
        if self.loss is cross_entropy:
            scores, head, _ = scores_before_head(self.module, x)
            if head != "sigmoid" or scores.shape[1] == 1:
                return scores
        return scores_among(self.module(x)).reshape(len(x), -1)  # type: ignore[no-any-return]

    def product(self, v: Floats) -> Floats:
        """H v."""
        self.n_products += 1
        flat = torch.from_numpy(np.ascontiguousarray(v)).to(self.x.device, self.dtype)
        return self._summed(self._by_parameter(flat), (self.size,), batched=False)

    def matrix(self, show: Meter = lambda done, total: None) -> Floats:
        """H itself, (size, size); the meter hears of points."""
        eye = torch.eye(self.size, dtype=self.dtype, device=self.x.device)
        self.n_products += self.size
        total = self._summed(self._by_parameter(eye), (self.size, self.size), batched=True, show=show)
        return 0.5 * (total + total.T)

    def _summed(
        self,
        by_parameter: list[Tensor],
        shape: tuple[int, ...],
        *,
        batched: bool,
        show: Meter = lambda done, total: None,
    ) -> Floats:
        """The products of all batches in all; with batches of half the length where the memory runs out."""
        while True:
            total = torch.zeros(shape, dtype=torch.float64)
            try:
                for k, grads in enumerate(self._all_gradients(), 1):
                    total += self._second(grads, by_parameter, batched=batched)
                    show(min(k * self.batch, len(self.x)), len(self.x))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.batch == 1:
                    raise
            else:
                return total.numpy()
            self.batch, self._kept = self.batch // 2, None

    def _by_parameter(self, flat: Tensor) -> list[Tensor]:
        """Numbers (..., size) in the shapes of the parameters."""
        chunks = torch.split(flat, [p.numel() for p in self.parameters], dim=-1)
        return [v.reshape(*flat.shape[:-1], *p.shape) for v, p in zip(chunks, self.parameters, strict=True)]

    def _all_gradients(self) -> Iterator[list[Tensor]]:
        if self.batch < len(self.x):
            yield from self._gradients()
            return
        if self._kept is None:
            self._kept = next(iter(self._gradients()))
        yield self._kept

    def _second(self, grads: list[Tensor], v: list[Tensor], *, batched: bool) -> Tensor:
        live = [(g, w) for g, w in zip(grads, v, strict=True) if g.requires_grad]
        shape = (self.size, self.size) if batched else (self.size,)
        if not live:
            return torch.zeros(shape, dtype=torch.float64)
        products = torch.autograd.grad(
            [g for g, _ in live],
            self.parameters,
            [w for _, w in live],
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=batched,
        )
        lead = (self.size,) if batched else ()
        flat = [
            p.new_zeros(*lead, p.numel()) if h is None else h.reshape(*lead, -1)
            for h, p in zip(products, self.parameters, strict=True)
        ]
        return torch.cat(flat, dim=-1).cpu().double()


def dense(hessian: Any, k: int, show: Meter) -> tuple[Floats, Floats]:
    """The k largest eigenvalues and their residuals, from the whole matrix."""
    matrix = hessian.matrix(show)
    if not np.isfinite(matrix).all():
        raise MeasureError("the Hessian of the loss has NaN or infinite entries: it has no eigenvalues")
    values, vectors = np.linalg.eigh(matrix)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return values[::-1][:k].copy(), residuals[::-1][:k].copy()


def rough_start(rough: list[Any], k: int, tolerance: float, start: Floats, show: Meter) -> Floats:
    """Approximate eigenvectors (size, k) from products in float32, at half the cost; else `start`.

    Of many points some are taken first: the Hessian of an eighth of them has similar eigenvectors.
    """
    for hessian in rough:
        most = min(_MOST_BASIS_VECTORS, hessian.size, _MOST_BASIS_BYTES // (8 * hessian.size))
        last = hessian is rough[-1]
        first = start if start.ndim == 1 else start.sum(axis=1)
        approximate = _plain_lanczos(
            hessian, k, max(tolerance, _FLOAT32_RESIDUAL) if last else _RESIDUAL_ON_SOME, first, most, show
        )
        if approximate is None:
            return first
        start = approximate
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
        pairs = eigsh(
            operator, k=k, which="LA", tol=tolerance, ncv=ncv, v0=start, maxiter=max(1, max_products // ncv)
        )
    except ArpackNoConvergence as error:
        pairs = error.eigenvalues, error.eigenvectors
    except ArpackError:  # products that are not finite
        pairs = np.empty(0), np.empty((size, 0))
    return pairs[0], pairs[1]


def _ritz(hessian: Any, vectors: Floats) -> tuple[Floats, Floats]:
    """The best eigenvalues in the span of orthonormal vectors (size, k), descending, and their residuals."""
    images = np.stack([hessian.product(v) for v in vectors.T], axis=1)
    small = vectors.T @ images
    values, turn = np.linalg.eigh(0.5 * (small + small.T))
    residuals = np.linalg.norm(images @ turn - vectors @ turn * values, axis=0)
    return values[::-1].copy(), residuals[::-1].copy()
