r"""Where a split really cuts: the last number that `predict` sends to the left.

A node of a tree sends a point to the left if g(x_f) <= theta, where g is what happens to the feature on
the way: scaling in float64, then, in all trees but those of LightGBM and the histogram trees of scikit-learn,
a cast to float32 (round to nearest, ties to even). Both are monotone, so the node is the same as one that
compares x_f itself,

    g(x) <= theta   <=>   x <= cut,      cut = max {x in float64 : g(x) <= theta},

and the cast moves a threshold by at most half a float32 spacing. With the cuts in place of the
thresholds, "the regions of `predict`" is a statement about real numbers. A node that asks for g(x_f) < theta,
as XGBoost does, asks for <= the number before theta.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from inscape.arrays import Bools, Floats
from inscape.models.trees.views import Scaling

Indices = npt.NDArray[np.int32]

_MOST_DOUBLINGS = 2100  # from the smallest to the largest float64; a handful is usual


def cuts(
    threshold: Floats,
    feature: Indices,
    scaling: Scaling,
    *,
    single: bool,
    strict: Bools | bool = False,
) -> Floats:
    """The last float64 number of each `feature` that is sent to the left of its `threshold`, (n,).

    Args:
        threshold: theta of each node, (n,), in scaled units; infinite ones stay as they are.
        feature: the feature f that each node looks at, (n,).
        scaling: what happens to the features before the trees see them.
        single: whether the trees see float32.
        strict: whether a node asks for less than its threshold, (n,) or for all.

    >>> none = np.zeros(1, dtype=np.int32)
    >>> cuts(np.array([0.5]), none, Scaling(), single=True) - 0.5   # half of 2 ** -24
    array([2.98023224e-08])
    """
    with np.errstate(all="ignore"):  # overflow to infinity and subnormal numbers are meant
        threshold = np.where(strict, np.nextafter(threshold, -np.inf), threshold)
        last = _last_before_cast(threshold) if single else threshold
        return _last_before_scaling(last, feature, scaling) if scaling.steps else last


def blurs(threshold: Floats, feature: Indices, scaling: Scaling, *, single: bool) -> Floats:
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


def _last_before_scaling(last: Floats, feature: Indices, scaling: Scaling) -> Floats:
    """The last float64 number that is scaled to `last` or less, by bisection around the inverse."""
    result = scaling.inverse(last, feature)
    finite = np.flatnonzero(np.isfinite(last))
    bound, f, guess = last[finite], feature[finite], result[finite]

    def goes_left(x: Floats) -> npt.NDArray[np.bool_]:
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


def _step_until(x: Floats, direction: float, done: Callable[[Floats], npt.NDArray[np.bool_]]) -> Floats:
    """`x` moved by 0, 1, 2, 4, ... times its spacing in `direction` until `done`, each number for itself."""
    moved, step = x, np.spacing(np.abs(x))
    for _ in range(_MOST_DOUBLINGS):
        waiting = ~done(moved)
        if not waiting.any():
            break
        moved = np.where(waiting, x + direction * step, moved)
        step = 2 * step
    return moved
