"""What many runs over training say together: means with intervals at each step, and changes of each run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.measures.statistics import mean_with_error

if TYPE_CHECKING:
    import pandas as pd


def mean_of(values: npt.ArrayLike) -> tuple[float, tuple[float, float] | None]:
    """The mean and its 95 % interval of Student's t; None for fewer than two values.

    >>> mean_of([1.0])
    (1.0, None)
    """
    mean, _, interval = mean_with_error(np.asarray(values, dtype=np.float64))
    return mean, None if np.isnan(interval[0]) else interval


def band(steps: Sequence[float], runs: Iterable[Sequence[float]]) -> tuple[Floats, Floats, Floats, Floats]:
    """Steps, the mean over runs at each, and the ends of its interval (NaN for one run)."""
    table = np.array(list(runs), dtype=np.float64)
    found = [mean_of(column) for column in table.T]
    low, high = (np.array([np.nan if i is None else i[k] for _, i in found]) for k in (0, 1))
    return np.asarray(steps, dtype=np.float64), table.mean(axis=0), low, high


def mean_frame(
    frame: "pd.DataFrame", keys: Sequence[str], with_interval: Sequence[str], others: Sequence[str] = ()
) -> "pd.DataFrame":
    """For each group of runs and step: how many runs, the mean of each column, and the ends of intervals."""
    import pandas as pd

    lines = []
    for key, runs in frame.groupby(list(keys), sort=False):
        steps = runs["step"].iloc[0]
        known = [c for c in (*with_interval, *others) if c in runs and isinstance(runs[c].iloc[0], list)]
        bands = {c: band(steps, runs[c]) for c in known}
        for i, step in enumerate(steps):
            line = dict(zip(keys, key, strict=True)) | {"step": step, "runs": len(runs)}
            for name, (_, mean, low, high) in bands.items():
                line[name] = mean[i]
                if name in with_interval:
                    line |= {f"{name}_low": low[i], f"{name}_high": high[i]}
            lines.append(line)
    return pd.DataFrame(lines)


def coefficients(frame: "pd.DataFrame", x: str, y: str, start: str, *, changes: bool = False) -> list[float]:
    """Spearman's coefficient of two columns within each run, from the run's index `start` on.

    Of their changes from look to look, if so asked: two columns that only drift, each at its own time,
    have a high coefficient, but their changes do not.
    """
    from scipy.stats import spearmanr

    found = []
    for _, run in frame.iterrows():
        a, b = (np.diff(run[name][run[start] :], n=int(changes)) for name in (x, y))
        if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            found.append(float(spearmanr(a, b).statistic))
    return found
