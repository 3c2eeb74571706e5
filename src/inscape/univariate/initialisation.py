"""Random parameters: the usual ones, and those of the theorems on the effective number of linear regions.

What high and low mean: large sizes: the theorem asks for networks, or samples, that are large. When it does
not hold: they are what a proof needs; flows from far smaller networks often behave alike.
"""

import math
from dataclasses import dataclass
from typing import Any, TypedDict

from inscape.arrays import Floats
from inscape.errors import ModelError, unknown_name
from inscape.seeding import RandomState, as_generator

Parameters = tuple[Floats, Floats, Floats, float]


class InitialScale(TypedDict, total=False):
    """The settings of `draw`: sigmas of "gaussian" and "small"; for "theorem" those of `theorem_sizes`."""

    sigma_hidden: float
    sigma_output: float
    sigma: float
    n_changes: int
    shortest: float
    n: int
    radius: float
    density: float | None
    delta: float
    eps: float


@dataclass(frozen=True, kw_only=True)
class TheoremSizes:
    """What Theorem 2.3 of Safran, Vardi, Lee 2022 asks for, up to the sample size.

    Attributes:
        width: k >= 6144 R^4 log(48 r / delta) / rho.
        sigma_hidden: s_h >= 8400 n^2 C R^3.5 sqrt(r k) / (delta rho), for the width that is used.
        sigma_output: s_o <= 1 / (4 k R s_h log(12 k / delta)).
        sample_size: (r log(1 / eps) + log(2 / delta)) / eps, to be multiplied by the theorem's unnamed
            constant.

    >>> from inscape.univariate import theorem_sizes
    >>> theorem_sizes(2, 0.5, n=10).width  # 6144 log(960) / 0.5
    84381
    """

    width: int
    sigma_hidden: float
    sigma_output: float
    sample_size: float


def theorem_sizes(
    n_changes: int,
    shortest: float,
    *,
    n: int,
    width: int | None = None,
    radius: float = 1.0,
    density: float | None = None,
    delta: float = 0.1,
    eps: float = 0.1,
) -> TheoremSizes:
    """The width, scales and sample size of Theorem 2.3 for a teacher of width r.

    Args:
        n_changes: r, the width of the teacher.
        shortest: rho, the length of its shortest interval of one sign.
        n: the number of data points.
        width: k, to take instead of the theorem's own; the scales follow it.
        radius: R >= 1, the data lie in [-R, R].
        density: C, the largest value of their density; uniform on [-R, R] if None.
        delta: the probability of failing.
        eps: the population error aimed at.

    >>> theorem_sizes(2, 0.5, n=30).width
    84381
    """
    if min(n_changes, n) < 1 or not shortest > 0 or not radius >= 1:
        raise ModelError("the theorem needs n_changes >= 1, n >= 1, shortest > 0 and radius >= 1")
    if not (0 < delta < 1 and 0 < eps < 1):
        raise ModelError(f"delta={delta} and eps={eps} must lie between 0 and 1")
    bound = 1 / (2 * radius) if density is None else density
    least = math.ceil(6144 * radius**4 * math.log(48 * n_changes / delta) / shortest)
    k = least if width is None else width
    hidden = 8400 * n**2 * bound * radius**3.5 * math.sqrt(n_changes * k) / (delta * shortest)
    output = 1 / (4 * k * radius * hidden * math.log(12 * k / delta))
    sample = (n_changes * math.log(1 / eps) + math.log(2 / delta)) / eps
    return TheoremSizes(width=least, sigma_hidden=hidden, sigma_output=output, sample_size=sample)


def draw(width: int, init: str, random_state: RandomState, **scale: Any) -> Parameters:
    """Parameters w, b, v, c drawn at random.

    - "torch": w, b uniform on [-1, 1], v, c uniform on [-1, 1] / sqrt(k), torch's own for Linear(1, k) and
      Linear(k, 1). The text of Mulayoff, Michaeli, Soudry 2021 names no initialisation: their result holds
      for any. This one is ours.
    - "gaussian": w, b ~ N(0, sigma_hidden^2), v ~ N(0, sigma_output^2), c = 0, Assumption 2.1 of Safran,
      Vardi, Lee 2022; by default the standard scales sigma_hidden = 1 and sigma_output = sqrt(2 / k).
    - "small": the same with both scales 1e-3 (or `sigma`), far inside the rich regime.
    - "theorem": the same with the scales of their Theorem 2.3: give the arguments of `theorem_sizes`
      (n_changes, shortest, n, ...). At widths below the theorem's own its assumption is not met.
    """
    rng = as_generator(random_state)
    if init == "torch":
        _refuse(init, scale)
        bound = 1 / math.sqrt(width)
        w, b = rng.uniform(-1, 1, (2, width))
        return w, b, rng.uniform(-bound, bound, width), float(rng.uniform(-bound, bound))
    if init == "gaussian":
        hidden = _positive("sigma_hidden", scale.pop("sigma_hidden", 1.0))
        output = _positive("sigma_output", scale.pop("sigma_output", math.sqrt(2 / width)))
        _refuse(init, scale)
    elif init == "small":
        hidden = output = _positive("sigma", scale.pop("sigma", 1e-3))
        _refuse(init, scale)
    elif init == "theorem":
        try:
            sizes = theorem_sizes(width=width, **scale)
        except TypeError as error:
            raise ModelError('init="theorem" needs n_changes, shortest and n') from error
        hidden, output = sizes.sigma_hidden, sizes.sigma_output
    else:
        raise ModelError(unknown_name("init", init, ["torch", "gaussian", "small", "theorem"]))
    w, b = rng.normal(0, hidden, (2, width))
    return w, b, rng.normal(0, output, width), 0.0


def _positive(name: str, value: Any) -> float:
    if not (isinstance(value, int | float) and 0 < value < math.inf):
        raise ModelError(f"{name}={value!r} must be a positive number")
    return float(value)


def _refuse(init: str, scale: dict[str, Any]) -> None:
    if scale:
        raise ModelError(f"init={init!r} takes no {', '.join(scale)}")
