"""Patel and Montufar (submission of 2024), Corollary 10 (informal): local complexity and weight decay."""

import math
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.theory.check import Check, compare, only_stated


def lc_corollary10(
    weight_decays: Any, complexities: Any, *, form: str = "stated", norms: Any = None, depth: int = 2
) -> Check:
    """Eq. 17, as a fitted slope: LC grows at most like log(1 / lambda) with the weight decay lambda.

    Left is the slope of log LC over log log(1 / lambda), least squares over runs, with its interval; right is
    1. The corrected Proposition 8 gives the smaller exponent (L - 1) / L under the same assumption, so the
    order is right though the constant is not. The note has the straight line LC = a + b log(1 / lambda) of
    the paper's figure.

    Args:
        weight_decays: lambda of each run, between 0 and 1, (m,).
        complexities: its LC late in training, (m,).
        form: "stated" is the only one: it holds so.
        norms: |theta| of each run: the assumption |theta| = Theta(log(1 / lambda)^{1/L}) is then tested, as
            that the fitted exponent is not significantly different from 1 / L.
        depth: L, the number of weight matrices.

    >>> decays = np.array([1e-1, 1e-2, 1e-3, 1e-4])
    >>> lc_corollary10(decays, 2 * np.log(1 / decays) ** 0.5)
    <lc_corollary10 (stated): 0.5 <= 1, holds>
    """
    only_stated("lc_corollary10", form)
    decays, values = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (weight_decays, complexities))
    if decays.shape != values.shape or len(np.unique(decays)) < 3:
        raise TheoryError("a slope needs one complexity per run and three different weight decays")
    if not ((decays > 0) & (decays < 1)).all() or not (values > 0).all():
        raise TheoryError("weight decays must lie between 0 and 1, and complexities be positive")
    pull = np.log(1 / decays)
    slope, reach, _ = _line(np.log(pull), np.log(values))
    assumptions: dict[str, bool | None] = {"|theta| grows like log(1 / lambda)^(1/L)": None}
    if norms is not None:
        sizes = np.asarray(norms, dtype=np.float64).reshape(-1)
        if sizes.shape != decays.shape or not (sizes > 0).all():
            raise TheoryError("norms must hold one positive number per run")
        power, spread, _ = _line(np.log(pull), np.log(sizes))
        met = abs(power - 1 / depth) <= spread
        assumptions = {
            f"|theta| grows like log(1 / lambda)^(1/{depth}): fitted {power:.2g} +- {spread:.1g}": met
        }
    straight, _, r2 = _line(pull, values)
    note = (
        f"over {len(decays)} runs; LC changes by {straight:.3g} per unit of log(1 / lambda), R^2 = {r2:.2f}"
    )
    interval = (1 - slope - reach, 1 - slope + reach)
    return compare("lc_corollary10", slope, 1.0, assumptions=assumptions, note=note, interval=interval)


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """The slope of least squares, half its 95 % interval, and R^2."""
    from scipy.special import stdtrit

    n, dx, dy = len(x), x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    rest = float(((dy - slope * dx) ** 2).sum())
    error = math.sqrt(rest / (n - 2) / float(dx @ dx))
    total = float(dy @ dy)
    return slope, float(stdtrit(n - 2, 0.975)) * error, 1 - rest / total if total > 0 else 1.0
