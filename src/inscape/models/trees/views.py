"""How trees see a point, and where a split really is: the last number that `predict` sends to the left.

A tree sees single features that are scaled, or directions; in float64 or float32. A node sends a point to the
left if g(x_f) <= theta, where g is what happens to the feature on the way: scaling in float64, then, in all
trees but those of LightGBM and the histogram trees of scikit-learn, a cast to float32 (round to nearest, ties
to even). Both are monotone, so the node is the same as one that compares x_f itself,

    g(x) <= theta   <=>   x <= last,      last = max {x in float64 : g(x) <= theta},

and the cast moves a threshold by at most half a float32 spacing. With these numbers in place of the
thresholds, "the regions of `predict`" is a statement about real numbers. A node that asks for g(x_f) < theta,
as XGBoost does, asks for <= the number before theta.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Bools, Floats, Int32s, Ints

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*"}
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Scaling:
    """An increasing affine map of every feature, s_f(x) = slope_f x + offset_f, in rounded steps.

    The order of the steps is that of the library that scales, so `forward` rounds as it does. A rounded sum,
    product or quotient is monotone in its first operand, hence so is `forward`.

    Attributes:
        steps: (operation, amounts (d,)) one after the other, operation one of + - * /.
        dtype: the precision in which they are done.

    >>> halved = Scaling((("-", np.array([1.0])), ("/", np.array([2.0]))))
    >>> only = np.zeros(1, dtype=int)
    >>> halved.forward(np.array([5.0]), only), halved.inverse(np.array([2.0]), only)
    (array([2.]), array([5.]))
    """

    steps: tuple[tuple[str, Floats], ...] = ()
    dtype: Any = np.float64

    def forward(self, x: Floats, feature: Any = ...) -> Floats:
        """The scaled values of `x`, one of each `feature` (all of them in the last axis by default)."""
        x = x.astype(self.dtype, copy=False)
        for operation, amount in self.steps:
            x = _OPERATIONS[operation](x, amount[feature].astype(self.dtype, copy=False))
        return x.astype(np.float64, copy=False)

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

    @property
    def is_increasing(self) -> bool:
        """Whether every feature is stretched by a positive number."""
        return all((amount > 0).all() for operation, amount in self.steps if operation in "*/")


class AffineMap(NamedTuple):
    """y = M x + b."""

    matrix: Floats
    """M, (m, d)."""
    offset: Floats
    """b, (m,)."""

    def points(self, x: Floats) -> Floats:
        """The map of points (n, d), (n, m)."""
        return np.asarray(x @ self.matrix.T + self.offset)

    def rounding(self, x: Floats) -> Floats:
        """A bound of the rounding of each coordinate in float64, over all points (n, d), (m,)."""
        largest = np.abs(x).max(axis=0) @ np.abs(self.matrix.T) + np.abs(self.offset)
        return np.asarray((self.matrix.shape[1] + 2) * EPS * largest)


@dataclass(frozen=True, eq=False)
class View:
    """From a point x to the features z of the trees: z_j = s_j(y[columns_j]), or M x + b; then a cast.

    Attributes:
        before: from x to y, of single features.
        scaling: s, of single features.
        columns: which coordinate each feature is, (m,); None for all in their order.
        oblique: M and b where features are directions; there are then no scaling and no columns.
        single: whether the trees see float32.
    """

    before: Scaling = field(default_factory=Scaling)
    scaling: Scaling = field(default_factory=Scaling)
    columns: Ints | None = None
    oblique: AffineMap | None = None
    single: bool = False

    def seen(self, x: Floats) -> Floats:
        """The features of points (n, d), before the cast, (n, m)."""
        if self.oblique is not None:
            return self.oblique.points(x)
        x = self.before.forward(x)
        return self.scaling.forward(x if self.columns is None else x[:, self.columns])

    @property
    def is_plain(self) -> bool:
        """Whether the trees see the coordinates of a point as they are, apart from a cast."""
        return self.oblique is None and self.columns is None and not (self.before.steps + self.scaling.steps)

    @property
    def precision(self) -> str:
        """The precision of the numbers that the trees see, in words."""
        return "float32" if self.single else "float64"

    @property
    def limit(self) -> float:
        """The largest number that the trees can take."""
        return float(np.finfo(np.float32).max) if self.single else float(np.finfo(np.float64).max) / 4


_MOST_DOUBLINGS = 2100  # from the smallest to the largest float64; a handful is usual


def last_on_left(
    threshold: Floats,
    feature: Int32s,
    scaling: Scaling,
    *,
    single: bool,
    strict: Bools | bool = False,
) -> Floats:
    """The last float64 number of each `feature` that is sent to the left of its `threshold`, (n,).

    Args:
        threshold: theta of each node, (n,), in scaled units; infinite ones stay as they are.
        feature: the feature f that each node compares, (n,).
        scaling: what happens to the features before the trees see them.
        single: whether the trees see float32.
        strict: whether a node asks for less than its threshold, (n,) or for all.

    >>> none = np.zeros(1, dtype=np.int32)
    >>> last_on_left(np.array([0.5]), none, Scaling(), single=True) - 0.5   # half of 2 ** -24
    array([2.98023224e-08])
    """
    with np.errstate(all="ignore"):  # overflow to infinity and subnormal numbers are meant
        threshold = np.where(strict, np.nextafter(threshold, -np.inf), threshold)
        last = _last_before_cast(threshold) if single else threshold
        return _last_before_scaling(last, feature, scaling) if scaling.steps else last


def blurs(threshold: Floats, feature: Int32s, scaling: Scaling, *, single: bool) -> Floats:
    """The spacing of the numbers that the trees can tell apart near each threshold, in input units, (n,)."""
    finite = np.where(np.isfinite(threshold), threshold, 0.0)
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.abs(finite).astype(np.float32 if single else np.float64)).astype(np.float64)
    return np.asarray(spacing / scaling.slope(feature), dtype=np.float64)


def _last_before_cast(threshold: Floats) -> Floats:
    """The last float64 number whose cast to float32 is <= threshold.

    With g the last float32 number <= threshold and h the next one, everything below (g + h) / 2 is cast
    to g or less; the middle itself goes to whichever of the two is even.
    """
    g = threshold.astype(np.float32)
    g = np.where(g > threshold, np.nextafter(g, np.float32(-np.inf)), g)
    h = np.nextafter(g, np.float32(np.inf))
    middle = (g.astype(np.float64) + h.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) <= g, middle, np.nextafter(middle, -np.inf))


def _last_before_scaling(last: Floats, feature: Int32s, scaling: Scaling) -> Floats:
    """The last float64 number that is scaled to `last` or less, by bisection around the inverse."""
    result = scaling.inverse(last, feature)
    finite = np.flatnonzero(np.isfinite(last))
    bound, f, guess = last[finite], feature[finite], result[finite]

    def goes_left(x: Floats) -> Bools:
        return scaling.forward(x, f) <= bound

    low = _step_until(guess, -1.0, goes_left)
    high = _step_until(guess, 1.0, lambda x: ~goes_left(x))
    for _ in range(2 * 64):  # enough to separate any two neighbours that are not subnormal
        middle = low + (high - low) / 2
        if not ((middle > low) & (middle < high)).any():
            break
        left = goes_left(middle)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    result[finite] = low
    return result


def _step_until(x: Floats, direction: float, done: Callable[[Floats], Bools]) -> Floats:
    """`x` moved by 0, 1, 2, 4, ... times its spacing in `direction` until `done`, each number for itself."""
    moved, step = x, np.spacing(np.abs(x))
    for _ in range(_MOST_DOUBLINGS):
        waiting = ~done(moved)
        if not waiting.any():
            break
        moved = np.where(waiting, x + direction * step, moved)
        step = 2 * step
    return moved
