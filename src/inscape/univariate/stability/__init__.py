"""Which minima gradient descent can stay at: sharpness, the flattest implementation, and the size of f''.

What high and low mean: high sharpness: descent can stay here only with small steps; a high roughness: the
function bends much where data are dense. When it does not hold: sharpness changes when neurons are rescaled
though the function does not, so compare functions by `flattest` or `roughness`; and where the net does not
interpolate, the chain of inequalities says nothing.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, renamed
from inscape.arrays import Floats
from inscape.errors import UnivariateError
from inscape.pictures import Drawn
from inscape.progress import Meter
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import Kind, Status
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample
from inscape.univariate.stability.flattest import Flattest, flattest
from inscape.univariate.stability.gram import gram, hessian, sharpness_modes, top_eigenvalue
from inscape.univariate.stability.linearised import (
    FIT_TOLERANCE,
    KNOT_TOLERANCE,
    LinearStability,
    StrongStability,
    linear_stability,
    strong_stability,
)
from inscape.univariate.stability.smoothness_weight import population_weight, weight

__all__ = [
    "Flattest",
    "LinearStability",
    "Stability",
    "StrongStability",
    "flattest",
    "linear_stability",
    "population_weight",
    "stability",
    "strong_stability",
    "weight",
]

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Stability(Drawn):
    """The chain lower bound <= flattest <= sharpness <= 2/eta at a minimum of the square loss.

    Attributes:
        sharpness: the top eigenvalue of the Hessian of L = 1/(2n) sum (f - y)^2; its Gram form where f
            interpolates.
        flattest: the least sharpness over rescalings of the neurons, solved to `flattest_gap`.
        flattest_gap: the certified relative gap.
        flattest_scale: the factor c of each neuron that reaches it, (k,); see `ShallowNet.rescaled`.
        roughness: int |f''| g, the left side of Theorem 1.
        lower_bound: 1 + 2 int |f''| g.
        limit: 2 / eta.
        holds: whether lower_bound <= flattest <= sharpness <= limit, up to rounding; None if f does not
            interpolate, where it says nothing.
        holds_on_data: whether lower_bound <= flattest <= bracket[1] <= limit_on_data, which is what Theorem 2
            promises if knots lie on data points; None if f does not interpolate.
        theorem_1: whether int |f''| g <= 1/eta - 1/2.
        theorem_2: whether int |f''| g <= 1/eta - 1/2 + delta.
        delta_stated: Delta of eq. (25) as printed.
        delta: twice that: what eq. (34) and Lemma 2 give, and the only one of the two that we call a bound.
        limit_on_data: 2/eta + 2 delta, the bound of the sharpness for that delta.
        bracket: least and largest sharpness over the modes of the neurons that toggle on data points.
        bracket_is_exact: whether both ends are attained; otherwise they enclose.
        sharpest_is_exact: whether the upper end is attained.
        n_knots_on_data: how many neurons have their knot on a data point.
        interpolates: whether |f(x_j) - y_j| <= fit_tolerance (1 + max |y|) everywhere.
        loss: 1/(2n) sum (f(x_j) - y_j)^2.
        knots: where f'' sits, (L,).
        jumps: the weights of its deltas, (L,).
        weights: g at the knots, (L,).
        x: the data places, ascending.
        settings: step_size, knot_tolerance, fit_tolerance.
    """

    sharpness: float
    flattest: float
    flattest_gap: float
    flattest_scale: Floats
    roughness: float
    lower_bound: float
    limit: float
    holds: bool | None
    holds_on_data: bool | None
    theorem_1: bool
    theorem_2: bool
    delta_stated: float
    delta: float
    limit_on_data: float
    bracket: tuple[float, float]
    bracket_is_exact: bool
    sharpest_is_exact: bool
    n_knots_on_data: int
    interpolates: bool
    loss: float
    knots: Floats
    jumps: Floats
    weights: Floats
    x: Floats
    settings: dict[str, float]

    @property
    def status(self) -> Status:
        """Which theorem applies; its kind is "complete", "non_generic" (knots on data) or "other" (none)."""
        if not self.interpolates:
            return _says("other", "not a minimum with zero loss: the chain does not apply")
        if self.n_knots_on_data:
            return _says("non_generic", f"{self.n_knots_on_data} knots on data points: Theorem 2 applies")
        return _says("complete", "twice differentiable: Theorem 1 applies")

    def weight_curve(self, n: int = 400) -> tuple[Floats, Floats]:
        """Places over the range of the data and g there, (n,) each."""
        at = np.linspace(self.x[0], self.x[-1], n)
        return at, weight(at, self.x)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "measure": "stability", "status": self.status} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        check_schema(data, "measure", "stability", what="stability", error=UnivariateError)
        result: Self = restored_fields(cls, data, what="stability", error=UnivariateError)
        return result

    def _draw(self, ax: Any) -> Any:
        """|f''|, smoothed, over the range of the data, with g."""
        from inscape.drawing.univariate import draw_curvature, draw_weight

        ax = draw_curvature(self.knots, np.abs(self.jumps), self.x[0], self.x[-1], ax=ax)
        draw_weight(*self.weight_curve(), ax=ax)
        return ax

    def __repr__(self) -> str:
        numbers = (self.lower_bound, self.flattest, self.sharpness, self.limit)
        chain = f"{numbers[0]:.4g}"
        for before, after in pairwise(numbers):
            chain += f" {'<=' if _at_most(before, after) else '>'} {after:.4g}"
        words = {True: " holds", False: " fails", None: ""}  # the status says that the chain does not apply
        on_data = (
            f", its chain{words[self.holds_on_data]}" if self.interpolates and self.n_knots_on_data else ""
        )
        return f"<stability: {chain}{words[self.holds]}; {self.status}{on_data}>"


@renamed(knot_tol="knot_tolerance", fit_tol="fit_tolerance")
def stability(
    net: ShallowNet,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    step_size: float,
    *,
    gap: float = 1e-9,
    knot_tolerance: float = KNOT_TOLERANCE,
    fit_tolerance: float = FIT_TOLERANCE,
    progress: bool | Meter | None = None,
) -> Stability:
    """Whether `net` can be a stable minimum for that step size, and how smooth it must then be.

    Mulayoff, Michaeli, Soudry 2021: if gradient descent with step size eta stays at an interpolating minimum,
    then 1 + 2 int |f''| g <= min over implementations of the sharpness <= sharpness <= 2/eta (Theorem 1 with
    Lemma 4); with knots on data points the right side grows (Theorem 2).

    Args:
        net: a trained net.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        gap: to which relative gap the flattest implementation is solved.
        knot_tolerance: a knot is on a point where |w x + b| <= knot_tolerance (|w| max |x| + |b|).
        fit_tolerance: the net interpolates where |f - y| <= fit_tolerance (1 + max |y|).
        progress: None for a bar after two seconds, False for none; a function gets what `flattest` tells.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> stability(net, [-1, 0, 1], net([-1, 0, 1]), 0.25)
    <stability: 1.314 <= 4.797 <= 6.736 <= 8 holds; twice differentiable: Theorem 1 applies>
    """
    places, values = checked_sample(x, y)
    _check(net, gap, knot_tolerance, fit_tolerance)
    step_size = positive_number(step_size, "step_size", UnivariateError)
    residual = net(places) - values
    interpolates = bool(np.abs(residual).max() <= fit_tolerance * (1 + np.abs(values).max()))
    matrix = gram(net, places) if interpolates else hessian(net, places, values)
    sharpness = top_eigenvalue(matrix)
    least = flattest(net, places, gap, progress=progress)
    if interpolates and sharpness < least.value:  # a loose gap: the net itself is flatter
        least = Flattest(value=sharpness, certified=min(least.certified, sharpness), scale=np.ones(net.width))
    modes = sharpness_modes(net, places, knot_tolerance)
    bracket = modes.low, modes.high
    if interpolates:
        bracket = min(modes.low, sharpness), max(modes.high, sharpness)
    knots, jumps = net.knots, net.jumps
    g = weight(knots, places)
    roughness = float(np.abs(jumps) @ g)
    delta = _delta(net, places, len(knots), step_size)
    limit = 2 / step_size
    return Stability(
        sharpness=sharpness,
        flattest=least.value,
        flattest_gap=least.gap,
        flattest_scale=least.scale,
        roughness=roughness,
        lower_bound=1 + 2 * roughness,
        limit=limit,
        holds=_rising(1 + 2 * roughness, least.value, sharpness, limit) if interpolates else None,
        holds_on_data=_rising(1 + 2 * roughness, least.value, bracket[1], limit + 2 * delta)
        if interpolates
        else None,
        theorem_1=roughness <= limit / 2 - 0.5 + _ROUNDING * limit,
        theorem_2=roughness <= limit / 2 - 0.5 + delta + _ROUNDING * limit,
        delta_stated=delta / 2,
        delta=delta,
        limit_on_data=limit + 2 * delta,
        bracket=bracket,
        bracket_is_exact=modes.is_exact,
        sharpest_is_exact=modes.high_is_exact,
        n_knots_on_data=modes.n_toggling,
        interpolates=interpolates,
        loss=float(residual @ residual / (2 * len(places))),
        knots=knots,
        jumps=jumps,
        weights=g,
        x=np.sort(places),
        settings={"step_size": step_size, "knot_tolerance": knot_tolerance, "fit_tolerance": fit_tolerance},
    )


def _says(kind: Kind, detail: str) -> Status:
    return Status(kind, detail, text=detail)


def _check(net: Any, *tolerances: float) -> None:
    if not isinstance(net, ShallowNet):
        raise UnivariateError(f"net is a {type(net).__name__}: give a ShallowNet")
    if not min(tolerances) >= 0:
        raise UnivariateError("gap, knot_tolerance and fit_tolerance must not be negative")


def _delta(net: ShallowNet, x: Floats, n_knots: int, step_size: float) -> float:
    """What Theorem 2 adds: twice the Delta of eq. (25), 3 C^2 q + C sqrt(3 q (3 C^2 q + 2/eta))."""
    q = (1 + net.width - n_knots) / len(x)
    largest = max(float(np.abs(parameters).max()) for parameters in (net.w, net.b, net.v, np.array([net.c])))
    c = max(1.0, largest * (1 + float(np.abs(x).max())))
    return 3 * c**2 * q + c * math.sqrt(3 * q * (3 * c**2 * q + 2 / step_size))


def _at_most(a: float, b: float) -> bool:
    """Whether a <= b up to rounding."""
    return a <= b * (1 + _ROUNDING)


def _rising(*numbers: float) -> bool:
    """Whether the chain holds."""
    return all(_at_most(a, b) for a, b in pairwise(numbers))
