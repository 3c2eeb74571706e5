"""Patel and Montufar (submission of 2024), Proposition 6 and Theorem 7: total variation.

Theorem 7 holds with true Lipschitz constants C_l; eq. 42 estimates them by |W_L ... W_{l+1}|, which is no
upper bound, since switching off a unit can raise the norm of a product. Proposition 6 holds in one dimension,
where the change along the way from a point to an adversarial example is part of the total variation; in two
a narrow pyramid has little of it and still changes the class at its tip.
"""

import math
from typing import Any, Unpack

import numpy as np

from inscape.arguments import positive_number
from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.models import wrap
from inscape.partition import linear_regions
from inscape.probes import Segment
from inscape.theory.check import Check, checked_form, compare, compare_means, only_stated
from inscape.theory.layers import as_module, as_points
from inscape.theory.local_complexity.gradient_bounds import lost_scale, lost_terms
from inscape.theory.local_complexity.moments import Settings, moments


def lc_theorem7(model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]) -> Check:
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
    here = score(x)
    side = np.where(here >= 0, 1.0, -1.0)
    ends = np.stack([score(x - eps), score(x + eps)])
    lowest = (side * ends).min(axis=0)
    inside = np.abs(knots - x[:, None]) <= eps
    among = np.where(inside, side[:, None] * values, math.inf).min(axis=1)
    return side * here - np.minimum(lowest, among), side * here
