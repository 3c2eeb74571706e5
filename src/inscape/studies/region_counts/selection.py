"""The rows that each question is asked of."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import Correlation, correlation
from inscape.correlation.configurations import variation
from inscape.studies.region_counts.settings import CLASSICAL

if TYPE_CHECKING:
    import pandas as pd

FITTED_FROM = 0.99
"""Networks of a lower training accuracy are left out: of them no correlation is claimed."""
HYPER_PARAMETERS = ("learning_rate", "batch_size", "weight_decay")
TREE_PARAMETERS = ("max_depth", "criterion", "splitter", "n_neighbors", "weights", "p", "C", "kernel")


@dataclass(frozen=True)
class Subject:
    """What a group of rows is of: a model, or several taken together, on a data set.

    >>> print(Subject("resnet18", "cifar10"))
    resnet18 on cifar10
    """

    model: str
    data: str

    @property
    def is_pooled(self) -> bool:
        """Whether these are several models."""
        return self.model in POOLED

    def __str__(self) -> str:
        return f"{self.model} on {self.data}"


NETWORKS_TOGETHER = "networks together"
TREES_TOGETHER = "trees and forests"
POOLED = (NETWORKS_TOGETHER, TREES_TOGETHER)


def part(frame: "pd.DataFrame", *names: str) -> "pd.DataFrame":
    """The rows of some parts of the study."""
    return frame[frame["part"].isin(names)]


def networks(frame: "pd.DataFrame", *, fitted: bool = True) -> "dict[Subject, pd.DataFrame]":
    """The rows of each network on each data set; only those that fit their training data."""
    rows = frame[~frame["model"].isin(CLASSICAL)]
    return _by_subject(rows[rows["train_accuracy"] >= FITTED_FROM] if fitted else rows)


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


def crossed(
    table: "pd.DataFrame", row: str, column: str, cell: Callable[[dict[str, Any]], str]
) -> "pd.DataFrame":
    """A table of texts with a line for each value of one column and a column for each of another.

    Args:
        table: with a line for each cell.
        row: the column whose values stand at the left.
        column: the column whose values stand above.
        cell: from a line, by the names of its columns, to its text.

    >>> import pandas as pd
    >>> long = pd.DataFrame({"measure": ["a", "a", "b"], "net": ["x", "y", "y"], "r": [0.1, 0.2, 0.3]})
    >>> print(crossed(long, "measure", "net", lambda line: str(line["r"])).to_csv(index=False))
    measure,x,y
    a,0.1,0.2
    b,,0.3
    <BLANKLINE>
    """
    import pandas as pd

    lines = [dict(zip(table.columns, values, strict=True)) for values in table.to_numpy(object)]
    cells: dict[Any, dict[str, str]] = {}
    for line in lines:
        cells.setdefault(line[row], {})[str(line[column])] = cell(line)
    columns = dict.fromkeys(str(line[column]) for line in lines)
    return pd.DataFrame([{row: name, **texts} for name, texts in cells.items()], columns=[row, *columns])


def seed_means(rows: "pd.DataFrame", columns: Iterable[str]) -> "pd.DataFrame":
    """One line per configuration: the means of some columns over its seeds; without those not measured."""
    wanted = list(columns)
    if not set(wanted) <= set(rows.columns):
        return rows[:0].reindex(columns=wanted)
    return rows.groupby("configuration", sort=False)[wanted].mean().dropna()


def with_gap(rows: "pd.DataFrame", column: str, target: str = "gap") -> Correlation:
    """Pearson's correlation of a column with the gap, or another target, over configurations."""
    means = seed_means(rows, [column, target]) if column in rows else rows[:0]
    if len(means) < 2:
        return Correlation(np.nan, (np.nan, np.nan), len(means))
    return correlation(means[column], means[target])


def columns_of(c: Correlation) -> dict[str, Any]:
    """A correlation as columns of a table."""
    return {"configurations": c.n, "r": c.value, "low": c.interval[0], "high": c.interval[1]}


def variation_of(rows: "pd.DataFrame", column: str, target: str = "gap") -> float | None:
    """The smaller of the two ratios, of a column and of the gap: what varies less limits what can be seen."""
    known = rows[rows[column].notna() & rows[target].notna()] if column in rows else rows[:0]
    ratios = [variation(known[name], known["configuration"]) for name in (column, target) if len(known)]
    return least_variation(ratios)


def least_variation(ratios: Iterable[float | None]) -> float | None:
    """The smallest of some ratios, None as soon as one is not known."""
    known = list(ratios)
    return None if not known or None in known else min(r for r in known if r is not None)


def mean_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """A mean and its 95 % interval over independent values, from Student's t."""
    from inscape.measures.measurement import mean_with_error

    mean, _, (low, high) = mean_with_error(np.asarray(list(values), np.float64))
    return mean, low, high
