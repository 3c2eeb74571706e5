"""Safran, Vardi, Lee 2022, Section 3: how wide a network must be for gradient flow to fit."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import TheoryError
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import as_shallow
from inscape.univariate import ShallowNet, gradient_flow, label_changes, population_error, theorem_sizes
from inscape.univariate.teacher import SUPPORT, alternating_teacher


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
    runs = (gradient_flow(net, x, y, loss, max_steps=max_steps) for net in nets)
    failed = sum(float(run.history.log_loss.min()) > -math.log(2 * n) for run in runs)
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
