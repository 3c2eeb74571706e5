"""The figures of the study to look into: every point says which model it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from inscape.reports.findings import Chart
from inscape.studies.region_counts.selection import Subject, classical, networks, part

if TYPE_CHECKING:
    import pandas as pd

HOVER = (
    *("name", "data", "learning_rate", "batch_size", "weight_decay", "max_depth", "criterion", "splitter"),
    *("replicate", "train_accuracy", "test_accuracy", "region_count_error"),
)


def charts(frame: "pd.DataFrame", tables: "Mapping[str, pd.DataFrame]") -> list[Chart]:
    """All charts that the rows allow."""
    sweep = part(frame, "sweep")
    nets, trees = networks(sweep), classical(sweep)
    found = []
    for title, groups in (("networks", nets), ("trees and forests", trees)):
        if groups:
            found.append(_scatter(groups, f"Region count and gap: {title}", "region_count", "region count"))
    for column, shown in (("distance", "Distance to the initial weights"), ("margin", "Output margin")):
        if nets:
            found.append(_scatter(nets, f"{shown} and gap", column, shown.lower()))
    for which, rows in tables["hyper-parameters"].groupby("varied", sort=False):
        found.append(
            Chart(
                title=f"Region count by {which}",
                data=rows,
                x="value",
                y="count",
                kind="lines",
                colour="model",
                low="low",
                high="high",
                hover=("runs", "gap", "train accuracy"),
                log_x=True,
                xlabel=str(which),
                ylabel="region count",
            )
        )
    if len(tables["evolution"]):
        found.append(
            Chart(
                title="Region count over epochs",
                data=tables["evolution"],
                x="epoch",
                y="count",
                kind="lines",
                colour="model",
                hover=("gap", "r", "configurations"),
                xlabel="epoch",
                ylabel="region count",
            )
        )
    return found


def _scatter(groups: "Mapping[Subject, pd.DataFrame]", title: str, column: str, xlabel: str) -> Chart:
    import pandas as pd

    rows = pd.concat([group.assign(name=str(subject)) for subject, group in groups.items()])
    rows = rows[rows[column].notna()]
    kept = [c for c in dict.fromkeys((*HOVER, column, "gap")) if c in rows and rows[c].notna().any()]
    return Chart(
        title=title,
        data=rows[kept].reset_index(drop=True),
        x=column,
        y="gap",
        colour="name",
        hover=tuple(c for c in kept if c in HOVER),
        xlabel=xlabel,
        ylabel="generalisation gap",
        caption="A point for each run.",
    )
