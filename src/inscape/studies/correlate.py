"""`correlate`: does a measure go with generalisation, and what does the one number hide?"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import StudyError
from inscape.seeding import RandomState, as_seed
from inscape.studies.correlation import N_RESAMPLES, Correlation, correlation, partial_correlation
from inscape.studies.correlations import ACCURACIES, Correlations, Stratum
from inscape.studies.granulated import granulated_kendall
from inscape.studies.runs import (
    FAMILIES,
    HYPER_PARAMETERS,
    checked_runs,
    owners,
    separators,
    warn_of_mixtures,
)


@dataclass(frozen=True)
class _Columns:
    """Which columns are compared, and how intervals are drawn."""

    measure: str
    target: str
    by: tuple[str, ...]
    n_resamples: int
    seed: int

    def correlation(self, frame: Any, kind: str, clusters: npt.ArrayLike | None = None) -> Correlation:
        return correlation(
            frame[self.measure],
            frame[self.target],
            kind=kind,
            clusters=clusters,
            n_resamples=self.n_resamples,
            random_state=self.seed,
        )


def correlate(
    frame: Any,
    *,
    measure: str = "region_count",
    target: str = "gap",
    by: str | Sequence[str] = HYPER_PARAMETERS,
    min_train_accuracy: float | None = None,
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> Correlations:
    """Every correlation of a measure with the generalisation gap that a sceptic asks for.

    Runs that differ in the seed alone are averaged: the coefficients are over configurations, and say so in
    `.n_configurations` and `.n_runs`; `.single_runs` is Pearson's without averaging. A configuration is a
    value of the column "configuration" if there is one (rows of a study have it), else of "model", "group",
    `by`, and learning rate, batch size and weight decay together; runs without any hyper-parameter are a
    configuration each. Runs of one configuration that differ in a column of words, or in one named like a
    setting of training, draw an `InscapeWarning`. All intervals are 95 % percentile intervals of a bootstrap
    over configurations.

    Args:
        frame: a pandas table with a line per run, or what makes one. "gap" need not be in it if
            "train_accuracy" and "test_accuracy" are: it is their difference.
        measure: the column of the measure.
        target: the column it is compared with.
        by: the hyper-parameters; those that never change are left out. By default learning_rate, batch_size
            and weight_decay, as far as they are in the frame.
        min_train_accuracy: leave out runs below it, in the units of the column "train_accuracy". Such
            correlations are only expected of models that fit their training data.
        n_resamples: resamples of the bootstrap.
        random_state: its seed.

    >>> counts = {0.1: 2.7, 0.01: 3.1, 0.001: 3.6}
    >>> runs = [{"learning_rate": r, "region_count": n, "gap": 9 * n} for r, n in counts.items()]
    >>> correlate(runs).pearson.value
    1.0
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise StudyError(f"n_resamples={n_resamples!r} must be a whole number of at least 1")
    table, names = checked_runs(frame, measure, target, by)
    kept = _gated(table, min_train_accuracy)
    names = tuple(n for n in names if n not in FAMILIES)
    columns = _Columns(measure, target, names, int(n_resamples), as_seed(random_state))
    warn_of_mixtures(kept, owners(kept, separators(kept, names)), (measure, target))
    result = _correlations(kept, columns)
    models = {}
    if "model" in kept and kept["model"].nunique() > 1:
        models = {str(m): _correlations(g, columns) for m, g in kept.groupby("model", sort=False)}
    accuracy = kept.get("train_accuracy")
    return replace(
        result,
        models=models,
        n_gated=len(table) - len(kept),
        min_train_accuracy=min_train_accuracy,
        lowest_train_accuracy=None if accuracy is None else float(accuracy.min()),
    )


def _gated(table: Any, minimum: float | None) -> Any:
    if minimum is not None:
        if not isinstance(minimum, int | float | np.number):
            raise StudyError(f"min_train_accuracy={minimum!r} must be a number")
        if "train_accuracy" not in table:
            raise StudyError("min_train_accuracy needs a column 'train_accuracy'")
        table = table[table["train_accuracy"] >= minimum]
    if len(table) == 0:
        raise StudyError("there are no runs to correlate")
    return table


def _correlations(runs: Any, columns: _Columns) -> Correlations:
    """The correlations of some runs."""
    apart = separators(runs, columns.by)
    columns = replace(columns, by=tuple(n for n in columns.by if n in apart))
    fixed = tuple(n for n in apart if n in FAMILIES)
    held = tuple(n for n in apart if n not in columns.by)
    owner = owners(runs, apart)
    means = _seed_means(runs, owner, columns, held)
    return Correlations(
        measure=columns.measure,
        target=columns.target,
        by=columns.by,
        pearson=columns.correlation(means, "pearson"),
        spearman=columns.correlation(means, "spearman"),
        kendall=columns.correlation(means, "kendall"),
        single_runs=columns.correlation(runs, "pearson", owner),
        partial=_partial(means, columns, fixed),
        granulated=granulated_kendall(means, columns.measure, columns.target, columns.by, held),
        strata={h: _strata(runs, means, owner, columns, h) for h in columns.by},
        points=means,
        n_runs=len(runs),
        n_configurations=len(means),
        n_resamples=columns.n_resamples,
        seed=columns.seed,
    )


def _seed_means(runs: Any, owner: npt.NDArray[np.int64], columns: _Columns, held: tuple[str, ...]) -> Any:
    """One line per configuration: its hyper-parameters, and the means of measure and target over its runs.

    Means are rounded to 12 digits: the same three numbers in another order are a tie. Those of the accuracies
    are there to be looked at.
    """
    numbers = runs[[columns.measure, columns.target]].groupby(owner, sort=False).mean()
    for name in numbers:
        numbers[name] = np.round(
            numbers[name], 12 - int(np.ceil(np.log10(np.abs(numbers[name]).max() or 1.0)))
        )
    others = [n for n in ACCURACIES if n in runs and n not in numbers and runs[n].dtype.kind in "iuf"]
    numbers = numbers.join(runs[others].groupby(owner, sort=False).mean())
    names = [n for n in dict.fromkeys(("model", *held, *columns.by)) if n in runs and n not in others]
    return runs[names].groupby(owner, sort=False).first().join(numbers).reset_index(drop=True)


def _strata(
    runs: Any, means: Any, owner: npt.NDArray[np.int64], columns: _Columns, name: str
) -> dict[Hashable, Stratum]:
    """The correlations with one hyper-parameter held at each of its values."""
    found: dict[Hashable, Stratum] = {}
    for value in sorted(runs[name].dropna().unique(), key=_rank):
        mine, inside = means[means[name] == value], (runs[name] == value).to_numpy()
        found[value.item() if hasattr(value, "item") else value] = Stratum(
            pearson=columns.correlation(mine, "pearson"),
            spearman=columns.correlation(mine, "spearman"),
            kendall=columns.correlation(mine, "kendall"),
            single_runs=columns.correlation(runs[inside], "pearson", owner[inside]),
        )
    return found


def _rank(value: Any) -> tuple[bool, Any]:
    """Numbers by size, then words."""
    is_number = isinstance(value, int | float | np.number | np.bool_)
    return not is_number, value if is_number else str(value)


def _partial(means: Any, columns: _Columns, fixed: tuple[str, ...]) -> dict[str, Correlation]:
    """What is left when the values of one hyper-parameter, or of all, each have their own level."""
    import pandas as pd

    names = [*fixed, *columns.by]
    choices = {name: [name] for name in names} | ({"all": names} if len(names) > 1 else {})
    found = {}
    for label, controls in choices.items():
        dummies = pd.get_dummies(means[controls].astype("string"), drop_first=True, dtype=float)
        found[label] = partial_correlation(
            means[columns.measure],
            means[columns.target],
            dummies.to_numpy(),
            n_resamples=columns.n_resamples,
            random_state=columns.seed,
        )
    return found
