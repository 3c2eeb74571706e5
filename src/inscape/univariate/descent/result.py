"""What a run of gradient descent is: where it ended, why, and what was recorded on the way."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.univariate.net import ShallowNet
from inscape.univariate.stability.gram import gram, top_eigenvalue


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """What was recorded on the way.

    Attributes:
        steps: the number of steps done, (m,).
        loss: the loss there, (m,).
        step_size: the step size there, (m,).
        parameters: w, b, v, c there, (m, 3 k + 1).
    """

    steps: npt.NDArray[np.int64]
    loss: Floats
    step_size: Floats
    parameters: Floats

    def __len__(self) -> int:
        return len(self.steps)

    def net(self, i: int) -> ShallowNet:
        """The net of record i."""
        p, k = self.parameters[i], self.parameters.shape[1] // 3
        return ShallowNet(p[:k], p[k : 2 * k], p[2 * k : 3 * k], p[3 * k])

    def sharpness(self, x: npt.ArrayLike) -> Floats:
        """The top eigenvalue of the Gram form at each record, (m,)."""
        places = np.asarray(x, dtype=np.float64)
        return np.array([top_eigenvalue(gram(self.net(i), places)) for i in range(len(self))])


@dataclass(frozen=True, eq=False, kw_only=True)
class Descent:
    """A run of gradient descent.

    Attributes:
        net: where it ended; after divergence the last finite point seen.
        loss: the mean loss there (square: 1/(2n) sum of squares).
        status: "converged" (zero loss up to `tol`), "stationary" (no gradient left above zero loss),
            "diverged" (try a smaller step size or a warm-up) or "step limit" (try more steps).
        n_steps: how many steps were made.
        history: losses, step sizes and parameters on the way.
        settings: the arguments, with the seed of the batches.
    """

    net: ShallowNet
    loss: float
    status: str
    n_steps: int
    history: History
    settings: dict[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the loss stayed at zero (up to `tol`) for `patience` steps."""
        return self.status == "converged"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the parameters on the way."""
        return {
            "schema": 1,
            "measure": "gradient_descent",
            "net": self.net.to_dict(),
            "loss": self.loss if np.isfinite(self.loss) else None,
            "status": self.status,
            "n_steps": self.n_steps,
            "history": {"steps": self.history.steps.tolist(), "loss": self.history.loss.tolist()},
            "settings": self.settings,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss over the steps; returns the matplotlib Axes."""
        from inscape.drawing.univariate import draw_losses

        label = f"step size {self.settings['step_size']:g}"
        return draw_losses({label: (self.history.steps, self.history.loss)}, ax=ax)

    def __repr__(self) -> str:
        size = self.settings["step_size"]
        outcome = f"loss {self.loss:.3g} after {self.n_steps} steps, {self.status}"
        return f"<gradient descent, step size {size:g}: {outcome}>"
