"""Granulated Kendall: does the measure order the runs when one hyper-parameter changes and the rest stays?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd


def granulated_kendall(
    frame: "pd.DataFrame", measure: str, target: str, by: Sequence[str], fixed: Sequence[str] = ()
) -> dict[str, float]:
    """For each hyper-parameter the mean of Kendall's tau over all settings of the others.

    The granulated coefficient of Jiang et al. 2020 (arXiv 1912.02178): with hyper-parameter i free and all
    others held, tau = 1 / (k (k - 1)) sum over ordered pairs of sign(measure - measure') times
    sign(target - target'), a pair that is tied in either counting zero; psi_i is the mean of these tau.
    Settings of the others that hold fewer than two runs say nothing and are left out.

    Args:
        frame: one row per configuration.
        measure: a column of it.
        target: another.
        by: the hyper-parameters.
        fixed: columns that are always held, such as the model.

    >>> import pandas as pd
    >>> grid = {"rate": [1, 1, 2, 2], "size": [1, 2, 1, 2]}
    >>> frame = pd.DataFrame(grid | {"m": [1, 2, 3, 4], "t": [1, 3, 5, 2]})
    >>> granulated_kendall(frame, "m", "t", ["rate", "size"])
    {'rate': 0.0, 'size': 0.0}
    """
    found = {}
    for name in by:
        held = [*fixed, *(other for other in by if other != name)]
        groups = [g for _, g in frame.groupby(held, dropna=False)] if held else [frame]
        taus = [tau_a(g[measure].to_numpy(), g[target].to_numpy()) for g in groups if len(g) > 1]
        found[name] = float(np.mean(taus)) if taus else float("nan")
    return found


def tau_a(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float:
    """Kendall's tau over all pairs, a tied pair counting zero.

    >>> tau_a(np.array([1, 2, 3]), np.array([1, 3, 2]))
    0.3333333333333333
    """
    n = len(x)
    agree = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    return float(agree.sum() / (n * (n - 1)))
