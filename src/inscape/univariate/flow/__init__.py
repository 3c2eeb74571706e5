"""Gradient flow of the exponential or logistic loss, far into the regime where only its direction changes.

A step is implicit in how the points share the pull. The flow of the log-loss moves theta by
sum_i q_i grad m_i, m_i = y_i f(x_i), with weights q_i that sum to one: the softmax of -m for the exponential
loss, sigmoid(-m_i) normalised for the logistic one. As margins grow these weights react ever faster, so a
step takes those of its *end*: q = weights(m + h K q), K the Gram matrix of the margins. For the exponential
loss this is the optimality condition of the convex problem min over the simplex of
h/2 q'Kq + m'q + sum q log q, and for h K -> infinity of the steepest ascent of the least margin.

What high and low mean: a small `direction_change`: the direction of the net has settled, and its limit can be
read off; a large one: the flow is still turning. When it does not hold: a direction can rest for long and
turn again later, when a neuron changes its activity.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arguments import renamed, whole_number
from inscape.arrays import Bools, Floats, Ints
from inscape.errors import UnivariateError, unknown_name
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.serialising import SCHEMA, check_schema, plain, plain_fields, restored_fields
from inscape.status import CONVERGED, OUT_OF_RANGE, STATIONARY, STEP_LIMIT, Status
from inscape.univariate.flow.state import FlowState
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample

_LOSSES = ("exponential", "logistic")
_STATIONARY_BELOW = 1e-10  # the speed relative to the norm
_SHORTEST_STEP = 1e-12
"""Of a trajectory of norm one; shorter steps are lost in rounding."""
_LARGEST_NORM = 1e145  # its square is a margin, and that of the features a Gram matrix: both stay below 1e308


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

    >>> from inscape.univariate import ShallowNet, gradient_flow
    >>> flow = gradient_flow(ShallowNet([1.0, -1.0], [0.5, 0.5], [0.1, -0.1]), [-1.0, 1.0], [-1.0, 1.0])
    >>> bool(flow.history.log_loss[-1] < flow.history.log_loss[0])
    True
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
class Flow(Drawn):
    """A run of gradient flow.

    Attributes:
        net: where it ended; only its direction matters, see `limit`.
        direction_change: how fast the direction still moves: |d (theta/|theta|) / d log |theta||. It is the
            tangent of the angle between theta and its velocity, zero exactly at the directions that the flow
            keeps.
        status: "converged" if that was at most `tolerance` over a whole unit of log |theta| and every margin
            is positive; "step limit" (try more steps), "stationary" (the flow stands still without separating
            the labels), or "out of range" (the norm left the range of float64 while the direction still
            changed).
        log_loss: the logarithm of the mean loss.
        margin: the least y_i f(x_i).
        norm: the norm of the parameters.
        active: which neuron is active at which point, (n, k).
        on_kink: the index of the data point on which each neuron's knot is held, or -1, (k,).
        n_steps: how many steps were accepted.
        history: all this on the way.
        settings: loss, tolerance, step_tolerance, max_steps.
    """

    net: ShallowNet
    direction_change: float
    status: Status
    log_loss: float
    margin: float
    norm: float
    active: Bools
    on_kink: Ints
    n_steps: int
    history: FlowHistory
    settings: dict[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the direction converged to the tolerance."""
        return self.status.kind == "converged"

    @property
    def limit(self) -> ShallowNet:
        """The net scaled to least margin 1, to be compared with the KKT points of the margin problem."""
        if not self.margin > 0:
            raise UnivariateError("some margin is not positive: there is no scale with least margin 1")
        r = np.sqrt(self.margin)
        return ShallowNet(self.net.w / r, self.net.b / r, self.net.v / r)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without which neuron is active where; an infinite change of direction is None."""
        written = {name: value for name, value in vars(self).items() if name not in ("active", "history")}
        return {
            "schema": SCHEMA,
            "measure": "gradient_flow",
            **_with_change(plain(written), math.inf, None),
            "history": _with_change(plain_fields(self.history), math.inf, None),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The run that `to_dict` wrote."""
        what: Any = {"what": "run of gradient flow", "error": UnivariateError}
        check_schema(data, "measure", "gradient_flow", **what)
        written = _with_change(data.get("history", {}), None, math.inf)
        history = restored_fields(FlowHistory, written, **what)
        known = _with_change(data, None, math.inf)
        run: Self = restored_fields(cls, known, left_out=("active",), history=history, **what)
        return run

    def _draw(self, ax: Any) -> Any:
        """The change of direction over the norm."""
        from inscape.drawing.univariate import draw_convergence

        h = self.history
        return draw_convergence(h.norm, h.direction_change, self.settings["tolerance"], ax=ax)

    def __repr__(self) -> str:
        change = f"direction change {self.direction_change:.2g}"
        return f"<gradient flow: margin {self.margin:.3g}, {change}, {self.n_steps} steps, {self.status}>"


def _with_change(data: dict[str, Any], old: float | None, new: float | None) -> dict[str, Any]:
    """The data, with another value where the change of direction is `old`."""
    if "direction_change" not in data:
        return data
    change = data["direction_change"]
    several = isinstance(change, list)
    changes = [new if c == old else c for c in (change if several else [change])]
    return data | {"direction_change": changes if several else changes[0]}


@renamed(tol="tolerance", step_tol="step_tolerance")
def gradient_flow(
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    loss: str = "exponential",
    *,
    tolerance: float = 1e-3,
    step_tolerance: float = 1e-4,
    max_steps: int = 4000,
    progress: bool | Meter | None = None,
) -> Flow:
    """Gradient flow from `net` until its direction has converged (Safran, Vardi, Lee 2022, Section 2).

    We follow the flow of the log-loss, which runs along the same path: d theta / dt = sum_i q_i grad m_i, q
    the normalised weights of the points. A step is linearly implicit in the weights (`flow.weights`), which
    are the only stiff part, at the cost of one small convex problem in n unknowns; two half steps against a
    whole one give the error and, extrapolated, second order. Kinks are crossed or slid along (`flow.state`),
    so nothing chatters there. scipy's solvers do neither: the stiff ones need a Jacobian that jumps, the
    explicit ones need steps of 1/margin.

    Args:
        net: where to start, with c = 0; the output bias takes no part.
        x: places, (n,).
        y: labels, -1 or +1, (n,).
        loss: "exponential" or "logistic".
        tolerance: the direction has converged when it changes by at most this per unit of log |theta|, for
            one unit.
        step_tolerance: the error of a step relative to |theta|.
        max_steps: how many steps at most.
        progress: None for a bar after two seconds, False for none, or a function of (done, total).

    >>> start = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])  # Example 1 of the paper: the flow stays
    >>> run = gradient_flow(start, [-4, 4], [1, 1])
    >>> run.status, run.direction_change < 1e-12, run.limit.norm
    ('converged', True, 1.414...)
    """
    if loss not in _LOSSES:
        raise UnivariateError(unknown_name("loss", loss, _LOSSES))
    places, labels = checked_sample(x, y, classes=True)
    if not isinstance(net, ShallowNet) or net.c != 0:
        raise UnivariateError("the flow is of nets without output bias: give a ShallowNet with c = 0")
    if net.norm == 0:
        raise UnivariateError("the net is zero, where the flow stands still: start from another one")
    if not (0 < tolerance < 1 and 0 < step_tolerance < 1):
        raise UnivariateError(
            f"tolerance={tolerance} and step_tolerance={step_tolerance} must lie between 0 and 1"
        )
    limit = whole_number(max_steps, "max_steps", 1, UnivariateError)
    settings = {"loss": loss, "tolerance": tolerance, "step_tolerance": step_tolerance, "max_steps": limit}
    state = FlowState.start(net.w, net.b, net.v, places, labels)
    with meter(progress, "flow") as show:
        state, rows, status = _follow(state, loss, tolerance, step_tolerance, limit, show)
    history = FlowHistory(**dict(zip(FlowHistory.__dataclass_fields__, np.array(rows).T, strict=True)))
    return Flow(
        net=ShallowNet(state.theta[0], state.theta[1], state.theta[2]),
        direction_change=float(history.direction_change[-1]),
        status=status,
        log_loss=float(history.log_loss[-1]),
        margin=float(history.margin[-1]),
        norm=state.norm,
        active=state.active,
        on_kink=state.slide,
        n_steps=len(rows) - 1,
        history=history,
        settings=settings,
    )


def _follow(
    state: FlowState, loss: str, tolerance: float, step_tolerance: float, limit: int, show: Meter
) -> tuple[FlowState, list[list[float]], Status]:
    """Steps until the direction settles; the state, a row of history per step, and the status."""
    z = log_weights(state.margins, loss)
    rows = [_row(0.0, state, state, z, loss)]
    time, h, settled_at = 0.0, 1e-3, np.inf
    for done in range(limit):
        show(done, limit)
        step = _step(state, z, h, loss)
        if step is None or step[2] > step_tolerance:
            h *= 0.25 if step is None else max(0.2, 0.9 * np.sqrt(step_tolerance / step[2]))
            if h < _SHORTEST_STEP * min(1.0, 1 / state.norm**2):
                return state, rows, OUT_OF_RANGE
            continue
        last, (state, z, error) = state, step
        time += h
        rows.append(_row(time, state, last, z, loss))
        h *= min(4.0, 0.9 * np.sqrt(step_tolerance / max(error, 1e-300)))
        change, least, log_norm = rows[-1][4], rows[-1][2], np.log(state.norm)
        settled_at = min(settled_at, log_norm) if change <= tolerance and least > 0 else np.inf
        if log_norm - settled_at >= 1:
            return state, rows, CONVERGED
        if state.norm > _LARGEST_NORM:
            return state, rows, OUT_OF_RANGE
        if np.linalg.norm(np.exp(z) @ state.features) <= _STATIONARY_BELOW * state.norm:
            return state, rows, STATIONARY
    return state, rows, STEP_LIMIT


def _step(state: FlowState, z: Floats, h: float, loss: str) -> tuple[FlowState, Floats, float] | None:
    """A step of length h: the new state, the log-weights there, and the error relative to the norm."""
    whole = _implicit_euler(state, z, h, loss)
    half = None if whole is None else _implicit_euler(state, z, h / 2, loss)
    fine = None if half is None else _implicit_euler(*half, h / 2, loss)
    if whole is None or fine is None:
        return None
    (coarse, _), (end, z_end) = whole, fine
    apart = (end.theta - coarse.theta).reshape(-1)
    if all(
        np.array_equal(state.active, s.active) and np.array_equal(state.slide, s.slide) for s in (coarse, end)
    ):  # across a kink the two differ by more than the error of a smooth path
        end = end.moved(apart, np.exp(z_end))
    return end, z_end, _error(apart, end)


def _error(apart: Floats, state: FlowState) -> float:
    """How far `apart` turns the direction; along it, where the path stays the same, a fiftieth counts."""
    direction = state.theta.reshape(-1) / state.norm
    along = float(apart @ direction)
    sideways = float(np.linalg.norm(apart - along * direction))
    return max(sideways, abs(along) / 50) / state.norm


def _implicit_euler(state: FlowState, z: Floats, h: float, loss: str) -> tuple[FlowState, Floats] | None:
    z_end = implicit_weights(h * state.gram, state.margins, z, loss)
    if z_end is None:
        return None
    q = np.exp(z_end)
    return state.moved(h * (q @ state.features), q).with_releases(q), z_end


def _row(time: float, state: FlowState, last: FlowState, z: Floats, loss: str) -> list[float]:
    """The fields of FlowHistory."""
    margins = state.margins
    theta, velocity = state.theta.reshape(-1), np.exp(z) @ state.features
    direction = theta / max(state.norm, 1e-300)
    growth = float(velocity @ direction)
    sideways = float(np.linalg.norm(velocity - growth * direction))
    return [
        time,
        log_loss(margins, loss),
        float(margins.min()),
        state.norm,
        sideways / growth if growth > 0 else np.inf,
        float(state.active.sum()),
        float((state.active != last.active).sum()),
        float((state.slide >= 0).sum()),
    ]


_NEWTON_STEPS = 25
"""After which the equation counts as unsolved from that start."""
_COOLING = 5.0
"""How much stiffer each problem is than the easier one before, from whose solution it starts."""
_RIDGE = 1e-13
"""Of the mean diagonal: where the matrix is singular up to rounding, the least weights are taken."""
_FLOOR = -690.0  # log of the least weight that is told from zero


def log_weights(margins: Floats, loss: str) -> Floats:
    """The logarithms of the weights of the points, which sum to one."""
    from scipy.special import logsumexp

    raw = -margins if loss == "exponential" else -np.logaddexp(0.0, margins)
    return np.asarray(raw - logsumexp(raw))


def log_loss(margins: Floats, loss: str) -> float:
    """The logarithm of the mean loss, also where the loss underflows."""
    from scipy.special import logsumexp

    if loss == "exponential":
        each = -margins
    else:
        each = np.where(margins > 30, -margins, np.log(np.logaddexp(0.0, -np.minimum(margins, 30.0))))
    return float(logsumexp(each) - np.log(len(margins)))


def implicit_weights(
    stiff: Floats, margins: Floats, start: Floats, loss: str, tolerance: float = 1e-9
) -> Floats | None:
    """Solve z = A(m + hK exp z) - mu, sum exp z = 1 for z, the logarithms of the weights.

    Newton's method from `start`; where that is too far off, from equal weights through a sequence of
    problems with both m and hK divided by less and less (an entropy that counts for less and less).

    Args:
        stiff: h K, (n, n).
        margins: m before the step, (n,).
        start: a guess of z, (n,).
        loss: "exponential", A(s) = -s, or "logistic", A(s) = -log(1 + exp s).
        tolerance: the largest error of a weight, or ten times that of the move relative to the whole one.

    Returns:
        z, or None if that did not get there: take a smaller step.
    """
    n = len(margins)
    stiff = stiff + (_RIDGE * np.trace(stiff) / n) * np.eye(n)
    direct = _newton(stiff, margins, start, loss, tolerance)
    if direct is not None:
        return direct
    level = margins - margins.min()
    share = 1 / max(1.0, float(stiff.max()), float(level.max()))
    z: Floats | None = np.full(n, -np.log(n))
    while share < 1 and z is not None:
        z = _newton(share * stiff, share * level, z, "exponential", max(tolerance, 1e-6))
        share *= _COOLING
    return None if z is None else _newton(stiff, margins, z, loss, tolerance)


def _newton(stiff: Floats, margins: Floats, start: Floats, loss: str, tolerance: float) -> Floats | None:
    """Damped Newton steps; each is a positive definite system in the n weights, scaled by their roots."""
    from scipy.linalg.lapack import dposv

    z = np.maximum(start, _FLOOR)
    n = len(z)
    for _ in range(_NEWTON_STEPS):
        q = np.exp(z)
        s = margins + stiff @ q
        if loss == "exponential":
            a, raw = np.ones(n), -s
        else:
            a, raw = 1 / (1 + np.exp(-np.clip(s, -700, 700))), -np.logaddexp(0.0, s)
        a = np.maximum(a, 1e-12)
        mu = float(q @ (raw - z) / q.sum())
        residual = z - raw + mu
        root = np.sqrt(a * q)
        matrix = root[:, None] * stiff * root
        matrix[np.diag_indices(n)] += 1 + 1e-14 * np.trace(matrix)
        sides = np.stack([root * residual / a, root / a], axis=1)
        _, solved, failed = dposv(matrix, sides, lower=1)
        if failed:
            return None
        solved *= root[:, None]
        rate = (q.sum() - 1 - solved[:, 0].sum()) / solved[:, 1].sum()
        moved = -solved[:, 0] - rate * solved[:, 1]
        direct = -residual - rate - a * (stiff @ moved)  # loses digits to rounding where h K is huge
        dz = np.where(q > 1e-8, moved / q, direct)
        if not np.isfinite(dz).all():
            return None
        relevant = np.maximum(z, np.minimum(z + dz, 0.0)) > -14
        length = min(1.0, 2.0 / max(float(np.abs(dz[relevant]).max(initial=0.0)), 1e-300))
        z = np.where(relevant, z + length * dz, np.minimum(z + dz, -14.0))
        z = np.clip(z, _FLOOR, 0.0)
        change = np.exp(z) - q
        shift = float(np.abs(stiff @ change).max())
        if length == 1.0 and (
            np.abs(change).max() < tolerance or shift < 0.1 * tolerance * float(np.abs(s - margins).max())
        ):
            return np.asarray(z - np.log(np.exp(z).sum()))
    return None
