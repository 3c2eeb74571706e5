"""One training loop."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum and a cosine schedule, as in Li et al. 2025 (arXiv 2505.11370, App. C)."""

    learning_rate: float
    batch_size: int
    epochs: int
    momentum: float = 0.9
    weight_decay: float = 0.0


def train(
    module: nn.Module, x: npt.NDArray[np.float64], y: npt.NDArray[np.int64], recipe: Recipe, *, seed: int
) -> float:
    """Train `module` in place on cross-entropy and return its mean loss over the last epoch.

    Batches are drawn by a generator of their own; the same seed on the same device gives the same weights.
    """
    points = torch.from_numpy(x).to(torch.get_default_dtype())
    labels = torch.from_numpy(y.astype(np.int64))
    n, size = len(points), min(recipe.batch_size, len(points))
    steps_per_epoch = -(-n // size)
    optimiser = torch.optim.SGD(
        module.parameters(),
        lr=recipe.learning_rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.epochs * steps_per_epoch)
    generator = torch.Generator().manual_seed(seed)
    module.train()
    mean_loss = float("nan")
    for _ in range(recipe.epochs):
        total = 0.0
        for batch in torch.randperm(n, generator=generator).split(size):  # type: ignore[no-untyped-call]
            loss = nn.functional.cross_entropy(module(points[batch]), labels[batch])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        mean_loss = total / n
    module.eval()
    return mean_loss
