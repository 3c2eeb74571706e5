"""One training loop, the weights that it saves, and the augmentation of batches: crop, flip, mixup."""

import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from inscape.arguments import as_array, renamed
from inscape.arrays import Array, Points, Streamed
from inscape.errors import DataError, InscapeError, MissingExtraError
from inscape.files import replacing
from inscape.models.base import gradients
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed, random_state_kept
from inscape.status import COMPLETE, DIVERGED, LOSS_REACHED
from inscape.training.recipe import History, Recipe, batch_sizes


class StepMonitor(Protocol):
    """What measures while training, such as `inscape.Monitor`; it decides itself at which steps."""

    def step(self, model: Any, step: int) -> Any:
        """Measure the model after a number of steps."""


@renamed(seed="random_state")
def train(
    module: nn.Module,
    x: Points,
    y: Array,
    recipe: Recipe,
    *,
    random_state: RandomState,
    monitor: StepMonitor | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: int = 1,
    progress: bool | Meter | None = None,
) -> History:
    """Train `module` in place, where its parameters are and in their precision.

    The loss is the recipe's of classes, or the mean square of the error of targets.

    Batches, augmentation and dropout are drawn from `random_state` alone: the same seed on the same device
    gives the same weights, and the global random state is left as it was. The module ends in eval mode.

    Args:
        module: the network.
        x: points (n, ...); those that are `Streamed` are read batch by batch.
        y: their classes, integers (n,); or targets, real numbers (n, c).
        recipe: how.
        random_state: a seed, a generator, or None, of everything random but the initial weights; the history
            has the seed.
        monitor: its `step(module, k)` is called before training (k = 0) and after each step.
        checkpoints: a folder for the weights as safetensors, `epoch-0001.safetensors` and so on.
        checkpoint_every: epochs between checkpoints; the last epoch always has one.
        progress: None for a bar after two seconds, False for none, or a function of (epochs done, epochs).

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
    device, dtype = _device_and_dtype(module)
    losses: list[float] = []
    saved: list[str] = []
    status = COMPLETE
    with gradients():
        points, labels = as_tensors(x, y, dtype)
        held = points if isinstance(points, Streamed) else points.to(device)
        run = _Run(module, held, labels.to(device), recipe, seed, monitor)
        kept = random_state_kept(seed), _repeatable(device, seed), _channels_last(module, device)
        with kept[0], kept[1], kept[2], meter(progress, "training") as show:
            module.train()
            for epoch in range(1, recipe.epochs + 1):
                losses.append(run.epoch())
                show(epoch, recipe.epochs)
                if not math.isfinite(losses[-1]):
                    status = DIVERGED
                elif recipe.stop_loss is not None and losses[-1] <= recipe.stop_loss:
                    status = LOSS_REACHED
                is_last = status.kind != "complete" or epoch == recipe.epochs
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
        points: torch.Tensor | Streamed,
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
        order = torch.randperm(n, generator=self._generator).to(self._labels.device)
        for batch in order.split(batch_sizes(n, self._size)):  # type: ignore[no-untyped-call]
            total += self._one_step(batch) * len(batch)
            if not math.isfinite(total):
                return math.nan
        return total / n

    def _one_step(self, rows: torch.Tensor) -> float:
        batch = self._augment(self._taken(rows), self._labels[rows])
        loss = batch.loss(self._scores(batch.x), self._recipe.loss)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        rate = self._recipe.rate_at(self.step, self._recipe.epochs * self._per_epoch, self._per_epoch)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self.step += 1
        self._observe()
        return float(loss.detach())

    def _taken(self, rows: torch.Tensor) -> torch.Tensor:
        if not isinstance(self._points, Streamed):
            return self._points[rows]  # convolutions bring it into the layout of their weights
        device, dtype = _device_and_dtype(self._module)
        return torch.from_numpy(self._points[rows.cpu().numpy()]).to(device, dtype)

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


def as_tensors(x: Points, y: Array, dtype: torch.dtype) -> tuple[Any, torch.Tensor]:
    """Points and classes or targets as tensors, checked against each other; streamed points as they are."""
    points, labels = x if isinstance(x, Streamed) else _as_tensor(x).to(dtype), _as_tensor(y)
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


def _device_and_dtype(module: nn.Module) -> tuple[torch.device, torch.dtype]:
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
    parameters: Any = module.parameters()
    if not recipe.decay_biases:
        named = dict(module.named_parameters())
        biases = [p for name, p in named.items() if name.split(".")[-1] == "bias"]
        rest = [p for name, p in named.items() if name.split(".")[-1] != "bias"]
        parameters = [{"params": rest}, {"params": biases, "weight_decay": 0.0}]
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "adagrad": torch.optim.Adagrad,
    }
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(parameters, momentum=recipe.momentum, **common)
    optimiser: torch.optim.Optimizer = kinds[recipe.optimiser](parameters, **common)
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


def with_channels_last(module: nn.Module, device: torch.device) -> list[nn.Conv2d]:
    """On the processor: lay out convolutions with the channels of a pixel side by side; those that were not.

    That is a quarter faster in training, and twice as fast where a network is only evaluated.
    """
    if device.type != "cpu":
        return []
    plain = [m for m in module.modules() if isinstance(m, nn.Conv2d) and m.weight.is_contiguous()]
    for convolution in plain:
        convolution.weight.data = convolution.weight.data.contiguous(memory_format=torch.channels_last)
    return plain


@contextmanager
def _channels_last(module: nn.Module, device: torch.device) -> Iterator[None]:
    """The layout while training; afterwards weights are contiguous again, as files and users expect them."""
    changed = with_channels_last(module, device)
    try:
        yield
    finally:
        for convolution in changed:
            convolution.weight.data = convolution.weight.data.contiguous()


def save_weights(module: nn.Module, path: str | Path, **about: Any) -> Path:
    """Write the state of a module, whole or not at all; `about` is stored beside it as JSON texts."""
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "saving weights") from error
    path = Path(path)
    state = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in module.state_dict().items()
    }
    content = save(state, {key: json.dumps(value) for key, value in about.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise InscapeError(f"cannot write {path}: {error.strerror or error}") from error
    return path


@dataclass(frozen=True)
class Batch:
    """Points, their classes or targets, and with mixup those of what was mixed in, with weight 1 - share."""

    x: Tensor
    y: Tensor
    other: Tensor | None = None
    share: float = 1.0

    def loss(self, scores: Tensor, kind: str = "cross-entropy") -> Tensor:
        """The mean of the loss of that kind for classes, or of the square of the error of targets."""
        of = torch.nn.functional.mse_loss if self.y.is_floating_point() else torch.nn.functional.cross_entropy
        if kind == "softmax-cross-entropy" and not self.y.is_floating_point():
            scores = scores.softmax(dim=1)
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
