"""The pictures of the study, and its charts to look into, in which every point says which model it is.

Scatter of counts and gaps, trends, baselines, grids, epochs, planes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.drawing.counts import draw_scatter
from inscape.drawing.curves import draw_intervals
from inscape.drawing.planes.labelled_grid import draw_labels
from inscape.reports.findings import Chart
from inscape.studies.region_counts.selection import Subject, classical, networks, part, seed_means

if TYPE_CHECKING:
    import pandas as pd


HOVER = (
    *("name", "data", "learning_rate", "batch_size", "weight_decay", "max_depth", "criterion", "splitter"),
    *("replicate", "train_accuracy", "test_accuracy", "region_count_error"),
)


def save_figures(frame: "pd.DataFrame", tables: "Mapping[str, pd.DataFrame]", out: Path) -> dict[str, str]:
    """Write all pictures that the rows allow; name of the file -> caption."""
    made = {
        "correlation.png": (
            _correlation(frame),
            "Fig. 2 and 5: region count and generalisation gap, a point for each configuration (mean over "
            "seeds); only networks that fit their training data.",
        ),
        "trends.png": (
            _trends(tables["hyper-parameters"]),
            "Fig. 3: mean region count and its 95 % interval by learning rate and by batch size.",
        ),
        "baselines.png": (
            _baselines(frame),
            "Fig. 4: distance to the initial weights, and output margin on training points, against the gap.",
        ),
        "grids.png": (
            _grids(tables["grid"]),
            "Table 2: the share of regions that a grid misses, by its points along each axis.",
        ),
        "evolution.png": (
            _evolution(tables["evolution"]),
            "Table 6: mean region count, and its correlation with the gap, over epochs.",
        ),
        "planes.png": (
            _planes(frame),
            "Decision regions on the plane through three test images (dots): of each kind the model "
            "of the highest and of the lowest test accuracy.",
        ),
    }
    captions = {}
    for name, (figure, caption) in made.items():
        if figure is not None:
            figure.savefig(out / name, dpi=100, bbox_inches="tight")
            captions[name] = caption
    return captions


def _panels(n: int, across: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    across, down = min(n, across), -(-n // across)
    figure = new_figure((across * size[0], down * size[1]))
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for ax in axes[n:]:
        ax.set_axis_off()
    return figure, axes[:n]


def _correlation(frame: "pd.DataFrame") -> Any:
    sweep = part(frame, "sweep")
    groups = {**networks(sweep), **classical(sweep)}
    if not groups:
        return None
    figure, axes = _panels(len(groups), 2, (5.2, 3.9))
    for ax, (name, rows) in zip(axes, groups.items(), strict=True):
        by = "criterion" if rows["model"].iloc[0] in ("tree", "forest") else "learning_rate"
        parts = {f"{by.replace('_', ' ')} {v}": g for v, g in rows.groupby(by)}
        points = {k: seed_means(g, ["region_count", "gap"]).to_numpy().T for k, g in parts.items()}
        drawn = {k: (x, y) for k, (x, y) in points.items()}
        draw_scatter(drawn, xlabel="region count", ylabel="generalisation gap", title=str(name), ax=ax)
    return figure


def _trends(table: "pd.DataFrame") -> Any:
    if not len(table):
        return None
    varied = list(dict.fromkeys(table["varied"]))
    figure, axes = _panels(len(varied), 2, (5.2, 3.9))
    for ax, which in zip(axes, varied, strict=True):
        rows = table[table["varied"] == which]
        draw_intervals(_lines(rows, "model", "value", "count"), xlabel=which, ylabel="region count", ax=ax)
        ax.set_xscale("log")
    return figure


def _lines(table: "pd.DataFrame", by: str, x: str, y: str) -> dict[str, Any]:
    """Name -> x, y, low, high."""
    columns = [x, y, "low", "high"]
    return {str(name): rows[columns].to_numpy(float).T for name, rows in table.groupby(by, sort=False)}


def _baselines(frame: "pd.DataFrame") -> Any:
    groups = networks(part(frame, "sweep"))
    if not groups:
        return None
    figure, axes = _panels(2 * len(groups), 2, (5.2, 3.4))
    places = iter(axes)
    for name, rows in groups.items():
        for column, shown in (("distance", "distance to the initial weights"), ("margin", "output margin")):
            parts = {
                f"learning rate {v:g}": seed_means(g, [column, "gap"]).to_numpy().T
                for v, g in rows.groupby("learning_rate")
            }
            draw_scatter(
                {k: (x, y) for k, (x, y) in parts.items()},
                xlabel=shown,
                ylabel="generalisation gap",
                title=str(name),
                ax=next(places),
            )
    return figure


def _grids(table: "pd.DataFrame") -> Any:
    if not len(table):
        return None
    dims = sorted(set(table["dimension"]))
    figure, axes = _panels(len(dims), 2, (5.2, 3.9))
    for ax, dim in zip(axes, dims, strict=True):
        rows = table[table["dimension"] == dim]
        rows = rows.assign(model=rows["model"] + ", beside " + rows["by"] + " counts")
        lines = _lines(rows, "model", "points per axis", "missed share")
        draw_intervals(lines, xlabel="grid points per axis", ylabel="share of regions missed", ax=ax)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_title(f"dimension {dim}")
    return figure


def _evolution(table: "pd.DataFrame") -> Any:
    if not len(table):
        return None
    figure, axes = _panels(2, 2, (5.2, 3.9))
    counts = table.assign(low=np.nan, high=np.nan)
    draw_intervals(
        _lines(counts, "model", "epoch", "count"), xlabel="epoch", ylabel="region count", ax=axes[0]
    )
    draw_intervals(
        _lines(table, "model", "epoch", "r"), xlabel="epoch", ylabel="correlation with the gap", ax=axes[1]
    )
    axes[1].axhline(0, color="black", lw=0.8)
    return figure


def _planes(frame: "pd.DataFrame") -> Any:
    if "plane_labels" not in frame:
        return None
    sweep = part(frame, "sweep")
    sweep = sweep[sweep["plane_labels"].notna()]
    chosen = []
    for name, rows in {**networks(sweep, fitted=False), **classical(sweep)}.items():
        order = rows["test_accuracy"].to_numpy().argsort(kind="stable")
        chosen += [(name, "best", rows.iloc[order[-1]]), (name, "worst", rows.iloc[order[0]])]
    if not chosen:
        return None
    figure, axes = _panels(len(chosen), 4, (3.3, 3.4))
    for ax, (name, word, row) in zip(axes, chosen, strict=True):
        result = f"test {row['test_accuracy']:.3f}, count {row['region_count']:.2f}"
        labels = np.array(row["plane_labels"])
        draw_labels(labels, row["plane_bounds"], np.array(row["plane_marks"]), row["plane_classes"], ax=ax)
        ax.set_title(f"{name}, {word}\n{_settings(row)}\n{result}", fontsize=9)
    return figure


def _settings(row: Any) -> str:
    names = {"learning_rate": "rate", "batch_size": "batch", "weight_decay": "decay"}
    names |= {"max_depth": "depth", "criterion": "", "splitter": ""}
    known = [
        (short, row[n]) for n, short in names.items() if n in row and row[n] == row[n] and row[n] is not None
    ]
    return ", ".join(f"{s} {v:g}".strip() if isinstance(v, int | float) else f"{v}" for s, v in known)


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
