"""Patel and Montufar (submission of 2024), Theorem 5 and Corollary 14: local complexity and local rank.

Each line has its counter-example in the tests and in docs/theory.md:

- Claim 2, E|J_l|_F >= (1/n_0) sum_i E|grad z_i|: 100 equal units of one input have |J| = 10, and 100
  gradients of norm 1. True is sum_i |grad z_i| <= sqrt(n_l) |J_l|_F.
- Eq. 12 loses a square: eps^2 rank <= |J|_F^2 <= C_grad sum_i |grad z_i|, not <= sum_i |grad z_i|. No
  constant mends it: with weights, sigma, eta and eps scaled by s the left side stays, the right falls like
  1 / s.
"""

import math
from typing import Any, Unpack

import numpy as np

from inscape.theory.check import Check, checked_form, compare_means
from inscape.theory.local_complexity.gradient_bounds import lost_terms
from inscape.theory.local_complexity.moments import Settings, moments


def lc_theorem5_upper(
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]
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
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]
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
    model: Any, x: Any = None, *, form: str = "corrected", **settings: Unpack[Settings]
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
