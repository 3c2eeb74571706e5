"""How trees see a point: single features that are scaled, or directions; in float64 or float32."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints

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
        """Whether the trees see the coordinates of a point as they are, but for a cast."""
        return self.oblique is None and self.columns is None and not (self.before.steps + self.scaling.steps)

    @property
    def precision(self) -> str:
        """The precision of the numbers that the trees see, in words."""
        return "float32" if self.single else "float64"

    @property
    def limit(self) -> float:
        """The largest number that the trees can take."""
        return float(np.finfo(np.float32).max) if self.single else float(np.finfo(np.float64).max) / 4
