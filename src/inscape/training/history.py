"""What came of a training run."""

import math
from dataclasses import dataclass
from typing import Any, Self

from inscape.errors import InscapeError
from inscape.serialising import plain, restored_fields
from inscape.status import Status


@dataclass(frozen=True, kw_only=True)
class History:
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
