"""Patel and Montufar (submission of 2024), Corollary 3: local complexity and the gradients of the units.

Mistakes, each with its counter-example in the tests and in docs/theory.md:

- C_grad = max_l |W_l ... W_1| does not bound the gradients: switching off a unit can raise the norm of a
  product. The product of the norms does.
- In the lower bound the proof takes E|z - b|^2 <= E z^2 + E b^2, which is false where z and b have opposite
  signs. The least xi that the argument allows is c_bias^eta sum_i E |grad z_i| 1{|z_i - beta_i| > eta}.

The proof also needs B, the number of units that are not good, with each unit at its own kink, where the
density of Theorem 2 is taken, not at drawn biases. The corrected form does that; we know no network on which
this difference alone breaks the bound.
"""

from typing import Any, Unpack

from inscape.theory.check import Check, checked_form, compare, only_stated
from inscape.theory.jackknife import compare_means
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
        form: "stated" takes xi = c_bias^eta C_grad sum_i (E z_i^2 + E b_i^2) / eta^2 from the proof and the
            paper's C_grad and B; "corrected" the least xi that the argument allows, the product of norms, and
            B with each unit at its kink.
        settings: see `moments`; eta is sigma if not given.
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
