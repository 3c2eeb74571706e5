"""Augmentation of batches in pixel space: crop, flip, mixup; from a generator of its own."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inscape.errors import DataError
from inscape.training.recipe import Recipe


@dataclass(frozen=True)
class Batch:
    """Points, their classes or targets, and with mixup those of what was mixed in, with weight 1 - share."""

    x: Tensor
    y: Tensor
    other: Tensor | None = None
    share: float = 1.0

    def loss(self, scores: Tensor) -> Tensor:
        """The mean cross-entropy of classes, or the mean square of the error of targets."""
        of = torch.nn.functional.mse_loss if self.y.is_floating_point() else torch.nn.functional.cross_entropy
        loss = of(scores, self.y)
        if self.other is None:
            return loss
        return self.share * loss + (1 - self.share) * of(scores, self.other)


class Augmentation:
    """Turns batches into those that a recipe asks for."""

    def __init__(self, recipe: Recipe, seed: int) -> None:
        self._recipe = recipe
        self._rng = np.random.default_rng([seed, 1])

    def __call__(self, x: Tensor, y: Tensor) -> Batch:
        """The batch, cropped, mirrored and mixed."""
        recipe = self._recipe
        if recipe.crop or recipe.flip:
            if x.ndim not in (3, 4):
                raise DataError(f"crop and flip need images, not points of shape {tuple(x.shape[1:])}")
            x = self._moved(x)
        if not recipe.mixup:
            return Batch(x, y)
        share = float(self._rng.beta(recipe.mixup, recipe.mixup))
        order = torch.from_numpy(self._rng.permutation(len(x))).to(x.device)
        return Batch(share * x + (1 - share) * x[order], y, y[order], share)

    def _moved(self, x: Tensor) -> Tensor:
        """Each image shifted by up to `crop` pixels over black, and mirrored if the coin says so."""
        n, (height, width), border = len(x), x.shape[-2:], self._recipe.crop
        rows, columns = self._shifts(n, height, border), self._shifts(n, width, border)
        if self._recipe.flip:
            mirrored = self._rng.random(n) < 0.5
            columns[mirrored] = columns[mirrored, ::-1]
        padded = torch.nn.functional.pad(x, (border,) * 4)
        i, j = (torch.from_numpy(v).to(x.device) for v in (rows, columns))
        images = padded if x.ndim == 4 else padded[:, None]
        moved = images[torch.arange(n, device=x.device)[:, None, None], :, i[:, :, None], j[:, None, :]]
        moved = moved.permute(0, 3, 1, 2)
        return moved if x.ndim == 4 else moved[:, 0]

    def _shifts(self, n: int, size: int, border: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """For each image the rows (or columns) of the padded one that are kept, (n, size)."""
        start = self._rng.integers(2 * border + 1, size=n)
        return np.asarray(start[:, None] + np.arange(size))
