"""The tables of what was changed: how regions are counted, and how networks are trained."""

from typing import TYPE_CHECKING

import numpy as np

from inscape.studies.region_counts import published
from inscape.studies.region_counts.selection import (
    classical,
    columns_of,
    mean_interval,
    networks,
    part,
    with_gap,
)

if TYPE_CHECKING:
    import pandas as pd

LINES = tuple(published.LINES)


def grid_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts on grids beside the best count on the same lines and triangles, by its method: Table 2."""
    import pandas as pd

    kinds = (
        (1, "count_grid_", "region_count", "count_method", published.GRIDS),
        (2, "count_plane_", "count_dim_2", "plane_method", published.PLANES),
    )
    lines = []
    for name, every in {**networks(part(frame, "sweep")), **classical(part(frame, "sweep"))}.items():
        for dim, prefix, best, method, reported in kinds:
            for points in (p for p in reported if f"{prefix}{p}" in every):
                column = f"{prefix}{points}"
                for by, rows in every[every[column].notna()].groupby(method):
                    missed, low, high = mean_interval(1 - rows[column] / rows[best])
                    lines.append(
                        {"model": name, "dimension": dim, "points per axis": points, "runs": len(rows)}
                        | {"count": rows[column].mean(), "reference": rows[best].mean(), "by": by}
                        | {"missed share": missed, "low": low, "high": high}
                        | {"r": with_gap(rows, column).value, "published count": reported[points]}
                    )
    return pd.DataFrame(lines)


def line_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The mean count over the first 10, 50, ... lines, its standard error and its correlation: Table 3."""
    import pandas as pd

    lines = []
    for name, rows in {**networks(part(frame, "sweep")), **classical(part(frame, "sweep"))}.items():
        counts = np.array(rows["line_counts"].tolist(), dtype=np.float64)
        for n in (n for n in LINES if n <= counts.shape[1]):
            error = counts[:, :n].std(axis=1, ddof=1) / np.sqrt(n)
            some = rows.assign(some=counts[:, :n].mean(axis=1))
            lines.append(
                {"model": name, "lines": n, "count": some["some"].mean(), "standard error": error.mean()}
                | columns_of(with_gap(some, "some"))
                | {"published count": published.LINES[n]}
            )
    return pd.DataFrame(lines)


def evolution_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Mean count, mean gap and their correlation at some epochs of training: Table 6."""
    import pandas as pd

    if "seen_epochs" not in frame:
        return pd.DataFrame()
    lines = []
    watched = frame[frame["seen_epochs"].notna()]
    for name, rows in networks(watched, fitted=False).items():
        long = rows[["configuration", "seen_epochs", "seen_counts", "seen_gaps"]].explode(
            ["seen_epochs", "seen_counts", "seen_gaps"]
        )
        long.columns = pd.Index(["configuration", "epoch", "count", "gap"])
        for epoch, group in long.astype({"epoch": int, "count": float, "gap": float}).groupby("epoch"):
            line = {"model": name, "epoch": epoch, "count": group["count"].mean(), "gap": group["gap"].mean()}
            line |= columns_of(with_gap(group, "count"))
            lines.append(line | {"published count": published.EVOLUTION.get(int(str(epoch)))})
    return pd.DataFrame(lines)


def optimiser_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The correlation by optimiser: Table 7."""
    import pandas as pd

    lists = {"adam": published.ADAM, "adagrad": published.ADAGRAD}
    lines = []
    others = networks(part(frame, "optimiser"), fitted=False)
    for name, rows in networks(part(frame, "sweep"), fitted=False).items():
        net = name.split(" on ")[0]
        groups = {"sgd": (rows, published.CORRELATION.get(net))}
        for optimiser, reported in lists.items():
            mine = others[name][others[name]["optimiser"] == optimiser] if name in others else rows[:0]
            groups[optimiser] = (mine, published.of_network(reported, net))
        for optimiser, (group, reported_r) in groups.items():
            fitted = networks(group).get(name, group[:0])
            if len(group):
                line = {"model": name, "optimiser": optimiser, "runs": len(group), "fitted": len(fitted)}
                line |= {
                    "count": fitted["region_count"].mean(),
                    **columns_of(with_gap(fitted, "region_count")),
                }
                lines.append(line | {"published": reported_r})
    return pd.DataFrame(lines)


def augmentation_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts and gaps with mixup and with crop and flip, beside plain training of equal rate and batch."""
    import pandas as pd

    keys = ["learning_rate", "batch_size", "weight_decay"]
    lines = []
    plain_runs = networks(part(frame, "sweep"), fitted=False)
    for name, rows in networks(part(frame, "augmentation"), fitted=False).items():
        plain = plain_runs[name].groupby(keys)[["region_count", "gap", "train_accuracy"]].mean()
        for kind, group in rows.groupby("augmentation", sort=False):
            mine = group.groupby(keys)[["region_count", "gap", "train_accuracy"]].mean()
            both = mine.join(plain.add_suffix("_plain"), how="inner")
            change, low, high = mean_interval(both["region_count"] - both["region_count_plain"])
            lines.append(
                {
                    "model": name,
                    "augmentation": kind,
                    "pairs": len(both),
                    "count": both["region_count"].mean(),
                }
                | {
                    "plain count": both["region_count_plain"].mean(),
                    "change": change,
                    "low": low,
                    "high": high,
                }
                | {"gap": both["gap"].mean(), "plain gap": both["gap_plain"].mean()}
                | {"train accuracy": both["train_accuracy"].mean()}
                | {"published count": published.AUGMENTATION.get(str(kind))}
                | {"published plain": published.AUGMENTATION["plain"]}
            )
    return pd.DataFrame(lines)


def check_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A few lines of networks too large for exact counts, counted exactly all the same."""
    import pandas as pd

    methods = ("exact", "adaptive", "grid")
    lines = [
        {"model": name, **{m: rows[f"count_check_{m}"].mean() for m in methods}}
        for name, rows in networks(part(frame, "exact"), fitted=False).items()
    ]
    return pd.DataFrame(lines)
