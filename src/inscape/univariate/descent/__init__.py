"""Gradient descent on a univariate net, compiled, and its result: where a run ended, why, and its history.

What high and low mean: a low loss with the status "converged" or "loss reached": descent has found a minimum.
When it does not hold: a run at its step limit may still move; and a low loss says nothing of how the net
behaves between the points.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from inscape.arguments import renamed, whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import UnivariateError, unknown_name
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, check_schema, plain, restored_fields
from inscape.status import CONVERGED, DIVERGED, STATIONARY, STEP_LIMIT, Status
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample
from inscape.univariate.stability.gram import gram, top_eigenvalue

LOSSES = ("square", "exponential", "logistic")
STATUS = (CONVERGED, STATIONARY, DIVERGED, STEP_LIMIT)


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentHistory:
    """What was recorded on the way.

    Attributes:
        steps: the number of steps done, (m,).
        loss: the loss there, (m,).
        step_size: the step size there, (m,).
        parameters: w, b, v, c there, (m, 3 k + 1).

    >>> from inscape.univariate import ShallowNet, gradient_descent
    >>> start = ShallowNet([1.0, -1.0], [0.5, 0.5], [0.1, 0.1])
    >>> run = gradient_descent(start, [-1.0, 1.0], [1.0, 1.0], 0.1, 100, record=50)
    >>> run.history.steps.tolist(), len(run.history), run.history.net(0).width
    ([0, 50], 2, 2)
    """

    steps: Ints
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
class Descent(Drawn):
    """A run of gradient descent.

    Attributes:
        net: where it ended; after divergence the last finite point seen.
        loss: the mean loss there (square: 1/(2n) sum of squares).
        status: "converged" (zero loss up to `tolerance`), "stationary" (no gradient left above zero loss),
            "diverged" (try a smaller step size or a warm-up) or "step limit" (try more steps).
        n_steps: how many steps were made.
        history: losses, step sizes and parameters on the way.
        settings: the arguments, with the seed of the batches.
    """

    net: ShallowNet
    loss: float
    status: Status
    n_steps: int
    history: DescentHistory
    settings: dict[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the loss stayed at zero (up to `tolerance`) for `patience` steps."""
        return self.status.kind == "converged"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without step sizes and parameters on the way; None for a loss that is not finite."""
        losses = [loss if np.isfinite(loss) else None for loss in self.history.loss.tolist()]
        return {
            "schema": SCHEMA,
            "measure": "gradient_descent",
            **plain(vars(self) | {"history": {"steps": self.history.steps, "loss": losses}}),
            "loss": self.loss if np.isfinite(self.loss) else None,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The run that `to_dict` wrote: a loss that was not finite is NaN."""
        what: Any = {"what": "run of gradient descent", "error": UnivariateError}
        check_schema(data, "measure", "gradient_descent", **what)
        history = restored_fields(
            DescentHistory, data.get("history", {}), left_out=("step_size", "parameters"), **what
        )
        run: Self = restored_fields(cls, data, history=history, **what)
        return run

    def _draw(self, ax: Any) -> Any:
        """The loss over the steps."""
        from inscape.drawing.univariate import draw_losses

        label = f"step size {self.settings['step_size']:g}"
        return draw_losses({label: (self.history.steps, self.history.loss)}, ax=ax)

    def __repr__(self) -> str:
        size = self.settings["step_size"]
        outcome = f"loss {self.loss:.3g} after {self.n_steps} steps, {self.status}"
        return f"<gradient descent, step size {size:g}: {outcome}>"


@overload
def gradient_descent(  # type: ignore[overload-overlap]  # one net and one step size: not a list
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    step_size: float,
    n_steps: int,
    loss: str = ...,
    *,
    batch_size: int | None = ...,
    momentum: float = ...,
    warm_up: int = ...,
    change: tuple[int, float] | None = ...,
    tolerance: float = ...,
    patience: int | None = ...,
    record: int | None = ...,
    train_bias: bool | None = ...,
    random_state: RandomState = ...,
    progress: bool | Meter | None = ...,
) -> Descent: ...
@overload
def gradient_descent(
    net: Sequence[ShallowNet] | ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    step_size: float | Sequence[float] | Floats,
    n_steps: int,
    loss: str = ...,
    *,
    batch_size: int | None = ...,
    momentum: float = ...,
    warm_up: int = ...,
    change: tuple[int, float] | None = ...,
    tolerance: float = ...,
    patience: int | None = ...,
    record: int | None = ...,
    train_bias: bool | None = ...,
    random_state: RandomState = ...,
    progress: bool | Meter | None = ...,
) -> list[Descent]: ...
@renamed(tol="tolerance")
def gradient_descent(
    net: ShallowNet | Sequence[ShallowNet],
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    step_size: float | Sequence[float] | Floats,
    n_steps: int,
    loss: str = "square",
    *,
    batch_size: int | None = None,
    momentum: float = 0.0,
    warm_up: int = 0,
    change: tuple[int, float] | None = None,
    tolerance: float = 1e-20,
    patience: int | None = None,
    record: int | None = None,
    train_bias: bool | None = None,
    random_state: RandomState = 0,
    progress: bool | Meter | None = None,
) -> Descent | list[Descent]:
    """Gradient descent from `net`; several nets or step sizes give a list, computed in parallel.

    The loss is 1/(2n) sum (f(x_j) - y_j)^2 (Mulayoff, Michaeli, Soudry 2021), or the mean of exp(-y f) or of
    log(1 + exp(-y f)) (Safran, Vardi, Lee 2022). A step costs O(k + n). At a kink the derivative of relu is
    0.

    Args:
        net: where to start; a list of nets is combined with each step size, nets first.
        x: places, (n,).
        y: values, (n,); -1 or +1 for the exponential and logistic loss.
        step_size: the step size eta, or several.
        n_steps: how many steps at most.
        loss: "square", "exponential" or "logistic".
        batch_size: points per step, drawn without replacement, independently of each other step; all if None.
        momentum: of the heavy ball: velocity = momentum velocity + gradient.
        warm_up: over how many steps the step size rises linearly from 0. Without a warm-up most large step
            sizes never interpolate.
        change: (step, factor): from that step on the step size is multiplied by the factor.
        tolerance: the run has converged when the loss is at most this ...
        patience: ... for this many steps in a row: a loss may dip to rounding level above the edge of
            stability and come back. min(20,000, n_steps / 10) if None.
        record: the number of steps from one record to the next; about 500 records if None.
        train_bias: whether c moves; if None, with the square loss only, as in the two papers.
        random_state: seed of the batches.
        progress: None for a bar after two seconds, False for none, or a function of (runs done, in all).

    >>> start = ShallowNet.random(50, random_state=0)
    >>> run = gradient_descent(start, [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], 0.1, 100_000)
    >>> run.status
    'converged'
    """
    if loss not in LOSSES:
        raise UnivariateError(unknown_name("loss", loss, LOSSES))
    places, values = checked_sample(x, y, classes=loss != "square")
    n, total = len(places), whole_number(n_steps, "n_steps", 1, UnivariateError)
    batch = n if batch_size is None else whole_number(batch_size, "batch_size", 1, UnivariateError)
    if batch > n:
        raise UnivariateError(f"batch_size={batch} is more than the {n} data points there are")
    if not 0 <= momentum < 1:
        raise UnivariateError(f"momentum={momentum!r} must be at least 0 and below 1")
    if not tolerance >= 0:
        raise UnivariateError(f"tolerance={tolerance!r} must not be negative")
    change_at, factor = _checked_change(change)
    settings = {
        "loss": loss,
        "n_steps": total,
        "batch_size": batch,
        "momentum": float(momentum),
        "warm_up": whole_number(warm_up, "warm_up", 0, UnivariateError),
        "change_at": change_at,
        "change": factor,
        "tolerance": float(tolerance),
        "patience": min(20_000, total // 10)
        if patience is None
        else whole_number(patience, "patience", 0, UnivariateError),
        "record": max(1, total // 500)
        if record is None
        else whole_number(record, "record", 1, UnivariateError),
        "train_bias": loss == "square" if train_bias is None else bool(train_bias),
        "seed": as_seed(random_state),
    }
    jobs = [(m, size) for m in _checked_nets(net) for size in _checked_sizes(step_size)]
    order = np.argsort(places, kind="stable")
    ordered = places[order], values[order]
    if len(jobs) == 1:
        with meter(progress, "gradient descent"):
            runs = [_descend(*jobs[0], *ordered, settings)]
    else:
        runs = _all(jobs, ordered, settings, progress)
    return runs[0] if isinstance(net, ShallowNet) and np.ndim(step_size) == 0 else runs


def _checked_nets(net: Any) -> list[ShallowNet]:
    nets = [net] if isinstance(net, ShallowNet) else list(net)
    if not nets or not all(isinstance(m, ShallowNet) for m in nets):
        raise UnivariateError("net must be a ShallowNet or a list of them")
    return nets


def _all(
    jobs: list[tuple[ShallowNet, float]], data: tuple[Floats, Floats], settings: dict[str, Any], progress: Any
) -> list[Descent]:
    """Every job, as many at a time as there are processors; the compiled loop holds no lock."""
    with (
        meter(progress, "runs") as show,
        ThreadPoolExecutor(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        ) as pool,
    ):
        futures = [pool.submit(_descend, net, size, *data, settings) for net, size in jobs]
        runs: list[Descent] = []
        for future in futures:
            show(len(runs), len(jobs))
            runs.append(future.result())
        show(len(runs), len(jobs))
    return runs


def _descend(net: ShallowNet, step_size: float, x: Floats, y: Floats, settings: dict[str, Any]) -> Descent:
    from inscape.univariate.descent.kernel import Schedule, descend

    theta = np.stack([net.w, net.b, net.v])
    schedule = Schedule(
        eta=step_size,
        warm_up=settings["warm_up"],
        change_at=settings["n_steps"] + 1 if settings["change_at"] is None else settings["change_at"],
        change=settings["change"],
    )
    status, done, c, loss, records, n_records = descend(
        x,
        y,
        theta,
        net.c,
        schedule,
        settings["n_steps"],
        LOSSES.index(settings["loss"]),
        settings["batch_size"],
        settings["momentum"],
        settings["tolerance"],
        settings["patience"],
        settings["record"],
        settings["seed"] % 2**62,
        settings["train_bias"],
    )
    steps, losses, sizes, parameters = (kept[:n_records] for kept in records)
    return Descent(
        net=ShallowNet(theta[0], theta[1], theta[2], c),
        loss=float(loss),
        status=STATUS[status],
        n_steps=int(done),
        history=DescentHistory(steps=steps, loss=losses, step_size=sizes, parameters=parameters),
        settings=settings | {"step_size": step_size},
    )


def _checked_sizes(step_size: npt.ArrayLike) -> list[float]:
    try:
        sizes = [float(s) for s in np.asarray(step_size, dtype=np.float64).reshape(-1)]
    except (TypeError, ValueError):
        sizes = []
    if not sizes or not all(0 < s < np.inf for s in sizes):
        raise UnivariateError(f"step_size={step_size!r} must be a positive number, or several")
    return sizes


def _checked_change(change: tuple[int, float] | None) -> tuple[int | None, float]:
    if change is None:
        return None, 1.0
    try:
        at, factor = change
        step, times = whole_number(at, "the step of change", 0, UnivariateError), float(factor)
    except (TypeError, ValueError) as error:
        if isinstance(error, UnivariateError):
            raise
        raise UnivariateError(f"change={change!r} must be a pair (step, factor)") from error
    if not 0 < times < np.inf:
        raise UnivariateError(f"change={change!r}: the factor must be positive")
    return step, times
