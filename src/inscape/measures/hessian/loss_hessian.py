"""Products with the Hessian of a loss over data, in the parameters of a torch module."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Floats
from inscape.errors import DataError, ModelError
from inscape.models.deciding.chosen_output import scores_among
from inscape.models.deciding.decided_module import scores_before_head
from inscape.models.untouched import eval_copy

Loss = Callable[[Tensor, Tensor], Tensor]
_MEMORY = 2**29


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
        y: npt.NDArray[np.float64] | npt.NDArray[np.int64],
        loss: Loss,
        *,
        dtype: torch.dtype,
        batch_size: int | None,
    ) -> None:
        self.module = eval_copy(module).to(dtype)
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
        return max(1, min(len(self.x), _MEMORY // (numbers * self.x.element_size())))

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
        pieces = self._pieces(flat)
        total = torch.zeros(self.size, dtype=torch.float64)
        for grads in self._all_gradients():
            total += self._second(grads, pieces, batched=False)
        return total.numpy()

    def matrix(self) -> Floats:
        """H itself, (size, size)."""
        total = torch.zeros(self.size, self.size, dtype=torch.float64)
        eye = torch.eye(self.size, dtype=self.dtype, device=self.x.device)
        pieces = self._pieces(eye)
        self.n_products += self.size
        for grads in self._all_gradients():
            total += self._second(grads, pieces, batched=True)
        return (0.5 * (total + total.T)).numpy()

    def _pieces(self, flat: Tensor) -> list[Tensor]:
        """Numbers (..., size) in the shapes of the parameters."""
        parts = torch.split(flat, [p.numel() for p in self.parameters], dim=-1)
        return [v.reshape(*flat.shape[:-1], *p.shape) for v, p in zip(parts, self.parameters, strict=True)]

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
        found = torch.autograd.grad(
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
            for h, p in zip(found, self.parameters, strict=True)
        ]
        return torch.cat(flat, dim=-1).double().cpu()
