"""`choose`: how well measures pick the better of two models, and the best of all, without the target.

A correlation says how two numbers go together over many models. Who has models and no labels asks something
else: which of two is the better one, and how many points of accuracy are lost by trusting a measure?

What high and low mean: a share of pairs near 1: the measure picks the better of two models nearly always;
1/2: as a coin does; below: it picks the worse. When it does not hold: the shares are over pairs of these
models, and models of other kinds or trained on other data may be ranked otherwise.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.correlation.coefficients import KINDS, N_RESAMPLES, Correlation, bootstrapped
from inscape.errors import StudyError, unknown_name
from inscape.seeding import RandomState

if TYPE_CHECKING:
    import pandas as pd

BETTER = {"high": 1, "low": -1}


def choose(
    frame: Any,
    measures: Mapping[str, str],
    *,
    target: str = "test_accuracy",
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> "pd.DataFrame":
    """A table with a line per measure: how well it orders models by a target that it does not see.

    Over all pairs of models whose targets differ, `pairs` is the share in which the measure is on the side of
    the better one, a tie counting half: 0.5 is a coin. `regret` is the target of the best model less that of
    the model which the measure likes most, the mean of these if several are tied: in points where the target
    is a share. `kendall` is tau-b. Each has a 95 % bootstrap interval, ending in `low` and `high`, over
    configurations if the frame has them, so that the seeds of one are drawn together, else over models.

    Args:
        frame: a table with a line per model.
        measures: column -> "high" or "low", where the better model is expected.
        target: the column to be guessed, more of which is better.
        n_resamples: of the bootstrap.
        random_state: its seed.

    >>> import pandas as pd
    >>> runs = pd.DataFrame({"regions": [2.0, 3.0, 4.0, 9.0], "test_accuracy": [0.9, 0.8, 0.85, 0.5]})
    >>> line = choose(runs, {"regions": "low"}).iloc[0]
    >>> print(line["pairs"].round(3), line["regret"])
    0.833 0.0
    """
    import pandas as pd

    table = pd.DataFrame(frame)
    lines = []
    for name, side in measures.items():
        for column in (name, target):
            if column not in table:
                raise StudyError(unknown_name("column", column, map(str, table)))
        if side not in BETTER:
            raise StudyError(f"{name}: {side!r} must be 'high' or 'low', where the better model is expected")
        known = table[table[name].notna() & table[target].notna()]
        liked = BETTER[side] * known[name].to_numpy(np.float64)
        truth = known[target].to_numpy(np.float64)
        owner = known["configuration"].to_numpy() if "configuration" in known else None
        line: dict[str, Any] = {"measure": name, "better": side, "models": len(known)}
        for key, statistic in _STATISTICS.items():
            estimate = bootstrapped(
                partial(statistic, liked, truth), len(known), owner, n_resamples, random_state
            )
            line |= _columns(key, estimate)
        lines.append(line)
    return pd.DataFrame(lines)


def _columns(key: str, estimate: Correlation) -> dict[str, float]:
    low, high = estimate.interval
    return {key: estimate.value, f"{key} low": low, f"{key} high": high}


def _kendall(liked: Floats, truth: Floats, weights: Floats) -> Floats:
    return KINDS["kendall"](weights, liked, truth)


def _pairs(liked: Floats, truth: Floats, weights: Floats) -> Floats:
    """The share of pairs of different targets in which more is liked where more is true."""
    differ = np.sign(truth[:, None] - truth)
    agree = (np.sign(liked[:, None] - liked) * differ + 1) / 2 * np.abs(differ)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = ((weights @ agree) * weights).sum(axis=1) / ((weights @ np.abs(differ)) * weights).sum(
            axis=1
        )
    return np.asarray(shares)


def _regret(liked: Floats, truth: Floats, weights: Floats) -> Floats:
    """The best target less the mean target of the most liked models, among those that were drawn."""
    drawn = weights > 0
    best = np.where(drawn, truth, -np.inf).max(axis=1)
    among = np.where(drawn, liked, -np.inf)
    first = among == among.max(axis=1, keepdims=True)
    return np.asarray(best - (first * truth).sum(axis=1) / first.sum(axis=1))


_STATISTICS = {"kendall": _kendall, "pairs": _pairs, "regret": _regret}


def lead(
    frame: Any,
    first: tuple[str, str],
    second: tuple[str, str],
    *,
    target: str = "test_accuracy",
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> Correlation:
    """By how much larger the share of pairs is that one measure decides rightly than that of another.

    Args:
        frame: a table with a line per model.
        first: a column, and the side where the better model is expected.
        second: another.
        target: the column to be guessed.
        n_resamples: of the bootstrap, which draws the same models for both.
        random_state: its seed.
    """
    known = frame[frame[first[0]].notna() & frame[second[0]].notna() & frame[target].notna()]
    truth = known[target].to_numpy(np.float64)
    a, b = (BETTER[side] * known[name].to_numpy(np.float64) for name, side in (first, second))
    owner = known["configuration"].to_numpy() if "configuration" in known else None
    return bootstrapped(
        lambda w: _pairs(a, truth, w) - _pairs(b, truth, w), len(known), owner, n_resamples, random_state
    )
