"""Safran, Vardi, Lee 2022: Theorem 2.3 from the start of the flow to its limit; steps of its proof."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.effective_regions.sufficient_width import binomial_interval
from inscape.theory.layers import as_shallow
from inscape.univariate import (
    ShallowNet,
    gradient_flow,
    kkt_residual,
    limit_regions,
    region_bound,
    shortest_interval,
    theorem_sizes,
)

BREAKPOINTS = 3
ACTIVE = 4


def el_theorem23(
    starts: ShallowNet | Sequence[ShallowNet],
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    teacher: ShallowNet,
    *,
    form: str = "stated",
    sigma_hidden: float,
    sigma_output: float,
    radius: float = 1.0,
    density: float | None = None,
    delta: float = 0.1,
    loss: str = "exponential",
    kkt_tol: float = 1e-2,
    max_steps: int = 4000,
) -> Check:
    """Theorem 2.3, end to end: with probability at least 1 - delta the flow ends with O(r) linear regions.

    A start succeeds if the loss falls below 1 / n and the flow converges in direction to a KKT point of at
    most 32 r + 67 linear regions. Needed are k >= 6144 R^4 log(48 r / delta) / rho, sigma_h >= 8400 n^2 C
    R^3.5 sqrt(r k) / (delta rho), sigma_o <= 1 / (4 k R sigma_h log(12 k / delta)), and labels that the
    teacher gives with a positive margin. Left is the share of starts that do not succeed, right delta; the
    interval is Clopper and Pearson's. The error on all x, the theorem's last sentence, is `el_corollary51`.

    Args:
        starts: one or more networks drawn as in Assumption 2.1.
        x: places in [-R, R], (n,).
        y: labels, the sign of the teacher.
        teacher: of width r; rho is the length of its shortest interval of one sign in [-R, R].
        form: "stated" is the only one: it holds so.
        sigma_hidden: sigma_h, with which w and b were drawn.
        sigma_output: sigma_o, with which v was drawn.
        radius: R >= 1.
        density: C, the largest density of x; uniform on [-R, R] if None.
        delta: the probability of failing.
        loss: "exponential" or "logistic".
        kkt_tol: up to which residual of the KKT conditions a limit counts as a KKT point.
        max_steps: of the flow.
    """
    only_stated("el_theorem23", form)
    nets = [starts] if isinstance(starts, ShallowNet) else [as_shallow(net) for net in starts]
    if not nets or len({net.width for net in nets}) > 1:
        raise TheoryError("give one or more starts of one width")
    places, labels = np.asarray(x, np.float64).reshape(-1), np.asarray(y, np.float64).reshape(-1)
    n, k, r = len(places), nets[0].width, teacher.width
    rho = shortest_interval(teacher, -radius, radius)
    sizes = theorem_sizes(r, rho, n=n, width=k, radius=radius, density=density, delta=delta)
    met: dict[str, bool | None] = {
        f"width k >= {sizes.width}": k >= sizes.width,
        f"sigma_h >= {sizes.sigma_hidden:.4g}": sigma_hidden >= sizes.sigma_hidden * (1 - 1e-12),
        f"sigma_o <= {sizes.sigma_output:.4g}": sigma_output <= sizes.sigma_output * (1 + 1e-12),
        "x in [-R, R]": bool(np.abs(places).max() <= radius),
        "the teacher has a positive margin": bool((labels * teacher(places)).min() > 0),
    }
    failed = sum(not _succeeds(net, places, labels, r, loss, kkt_tol, max_steps) for net in nets)
    low, high = binomial_interval(failed, len(nets))
    note = f"{len(nets) - failed} of {len(nets)} flows end with at most {region_bound(r)} regions"
    return compare(
        "el_theorem23",
        failed / len(nets),
        delta,
        assumptions=met,
        note=note,
        interval=(delta - high, delta - low),
    )


def _succeeds(
    start: ShallowNet, x: Floats, y: Floats, r: int, loss: str, kkt_tol: float, max_steps: int
) -> bool:
    run = gradient_flow(start, x, y, loss, max_steps=max_steps)
    if not run.converged or float(run.history.log_loss.min()) > -math.log(len(x)):
        return False
    limit = limit_regions(run.net, x, y)
    return kkt_residual(run.limit, x, y).residual <= kkt_tol and limit.n_regions <= region_bound(r)


def el_breakpoints(
    net: Any, x: npt.ArrayLike, teacher: ShallowNet, *, form: str = "stated", radius: float = 1.0
) -> Check:
    """From the proof of Theorem 3.1: three breakpoints on every interval on which the labels do not change.

    Left is 3, right the least number of breakpoints of the net in an interval of [-R, R] between changes of
    the teacher's sign. The proof promises them of networks of the theorem's width; a narrower one that lacks
    them refutes nothing. It also needs four neurons that are active at every point.

    Args:
        net: where the flow starts: a `ShallowNet`, or a torch module of one input and one hidden layer.
        x: places, (n,).
        teacher: whose sign is learned.
        form: "stated" is the only one.
        radius: R.

    >>> teacher = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0])
    >>> knots = [-0.9, -0.5, -0.1, 0.2, 0.6]
    >>> el_breakpoints(ShallowNet([1.0] * 5, [-t for t in knots], [1.0] * 5), [-0.4, 0.7], teacher).rhs
    2.0
    """
    only_stated("el_breakpoints", form)
    shallow = as_shallow(net)
    places = np.asarray(x, np.float64).reshape(-1)
    changes = teacher.sign_changes(-radius, radius)
    knots = np.asarray(shallow.knots, np.float64)
    inside = knots[(knots > -radius) & (knots < radius)]
    counts = np.histogram(inside, np.concatenate([[-radius], changes, [radius]]))[0]
    everywhere = int((np.outer(places, shallow.w) + shallow.b > 0).all(axis=0).sum())
    rho = shortest_interval(teacher, -radius, radius)
    needed = theorem_sizes(teacher.width, rho, n=len(places), radius=radius).width
    met: dict[str, bool | None] = {
        f"width k >= {needed}": shallow.width >= needed,
        f"{ACTIVE} neurons are active at every point": everywhere >= ACTIVE,
    }
    note = f"{len(counts)} intervals, {len(inside)} breakpoints; {everywhere} neurons active at every point"
    return compare("el_breakpoints", float(BREAKPOINTS), float(counts.min()), assumptions=met, note=note)


def el_pl_condition(net: Any, x: npt.ArrayLike, y: npt.ArrayLike, *, form: str = "stated") -> Check:
    """The Polyak-Lojasiewicz condition from which Theorem 3.1 follows, with a constant of our own.

    The exponential loss L = (1/n) sum_i exp(-y_i f(x_i)) satisfies |grad L| >= L / |u|, u the output weights
    of least norm whose net u . relu(w x + b) has margins of 1 at least: for the inner product of -grad_v L
    and u is (1/n) sum_i exp(-y_i f(x_i)) y_i (u . relu(w x_i + b)) >= L. So |grad L|^2 >= 2 mu L with
    mu = L / (2 |u|^2), at least 1 / (4 n |u|^2) as long as L >= 1 / (2 n). Such a u exists where the neurons
    can tell the labels apart, for which three breakpoints in every interval suffice (`el_breakpoints`). Left
    is L / |u|, right |grad L|, over all parameters. The paper's own constant is in an appendix that we do not
    have.

    Args:
        net: a `ShallowNet` without output bias, or a torch module of one input and one hidden layer.
        x: places, (n,).
        y: labels, -1 or +1.
        form: "stated" is the only one.

    >>> el_pl_condition(ShallowNet([1.0], [0.0], [0.0]), [2.0], [1])  # u = 1/2, L = 1, grad L = -2
    <el_pl_condition (stated): 2 <= 2, holds>
    """
    only_stated("el_pl_condition", form)
    shallow = as_shallow(net)
    places, labels = np.asarray(x, np.float64).reshape(-1), np.asarray(y, np.float64).reshape(-1)
    before = np.outer(places, shallow.w) + shallow.b
    features = np.maximum(before, 0.0)
    u = _least_norm(labels[:, None] * features)
    met: dict[str, bool | None] = {
        "no output bias": shallow.c == 0,
        "the neurons can tell the labels apart": u is not None,
    }
    weights = np.exp(-labels * shallow(places)) * labels / len(places)
    slopes = (before > 0) * shallow.v
    gradient = np.concatenate([weights @ features, weights @ (slopes * places[:, None]), weights @ slopes])
    loss = float(np.abs(weights).sum())
    size = math.inf if u is None else float(np.linalg.norm(u))
    note = f"loss {loss:.4g}, |u| = {size:.4g}, mu = {loss / (2 * size**2):.3g}"
    return compare(
        "el_pl_condition", loss / size, float(np.linalg.norm(gradient)), assumptions=met, note=note
    )


def _least_norm(rows: Floats) -> Floats | None:
    """The least u with rows @ u >= 1, by Lawson and Hanson's least distance programming; None without one."""
    from scipy.optimize import nnls

    n, k = rows.shape
    target = np.zeros(k + 1)
    target[-1] = 1.0
    stacked = np.vstack([rows.T, np.ones(n)])
    solution, distance = nnls(stacked, target)
    residual = stacked @ solution - target
    if distance < 1e-12 or residual[-1] >= 0:
        return None
    u: Floats = -residual[:-1] / residual[-1]
    least = float((rows @ u).min())
    return u / least if least > 0 else None  # rounding: margins of 1 exactly
