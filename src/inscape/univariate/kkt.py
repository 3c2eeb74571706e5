"""How far a net is from a KKT point of the margin problem min 1/2 |theta|^2 subject to y_i f(x_i) >= 1.

What high and low mean: residuals near 0: the direction of the net is nearly one in which gradient flow can
end; large ones: it is not, or the flow has not got there. When it does not hold: a KKT point need not be the
solution of the margin problem, and near 0 is relative to `active_tolerance`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import renamed
from inscape.arrays import Bools, Floats
from inscape.errors import UnivariateError
from inscape.pictures import Drawn
from inscape.serialising import Written
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample
from inscape.univariate.stability.gram import toggling

_MOST_ROUNDS = 1000
"""Of generating columns; each lowers the residual, so that few are needed."""
_ROUNDING = 1e-13
"""Relative to the sizes of both vectors: a column of a smaller product with the rest lowers nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KKTResidual(Written, Drawn):
    """The KKT conditions after scaling the net to least margin 1: none depends on the scale of the net.

    Attributes:
        stationarity: |theta - sum_i lambda_i y_i grad f(x_i)| / |theta|, the least over multipliers lambda >=
            0 and Clarke subgradients.
        feasibility: max(0, 1 - least margin): 0 if every margin is positive; otherwise the net is scaled to
            largest |margin| 1 and cannot be made feasible.
        complementarity: sum_i lambda_i (margin_i - 1) / sum_i lambda_i.
        multipliers: lambda, (n,); zero beyond `active_tolerance`.
        margins: y_i f(x_i) after scaling, (n,).
        n_kinks: how many pairs of a neuron and a point needed a subgradient.
        norm: |theta| after scaling: the smaller, the larger the margin.
        settings: active_tolerance, kink_tolerance.
    """

    measure: ClassVar[str] = "kkt_residual"
    _error: ClassVar = UnivariateError
    _title: ClassVar[str] = "KKT residual"

    stationarity: float
    feasibility: float
    complementarity: float
    multipliers: Floats
    margins: Floats
    n_kinks: int
    norm: float
    settings: dict[str, float]

    @property
    def residual(self) -> float:
        """The largest of the three."""
        return max(self.stationarity, self.feasibility, self.complementarity)

    def _draw(self, ax: Any) -> Any:
        """The multipliers over the margins."""
        from inscape.drawing.univariate import draw_multipliers

        return draw_multipliers(self.margins, self.multipliers, ax=ax)

    def __repr__(self) -> str:
        return (
            f"<KKT residual: stationarity {self.stationarity:.2g}, feasibility {self.feasibility:.2g}, "
            f"complementarity {self.complementarity:.2g}>"
        )


@renamed(active_tol="active_tolerance", kink_tol="kink_tolerance")
def kkt_residual(
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    active_tolerance: float = 1e-2,
    kink_tolerance: float = 1e-8,
) -> KKTResidual:
    """How far `net` is from a KKT point (Safran, Vardi, Lee 2022, eqs. (4) to (6)).

    Multipliers are found by non-negative least squares over the points whose margin is within
    `active_tolerance` of the least. Where a knot lies on such a point, the derivative of relu is any number
    in [0, 1] there, chosen with the multipliers: a convex problem, solved exactly by generating columns.
    Without it a true limit of the flow looks far from KKT.

    Args:
        net: a net with c = 0.
        x: places, (n,).
        y: labels, -1 or +1, (n,).
        active_tolerance: points with margin up to (1 + active_tolerance) times the least may have a
            multiplier.
        kink_tolerance: a knot is on a point where |w x + b| <= kink_tolerance (|w| max |x| + |b|).

    >>> start = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])
    >>> kkt_residual(start, [-4, 4], [1, 1]).residual < 1e-12
    True
    """
    places, labels = checked_sample(x, y, classes=True)
    if not isinstance(net, ShallowNet) or net.c != 0:
        raise UnivariateError(
            "the margin problem is of nets without output bias: give a ShallowNet with c = 0"
        )
    if not min(active_tolerance, kink_tolerance) >= 0:
        raise UnivariateError("active_tolerance and kink_tolerance must not be negative")
    margins = labels * net(places)
    least = float(margins.min())
    unit = least if least > 0 else float(np.abs(margins).max())
    if unit <= 0:
        raise UnivariateError("the net is zero at every data point: there is no direction to judge")
    r = np.sqrt(unit)
    w, b, v = net.w / r, net.b / r, net.v / r
    margins = margins / unit
    near = margins <= min(1.0, float(margins.min())) + active_tolerance
    scaled = ShallowNet(w, b, v)
    kinks = toggling(scaled, places[near], kink_tolerance, reach=float(np.abs(places).max()))
    problem = _Problem.of(scaled, places[near], labels[near], kinks)
    multipliers = np.zeros(len(places))
    multipliers[near], residual = problem.solve()
    total = float(multipliers.sum())
    norm = float(np.sqrt(w @ w + b @ b + v @ v))
    return KKTResidual(
        stationarity=residual / norm,
        feasibility=max(0.0, 1 - float(margins.min())) if least <= 0 else 0.0,
        complementarity=float(multipliers @ np.maximum(margins - 1, 0.0)) / total if total > 0 else 0.0,
        multipliers=multipliers,
        margins=margins,
        n_kinks=int(problem.kinks.sum()),
        norm=norm,
        settings={"active_tolerance": active_tolerance, "kink_tolerance": kink_tolerance},
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """min over lambda >= 0 and 0 <= mu_ij <= lambda_i of |theta - sum_i lambda_i grad_i - sum_ij mu_ij d_ij|.

    grad_i leaves out the pairs of a neuron and a point at a kink; d_ij = y_i v_j (x_i, 1) in the place of
    neuron j is what such a pair adds in full.
    """

    theta: Floats
    gradients: Floats  # (n, 3 k): hidden weights as pairs (w_j, b_j), then v
    directions: Floats  # (n, k, 2): y_i v_j (x_i, 1)
    kinks: Bools  # (n, k)

    @classmethod
    def of(cls, net: ShallowNet, x: Floats, y: Floats, kinks: Bools) -> "_Problem":
        z = x[:, None] * net.w + net.b
        on = (z > 0) & ~kinks
        points = np.stack([x, np.ones_like(x)], axis=1)
        directions = (y[:, None] * net.v)[:, :, None] * points[:, None, :]
        hidden = (directions * on[:, :, None]).reshape(len(x), -1)
        gradients = np.concatenate([hidden, y[:, None] * np.where(on, z, 0.0)], axis=1)
        theta = np.concatenate([np.stack([net.w, net.b], axis=1).reshape(-1), net.v])
        return cls(theta, gradients, directions, kinks)

    def solve(self) -> tuple[Floats, float]:
        """The multipliers and the norm of what is left.

        The columns span the same cone as all grad_i + sum_{j in S} d_ij, S any set of kinks of point i: those
        that reduce what is left are added until there is none, which is what makes the distance the least.
        """
        from scipy.optimize import nnls

        n, size = len(self.gradients), float(np.linalg.norm(self.theta))
        columns, owner = self.gradients, np.arange(n)
        multipliers, least = np.zeros(n), np.inf
        for _ in range(_MOST_ROUNDS):
            weights, _ = nnls(columns.T, self.theta, maxiter=30 * len(columns) + 1000)
            rest = self.theta - weights @ columns
            residual = float(np.linalg.norm(rest))
            if residual >= least:
                break
            multipliers, least = np.zeros(n), residual
            np.add.at(multipliers, owner, weights)
            steepest = self._steepest(rest)
            more = steepest @ rest > _ROUNDING * size * np.linalg.norm(steepest, axis=1)
            if not more.any():
                break
            used = weights > 0
            columns = np.concatenate([columns[used], steepest[more]])
            owner = np.concatenate([owner[used], np.flatnonzero(more)])
        return multipliers, least

    def _steepest(self, rest: Floats) -> Floats:
        """The gradient of each point with those of its kinks on that point along `rest`, (n, 3 k)."""
        n, k = self.kinks.shape
        along = (self.directions * rest[: 2 * k].reshape(k, 2)).sum(axis=2)
        hidden = self.directions * (self.kinks & (along > 0))[:, :, None]
        return np.concatenate(
            [self.gradients[:, : 2 * k] + hidden.reshape(n, -1), self.gradients[:, 2 * k :]], 1
        )
