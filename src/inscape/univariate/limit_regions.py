r"""The linear regions of the limit of gradient flow, and Theorem 4.2 of Safran, Vardi, Lee 2022 on them.

The limit is a KKT point of the margin problem, so that by eqs. (5) and (6) of the paper each neuron of it is

    w_j = v_j P(A),  b_j = v_j Q(A),  P(A) = sum_{i in A} lambda_i y_i x_i,  Q(A) = sum_{i in A} lambda_i y_i,

where A are the support points (lambda_i > 0) at which the neuron is active: all neurons of one active set
have the same knot -Q/P, however large they are. The third condition, v_j = sum_{i in A} lambda_i y_i
(w_j x_i + b_j), then says v_j = v_j (P^2 + Q^2): a neuron is not zero in the limit only if P^2 + Q^2 = 1.
So the knots of the limit can be counted from the active sets of a flow that has come near to it, without a
tolerance for how near two knots are: neurons of one set are one knot, whatever is left of the distance
between them, and sets with P^2 + Q^2 < 1 are on their way to zero. Nor does a set stay that contradicts
itself: if v_j (P x_i + Q) > 0 at other support points than those of A, no neuron of the limit has this set,
and the few that still have it are on their way to another. A knot that lies on a support point stays there:
that point belongs to A by a fraction between 0 and 1, the one that puts -Q/P there.

What high and low mean: many regions: the limit bends more often than the labels ask for; as many as
`region_bound` allows is the most that theory permits. When it does not hold: the count is that of the limit
of the flow, so a flow that has not come near to it (`residual`) may be counted wrongly.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import renamed, whole_number
from inscape.arrays import Bools, Floats
from inscape.errors import UnivariateError
from inscape.pictures import Shown
from inscape.serialising import Written
from inscape.univariate.kkt import kkt_residual
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample
from inscape.univariate.stability.gram import toggling

_KEPT_FROM = 0.5
"""Least |(P, Q)| of a set that stays: between 1, where such sets end, and 0; `gap` says how clear that is."""

_CLEAR_FROM = 0.9
"""Least |(P, Q)| of the sets that stay, for the regions of the limit to be clear."""
_MOST_LEAVING = 0.1
"""Share of a net that may still be in sets that do not stay, for its regions to be clear."""
_ROUNDING = 1e-6
"""Relative to |(P, Q)|: a knot so near to a support point is on either side of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LimitRegions(Written, Shown):
    """The linear regions of the KKT point that a net is near to, by active sets.

    Attributes:
        n_regions: their number.
        knots: where they meet, ascending, as the active sets put them, (n_regions - 1,).
        support: the data points with a multiplier, ascending, (s,).
        active_sets: the support points at which the neurons of each set are active, (m, s); neurons of
            different signs of v are different sets.
        norms: |(P, Q)| of each set, (m,): 1 in the limit for the sets that stay.
        is_consistent: which sets are those of a neuron (v P, v Q), (m,); the others do not stay.
        leaving: the share of |v| |(w, b)| that is in neurons of sets that do not stay: near 0 if the flow has
            come so far that the count can be trusted.
        gap: the largest norm of a set that vanishes and the least of one that stays: near 0 and 1 if the flow
            has come so far that the count can be trusted.
        knot_error: how far a neuron's own knot still is from that of its set, at most.
        residual: of the KKT conditions.
        plateau: the share of tolerances under which `ShallowNet.region_table` counts the number that most of
            them count: a second opinion, which depends on tolerances.
        plateau_regions: that number.
    """

    measure: ClassVar[str] = "limit_regions"
    _error: ClassVar = UnivariateError
    _title: ClassVar[str] = "regions of a limit"

    n_regions: int
    knots: Floats
    support: Floats
    active_sets: Bools
    norms: Floats
    is_consistent: Bools
    leaving: float
    gap: tuple[float, float]
    knot_error: float
    residual: float
    plateau: float
    plateau_regions: int

    @property
    def is_clear(self) -> bool:
        """Whether every active set is well on its way: to norm 1, or to 0, and little is on another way."""
        low, high = self.gap
        return low <= _KEPT_FROM and high >= _CLEAR_FROM and self.leaving <= _MOST_LEAVING

    def __repr__(self) -> str:
        low, high = self.gap
        return (
            f"<{self.n_regions} linear regions in the limit, by {len(self.active_sets)} active sets "
            f"(norms up to {low:.2g} vanish, from {high:.2g} stay)>"
        )


@renamed(active_tol="active_tolerance", kink_tol="kink_tolerance")
def limit_regions(
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    active_tolerance: float = 1e-2,
    kink_tolerance: float = 1e-8,
) -> LimitRegions:
    """The linear regions of the KKT point that `net` is near to, such as where a flow ended.

    Args:
        net: a net with c = 0 and positive margins.
        x: places, (n,).
        y: labels, -1 or +1, (n,).
        active_tolerance: as for `kkt_residual`, which finds the multipliers.
        kink_tolerance: when a knot is on a data point, as there.

    >>> start = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])  # constant: Example 1 of the paper
    >>> limit_regions(start, [-4, 4], [1, 1])
    <1 linear regions in the limit, by 1 active sets (norms up to 0 vanish, from 1 stay)>
    """
    places, labels = checked_sample(x, y, classes=True)
    kkt = kkt_residual(net, places, labels, active_tolerance=active_tolerance, kink_tolerance=kink_tolerance)
    if kkt.feasibility > 0:
        raise UnivariateError("a data point is on the wrong side: such a net is near to no limit of the flow")
    order = np.argsort(places, kind="stable")
    order = order[kkt.multipliers[order] > 0]
    support, pull = places[order], kkt.multipliers[order] * labels[order]
    kinks = toggling(net, support, kink_tolerance, reach=float(np.abs(places).max()))
    active = (support[:, None] * net.w + net.b > 0) & ~kinks
    kept = (active | kinks).any(axis=0) & (net.v != 0)
    states = np.concatenate([active, kinks, net.v[None] > 0])[:, kept].T
    distinct, member = np.unique(states, axis=0, return_inverse=True)
    sets, kinked = distinct[:, : len(support)], distinct[:, len(support) : -1]
    p, q, is_fraction = _sums(sets, kinked, support, pull)
    norms = np.hypot(p, q)
    reached = np.where(distinct[:, -1:], 1.0, -1.0) * (np.outer(p, support) + q[:, None])
    slack = _ROUNDING * norms[:, None]
    is_consistent = is_fraction & (kinked | np.where(sets, reached > -slack, reached < slack)).all(axis=1)
    stays = (norms >= _KEPT_FROM) & is_consistent
    bent = stays & (np.abs(p) > kink_tolerance * norms)
    knot = np.divide(-q, p, out=np.full(len(p), np.nan), where=bent)
    knot = np.where(kinked.any(axis=1) & bent, support[kinked.argmax(axis=1)], knot)
    knots = np.unique(knot[bent])
    size = (np.abs(net.v) * np.hypot(net.w, net.b))[kept]
    table = net.region_table()
    return LimitRegions(
        n_regions=len(knots) + 1,
        knots=knots,
        support=support,
        active_sets=sets,
        norms=norms,
        is_consistent=is_consistent,
        leaving=float(size[~stays[member.ravel()]].sum() / size.sum()),
        gap=(
            float(norms[is_consistent & ~stays].max(initial=0.0)),
            float(norms[stays].min(initial=np.inf)),
        ),
        knot_error=_distance(net, kept, knot[member.ravel()]),
        residual=kkt.residual,
        plateau=table.plateau,
        plateau_regions=table.effective,
    )


def _sums(active: Bools, kinks: Bools, support: Floats, pull: Floats) -> tuple[Floats, Floats, Bools]:
    """P and Q of each set, (m,); a point at a kink counts by the fraction that puts the knot there.

    Third is whether that fraction is one, from 0 to 1: what a subgradient may have.
    """
    p, q = active @ (pull * support), active @ pull
    is_fraction = np.ones(len(p), dtype=bool)
    for s, i in zip(*np.nonzero(kinks), strict=True):
        fraction = -(q[s] + support[i] * p[s]) / (pull[i] * (1 + support[i] ** 2))
        is_fraction[s] &= bool(-_ROUNDING <= fraction <= 1 + _ROUNDING)
        p[s] += fraction * pull[i] * support[i]
        q[s] += fraction * pull[i]
    return p, q, is_fraction


def _distance(net: ShallowNet, kept: Bools, knot: Floats) -> float:
    """The largest distance of a neuron's knot from that of its set, over the sets that stay."""
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(-net.b[kept] / net.w[kept] - knot)
    return float(np.max(apart[np.isfinite(apart)], initial=0.0))


def effective_linear_regions(net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike) -> int:
    """The number of linear regions of the limit that `net` is near to, by active sets (`limit_regions`).

    >>> one = ShallowNet([1.0], [1.0], [2**0.5])  # the KKT point of the single point (1, +1): a knot at -1
    >>> limit_regions(one, [1], [1]).knots.tolist(), effective_linear_regions(one, [1], [1])
    ([-1.0], 2)
    """
    return limit_regions(net, x, y).n_regions


def region_bound(n_changes: int) -> int:
    """32 r + 67: the most linear regions that remain in the limit of the flow if labels change r times.

    >>> region_bound(3)
    163
    """
    return 32 * whole_number(n_changes, "n_changes", 0, UnivariateError) + 67


def label_changes(x: npt.ArrayLike, y: npt.ArrayLike) -> int:
    """How often the labels change along ascending x.

    >>> label_changes([3, 1, 2], [1, 1, -1])
    2
    """
    places, labels = checked_sample(x, y, classes=True)
    return int((np.diff(labels[np.argsort(places, kind="stable")]) != 0).sum())
