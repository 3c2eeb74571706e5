"""The rows that each question is asked of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import Correlation, correlation
from inscape.studies.region_counts.settings import CLASSICAL

if TYPE_CHECKING:
    import pandas as pd

FITTED = 0.99
"""Networks of a lower training accuracy are left out: of them no correlation is claimed."""
HYPER_PARAMETERS = ("learning_rate", "batch_size", "weight_decay")
TREE_PARAMETERS = ("max_depth", "criterion", "splitter")


@dataclass(frozen=True)
class Subject:
    """What a group of rows is of: a model on a data set; `data` is empty for several models taken together.

    >>> print(Subject("resnet18", "cifar10"), Subject("networks together"), sep=", ")
    resnet18 on cifar10, networks together
    """

    model: str
    data: str = ""

    @property
    def is_pooled(self) -> bool:
        """Whether these are several models."""
        return not self.data

    def __str__(self) -> str:
        return self.model if self.is_pooled else f"{self.model} on {self.data}"


NETWORKS_TOGETHER = Subject("networks together")
TREES_TOGETHER = Subject("trees and forests")


def part(frame: "pd.DataFrame", *names: str) -> "pd.DataFrame":
    """The rows of some parts of the study."""
    return frame[frame["part"].isin(names)]


def networks(frame: "pd.DataFrame", *, fitted: bool = True) -> "dict[Subject, pd.DataFrame]":
    """The rows of each network on each data set; only those that fit their training data."""
    rows = frame[~frame["model"].isin(CLASSICAL)]
    return _by_subject(rows[rows["train_accuracy"] >= FITTED] if fitted else rows)


def classical(frame: "pd.DataFrame") -> "dict[Subject, pd.DataFrame]":
    """The rows of trees and of forests on each data set."""
    return _by_subject(frame[frame["model"].isin(CLASSICAL)])


def _by_subject(rows: "pd.DataFrame") -> "dict[Subject, pd.DataFrame]":
    groups = rows.groupby(["model", "data"], sort=False)
    return {Subject(str(model), str(data)): group for (model, data), group in groups}


def pooled(groups: "Mapping[Subject, pd.DataFrame]") -> "pd.DataFrame":
    """All rows together, each model called by its name and data."""
    import pandas as pd

    return pd.concat(
        [group.assign(model=str(subject)) for subject, group in groups.items()], ignore_index=True
    )


def with_names(table: "pd.DataFrame") -> "pd.DataFrame":
    """A table whose column of models holds what they are called."""
    return table.assign(model=table["model"].map(str)) if "model" in table else table


def seed_means(rows: "pd.DataFrame", columns: Iterable[str]) -> "pd.DataFrame":
    """One line per configuration: the means of some columns over its seeds; without those not measured."""
    wanted = list(columns)
    return rows.groupby("configuration", sort=False)[wanted].mean().dropna()


def with_gap(rows: "pd.DataFrame", column: str) -> Correlation:
    """Pearson's correlation of a column with the gap, over configurations."""
    means = seed_means(rows, [column, "gap"]) if column in rows else rows[:0]
    if len(means) < 2:
        return Correlation(np.nan, (np.nan, np.nan), len(means))
    return correlation(means[column], means["gap"])


def columns_of(c: Correlation) -> dict[str, Any]:
    """A correlation as columns of a table."""
    return {"configurations": c.n, "r": c.value, "low": c.interval[0], "high": c.interval[1]}


def mean_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """A mean and its 95 % interval over independent values, from Student's t."""
    from inscape.measures.statistics import mean_with_error

    mean, _, (low, high) = mean_with_error(np.asarray(list(values), np.float64))
    return mean, low, high
