"""A recipe: how to train, as plain data, and how it cuts an epoch into batches; and what came of a run."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from inscape.errors import InscapeError, unknown_name
from inscape.pictures import Shown
from inscape.serialising import plain, plain_fields, restored_fields
from inscape.status import Status

OPTIMISERS = ("sgd", "adam", "adamw", "adagrad")
SCHEDULES = ("cosine", "epoch-cosine", "step", "constant")
LOSSES = ("cross-entropy", "softmax-cross-entropy")


@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are SGD with momentum and a cosine schedule, as in Li et al. 2025.

    Attributes:
        learning_rate: the step size at the start.
        batch_size: points per step; the last step of an epoch may have fewer, or one more, so that no
            step has a single point.
        epochs: passes over the data.
        momentum: of SGD; the other optimisers have none.
        weight_decay: added to the gradient as weight_decay times the weights; AdamW decays them directly.
        optimiser: "sgd", "adam", "adamw" or "adagrad".
        schedule: "cosine" to zero over all steps, "epoch-cosine" likewise but constant inside an epoch,
            "step" or "constant".
        milestones: fractions of the epochs after which "step" multiplies the step size by `decay`.
        decay: see `milestones`.
        mixup: alpha of the Beta distribution that mixes pairs of points; 0 for none.
        crop: pixels of black border from which images are cropped back at random; 0 for none.
        flip: mirror images left to right, each with probability 1/2.
        stop_loss: stop after the first epoch whose mean training loss is at most this.
        decay_biases: whether biases decay too.
        loss: of classes: "cross-entropy" of the scores, or "softmax-cross-entropy", which takes the
            probabilities for scores, so that it is never below log(1 + (c - 1) / e) and saturates where the
            network is sure. Targets have the mean square of the error.

    >>> recipe = Recipe(0.1, batch_size=32, epochs=5, weight_decay=1e-4)
    >>> recipe.optimiser, recipe.schedule, recipe.momentum
    ('sgd', 'cosine', 0.9)
    """

    learning_rate: float
    batch_size: int
    epochs: int
    momentum: float = 0.9
    weight_decay: float = 0.0
    optimiser: str = "sgd"
    schedule: str = "cosine"
    milestones: tuple[float, ...] = (0.5, 0.75)
    decay: float = 0.1
    mixup: float = 0.0
    crop: int = 0
    flip: bool = False
    stop_loss: float | None = None
    decay_biases: bool = True
    loss: str = "cross-entropy"

    def __post_init__(self) -> None:
        if self.optimiser not in OPTIMISERS:
            raise InscapeError(unknown_name("optimiser", self.optimiser, OPTIMISERS))
        if self.schedule not in SCHEDULES:
            raise InscapeError(unknown_name("schedule", self.schedule, SCHEDULES))
        if self.loss not in LOSSES:
            raise InscapeError(unknown_name("loss", self.loss, LOSSES))
        for name, least in (("batch_size", 1), ("epochs", 1), ("crop", 0)):
            value = getattr(self, name)
            if not _is_number(value) or not least <= value < math.inf or value != int(value):
                raise InscapeError(f"{name}={value!r} must be a whole number of at least {least}")
            object.__setattr__(self, name, int(value))
        for name in ("learning_rate", "momentum", "weight_decay", "decay", "mixup"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < math.inf:
                raise InscapeError(f"{name}={value!r} must be a number of at least 0")
        if self.stop_loss is not None and not (
            _is_number(self.stop_loss) and self.stop_loss == self.stop_loss
        ):
            raise InscapeError(f"stop_loss={self.stop_loss!r} must be a number, or None")
        if not isinstance(self.milestones, list | tuple):
            raise InscapeError(f"milestones={self.milestones!r} must be a list of fractions of the epochs")
        object.__setattr__(self, "milestones", tuple(self.milestones))

    def rate_at(self, step: int, n_steps: int, steps_per_epoch: int) -> float:
        """The step size of step 0, 1, ... of `n_steps`.

        >>> r = Recipe(0.1, 32, 4, schedule="step")
        >>> [round(r.rate_at(i, 4, 1), 6) for i in range(4)]
        [0.1, 0.1, 0.01, 0.001]
        """
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * step / n_steps)) / 2
        epoch = step // steps_per_epoch
        if self.schedule == "epoch-cosine":
            return self.learning_rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        if self.schedule == "step":
            return self.learning_rate * self.decay ** sum(epoch >= m * self.epochs for m in self.milestones)
        return self.learning_rate

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The recipe that `to_dict` wrote."""
        recipe: Self = restored_fields(cls, data, what="recipe", error=InscapeError)
        return recipe


def _is_number(value: Any) -> bool:
    """Whether it is one of Python or of numpy; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def batch_sizes(n: int, size: int) -> list[int]:
    """The sizes of the batches of an epoch; a last point alone joins the batch before.

    Batch normalisation cannot train on one point.

    >>> batch_sizes(10, 4), batch_sizes(9, 4), batch_sizes(3, 1)
    ([4, 4, 2], [4, 5], [1, 1, 1])
    """
    whole, rest = divmod(n, size)
    if rest == 1 and whole:
        return [size] * (whole - 1) + [size + 1]
    return [size] * whole + [rest] * (rest > 0)


@dataclass(frozen=True, repr=False, kw_only=True)
class History(Shown):
    """The mean training loss of each epoch, and why training ended.

    Attributes:
        losses: one per epoch; the mean over the batches as they were seen, so while the weights changed.
        n_steps: steps taken.
        status: "complete", "loss reached" (see `Recipe.stop_loss`) or "diverged" (a loss was not finite).
        seed: of batches, augmentation and dropout.
        checkpoints: files that were written.
    """

    losses: tuple[float, ...]
    n_steps: int
    status: Status
    seed: int
    checkpoints: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = f"{len(self.losses)} epochs, {self.n_steps} steps"
        return f"<training of {size}: loss {self.loss:.4g}, {self.status.heading}>"

    @property
    def loss(self) -> float:
        """The mean loss of the last epoch."""
        return self.losses[-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; None for a loss that is not finite; `from_dict` reads it back."""
        losses = [loss if math.isfinite(loss) else None for loss in self.losses]
        return {**plain(vars(self)), "losses": losses}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The history that `to_dict` wrote: a loss that was not finite is NaN."""
        history: Self = restored_fields(cls, data, what="training history", error=InscapeError)
        return history
