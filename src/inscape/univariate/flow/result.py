"""What a run of gradient flow is: where it ended, how fast its direction still changes, and its way there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import UnivariateError
from inscape.univariate.net import ShallowNet


@dataclass(frozen=True, eq=False, kw_only=True)
class FlowHistory:
    """The flow after each step, (m,) each.

    Attributes:
        time: the time of the log-loss flow, d theta / d time = -grad log L.
        log_loss: log L; L itself underflows.
        margin: the least y_i f(x_i).
        norm: the norm of the parameters.
        direction_change: |d direction / d log norm|.
        n_active: how many pairs of a neuron and a point are active.
        n_changes: how many pairs changed their activity in this step.
        n_sliding: how many neurons slide with their knot on a data point.
    """

    time: Floats
    log_loss: Floats
    margin: Floats
    norm: Floats
    direction_change: Floats
    n_active: Floats
    n_changes: Floats
    n_sliding: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Flow:
    """A run of gradient flow.

    Attributes:
        net: where it ended; only its direction matters, see `limit`.
        direction_change: how fast the direction still moves: |d (theta/|theta|) / d log |theta||. It is the
            tangent of the angle between theta and its velocity, zero exactly at the directions that the flow
            keeps.
        status: "converged" if that was at most `tol` over a whole unit of log |theta| and every margin is
            positive; "step limit" (try more steps), "stationary" (the flow stands still without separating
            the labels), or "out of range" (the norm left the range of float64 while the direction still
            changed).
        log_loss: the logarithm of the mean loss.
        margin: the least y_i f(x_i).
        norm: the norm of the parameters.
        active: which neuron is active at which point, (n, k).
        on_kink: the index of the data point on which each neuron's knot is held, or -1, (k,).
        n_steps: how many steps were accepted.
        history: all this on the way.
        settings: loss, tol, step_tol, max_steps.
    """

    net: ShallowNet
    direction_change: float
    status: str
    log_loss: float
    margin: float
    norm: float
    active: npt.NDArray[np.bool_]
    on_kink: npt.NDArray[np.int64]
    n_steps: int
    history: FlowHistory
    settings: dict[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the direction converged to the tolerance."""
        return self.status == "converged"

    @property
    def limit(self) -> ShallowNet:
        """The net scaled to least margin 1, to be compared with the KKT points of the margin problem."""
        if not self.margin > 0:
            raise UnivariateError("some margin is not positive: there is no scale with least margin 1")
        r = np.sqrt(self.margin)
        return ShallowNet(self.net.w / r, self.net.b / r, self.net.v / r)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        history = {k: getattr(self.history, k).tolist() for k in self.history.__dataclass_fields__}
        return {
            "schema": 1,
            "measure": "gradient_flow",
            "net": self.net.to_dict(),
            "direction_change": self.direction_change,
            "status": self.status,
            "log_loss": self.log_loss,
            "margin": self.margin,
            "norm": self.norm,
            "on_kink": self.on_kink.tolist(),
            "n_steps": self.n_steps,
            "history": history,
            "settings": self.settings,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the change of direction over the norm; returns the matplotlib Axes."""
        from inscape.drawing.univariate import draw_convergence

        h = self.history
        return draw_convergence(h.norm, h.direction_change, self.settings["tol"], ax=ax)

    def __repr__(self) -> str:
        change = f"direction change {self.direction_change:.2g}"
        return f"<gradient flow: margin {self.margin:.3g}, {change}, {self.n_steps} steps, {self.status}>"
