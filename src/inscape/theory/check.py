"""What the check of a statement returns: both sides, whether it holds, and what that rests on.

What high and low mean: a ratio rhs / lhs near 1: the bound is tight and says much of this network; from 1,000
on, or beyond what the left side can reach at all, it is vacuous: true, and silent. A negative slack: the
inequality is violated. When it does not hold: a statement whose assumptions are not met (`assumptions`) says
nothing either way, and a slack smaller than the error of the measurement (`interval`) decides nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from inscape.arrays import Floats
from inscape.errors import TheoryError, unknown_name
from inscape.pictures import Shown
from inscape.serialising import SCHEMA, check_schema, restored_fields

FORMS = ("stated", "corrected")
VACUOUS = 1e3
"""A bound this many times the quantity that it bounds says nothing."""

_ROUNDING = 1e-9
STATEMENT = "the statement itself"
REFUTED = {
    "rc_theorem5": STATEMENT,
    "lc_gradient_bound": STATEMENT,
    "lc_corollary3_lower": "the xi of the proof, and B as printed; the corollary says that "
    "some xi exists, and one does",
    "lc_theorem5_upper": STATEMENT,
    "lc_theorem5_lower": STATEMENT,
    "lc_corollary14": STATEMENT,
    "lc_theorem7": "the estimate of C_l by eq. 42; with true Lipschitz constants the theorem holds",
    "lc_proposition8": STATEMENT,
    "lc_proposition9": STATEMENT,
    "lc_proposition17": "the C of the proof; the proposition says that some C exists, and one does",
    "ms_theorem2": "the printed Delta, half of what we can derive; no violation is known",
}
"""Statement with a corrected form -> which reading of it a violation of the stated form refutes."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Check(Shown):
    """An inequality lhs <= rhs of a paper, measured.

    Attributes:
        name: the statement, as the function is called.
        lhs: the left side.
        rhs: the right side.
        holds: whether lhs <= rhs up to rounding; None where an assumption is not met, or where lhs > rhs but
            not by more than the error of the measurement.
        slack: rhs - lhs.
        form: "stated" as in the paper, or "corrected".
        assumptions: what the statement presupposes: met, not met, or None where it is taken on trust.
        note: how the sides were computed, or why the statement does not apply.
        interval: the 95 % interval of the slack where a side is estimated, else None.
        trivial: what the left side cannot exceed anyway: a right side beyond it says nothing.
    """

    name: str
    lhs: float
    rhs: float
    holds: bool | None
    slack: float
    form: str
    assumptions: Mapping[str, bool | None] = field(default_factory=dict)
    note: str = ""
    interval: tuple[float, float] | None = None
    trivial: float = math.inf

    @property
    def ratio(self) -> float:
        """Right side over left side: how loose the bound is; infinite where the left side is not positive."""
        if self.lhs > 0:
            return self.rhs / self.lhs
        return 1.0 if self.lhs == self.rhs else math.inf

    @property
    def is_vacuous(self) -> bool:
        """Whether it holds but says nothing: by more than a factor 1e3, or beyond the trivial bound."""
        return bool(self.holds) and (self.ratio > VACUOUS or self.rhs >= self.trivial)

    @property
    def verdict(self) -> str:
        """One of "holds", "vacuous", "violated", "undecided" (within the error), "does not apply"."""
        if self.holds is None:
            return "does not apply" if self.unmet or math.isnan(self.slack) else "undecided"
        return "violated" if not self.holds else "vacuous" if self.is_vacuous else "holds"

    @property
    def refutes(self) -> str:
        """Which reading of the statement a violation of this form refutes; "" of a corrected form."""
        return REFUTED.get(self.name, STATEMENT) if self.form == "stated" else ""

    @property
    def unmet(self) -> tuple[str, ...]:
        """The assumptions that are not met."""
        return tuple(name for name, met in self.assumptions.items() if met is False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; numbers that are not finite are None; `from_dict` reads it back."""
        plain = {
            "name": self.name,
            "form": self.form,
            "lhs": _finite(self.lhs),
            "rhs": _finite(self.rhs),
            "ratio": _finite(self.ratio),
            "slack": _finite(self.slack),
            "interval": None if self.interval is None else [_finite(end) for end in self.interval],
            "holds": self.holds,
            "verdict": self.verdict,
            "refutes": self.refutes if self.verdict == "violated" else "",
            "assumptions": dict(self.assumptions),
            "note": self.note,
            "trivial": _finite(self.trivial),
        }
        return {"schema": SCHEMA, "measure": "check"} | plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The check that `to_dict` wrote: where a statement was decided, a side that is None is infinite."""
        check_schema(data, "measure", "check", what="check", error=TheoryError)
        unknown = math.nan if data.get("holds") is None else math.inf
        beyond = {"lhs": unknown, "rhs": unknown, "slack": unknown, "trivial": math.inf}
        known = {**data} | {k: v for k, v in beyond.items() if data.get(k) is None}
        check: Self = restored_fields(cls, known, what="check", error=TheoryError)
        return check

    def __repr__(self) -> str:
        sign = ">" if self.lhs > self.rhs and not self.holds else "<="
        why = f": not met: {'; '.join(self.unmet)}" if self.unmet else ""
        return f"<{self.name} ({self.form}): {self.lhs:.4g} {sign} {self.rhs:.4g}, {self.verdict}{why}>"


def compare(
    name: str,
    lhs: float,
    rhs: float,
    *,
    form: str = "stated",
    assumptions: Mapping[str, bool | None] | None = None,
    note: str = "",
    interval: tuple[float, float] | None = None,
    trivial: float = math.inf,
    tolerance: float = _ROUNDING,
    scale: float = 0.0,
) -> Check:
    """The check of lhs <= rhs; a shortfall within rounding or within the interval is no violation.

    Rounding is `tolerance` times the larger side, or times `scale`, the size of terms that cancel in a side.

    >>> compare("one", 2.0, 3.0)
    <one (stated): 2 <= 3, holds>
    >>> compare("two", 3.0, 2.0, assumptions={"n > 0": False})
    <two (stated): 3 > 2, does not apply: not met: n > 0>
    """
    if form not in FORMS:
        raise TheoryError(unknown_name("form", form, FORMS))
    met, lhs, rhs = dict(assumptions or {}), float(lhs), float(rhs)
    slack = 0.0 if lhs == rhs else rhs - lhs
    if math.isnan(slack) or False in met.values():
        holds = None
    elif slack >= -tolerance * max(abs(lhs), abs(rhs), scale):
        holds = True
    else:
        holds = None if interval is not None and interval[1] >= 0 else False
    return Check(
        name=name,
        lhs=lhs,
        rhs=rhs,
        holds=holds,
        slack=slack,
        form=form,
        assumptions=met,
        note=note,
        interval=interval,
        trivial=trivial,
    )


def inapplicable(name: str, reason: str, form: str = "stated") -> Check:
    """The check of a statement that says nothing about this model or these data."""
    return compare(name, math.nan, math.nan, form=form, assumptions={reason: False}, note=reason)


def checked_form(form: str) -> bool:
    """Whether the corrected form is wanted; an error if it is neither."""
    if form not in FORMS:
        raise TheoryError(unknown_name("form", form, FORMS))
    return form == "corrected"


def only_stated(name: str, form: str) -> None:
    """An error if another form is wanted of a statement that holds as the paper has it."""
    if checked_form(form):
        raise TheoryError(f"{name} holds as stated: there is no corrected form")


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


Sides = Callable[[Any], tuple[float, float]]


def compare_means(name: str, draws: Mapping[str, Floats], sides: Sides, **more: Any) -> Check:
    """The check of lhs <= rhs where both are functions of means over m draws.

    The interval of the slack is the jackknife's: the sides without each draw in turn, whatever functions of
    the means they are, and Student's t with m - 1 degrees of freedom.

    Args:
        name: the statement.
        draws: quantity -> its value in each draw, (m, ...).
        sides: from the means, as attributes, to (lhs, rhs).
        more: for `compare`.

    >>> rolls = {"die": np.array([1.0, 6.0, 2.0, 5.0])}
    >>> compare_means("rolls", rolls, lambda mean: (mean.die, 3.0)).verdict
    'undecided'
    """
    m = len(next(iter(draws.values())))
    means = {key: np.mean(values, axis=0) for key, values in draws.items()}
    lhs, rhs = sides(SimpleNamespace(**means))
    interval = None
    if m > 1 and math.isfinite(rhs - lhs):
        without = []
        for i in range(m):
            rest = {key: mean + (mean - draws[key][i]) / (m - 1) for key, mean in means.items()}
            low, high = sides(SimpleNamespace(**rest))
            without.append(high - low)
        interval = _around(rhs - lhs, np.array(without))
    return compare(name, lhs, rhs, interval=interval, **more)


def _around(slack: float, without: Floats) -> tuple[float, float]:
    from scipy.special import stdtrit

    m, away = len(without), without - without.mean()
    largest = float(np.abs(away).max())
    spread = float(np.linalg.norm(away / largest)) * largest if largest > 0 else 0.0  # squares may overflow
    reach = float(stdtrit(m - 1, 0.975)) * math.sqrt((m - 1) / m) * spread
    return slack - reach, slack + reach
