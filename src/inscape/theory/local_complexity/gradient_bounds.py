"""Patel and Montufar (submission of 2024): local complexity and the gradients of the units.

Corollary 3 bounds the one by the other; local rank (Theorem 5, Corollary 14) and total variation (Proposition
6, Theorem 7) follow from it. Each line has its counter-example in the tests and in docs/theory.md:

- C_grad = max_l |W_l ... W_1| does not bound the gradients: switching off a unit can raise the norm of a
  product. The product of the norms does.
- The lower bound of Corollary 3 asserts that some xi of an order exists, and one does. The explicit xi of its
  proof is too small: it takes E|z - b|^2 <= E z^2 + E b^2, which is false where z and b have opposite signs
  (twice the right side is true). The least xi that the argument allows is
  c_bias^eta sum_i E |grad z_i| 1{|z_i - beta_i| > eta}.
- The proof needs B, the number of units that are not good, with each unit at its own kink, where the density
  of Theorem 2 is taken, not at drawn biases as printed. Two units of one input tell the readings apart.
- Claim 2, E|J_l|_F >= (1/n_0) sum_i E|grad z_i|: 100 equal units of one input have |J| = 10, and 100
  gradients of norm 1. True is sum_i |grad z_i| <= sqrt(n_l) |J_l|_F.
- Eq. 12 loses a square: eps^2 rank <= |J|_F^2 <= C_grad sum_i |grad z_i|, not <= sum_i |grad z_i|. No
  constant mends it: with weights, sigma, eta and eps scaled by s the left side stays, the right falls like
  1 / s.
- Theorem 7 holds with true Lipschitz constants C_l; eq. 42 estimates them by |W_L ... W_{l+1}|, which is no
  upper bound, for the same reason as C_grad. Proposition 6 holds in one dimension, where the change on
  the way from a point to an adversarial example is part of the total variation; in two dimensions a narrow
  pyramid has little of it and still changes the class at its tip.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.models import wrap
from inscape.partition import linear_regions
from inscape.probes import Segment
from inscape.seeding import RandomState, as_generator
from inscape.theory.check import Check, checked_form, compare, compare_means, only_stated
from inscape.theory.layers import as_module, as_points
from inscape.theory.local_complexity.moments import Moments, MomentSettings, moments


def lc_gradient_bound(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
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
    model: Any, x: Any = None, *, form: str = "stated", **settings: Unpack[MomentSettings]
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
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
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


def lc_theorem5_upper(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
) -> Check:
    """Eq. 11: LC <= n_0 C_bias sum_l sqrt(C_grad^2 LR_l + eps^2 n_l), LR_l the local rank at eps.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated"; or "corrected": C_bias sum_l sqrt(n_l (C_grad^2 LR_l + eps^2 n_l)), C_grad the product
            of norms.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_theorem5_upper(unit, [[0.5]], sigma=1.0, random_state=0, eps=1.0)
    <lc_theorem5_upper (corrected): 1.197 <= 1.262, holds>
    """
    m = moments(model, x, **settings)
    corrected = checked_form(form)
    n, c_grad = m.layers.widths, m.layers.gradient_bound(corrected)
    factor = np.sqrt(n) if corrected else float(m.layers.n_inputs)

    def sides(mean: Any) -> tuple[float, float]:
        bound = (factor * np.sqrt(c_grad**2 * mean.ranks + m.eps**2 * n)).sum()
        return mean.complexity.sum(), m.density * bound

    return compare_means("lc_theorem5_upper", m.draws, sides, form=form, note=f"eps {m.eps:g}")


def lc_theorem5_lower(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
) -> Check:
    """Eq. 12: sum_l LR_l <= (LC + xi + B C_grad C_bias) / (c_bias^eta eps^2).

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated"; or "corrected": the right side times C_grad. Both with the xi and B of the corrected
            Corollary 3, so that only this mistake tells them apart.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_theorem5_lower(unit, [[0.5]], sigma=1.0, random_state=0, eps=1.0)
    <lc_theorem5_lower (corrected): 1 <= 14.84, holds>
    """
    m = moments(model, x, **settings)
    factor = m.layers.gradient_bound() if checked_form(form) else 1.0
    unit = m.least_density * m.eps**2  # zero where eta is so many sigma that the exponential underflows

    def sides(mean: Any) -> tuple[float, float]:
        total = mean.complexity.sum() + lost_terms(m, mean)
        return mean.ranks.sum(), factor * total / unit if unit > 0 else math.inf

    return compare_means("lc_theorem5_lower", m.draws, sides, form=form, note=f"eps {m.eps:g}, eta {m.eta:g}")


def lc_corollary14(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
) -> Check:
    """Eq. 31: LC <= n_0 C_bias C_grad sum_l sqrt(LR_l), LR_l the mean rank itself.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated"; or "corrected": C_bias C_grad sum_l sqrt(n_l LR_l), C_grad the product of norms.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_corollary14(unit, [[0.5]], sigma=1.0, random_state=0)
    <lc_corollary14 (corrected): 1.197 <= 1.197, holds>
    """
    m = moments(model, x, **settings)
    corrected = checked_form(form)
    c_grad = m.layers.gradient_bound(corrected)
    factor = np.sqrt(m.layers.widths) if corrected else float(m.layers.n_inputs)

    def sides(mean: Any) -> tuple[float, float]:
        return mean.complexity.sum(), m.density * c_grad * (factor * np.sqrt(mean.exact_ranks)).sum()

    note = "the rank counts singular values above 1e-10 C_grad"
    return compare_means("lc_corollary14", m.draws, sides, form=form, note=note)


def lc_theorem7(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[MomentSettings]
) -> Check:
    """Eq. 13: TV h c_bias^eta / max_l C_l - xi - B C_grad C_bias <= LC for h hidden layers.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "corrected" bounds the Lipschitz constant C_l of what follows layer l by the product of the
            operator norms; "stated" takes eq. 42, the norm of the product.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_theorem7(unit, [[0.5]], sigma=1.0, random_state=0)
    <lc_theorem7 (corrected): 0.431 <= 1.197, holds>
    """
    m = moments(model, x, **settings)
    steepest = m.layers.rest_bound(checked_form(form))

    def sides(mean: Any) -> tuple[float, float]:
        share = m.layers.n_hidden * m.least_density / steepest if steepest > 0 else 0.0
        return float(mean.variation) * share - lost_terms(m, mean), mean.complexity.sum()

    note = f"max C_l {steepest:.4g}, eta {m.eta:g}"
    return compare_means("lc_theorem7", m.draws, sides, form=form, note=note, scale=lost_scale(m))


def lc_proposition6(
    model: Any,
    x: Any,
    *,
    form: str = "stated",
    radius: float | None = None,
    support: tuple[float, float] | None = None,
) -> Check:
    """Proposition 6: TV <= c_eps gamma excludes adversarial examples within eps of a point of margin gamma.

    Its quantitative form, which is its proof: c_eps times the most that the score falls within eps of x is at
    most TV. An adversarial example falls by more than gamma. For x uniform on the support, c_eps is one over
    its length and TV the variation of the score over it, exactly, from the knots.

    Args:
        model: a network of one input with one score (or two).
        x: the points to look around, (n,); of those with the ball inside the support the one with the least
            slack is reported.
        form: "stated" is the only one: it holds so.
        radius: eps; a tenth of the support if None.
        support: the interval on which x is uniform; the range of x if None.

    >>> from inscape.univariate import ShallowNet
    >>> ramp = ShallowNet([1.0], [0.0], [2.0], -1.0)  # from -1 at 0 to 1 at 1
    >>> lc_proposition6(ramp, [0.75], radius=0.5, support=(-1, 2))
    <lc_proposition6 (stated): 0.3333 <= 1.333, holds>
    """
    only_stated("lc_proposition6", form)
    points = as_points(x)
    if points.shape[1] != 1:
        raise NotApplicableError(f"the proposition is about one input, not {points.shape[1]}")
    places = points[:, 0]
    low, high = (float(places.min()), float(places.max())) if support is None else support
    if not low < high:
        raise TheoryError(f"support=({low}, {high}) is no interval: its ends must ascend")
    eps = 0.1 * (high - low) if radius is None else positive_number(radius, "radius", TheoryError)
    inside = places[(places - eps >= low) & (places + eps <= high)]
    if len(inside) == 0:
        raise NotApplicableError(f"no point has its ball of radius {eps:g} inside [{low:g}, {high:g}]")
    score = _score(model)
    q = linear_regions(as_module(model), Segment([low], [high]))
    knots = low + (high - low) * np.concatenate([[0.0], q.knots, [1.0]])
    values, density = score(knots), 1 / (high - low)
    variation = float(np.abs(np.diff(values)).sum()) * density
    falls, margins = _falls(score, inside, eps, knots, values)
    certified = variation <= density * margins
    note = (
        f"radius {eps:g}; of {len(inside)} points {int(certified.sum())} are certified and "
        f"{int((falls > margins).sum())} have adversarial examples"
    )
    return compare("lc_proposition6", density * float(falls.max()), variation, note=note)


def _score(model: Any) -> Any:
    """The score whose sign is the class, as a function of places."""
    wrapped = wrap(as_module(model))

    def score(t: Floats) -> Floats:
        scores = np.asarray(wrapped.scores(t.reshape(-1, 1)), dtype=np.float64)
        if scores.shape[1] > 2:
            raise NotApplicableError(f"the proposition is about two classes, not {scores.shape[1]}")
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    return score


def _falls(score: Any, x: Floats, eps: float, knots: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The most that the winning score falls within eps of each point, and its margin there, (n,) each."""
    scores = score(x)
    side = np.where(scores >= 0, 1.0, -1.0)
    ends = np.stack([score(x - eps), score(x + eps)])
    lowest = (side * ends).min(axis=0)
    inside = np.abs(knots - x[:, None]) <= eps
    among = np.where(inside, side[:, None] * values, math.inf).min(axis=1)
    return side * scores - np.minimum(lowest, among), side * scores
