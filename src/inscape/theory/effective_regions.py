"""Safran, Vardi, Lee 2022: the width that gradient flow needs (Section 3), where it ends and generalises."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, renamed, whole_number
from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.progress import Meter, meter
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import as_shallow
from inscape.univariate import (
    Flow,
    ShallowNet,
    effective_linear_regions,
    gradient_flow,
    kkt_residual,
    label_changes,
    limit_regions,
    population_error,
    region_bound,
    shortest_interval,
    theorem_sizes,
)
from inscape.univariate.teacher import SUPPORT, alternating_teacher


@renamed(kkt_tol="kkt_tolerance")
def el_theorem42(
    net: Any,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    n_changes: int | None = None,
    *,
    form: str = "stated",
    kkt_tolerance: float = 1e-2,
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
        kkt_tolerance: up to which residual of the KKT conditions the net counts as a KKT point.

    >>> from inscape.univariate import ShallowNet
    >>> constant = ShallowNet([0.0], [1.0], [1.0])
    >>> el_theorem42(constant, [-4.0, 4.0], [1, 1])
    <el_theorem42 (stated): 1 <= 67, holds>
    """
    only_stated("el_theorem42", form)
    shallow = _ended(net)
    r = label_changes(x, y) if n_changes is None else n_changes
    met, note = _kkt_point(shallow, x, y, kkt_tolerance)
    own = shallow.n_linear_regions()
    regions = effective_linear_regions(shallow, x, y) if _separates(shallow, x, y) else own
    note = f"r = {r}, {own} regions of the net itself; {note}"
    return compare("el_theorem42", float(regions), float(region_bound(r)), assumptions=met, note=note)


@renamed(kkt_tol="kkt_tolerance")
def el_corollary51(
    net: Any,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    teacher: ShallowNet,
    *,
    form: str = "stated",
    support: tuple[float, float] | None = None,
    delta: float = 0.1,
    kkt_tolerance: float = 1e-2,
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
        kkt_tolerance: as for `el_theorem42`.

    >>> import numpy as np
    >>> from inscape.univariate import labels_of, teacher_of
    >>> teacher, x = teacher_of([0.0]), np.linspace(-1, 1, 10_000)
    >>> net = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0])  # right everywhere
    >>> el_corollary51(net, x, labels_of(teacher, x), teacher, kkt_tolerance=10).lhs
    0.0
    """
    only_stated("el_corollary51", form)
    shallow = _ended(net)
    delta = positive_number(delta, "delta", TheoryError)
    places = np.asarray(x, dtype=np.float64).reshape(-1)
    low, high = (float(places.min()), float(places.max())) if support is None else support
    met, note = _kkt_point(shallow, x, y, kkt_tolerance)
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
    net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike, kkt_tolerance: float
) -> tuple[dict[str, bool | None], str]:
    """Whether a net is a KKT point that separates the labels, and its residual in words."""
    if net.c != 0:
        return {"no output bias": False}, "the margin problem is of nets without output bias"
    if not _separates(net, x, y):
        return {"every margin is positive": False}, "a point is on the wrong side"
    residual = kkt_residual(net, x, y).residual
    return {f"a KKT point, to {kkt_tolerance:g}": residual <= kkt_tolerance}, f"KKT residual {residual:.2g}"


def _separates(net: ShallowNet, x: npt.ArrayLike, y: npt.ArrayLike) -> bool:
    """Whether a net without output bias has a positive margin at every point."""
    margins = np.asarray(y, dtype=np.float64).reshape(-1) * net(np.asarray(x).reshape(-1))
    return net.c == 0 and bool(margins.min() > 0)


BREAKPOINTS = 3
ACTIVE_EVERYWHERE = 4


@renamed(kkt_tol="kkt_tolerance")
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
    kkt_tolerance: float = 1e-2,
    max_steps: int = 4000,
    progress: bool | Meter | None = None,
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
        kkt_tolerance: up to which residual of the KKT conditions a limit counts as a KKT point.
        max_steps: of the flow.
        progress: None for a bar after two seconds, False for none; a function gets (flows done, flows).

    >>> from inscape.univariate import teacher_of
    >>> start, x = ShallowNet.random(40, init="gaussian", random_state=0), [-0.6, -0.3, 0.4, 0.8]
    >>> scales = {"sigma_hidden": 1.0, "sigma_output": 0.2}
    >>> check = el_theorem23(start, x, [-1, -1, 1, 1], teacher_of([0.0]), **scales)
    >>> check.verdict, check.unmet[0]
    ('does not apply', 'width k >= 37932')
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
    failed = 0
    with meter(progress, "flows") as show:
        for i, net in enumerate(nets):
            show(i, len(nets))
            failed += not _succeeds(net, places, labels, r, loss, kkt_tolerance, max_steps)
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
    start: ShallowNet, x: Floats, y: Floats, r: int, loss: str, kkt_tolerance: float, max_steps: int
) -> bool:
    run = gradient_flow(start, x, y, loss, max_steps=max_steps)
    if not run.converged or float(run.history.log_loss.min()) > -math.log(len(x)):
        return False
    limit = limit_regions(run.net, x, y)
    return kkt_residual(run.limit, x, y).residual <= kkt_tolerance and limit.n_regions <= region_bound(r)


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
        f"{ACTIVE_EVERYWHERE} neurons are active at every point": everywhere >= ACTIVE_EVERYWHERE,
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


def el_theorem31(
    starts: ShallowNet | Sequence[ShallowNet],
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    form: str = "stated",
    shortest: float,
    sigma_hidden: float,
    sigma_output: float,
    radius: float = 1.0,
    density: float | None = None,
    n_changes: int | None = None,
    delta: float = 0.1,
    loss: str = "exponential",
    max_steps: int = 1000,
    progress: bool | Meter | None = None,
) -> Check:
    """Theorem 3.1: wide enough, the flow reaches a loss of 1 / (2 n) with probability at least 1 - delta.

    Needed are k >= 6144 R^4 log(24 r / delta) / rho, sigma_h >= 4200 n^2 C R^3.5 sqrt(r k) / (delta rho) and
    sigma_o <= 1 / (4 k R sigma_h log(6 k / delta)). Left is the share of starts from which the flow does not
    get there, right delta; the interval is Clopper and Pearson's.

    Args:
        starts: one or more networks drawn as in Assumption 2.1.
        x: places in [-R, R], (n,).
        y: labels, -1 or +1.
        form: "stated" is the only one: it holds so.
        shortest: rho, the length of the teacher's shortest interval of one sign.
        sigma_hidden: sigma_h, with which w and b were drawn.
        sigma_output: sigma_o, with which v was drawn.
        radius: R >= 1.
        density: C, the largest density of x; uniform on [-R, R] if None.
        n_changes: r; how often the labels change if None.
        delta: the probability of failing, below 1/2.
        loss: "exponential" or "logistic".
        max_steps: of the flow.
        progress: None for a bar after two seconds, False for none; a function gets (flows done, flows).

    >>> start = ShallowNet.random(40, init="gaussian", random_state=0)
    >>> x, y = [-0.6, -0.3, 0.4, 0.8], [-1, -1, 1, 1]
    >>> check = el_theorem31(start, x, y, shortest=1.0, sigma_hidden=1.0, sigma_output=0.2)
    >>> check.verdict, check.unmet[0]  # 40 units are too few for the theorem
    ('does not apply', 'width k >= 33674')
    """
    only_stated("el_theorem31", form)
    nets = [starts] if isinstance(starts, ShallowNet) else [as_shallow(net) for net in starts]
    if not nets or len({net.width for net in nets}) > 1:
        raise TheoryError("give one or more starts of one width")
    if not 0 < delta < 0.5:
        raise TheoryError(f"delta={delta} must lie between 0 and 1/2")
    n, k = len(np.asarray(y).reshape(-1)), nets[0].width
    r = max(1, label_changes(x, y)) if n_changes is None else n_changes
    sizes = theorem_sizes(  # Theorem 2.3 has these constants for delta / 2
        r, shortest, n=n, width=k, radius=radius, density=density, delta=2 * delta
    )
    met: dict[str, bool | None] = {
        f"width k >= {sizes.width}": k >= sizes.width,
        f"sigma_h >= {sizes.sigma_hidden:.4g}": sigma_hidden >= sizes.sigma_hidden * (1 - 1e-12),
        f"sigma_o <= {sizes.sigma_output:.4g}": sigma_output <= sizes.sigma_output * (1 + 1e-12),
        "x in [-R, R]": bool(np.abs(np.asarray(x, dtype=np.float64)).max() <= radius),
    }
    failed = 0
    with meter(progress, "flows") as show:
        for i, net in enumerate(nets):
            show(i, len(nets))
            run = gradient_flow(net, x, y, loss, max_steps=max_steps)
            failed += float(run.history.log_loss.min()) > -math.log(2 * n)
    low, high = binomial_interval(failed, len(nets))
    note = f"{len(nets) - failed} of {len(nets)} starts reach the loss 1/(2n) = {1 / (2 * n):.4g}"
    interval = (delta - high, delta - low)
    return compare("el_theorem31", failed / len(nets), delta, assumptions=met, note=note, interval=interval)


def el_theorem32(
    nets: Any,
    n_changes: int,
    *,
    form: str = "stated",
    loss: str = "exponential",
    teacher: ShallowNet | None = None,
) -> Check:
    """Theorem 3.2: width k = floor(a r) leaves a population loss of (1 - 0.75 a) / 4 with probability >= 1/4.

    The paper's distribution is in an appendix that we do not have; ours (`univariate.alternating_teacher`)
    is x uniform on [0, 2] and a teacher that alternates on r + 1 equal intervals. Left is 1/4, right the
    share of networks with that loss or more; the interval is Clopper and Pearson's.

    Args:
        nets: networks of one width after any time of gradient flow from starts as in Assumption 2.1.
        n_changes: r.
        form: "stated" is the only one: it holds so.
        loss: "exponential" or "logistic".
        teacher: another teacher on [0, 2].

    >>> nothing = ShallowNet([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])  # has learned nothing
    >>> el_theorem32([nothing] * 50, 2)
    <el_theorem32 (stated): 0.25 <= 1, holds>
    """
    only_stated("el_theorem32", form)
    trained = [as_shallow(net) for net in (nets if isinstance(nets, Sequence) else [nets])]
    r = whole_number(n_changes, "n_changes", 1, TheoryError)
    if not trained or len({net.width for net in trained}) > 1:
        raise TheoryError("give one or more networks of one width")
    k = trained[0].width
    limit = max(0.0, (1 - 0.75 * k / r) / 4)
    target = alternating_teacher(r) if teacher is None else teacher
    losses = np.array([population_error(net, target, *SUPPORT, loss=loss) for net in trained])
    n_above = int((losses >= limit).sum())
    low, high = binomial_interval(n_above, len(trained))
    met: dict[str, bool | None] = {
        "width k >= r": k >= r,
        "0.75 k < r, else the loss is only >= 0": 0.75 * k < r,
    }
    note = f"{n_above} of {len(trained)} networks of width {k} have a loss of at least {limit:.4g}"
    return compare(
        "el_theorem32",
        0.25,
        n_above / len(trained),
        assumptions=met,
        note=note,
        interval=(low - 0.25, high - 0.25),
    )


def binomial_interval(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson of a probability, from k of n."""
    from scipy.special import betaincinv

    low = float(betaincinv(k, n - k + 1, 0.025)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
    return low, high
