"""Patel and Montufar (submission of 2024), Corollary 3: local complexity and the gradients of the units.

Each line has its counter-example in the tests and in docs/theory.md:

- C_grad = max_l |W_l ... W_1| does not bound the gradients: switching off a unit can raise the norm of a
  product. The product of the norms does.
- The lower bound asserts that some xi of an order exists, and one does. The explicit xi of its proof is too
  small: it takes E|z - b|^2 <= E z^2 + E b^2, which is false where z and b have opposite signs (twice the
  right side is true). The least xi that the argument allows is
  c_bias^eta sum_i E |grad z_i| 1{|z_i - beta_i| > eta}.
- The proof needs B, the number of units that are not good, with each unit at its own kink, where the density
  of Theorem 2 is taken, not at drawn biases as printed. Two units of one input tell the readings apart.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from inscape.arguments import whole_number
from inscape.errors import TheoryError
from inscape.seeding import RandomState, as_generator
from inscape.theory.check import Check, checked_form, compare, compare_means, only_stated
from inscape.theory.local_complexity.moments import Moments, Settings, moments


def lc_gradient_bound(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]
) -> Check:
    """|grad z_i(x)| <= C_grad for every unit: what Corollary 3 and all that follows from it rest on.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated", C_grad = max_l |W_l ... W_1|, or "corrected", max_l prod_{j <= l} |W_j|.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_gradient_bound(unit, [[0.5]], sigma=1.0, random_state=0)
    <lc_gradient_bound (corrected): 3 <= 3, holds>
    """
    m = moments(model, x, **settings)
    rhs = m.layers.gradient_bound(checked_form(form))
    return compare("lc_gradient_bound", m.largest, rhs, form=form, note="the largest gradient at the points")


def lc_corollary3_upper(
    model: Any, x: Any = None, *, form: str = "stated", **settings: Unpack[Settings]
) -> Check:
    """Eq. 7: LC <= C_bias sum_i E |grad z_i|. It holds as stated.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated" is the only one: it holds so.
        settings: see `moments`.

    One unit at its kink: both sides are |w| / (sqrt(2 pi) sigma).

    >>> from inscape.univariate import ShallowNet
    >>> lc_corollary3_upper(ShallowNet([3.0], [-1.5], [1.0]), [[0.5]], sigma=1.0)
    <lc_corollary3_upper (stated): 1.197 <= 1.197, holds>
    """
    only_stated("lc_corollary3_upper", form)
    m = moments(model, x, **settings)
    return compare_means(
        "lc_corollary3_upper",
        m.draws,
        lambda mean: (mean.complexity.sum(), m.density * mean.gradients.sum()),
        note=_note(m),
    )


def lc_corollary3_lower(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]
) -> Check:
    """Eq. 8: c_bias^eta sum_i E |grad z_i| - xi - B C_grad C_bias <= LC, with xi computed.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated" takes the explicit xi = c_bias^eta C_grad sum_i (E z_i^2 + E b_i^2) / eta^2 of the
            proof and the paper's C_grad and B (a violation refutes these, not that some xi exists);
            "corrected" the least xi that the argument allows, the product of norms, and B with each unit at
            its kink.
        settings: see `moments`; eta is sigma if not given.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_corollary3_lower(unit, [[0.5]], sigma=1.0, random_state=0)
    <lc_corollary3_lower (corrected): 0.7259 <= 1.197, holds>
    """
    m = moments(model, x, **settings)
    corrected = checked_form(form)

    def sides(mean: Any) -> tuple[float, float]:
        if corrected:
            lost = lost_terms(m, mean)
        else:
            c_grad = m.layers.gradient_bound(corrected=False)
            lost = m.least_density * c_grad * mean.squares / m.eta**2 + mean.not_good * c_grad * m.density
        return m.least_density * mean.gradients.sum() - lost, mean.complexity.sum()

    return compare_means("lc_corollary3_lower", m.draws, sides, form=form, note=_note(m), scale=lost_scale(m))


def lost_scale(m: Moments) -> float:
    """The size of what cancels in Corollary 3."""
    return float(m.least_density * m.draws["gradients"].sum(axis=1).mean())


def lost_terms(m: Moments, mean: Any) -> float:
    """What Corollary 3 takes off, xi + B C_grad C_bias, in the form that is a bound."""
    c_grad = m.layers.gradient_bound()
    return float(m.least_density * mean.far.sum() + mean.not_good_at_kink * c_grad * m.density)


def _note(m: Moments) -> str:
    return f"sigma {m.sigma:g}, eta {m.eta:g}, {len(m.draws['variation'])} noisy networks"


def lc_good_at_start(
    n_inputs: int,
    widths: Sequence[int],
    *,
    form: str = "stated",
    n_starts: int = 1000,
    random_state: RandomState = 0,
) -> Check:
    """At initialisation P(a unit is good) >= 1 - sum_l 2^{-n_l}, so B <= N sum_l 2^{-n_l} <= N L 2^{-n}.

    Left is B of networks with Gaussian weights and zero biases, the mean over starts at a random point; right
    N sum_l 2^{-n_l}. For such starts B is known: sum_{l < h} n_l (1 - prod_k (1 - 2^{-n_k})), since a layer
    is dead with probability 2^{-n_k} and then all that follow are. Perturbed biases, as `local_complexity`
    has them, wake the layer behind a dead one: there a unit of layer l is not good with probability
    1 - prod_{k > l} (1 - 2^{-n_k}), which is less.

    Args:
        n_inputs: n_0.
        widths: n_1, n_2, ..., the units of the hidden layers.
        form: "stated" is the only one: it holds so.
        n_starts: how many networks.
        random_state: a seed, a generator, or None.

    >>> lc_good_at_start(3, (20, 20)).lhs
    0.0
    """
    only_stated("lc_good_at_start", form)
    sizes = [whole_number(n, "width", 1, TheoryError) for n in (n_inputs, *widths)]
    starts = whole_number(n_starts, "n_starts", 2, TheoryError)
    rng = as_generator(random_state)
    a, alive = rng.standard_normal((starts, sizes[0])), np.ones((starts, 0), dtype=bool)
    for n_in, n_out in pairwise(sizes):
        a = np.maximum(np.einsum("soi,si->so", rng.standard_normal((starts, n_out, n_in)), a), 0.0)
        alive = np.column_stack([alive, a.any(axis=1)])
    later = np.column_stack([alive[:, 1:], np.ones(starts, dtype=bool)])
    good = np.cumprod(later[:, ::-1], axis=1)[:, ::-1]  # every later hidden layer has an active unit
    counts = (1 - good) @ np.array(sizes[1:], dtype=np.float64)
    n, share = sum(sizes[1:]), sum(0.5**width for width in sizes[1:])
    error = float(counts.std(ddof=1)) / math.sqrt(starts)
    slack = n * share - float(counts.mean())
    return compare(
        "lc_good_at_start",
        float(counts.mean()),
        n * share,
        note=f"{starts} starts; N L 2^-n is {n * len(widths) * 0.5 ** min(sizes[1:]):.4g}",
        interval=(slack - 1.96 * error, slack + 1.96 * error),
    )
