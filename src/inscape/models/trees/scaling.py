"""Scalers of single features, as the chain of float64 operations that scikit-learn performs."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inscape.arrays import Floats

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*"}


@dataclass(frozen=True, eq=False)
class Scaling:
    """An increasing affine map of every feature, s_f(x) = slope_f x + offset_f, in rounded steps.

    The order of the steps is that of scikit-learn's `transform`, so `forward` rounds as it does. A
    rounded sum, product or quotient is monotone in its first operand, hence so is `forward`.

    Attributes:
        steps: (operation, amounts (d,)) one after the other, operation one of + - * /.

    >>> halved = Scaling((("-", np.array([1.0])), ("/", np.array([2.0]))))
    >>> only = np.zeros(1, dtype=int)
    >>> halved.forward(np.array([5.0]), only), halved.inverse(np.array([2.0]), only)
    (array([2.]), array([5.]))
    """

    steps: tuple[tuple[str, Floats], ...] = ()

    def forward(self, x: Floats, feature: Any = ...) -> Floats:
        """The scaled values of `x`, one of each `feature` (all of them in the last axis by default)."""
        for operation, amount in self.steps:
            x = _OPERATIONS[operation](x, amount[feature])
        return x

    def inverse(self, x: Floats, feature: Any = ...) -> Floats:
        """The values that are scaled to `x`, up to rounding."""
        for operation, amount in reversed(self.steps):
            x = _OPERATIONS[_OPPOSITE[operation]](x, amount[feature])
        return x

    def slope(self, feature: Any = ...) -> Any:
        """How much `forward` stretches each `feature`; 1 without steps."""
        slope: Any = 1.0
        for operation, amount in self.steps:
            if operation in "*/":
                slope = _OPERATIONS[operation](slope, amount[feature])
        return slope


def scaler_obstacle(scaler: Any) -> str | None:
    """Why `scaler` is no increasing affine map of single features, or None if it is one."""
    kind = type(scaler).__name__
    if scaler is None or scaler == "passthrough":
        return None
    if not type(scaler).__module__.startswith("sklearn.") or kind not in _READERS:
        return f"is {kind}, not one of {', '.join(_READERS)} or 'passthrough'"
    if getattr(scaler, "clip", False):
        return f"is a {kind} with clip=True, which is not affine"
    if any(operation in "*/" and not (amount > 0).all() for operation, amount in _READERS[kind](scaler)):
        return f"is a {kind} with a scale that is not positive"
    return None


def read_scaling(scalers: list[Any]) -> Scaling:
    """The chain of fitted `scalers`, which have no obstacle."""
    steps = [
        step
        for s in scalers
        if s is not None and s != "passthrough"
        for step in _READERS[type(s).__name__](s)
    ]
    return Scaling(tuple((operation, np.asarray(amount, dtype=np.float64)) for operation, amount in steps))


def _standard(s: Any) -> list[tuple[str, Any]]:
    return [("-", s.mean_)] * bool(s.with_mean) + [("/", s.scale_)] * bool(s.with_std)


def _min_max(s: Any) -> list[tuple[str, Any]]:
    return [("*", s.scale_), ("+", s.min_)]


def _max_abs(s: Any) -> list[tuple[str, Any]]:
    return [("/", s.scale_)]


def _robust(s: Any) -> list[tuple[str, Any]]:
    return [("-", s.center_)] * bool(s.with_centering) + [("/", s.scale_)] * bool(s.with_scaling)


_READERS: dict[str, Callable[[Any], list[tuple[str, Any]]]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
}
