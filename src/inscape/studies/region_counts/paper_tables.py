"""The equivalents of the paper's tables, each from the rows alone; their column "model" holds subjects."""

from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import Correlation
from inscape.correlation.correlate import Correlations, correlate
from inscape.studies.region_counts import published
from inscape.studies.region_counts.selection import (
    HYPER_PARAMETERS,
    NETWORKS_TOGETHER,
    TREE_PARAMETERS,
    TREES_TOGETHER,
    Subject,
    classical,
    columns_of,
    crossed,
    mean_interval,
    networks,
    part,
    pooled,
    variation_of,
    with_gap,
)
from inscape.studies.region_counts.settings import CLASSICAL, TREES, UNLABELLED

if TYPE_CHECKING:
    import pandas as pd

LINES = tuple(published.LINES)
OTHERS = CLASSICAL[len(TREES) :]
"""Models of scikit-learn that the paper does not pool with trees and forests."""
RESNET18 = ("resnet18", published.DATA)
COMPARED = ("count", "gap")
SPANS = (1, 2, 3, 4, 5)
DIMENSIONS = (2, 3, 4, 5)
BASELINES = {
    "region_count": "region count",
    "distance": "distance",
    "margin": "margin",
    "margin_over_distance": "margin over distance",
    "sharpness": "sharpness",
    "local_complexity": "local complexity",
    "confidence": "average confidence",
    "nuclear_norm": "nuclear norm of predictions",
}
"""Column of the rows -> what it is called beside the count."""
KINDS_OF_PROBE = {
    "region_count": "test pairs",
    "count_train_pairs": "train pairs",
    "count_direction": "direction",
}


def correlations(frame: "pd.DataFrame") -> dict[Subject, Correlations]:
    """Every correlation of the sweep: of each model, and pooled where there are several."""
    sweep = part(frame, "sweep")
    by_subject = {}
    for name, groups, by in (
        (NETWORKS_TOGETHER, networks(sweep), HYPER_PARAMETERS),
        (TREES_TOGETHER, classical(sweep), TREE_PARAMETERS),
    ):
        for subject, rows in groups.items():
            if rows["configuration"].nunique() > 1:
                by_subject[subject] = correlate(
                    rows, by=[b for b in by if b in rows and rows[b].notna().any()]
                )
        for subject, runs in together(groups, name).items():
            known = [b for b in by if b in runs and runs[b].notna().any()]
            by_subject[subject] = correlate(runs, by=known)
    return by_subject


def together(groups: "dict[Subject, pd.DataFrame]", name: str) -> "dict[Subject, pd.DataFrame]":
    """The rows of several models on one data set, under one name; kNN and SVM stay apart."""
    made = {}
    for data in dict.fromkeys(subject.data for subject in groups):
        alike = {s: rows for s, rows in groups.items() if s.data == data and s.model not in OTHERS}
        if len(alike) > 1:
            made[Subject(name, data)] = pooled(alike)
    return made


def correlation_table(frame: "pd.DataFrame", by_subject: dict[Subject, Correlations]) -> "pd.DataFrame":
    """Each model and pooled: the coefficients, what carries them, and what was published."""
    import pandas as pd

    every = networks(part(frame, "sweep"), fitted=False)
    every |= together(every, NETWORKS_TOGETHER)
    lines = []
    for subject, c in by_subject.items():
        left_out = len(every[subject]) - c.n_runs if subject in every else 0
        line = {"model": subject, "runs": c.n_runs, "left out": left_out, **columns_of(c.pearson)}
        line |= {
            f"variation of {name}": ratio for name, ratio in zip(COMPARED, c.variation.values(), strict=True)
        }
        line |= {"r test accuracy": _with_test_accuracy(frame, subject)}
        line |= {"spearman": c.spearman.value, "kendall": c.kendall.value, "single runs": c.single_runs.value}
        line |= {f"granulated {h}": v for h, v in c.granulated.items()}
        lines.append(line | {"published": published.correlation(subject.model, subject.data)})
    return pd.DataFrame(lines)


def _with_test_accuracy(frame: "pd.DataFrame", subject: Subject) -> float:
    """Pearson's correlation of the count with test accuracy, as in Fig. 5, over the same runs."""
    import pandas as pd

    sweep = part(frame, "sweep")
    trees = subject.model in (*CLASSICAL, TREES_TOGETHER)
    groups = classical(sweep) if trees else networks(sweep)
    together = [s for s in groups if s.data == subject.data and s.model not in OTHERS]
    tables = [groups[s] for s in (together if subject.is_pooled else [subject])]
    return with_gap(pd.concat(tables), "region_count", "test_accuracy").value


def strata_table(by_subject: dict[Subject, Correlations]) -> "pd.DataFrame":
    """The correlation where one hyper-parameter is held at each of its values."""
    import pandas as pd

    lines = [
        {
            "model": subject,
            "held": h,
            "at": str(value),
            **columns_of(s.pearson),
            "single runs": s.single_runs.value,
        }
        for subject, c in by_subject.items()
        if not c.models
        for h, strata in c.strata.items()
        for value, s in strata.items()
    ]
    return pd.DataFrame(lines)


def hyper_parameter_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Mean count and gap by learning rate and by batch size: Fig. 3, or the sweep where that was not run."""
    import pandas as pd

    lines = []
    for which, column in (("learning rate", "learning_rate"), ("batch size", "batch_size")):
        own = networks(part(frame, which), fitted=False)
        for subject, rows in networks(part(frame, "sweep"), fitted=False).items():
            used = own.get(subject, rows)
            for value, group in used.groupby(column) if column in used else ():
                count, low, high = mean_interval(group["region_count"])
                lines.append(
                    {"model": subject, "varied": which, "value": value, "runs": len(group), "count": count}
                    | {"low": low, "high": high, "gap": group["gap"].mean()}
                    | {"train accuracy": group["train_accuracy"].mean()}
                    | {"from": which if subject in own else "sweep"}
                )
    return pd.DataFrame(lines)


def baseline_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The count and what one had before it against the gap, Fig. 4 and more; of networks together too."""
    table = _by_column(with_ratio(frame), BASELINES, "measure", pool=True)
    names = {shown: column for column, shown in BASELINES.items()}
    table["published"] = [
        published.BASELINES.get(names[measure]) if (s.model, s.data) == RESNET18 else None
        for s, measure in zip(table["model"], table["measure"], strict=True)
    ]
    return table


def glance_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The correlation with the gap of every count and of every other measure, networks side by side."""
    counts = {
        "region_count": "regions between test points",
        "count_train_pairs": "regions between training points",
        "count_direction": "regions along random directions",
    }
    counts |= {f"count_span_{k}": f"regions on [{-k}, {1 + k}]" for k in SPANS}
    counts |= {
        f"count_dim_{d}": "regions on triangles" if d == 2 else f"regions in dimension {d}"
        for d in DIMENSIONS
    }
    names = counts | {column: shown for column, shown in BASELINES.items() if column not in counts}
    lines = _by_column(with_ratio(frame), names, "measure", pool=True)
    return crossed(
        lines,
        "measure",
        "model",
        lambda x: str(Correlation(x["r"], (x["low"], x["high"]), x["configurations"])),
    )


def probe_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts between test points, between training points, and along random directions: Table 8."""
    table = _by_column(frame, KINDS_OF_PROBE, "probe")
    lists = {
        "train pairs": published.TRAIN_PAIRS,
        "direction": published.DIRECTION,
        "test pairs": tuple(published.CORRELATION.values())[: len(published.DIRECTION)],
    }
    table["published"] = [
        published.of_network(lists[probe], subject.model, subject.data)
        for probe, subject in zip(table["probe"], table["model"], strict=True)
    ]
    return table


def span_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts on segments that reach beyond their points: Table 4."""
    names = {"region_count": "[0, 1]"} | {f"count_span_{k}": f"[{-k}, {1 + k}]" for k in SPANS}
    return _by_column(frame, names, "span")


def dimension_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts on hulls of more points: Table 5."""
    names = {"region_count": 1} | {f"count_dim_{d}": d for d in DIMENSIONS}
    table = _by_column(frame, names, "dimension")
    table["published"] = [
        published.DIMENSIONS.get(d) if (s.model, s.data) == RESNET18 else None
        for s, d in zip(table["model"], table["dimension"], strict=True)
    ]
    return table


def with_ratio(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the third panel of Fig. 4, margin over distance."""
    if not {"margin", "distance"} <= set(frame):
        return frame
    return frame.assign(margin_over_distance=frame["margin"] / frame["distance"])


def _by_column(
    frame: "pd.DataFrame", names: dict[str, Any], title: str, *, pool: bool = False
) -> "pd.DataFrame":
    """For each network, and all on a data set if asked, and each column: its mean, its r with the gap."""
    import pandas as pd

    lines = []
    groups = networks(part(frame, "sweep"))
    more = together(groups, NETWORKS_TOGETHER) if pool else {}
    for subject, rows in (groups | more).items():
        for column, shown in names.items():
            if column in rows and rows[column].notna().any():
                line = {"model": subject, title: shown, "mean": rows[column].mean()}
                line |= columns_of(with_gap(rows, column))
                lines.append(line | {"variation": variation_of(rows, column)})
    columns = ["model", title, "mean", "configurations", "r", "low", "high", "variation"]
    return pd.DataFrame(lines, columns=columns)


def grid_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts on grids beside the best count on the same lines and triangles, by its method: Table 2."""
    import pandas as pd

    kinds = (
        (1, "count_grid_", "region_count", "count_method", published.GRIDS),
        (2, "count_plane_", "count_dim_2", "plane_method", published.PLANES),
    )
    lines = []
    for subject, every in {**networks(part(frame, "sweep")), **classical(part(frame, "sweep"))}.items():
        for dim, prefix, best, method, reported in kinds:
            for points in (p for p in reported if f"{prefix}{p}" in every):
                column = f"{prefix}{points}"
                for by, rows in every[every[column].notna()].groupby(method):
                    missed, low, high = mean_interval(1 - rows[column] / rows[best])
                    lines.append(
                        {"model": subject, "dimension": dim, "points per axis": points, "runs": len(rows)}
                        | {"count": rows[column].mean(), "reference": rows[best].mean(), "by": by}
                        | {"missed share": missed, "low": low, "high": high}
                        | {"r": with_gap(rows, column).value, "published count": reported[points]}
                    )
    return pd.DataFrame(lines)


def line_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The mean count over the first 10, 50, ... lines, its standard error and its correlation: Table 3."""
    import pandas as pd

    lines = []
    for subject, rows in {**networks(part(frame, "sweep")), **classical(part(frame, "sweep"))}.items():
        counts = np.array(rows["line_counts"].tolist(), dtype=np.float64)
        for n in (n for n in LINES if n <= counts.shape[1]):
            error = counts[:, :n].std(axis=1, ddof=1) / np.sqrt(n)
            some = rows.assign(some=counts[:, :n].mean(axis=1))
            lines.append(
                {"model": subject, "lines": n, "count": some["some"].mean(), "standard error": error.mean()}
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
    for subject, rows in networks(watched, fitted=False).items():
        long = rows[["configuration", "seen_epochs", "seen_counts", "seen_gaps"]].explode(
            ["seen_epochs", "seen_counts", "seen_gaps"]
        )
        long.columns = pd.Index(["configuration", "epoch", "count", "gap"])
        for epoch, group in long.astype({"epoch": int, "count": float, "gap": float}).groupby("epoch"):
            line = {
                "model": subject,
                "epoch": epoch,
                "count": group["count"].mean(),
                "gap": group["gap"].mean(),
            }
            line |= columns_of(with_gap(group, "count")) | {"variation": variation_of(group, "count")}
            lines.append(line | {"published count": published.EVOLUTION.get(int(str(epoch)))})
    return pd.DataFrame(lines)


def optimiser_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The correlation by optimiser: Table 7."""
    import pandas as pd

    lists = {"adam": published.ADAM, "adagrad": published.ADAGRAD}
    lines = []
    others = networks(part(frame, "optimiser"), fitted=False)
    for subject, rows in networks(part(frame, "sweep"), fitted=False).items():
        groups = {"sgd": (rows, published.correlation(subject.model, subject.data))}
        for optimiser, reported in lists.items():
            fitted_by = (
                others[subject][others[subject]["optimiser"] == optimiser] if subject in others else rows[:0]
            )
            groups[optimiser] = (fitted_by, published.of_network(reported, subject.model, subject.data))
        for optimiser, (group, reported_r) in groups.items():
            fitted = networks(group).get(subject, group[:0])
            if len(group):
                line = {"model": subject, "optimiser": optimiser, "runs": len(group), "fitted": len(fitted)}
                line |= {
                    "count": fitted["region_count"].mean(),
                    **columns_of(with_gap(fitted, "region_count")),
                    "variation": variation_of(fitted, "region_count"),
                }
                lines.append(line | {"published": reported_r})
    return pd.DataFrame(lines)


def augmentation_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Counts and gaps with mixup and with crop and flip, beside plain training of equal rate and batch."""
    import pandas as pd

    keys = ["learning_rate", "batch_size", "weight_decay"]
    lines = []
    plain_runs = networks(part(frame, "sweep"), fitted=False)
    for subject, rows in networks(part(frame, "augmentation"), fitted=False).items():
        if subject not in plain_runs:
            continue
        plain = plain_runs[subject].groupby(keys)[["region_count", "gap", "train_accuracy"]].mean()
        for kind, group in rows.groupby("augmentation", sort=False):
            augmented = group.groupby(keys)[["region_count", "gap", "train_accuracy"]].mean()
            both = augmented.join(plain.add_suffix("_plain"), how="inner")
            change, low, high = mean_interval(both["region_count"] - both["region_count_plain"])
            lines.append(
                {
                    "model": subject,
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
                | _inside(group)
                | (
                    {"published count": published.AUGMENTATION.get(str(kind))}
                    | {"published plain": published.AUGMENTATION["plain"]}
                    if (subject.model, subject.data) == RESNET18
                    else {}
                )
            )
    return pd.DataFrame(lines)


def _inside(group: "pd.DataFrame") -> dict[str, float]:
    """The correlation of count and test error inside augmented runs, as Fig. 7 and 8 have it."""
    r = with_gap(group.assign(test_error=1 - group["test_accuracy"]), "region_count", "test_error")
    return {"r inside": r.value, "r low": r.interval[0], "r high": r.interval[1]}


def check_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A few lines of networks too large for exact counts, counted exactly all the same."""
    import pandas as pd

    methods = ("exact", "adaptive", "grid")
    lines = [
        {"model": subject, **{m: rows[f"count_check_{m}"].mean() for m in methods}}
        for subject, rows in networks(part(frame, "exact"), fitted=False).items()
    ]
    return pd.DataFrame(lines)


def model_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Every model: what it was trained with and what came of it."""
    names = ("part", "data", "model", *HYPER_PARAMETERS, "optimiser", "augmentation", *TREE_PARAMETERS)
    results = ("replicate", "train_accuracy", "test_accuracy", "gap", "region_count", "region_count_error")
    measured = [name for name in (*BASELINES, *UNLABELLED) if name not in results]
    more = dict.fromkeys(("count_method", "count_grid_200", *measured, "seconds"))
    return frame[[n for n in (*names, *results, *more) if n in frame]].round(6)
