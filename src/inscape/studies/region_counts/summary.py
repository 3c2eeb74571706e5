"""What the rows of the study say: claims, tables, figures, and the limits that show in these rows.

Pictures: scatter of counts and gaps, trends, baselines, grids, epochs, planes; and charts to look into, in
which every point says which model it is.
"""

from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.correlate import Correlations
from inscape.drawing.axes import new_figure
from inscape.drawing.curves import draw_intervals
from inscape.drawing.measures import draw_scatter
from inscape.drawing.planes.labelled_grid import draw_labels
from inscape.reports.findings import Chart, Summary
from inscape.studies.region_counts import claims, model_choice, paper_tables
from inscape.studies.region_counts.selection import (
    FITTED_FROM,
    NETWORKS_TOGETHER,
    Subject,
    classical,
    networks,
    part,
    seed_means,
    with_names,
)

if TYPE_CHECKING:
    import pandas as pd


TITLES = {
    "glance": "Correlation with the gap, at a glance",
    "choice_glance": "Choosing a model without labels, at a glance",
    "correlation": "Correlation of region count and gap (Fig. 2 and 5)",
    "strata": "Correlation with one hyper-parameter held",
    "hyper-parameters": "Learning rate and batch size (Fig. 3)",
    "baselines": "Baselines (Fig. 4)",
    "grid": "Grid and exact counts (Table 2)",
    "lines": "Number of lines (Table 3)",
    "span": "Span (Table 4)",
    "dimension": "Dimension (Table 5)",
    "evolution": "Evolution over epochs (Table 6)",
    "optimiser": "Optimisers (Table 7)",
    "probe": "Kind of probe (Table 8)",
    "augmentation": "Augmentation (Fig. 7 and 8)",
    "check": "Exact counts on a few lines of larger networks",
    "choice": "Choosing a model without labels",
    "models": "All models",
}
LIMITS = (
    "A correlation over settings of training says that both numbers answer to the same settings. It does not "
    "say that fewer regions cause a smaller gap, nor does it rank two models of the same settings.",
    "The count is taken on lines between test points. Most of such a line is far from any data, and what the "
    "model does there may be of no consequence.",
    "The gap of models that all fit their training data is their test error: the count predicts test error "
    "there, and was itself taken between test points.",
    "Intervals are over the configurations of the sweep. They say nothing of other data sets or networks.",
)


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Ask the rows all that the paper asks."""
    by_subject = paper_tables.correlations(frame)
    families = model_choice.families(frame)
    choices = model_choice.choice_table(families)
    made = {
        "glance": paper_tables.glance_table(frame),
        "choice_glance": model_choice.glance_table(families, choices),
        "correlation": paper_tables.correlation_table(frame, by_subject),
        "strata": paper_tables.strata_table(by_subject),
        "hyper-parameters": paper_tables.hyper_parameter_table(frame),
        "baselines": paper_tables.baseline_table(frame),
        "grid": paper_tables.grid_table(frame),
        "lines": paper_tables.line_table(frame),
        "span": paper_tables.span_table(frame),
        "dimension": paper_tables.dimension_table(frame),
        "evolution": paper_tables.evolution_table(frame),
        "optimiser": paper_tables.optimiser_table(frame),
        "probe": paper_tables.probe_table(frame),
        "augmentation": paper_tables.augmentation_table(frame),
        "check": paper_tables.check_table(frame),
        "choice": choices,
        "models": paper_tables.model_table(frame),
    }
    findings = {
        **claims.main_findings(by_subject),
        **claims.trend_findings(frame),
        **claims.baseline_findings(frame),
        **claims.grid_findings(made["grid"]),
        **claims.variant_findings(made),
        "augmentation": claims.augmentation_finding(made["augmentation"]),
        "evolution": claims.evolution_finding(made["evolution"]),
    }
    named = {key: with_names(table) for key, table in made.items()}
    return Summary(
        findings=findings,
        figures=save_figures(frame, named, out),
        notes=_notes(frame),
        charts=charts(frame, named),
        tables={TITLES[key]: table for key, table in named.items() if _says_more(key, table)},
        limits=[*_limits_here(frame, by_subject), *LIMITS],
    )


VARIED = {"span": "span", "dimension": "dimension", "optimiser": "optimiser", "probe": "probe"}
"""Table of a variant -> its column: where that has one value, the table has what the first one has."""


def _says_more(key: str, table: "pd.DataFrame") -> bool:
    return len(table) > 0 and (key not in VARIED or table[VARIED[key]].nunique() > 1)


def _notes(frame: "pd.DataFrame") -> str:
    minutes = frame["seconds"].sum() / 60
    return (
        f"{len(frame)} models, {minutes:.0f} minutes of work in all. A correlation is over configurations, "
        "each the mean of its seeds, with a 95 % bootstrap interval. It held if that is above 0 and reaches "
        f"{claims.STRONG_FROM}. It did not hold only if all of it is below {claims.STRONG_FROM} and below "
        "the published value, and counts and gaps vary more between configurations than between seeds "
        "(variation above 1); else there was no variation to test, or it cannot be said. The number of a "
        "claim about several models is that of the weakest."
    )


def _limits_here(frame: "pd.DataFrame", by_subject: Mapping[Subject, Correlations]) -> list[str]:
    """What these rows themselves show of where the correlation comes from and where it is not."""
    texts = []
    for name, rows in networks(part(frame, "sweep"), fitted=False).items():
        n = int((rows["train_accuracy"] < FITTED_FROM).sum())
        if n:
            texts.append(
                f"{name}: {n} of {len(rows)} runs stay below {FITTED_FROM:.0%} training accuracy and are "
                "left out."
            )
        methods = set(rows["count_method"]) - {"exact"}
        if methods:
            texts.append(
                f"{name}: counts are {'/'.join(sorted(methods))}, not exact: exact ones would cost too much."
            )
    for name, c in by_subject.items():
        if not c.models:
            texts += [f"{name}: {text}." for text in c.hidden]
        elif c.hidden:
            texts.append(f"{name}: {c.hidden[0]}.")
    return texts


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
            "Fig. 4: distance to the initial weights, output margin on training points, and margin over "
            "distance, against the gap.",
        ),
        "grids.png": (
            _grids(tables["grid"]),
            "Table 2: the share of regions that a grid misses, by its points along each axis.",
        ),
        "evolution.png": (
            _evolution(tables["evolution"]),
            "Table 6: mean region count, and its correlation with the gap, over epochs.",
        ),
        "augmentation.png": (
            _augmentation(frame),
            "Fig. 7 and 8: region count and test error of augmented runs, a point for each.",
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
    nets = networks(sweep)
    groups = {**nets, **paper_tables.together(nets, NETWORKS_TOGETHER), **classical(sweep)}
    if not groups:
        return None
    figure, axes = _panels(len(groups), 2, (5.2, 3.9))
    for ax, (name, rows) in zip(axes, groups.items(), strict=True):
        colours = dict(tuple(rows.groupby("model", sort=False))) if name.is_pooled else _coloured(rows)
        points = {str(k): seed_means(g, ["region_count", "gap"]).to_numpy().T for k, g in colours.items()}
        drawn = {k: (x, y) for k, (x, y) in points.items()}
        draw_scatter(drawn, xlabel="region count", ylabel="generalisation gap", title=str(name), ax=ax)
    return figure


def _coloured(rows: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """The rows of each colour of a scatter: by the first of some settings that they have, if any."""
    for by in ("learning_rate", "criterion", "weights", "kernel"):
        if by in rows and rows[by].notna().all():
            return {f"{by.replace('_', ' ')} {v}": group for v, group in rows.groupby(by)}
    return {"all": rows}


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


FIGURE_4 = {
    "distance": "distance to the initial weights",
    "margin": "output margin",
    "margin_over_distance": "margin over distance",
}
"""Column -> what stands at the axis of its panel."""


def _baselines(frame: "pd.DataFrame") -> Any:
    groups = networks(paper_tables.with_ratio(part(frame, "sweep")))
    groups = {name: rows for name, rows in groups.items() if "margin_over_distance" in rows}
    if not groups:
        return None
    figure, axes = _panels(len(FIGURE_4) * len(groups), len(FIGURE_4), (4.2, 3.2))
    panels = iter(axes)
    for name, rows in groups.items():
        for column, shown in FIGURE_4.items():
            points = {k: seed_means(g, [column, "gap"]).to_numpy().T for k, g in _coloured(rows).items()}
            draw_scatter(
                {k: (x, y) for k, (x, y) in points.items()},
                xlabel=shown,
                ylabel="generalisation gap",
                title=str(name),
                ax=next(panels),
            )
    return figure


def _grids(table: "pd.DataFrame") -> Any:
    known = sorted(set(table["dimension"])) if len(table) else []
    dims = [d for d in known if table["points per axis"][table["dimension"] == d].nunique() > 1]
    if not dims:
        return None
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


def _augmentation(frame: "pd.DataFrame") -> Any:
    groups = networks(part(frame, "augmentation"), fitted=False)
    if not groups:
        return None
    figure, axes = _panels(len(groups), 2, (5.2, 3.9))
    for ax, (name, rows) in zip(axes, groups.items(), strict=True):
        kinds = {
            str(kind): (g["region_count"].to_numpy(float), 1 - g["test_accuracy"].to_numpy(float))
            for kind, g in rows.groupby("augmentation", sort=False)
        }
        draw_scatter(kinds, xlabel="region count", ylabel="test error", title=str(name), ax=ax)
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
        ax.set_title(f"{name}, {word}\n{trained_with(row)}\n{result}", fontsize=9)
    return figure


def trained_with(row: Any) -> str:
    """The settings of a model in a few words."""
    names = {"learning_rate": "rate", "batch_size": "batch", "weight_decay": "decay"}
    names |= {"max_depth": "depth", "criterion": "", "splitter": ""}
    known = [
        (short, row[n]) for n, short in names.items() if n in row and row[n] == row[n] and row[n] is not None
    ]
    return ", ".join(f"{s} {v:g}" if isinstance(v, Real) else f"{v}" for s, v in known)


def charts(frame: "pd.DataFrame", tables: "Mapping[str, pd.DataFrame]") -> list[Chart]:
    """All charts that the rows allow."""
    sweep = part(frame, "sweep")
    nets, trees = networks(sweep), classical(sweep)
    every = []
    for title, groups in (("networks", nets), ("trees and forests", trees)):
        if groups:
            every.append(_scatter(groups, f"Region count and gap: {title}", "region_count", "region count"))
    for column, shown in (("distance", "Distance to the initial weights"), ("margin", "Output margin")):
        measured = {k: rows for k, rows in nets.items() if column in rows and rows[column].notna().any()}
        if measured:
            every.append(_scatter(measured, f"{shown} and gap", column, shown.lower()))
    trends = tables["hyper-parameters"]
    for which, rows in trends.groupby("varied", sort=False) if len(trends) else ():
        every.append(
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
                caption="The mean over the runs of each value, with its 95 % interval if there are several.",
            )
        )
    if len(tables["evolution"]):
        every.append(
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
                caption="The mean over the configurations, while they are trained.",
            )
        )
    return every


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
