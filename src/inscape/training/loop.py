"""One training loop."""

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from inscape.arguments import as_array, renamed
from inscape.errors import DataError, InscapeError
from inscape.models.gradients import gradients
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed, random_state_kept
from inscape.status import COMPLETE, DIVERGED, LOSS_REACHED
from inscape.training.augmentation import Augmentation
from inscape.training.checkpoints import save_weights
from inscape.training.history import History
from inscape.training.recipe import Recipe, batch_sizes


class StepMonitor(Protocol):
    """What measures while training, such as `inscape.Monitor`; it decides itself at which steps."""

    def step(self, model: Any, step: int) -> Any:
        """Look at the model after so many steps."""


@renamed(seed="random_state")
def train(
    module: nn.Module,
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    recipe: Recipe,
    *,
    random_state: RandomState,
    monitor: StepMonitor | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: int = 1,
    progress: bool | Meter | None = None,
) -> History:
    """Train `module` in place, where its parameters are and in their precision.

    The loss is the cross-entropy of classes, or the mean square of the error of targets.

    Batches, augmentation and dropout are drawn from `random_state` alone: the same seed on the same device
    gives the same weights, and the global random state is left as it was. The module ends in eval mode.

    Args:
        module: the network.
        x: points (n, ...).
        y: their classes, integers (n,); or targets, real numbers (n, c).
        recipe: how.
        random_state: a seed, a generator, or None, of everything random but the initial weights; the history
            has the seed.
        monitor: its `step(module, k)` is called before training (k = 0) and after each step.
        checkpoints: a folder for the weights as safetensors, `epoch-0001.safetensors` and so on.
        checkpoint_every: epochs between checkpoints; the last epoch always has one.
        progress: True for a bar on stderr, or a function of (epochs done, epochs).

    >>> import numpy as np
    >>> from inscape.training.networks import mlp
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> history = train(mlp(2, (8,), 2, random_state=0), x, x[:, 0] > 0, Recipe(0.1, 10, 20), random_state=0)
    >>> history.status, history.loss < history.losses[0]
    ('complete', True)
    """
    seed = as_seed(random_state)
    if not checkpoint_every >= 1:
        raise InscapeError(f"checkpoint_every={checkpoint_every} must be at least 1")
    device, dtype = _place(module)
    losses: list[float] = []
    saved: list[str] = []
    status = COMPLETE
    with gradients():
        points, labels = as_tensors(x, y, dtype)
        run = _Run(module, points.to(device), labels.to(device), recipe, seed, monitor)
        with random_state_kept(seed), _repeatable(device, seed), meter(progress, "training") as show:
            module.train()
            for epoch in range(1, recipe.epochs + 1):
                losses.append(run.epoch())
                show(epoch, recipe.epochs)
                if not math.isfinite(losses[-1]):
                    status = DIVERGED
                elif recipe.stop_loss is not None and losses[-1] <= recipe.stop_loss:
                    status = LOSS_REACHED
                is_last = status != COMPLETE or epoch == recipe.epochs
                if checkpoints is not None and (is_last or epoch % checkpoint_every == 0):
                    path = Path(checkpoints) / f"epoch-{epoch:04d}.safetensors"
                    about = {"epoch": epoch, "loss": losses[-1], "seed": seed, "recipe": recipe.to_dict()}
                    saved.append(str(save_weights(module, path, **about)))
                if is_last:
                    break
    module.eval()
    return History(losses=tuple(losses), n_steps=run.step, status=status, seed=seed, checkpoints=tuple(saved))


class _Run:
    """A module on its way through the epochs."""

    def __init__(
        self,
        module: nn.Module,
        points: torch.Tensor,
        labels: torch.Tensor,
        recipe: Recipe,
        seed: int,
        monitor: StepMonitor | None,
    ) -> None:
        self._module, self._points, self._labels = module, points, labels
        self._recipe, self._monitor = recipe, monitor
        self._size = min(recipe.batch_size, len(points))
        self._per_epoch = len(batch_sizes(len(points), self._size))
        self._optimiser = _optimiser(module, recipe)
        self._generator = torch.Generator().manual_seed(seed)
        self._augment = Augmentation(recipe, seed)
        self.step = 0
        self._observe()

    def epoch(self) -> float:
        """One pass over the data in a new order; the mean loss, NaN as soon as one is not finite."""
        n, total = len(self._points), 0.0
        order = torch.randperm(n, generator=self._generator).to(self._points.device)
        for batch in order.split(batch_sizes(n, self._size)):  # type: ignore[no-untyped-call]
            total += self._one_step(batch) * len(batch)
            if not math.isfinite(total):
                return math.nan
        return total / n

    def _one_step(self, rows: torch.Tensor) -> float:
        batch = self._augment(self._points[rows], self._labels[rows])
        loss = batch.loss(self._scores(batch.x))
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        rate = self._recipe.rate_at(self.step, self._recipe.epochs * self._per_epoch, self._per_epoch)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self.step += 1
        self._observe()
        return float(loss.detach())

    def _scores(self, x: torch.Tensor) -> Any:
        try:
            scores = self._module(x)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise DataError(
                f"batch normalisation cannot train on one point at a time: {len(self._points)} points in "
                f"batches of {self._size}; give more"
            ) from error
        if self.step == 0:
            check_classes(self._labels, scores.shape[-1])
        return scores

    def _observe(self) -> None:
        if self._monitor is not None:
            self._monitor.step(self._module, self.step)


def as_tensors(
    x: npt.NDArray[Any], y: npt.NDArray[Any], dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Points and classes or targets as tensors, checked against each other."""
    points, labels = _as_tensor(x).to(dtype), _as_tensor(y)
    if labels.ndim == 2 and labels.is_floating_point() and len(points) == len(labels) > 0:
        return points, labels.to(dtype)
    if len(points) == 0 or labels.shape != (len(points),):
        raise DataError(f"cannot train on points {tuple(points.shape)} with classes {tuple(labels.shape)}")
    classes = labels.to(torch.int64)
    is_whole = not labels.is_floating_point() or bool((classes == labels).all())
    if not is_whole or int(classes.min()) < 0:
        raise DataError("the classes must be whole numbers from 0")
    return points, classes


def _as_tensor(values: Any) -> torch.Tensor:
    """A tensor of an array in any byte order and layout, which is copied only if it has to be."""
    if isinstance(values, torch.Tensor):
        return values.clone() if values.is_inference() else values
    array = as_array(values, "the data", DataError)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"cannot train on {array.dtype}: expected numbers, and classes as whole numbers from 0"
        )
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))


def check_classes(labels: torch.Tensor, n_scores: int) -> None:
    """Refuse classes for which the module has no score, and targets of another number."""
    if labels.is_floating_point():
        if labels.shape[1] != n_scores:
            raise DataError(f"the data have {labels.shape[1]} targets, but the module gives {n_scores}")
        return
    highest = int(labels.max())
    if highest >= n_scores:
        raise DataError(f"the data have the class {highest}, but the module gives {n_scores} scores")


def _place(module: nn.Module) -> tuple[torch.device, torch.dtype]:
    for parameter in module.parameters():
        if parameter.is_inference():
            raise DataError(
                "the module was made in torch.inference_mode, so that its parameters cannot be trained: make "
                "it outside, or train a copy.deepcopy(module) that is made outside"
            )
        return parameter.device, parameter.dtype
    raise DataError("the module has no parameters to train")


def _optimiser(module: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    common: dict[str, Any] = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "adagrad": torch.optim.Adagrad,
    }
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(module.parameters(), momentum=recipe.momentum, **common)
    optimiser: torch.optim.Optimizer = kinds[recipe.optimiser](module.parameters(), **common)
    return optimiser


def _repeatable(device: torch.device, seed: int) -> AbstractContextManager[Any]:
    """On a GPU: seed its generator, and only kernels that repeat."""
    if device.type != "cuda":
        return nullcontext()
    torch.cuda.manual_seed(seed)
    flags: AbstractContextManager[Any] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True
    )
    return flags
