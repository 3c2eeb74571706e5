"""Safran, Vardi, Lee 2022, Sections 4 and 5: what gradient flow ends in, and how that generalises."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number
from inscape.errors import TheoryError
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import as_shallow
from inscape.univariate import (
    Flow,
    ShallowNet,
    effective_linear_regions,
    gradient_flow,
    kkt_residual,
    label_changes,
    population_error,
    region_bound,
)


def el_theorem42(
    net: Any,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    n_changes: int | None = None,
    *,
    form: str = "stated",
    kkt_tol: float = 1e-2,
) -> Check:
    """Theorem 4.2: the KKT point that the flow ends in has at most 32 r + 67 linear regions.

    Left is the number of the limit, by active sets (`limit_regions`), since a flow ends near its limit,
    not in it; for a net that separates nothing, its own.

    Args:
        net: the limit: a `ShallowNet`, a `Flow`, or a torch module of one input and one hidden layer.
        x: places, (n,).
        y: labels, -1 or +1.
        n_changes: r, the width of the teacher; how often the labels change, which is at most that, if None.
        form: "stated" is the only one: it holds so.
        kkt_tol: up to which residual of the KKT conditions the net counts as a KKT point.
    """
    only_stated("el_theorem42", form)
    shallow = _ended(net)
    r = label_changes(x, y) if n_changes is None else n_changes
    met, note = _kkt_point(shallow, x, y, kkt_tol)
    own = shallow.n_linear_regions()
    regions = effective_linear_regions(shallow, x, y) if _separates(shallow, x, y) else own
    note = f"r = {r}, {own} regions of the net itself; {note}"
    return compare("el_theorem42", float(regions), float(region_bound(r)), assumptions=met, note=note)


def el_corollary51(
    net: Any,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    teacher: ShallowNet,
    *,
    form: str = "stated",
    support: tuple[float, float] | None = None,
    delta: float = 0.1,
    kkt_tol: float = 1e-2,
) -> Check:
    """Corollary 5.1: with probability 1 - delta the limit of the flow is wrong on at most eps of all x.

    The paper's n >= C_0 (r log(1/eps) + log(1/delta)) / eps has an unnamed constant. Ours is explicit: the
    limit changes sign at most s = 32 r + 67 times, 2 n points on a line can be labelled with at most s
    changes in S = 2 sum_{i <= s} C(2 n - 1, i) ways, and a classifier without training errors is then wrong
    on at most eps = (2 / n) log2(2 S / delta) (Blumer et al. 1989). Left is the error of the net, integrated.

    Args:
        net: the limit, as for `el_theorem42`.
        x: places, drawn uniformly from the support, (n,).
        y: labels, the sign of the teacher.
        teacher: whose sign is learned; r is its width.
        form: "stated" is the only one: it holds so.
        support: the interval of the distribution; the range of x if None.
        delta: the probability of failing.
        kkt_tol: as for `el_theorem42`.
    """
    only_stated("el_corollary51", form)
    shallow = _ended(net)
    delta = positive_number(delta, "delta", TheoryError)
    places = np.asarray(x, dtype=np.float64).reshape(-1)
    low, high = (float(places.min()), float(places.max())) if support is None else support
    met, note = _kkt_point(shallow, x, y, kkt_tol)
    error = population_error(shallow, teacher, low, high)
    n, s = len(places), region_bound(teacher.width)
    ways = math.log2(2 * sum(math.comb(2 * n - 1, i) for i in range(min(s, 2 * n - 1) + 1)))
    eps = 2 / n * (ways + math.log2(2 / delta))
    met["x is uniform on the support"] = None
    note = f"n = {n}, r = {teacher.width}; {note}"
    return compare("el_corollary51", error, eps, assumptions=met, note=note, trivial=1.0)


def el_example1(loss: str = "exponential", *, form: str = "stated") -> Check:
    """Example 1: gradient flow stays at a KKT point of squared norm 2 although squared norm 1 is feasible.

    x = +-4, both labels +1, b_1 = v_1 = 1 and all else 0; the better network has w_1 = v_1 = v_2 = 1/2,
    w_2 = -1/2. Left is its squared norm, right that of the flow's limit, scaled to margin 1.

    >>> el_example1()
    <el_example1 (stated): 1 <= 2, holds>
    """
    only_stated("el_example1", form)
    x, y = np.array([4.0, -4.0]), np.ones(2)
    start = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])
    better = ShallowNet([0.5, -0.5], [0.0, 0.0], [0.5, 0.5])
    run = gradient_flow(start, x, y, loss)
    met = {
        "the better network has margins of 1": bool((y * better(x)).min() >= 1),
        "the flow keeps its direction": run.direction_change <= 1e-12,
        "its limit is a KKT point": kkt_residual(run.limit, x, y).residual <= 1e-9,
    }
    return compare("el_example1", better.norm**2, run.limit.norm**2, assumptions=met, note=f"{loss} loss")


def _ended(net: Any) -> ShallowNet:
    """Where a flow ended, scaled to margin 1 where it separates the labels; or the net itself."""
    if isinstance(net, Flow):
        return net.limit if net.margin > 0 else net.net
    return as_shallow(net)


def _kkt_point(
    net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike, kkt_tol: float
) -> tuple[dict[str, bool | None], str]:
    """Whether a net is a KKT point that separates the labels, and its residual in words."""
    if net.c != 0:
        return {"no output bias": False}, "the margin problem is of nets without output bias"
    if not _separates(net, x, y):
        return {"every margin is positive": False}, "a point is on the wrong side"
    residual = kkt_residual(net, x, y).residual
    return {f"a KKT point, to {kkt_tol:g}": residual <= kkt_tol}, f"KKT residual {residual:.2g}"


def _separates(net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike) -> bool:
    """Whether a net without output bias has a positive margin at every point."""
    margins = np.asarray(y, dtype=np.float64).reshape(-1) * net(np.asarray(x).reshape(-1))
    return net.c == 0 and bool(margins.min() > 0)
