"""The runs that `correlate` is given, checked; and which of them differ in the seed alone."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.errors import StudyError, unknown_name, warn
from inscape.training.recipe import Recipe

HYPER_PARAMETERS = ("learning_rate", "batch_size", "weight_decay")
FAMILIES = ("model", "group")
"""Columns that tell configurations apart but are no hyper-parameters."""
SETTINGS = {f.name for f in fields(Recipe)} | {
    "width",
    "depth",
    "hidden",
    "he_scale",
    "init",
    "dropout",
    "max_depth",
}
PER_RUN = {"seed", "random_state", "replicate", "run", "repeat", "fold", "id"} | {
    "status", "host", "path", "file", "checkpoint", "time", "date"
}  # fmt: skip
"""Columns that may differ between runs of one configuration, though they hold no measurements."""


def checked_runs(frame: Any, measure: str, target: str, by: str | Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The runs as a table whose compared columns hold finite floats, and the names in `by`."""
    import pandas as pd

    try:
        table = pd.DataFrame(frame).reset_index(drop=True)
    except (TypeError, ValueError) as error:
        raise StudyError(f"expected a table with a line per run, not {type(frame).__name__}") from error
    repeated = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
    if repeated:
        raise StudyError(f"the frame has several columns {', '.join(repeated)}: keep one of each")
    if measure == target:
        raise StudyError(f"measure and target are both {measure!r}: a column always correlates with itself")
    if "train_accuracy" in table:
        table["train_accuracy"] = _numbers(table, "train_accuracy")
    if target == "gap" and "gap" not in table and {"train_accuracy", "test_accuracy"} <= set(table):
        table["gap"] = table["train_accuracy"] - _numbers(table, "test_accuracy")
    for name in (measure, target):
        if name not in table:
            raise StudyError(f"the frame has no column {name!r}: it has {', '.join(map(str, table))}")
        table[name] = _numbers(table, name)
        bad = int((~np.isfinite(table[name])).sum())
        if bad:
            raise StudyError(
                f"the column {name!r} is not finite in {bad} of {len(table)} runs: leave them out"
            )
    names = _checked_names(table, measure, target, by)
    for column in table:
        if table[column].dtype == object:
            table[column] = [str(v) if _is_container(v) else v for v in table[column]]
    return table, names


def _checked_names(table: Any, measure: str, target: str, by: str | Sequence[str]) -> tuple[str, ...]:
    if by is HYPER_PARAMETERS:  # the default: whichever there are
        return tuple(name for name in HYPER_PARAMETERS if name in table and name not in (measure, target))
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in table:
            raise StudyError(unknown_name("column in by", name, map(str, table)))
        if name in (measure, target):
            raise StudyError(f"{name!r} is compared and cannot be in by as well")
        if names.count(name) > 1:
            raise StudyError(f"{name!r} is in by twice")
    return names


def _numbers(table: Any, name: str) -> Floats:
    """A column as floats, NaN for what is missing."""
    column = table[name]
    if column.dtype.kind not in "iuf":
        known = column[~column.isna()]
        if column.dtype != object or not all(isinstance(v, int | float | np.number) for v in known):
            raise StudyError(f"the column {name!r} must hold numbers, not {column.dtype}")
    return np.asarray([np.nan if gone else float(v) for v, gone in zip(column, column.isna(), strict=True)])


def _is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | dict | set | np.ndarray)


def separators(runs: Any, by: Sequence[str]) -> tuple[str, ...]:
    """The columns that tell configurations apart, whether or not they are studied; those that vary."""
    names = dict.fromkeys((*FAMILIES, *by, *HYPER_PARAMETERS))
    return tuple(n for n in names if n in runs and runs[n].nunique(dropna=False) > 1)


def owners(runs: Any, names: Sequence[str]) -> Ints:
    """The number of the configuration of each run, (n,)."""
    families = [n for n in names if n in FAMILIES]
    hyper = ["configuration"] if "configuration" in runs else [n for n in names if n not in FAMILIES]
    alone = runs[hyper].isna().all(axis=1).to_numpy()
    if alone.all():
        return np.arange(len(runs))
    owner = runs.groupby(families + hyper, dropna=False, sort=False).ngroup().to_numpy()
    return np.asarray(np.where(alone, owner.max() + 1 + np.arange(len(runs)), owner))


def warn_of_mixtures(runs: Any, owner: Ints, compared: Sequence[str]) -> None:
    """Warn if runs that are averaged as seeds differ in what looks like a setting: words, or a known name."""
    names = [
        n
        for n in runs
        if n not in (*compared, "configuration", "train_accuracy", "test_accuracy")
        and str(n) not in PER_RUN
        and (str(n) in SETTINGS or runs[n].dtype.kind not in "iuf")
    ]
    if not names or "configuration" in runs:
        return
    varied = [str(n) for n in names if runs[n].groupby(owner).nunique(dropna=False).max() > 1]
    if varied:
        warn(
            f"runs that differ in {', '.join(varied)} are averaged as if they differed in the seed alone: "
            "name in by what is a hyper-parameter"
        )


NORMAL_DEVIATION = 1.4826
"""Times the median absolute deviation: the standard deviation of normal numbers."""


def variation(values: npt.ArrayLike, owner: npt.ArrayLike) -> float | None:
    """How much more a number varies between configurations than between the seeds of one.

    The ratio of the median absolute deviation of the configurations' means, as a standard deviation, to the
    pooled standard deviation inside configurations. A median, so that a few configurations which stand apart
    from all others do not pass for a family that varies. At 1 or below seeds explain what is seen. None where
    no configuration has two runs.

    Args:
        values: the number of each run, (n,).
        owner: the configuration of each run, (n,).

    >>> variation([1.0, 1.2, 3.0, 3.2, 5.0, 5.2], [0, 0, 1, 1, 2, 2])  # 2 * 1.4826 beside .1 * sqrt(2)
    20.967...
    """
    x, groups = np.asarray(values, np.float64), np.unique(np.asarray(owner), return_inverse=True)[1]
    sizes = np.bincount(groups)
    means = np.bincount(groups, x) / sizes
    freedom = int((sizes - 1).sum())
    if freedom == 0:
        return None
    within = np.sqrt(((x - means[groups]) ** 2).sum() / freedom)
    between = NORMAL_DEVIATION * np.median(np.abs(means - np.median(means)))
    if within == 0:
        return float("inf") if between > 0 else 0.0
    return float(between / within)
