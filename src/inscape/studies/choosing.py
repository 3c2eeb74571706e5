"""Choosing a model without labels: which measure picks the better of two, and the best of all?

Families of models that differ in size, in the number of training points and in how many of their labels are
wrong: what a user has who trained some and knows no test labels. Every measure sees the test points without
their classes, or the training data.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.choices import choose, lead
from inscape.reports.findings import Finding, Summary, judge
from inscape.sweeps.study import Configuration, Row, Study
from inscape.sweeps.tasks import canonical
from inscape.sweeps.trained_model import outcome, settings_of, split_of

if TYPE_CHECKING:
    import pandas as pd

SIDES = {
    "region_count": "low",
    "confidence": "high",
    "nuclear_norm": "high",
    "prediction_entropy": "low",
    "agreement": "high",
    "margin": "high",
    "sharpness": "low",
    "spectral_norm": "low",
    "path_norm": "low",
    "distance": "low",
}
"""Measure -> on which side the better model is expected: fixed before a row was seen, by what is said of each
in the literature (few regions, flat, small norms; sure, spread and agreeing predictions; large margins)."""
NAMES = {
    "region_count": "fewer regions",
    "confidence": "average confidence",
    "nuclear_norm": "nuclear norm of predictions",
    "prediction_entropy": "low entropy",
    "agreement": "agreement of seeds",
    "margin": "margin on training points",
    "sharpness": "flatness",
    "spectral_norm": "small spectral norm",
    "path_norm": "small path norm",
    "distance": "near to the start",
}
COIN = 0.5
SHARP_POINTS = 200
PROBE_SEED = 0
_GRID: dict[str, dict[str, Any]] = {
    "smoke": {
        "data": "digits",
        "n_train": (60, 300),
        "wrong": (0.0, 0.3),
        "hidden": ([16], [64]),
        "depths": (3, 8),
        "steps": 300,
        "lines": 20,
        "n_test": 500,
    },
    "small": {
        "data": "mnist",
        "n_train": (300, 1000, 3000),
        "wrong": (0.0, 0.1, 0.3),
        "hidden": ([32, 32], [128, 128], [256, 256]),
        "depths": (4, 8, 16),
        "steps": 2000,
        "lines": 100,
        "n_test": 2000,
    },
    "paper": {
        "data": "mnist",
        "n_train": (300, 1000, 3000, 10_000),
        "wrong": (0.0, 0.05, 0.1, 0.2, 0.3),
        "hidden": ([32, 32], [128, 128], [256, 256], [256, 256, 256]),
        "depths": (4, 8, 12, 16),
        "steps": 10_000,
        "lines": 300,
        "n_test": None,
    },
}
BATCH, RATE = 32, 0.05


def configurations(scale: str, data: str | None = None) -> list[Configuration]:
    """Sizes by training points by shares of wrong labels, two seeds of each: MLPs, trees and forests."""
    g = _GRID[scale]
    every: list[Configuration] = []
    for n, wrong, i in product(g["n_train"], g["wrong"], range(2)):
        base = {"data": data or g["data"], "n_train": n, "n_test": g["n_test"], "label_noise": wrong}
        base |= {"n_lines": g["lines"], "replicate": i}
        epochs = max(1, round(g["steps"] * BATCH / n))
        net = {"model": "mlp", "learning_rate": RATE, "batch_size": BATCH, "epochs": epochs, "init": "torch"}
        every += [base | net | {"hidden": hidden} for hidden in g["hidden"]]
        every += [
            base | {"model": model, "max_depth": d} for model in ("tree", "forest") for d in g["depths"]
        ]
    return every


def together(configuration: Configuration) -> Hashable:
    """The seeds of one configuration: they are asked whether they agree."""
    return canonical({k: v for k, v in configuration.items() if k != "replicate"})


def cell(configuration: Configuration) -> Row:
    """One model; alone it has nobody to agree with."""
    return batch([configuration])[0]


def batch(configurations: list[Configuration]) -> list[Row]:
    """The rows of the seeds of one configuration."""
    from inscape.training.fitting import fit_many

    first = configurations[0]
    split = split_of(first)
    mislabelled = replace(split, y_train=wrong_labels(split.y_train, first["label_noise"], split.n_classes))
    own = ("label_noise", "n_lines")
    settings = [settings_of(c, without=own) for c in configurations]
    fitted = fit_many(settings, mislabelled, random_states=[c["seed"] for c in configurations])
    models = [f.model for f in fitted]
    return [_row(f, split, mislabelled, models, c) for f, c in zip(fitted, configurations, strict=True)]


def wrong_labels(y: Any, share: float, n_classes: int) -> Any:
    """The classes of which a share is replaced by another one at random, always the same ones.

    >>> y = np.zeros(1000, int)
    >>> int((wrong_labels(y, 0.3, 10) != y).sum())
    300
    """
    rng = np.random.default_rng(len(y))
    rows = rng.permutation(len(y))[: round(share * len(y))]
    changed = y.copy()
    changed[rows] = (y[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return changed


def _row(fitted: Any, split: Any, mislabelled: Any, models: list[Any], c: Configuration) -> dict[str, Any]:
    from inscape.measures import agreement, measure, parameter_distance, region_count

    row = outcome(fitted, mislabelled)
    count = region_count(fitted.model, split.x_test, n_probes=c["n_lines"], random_state=PROBE_SEED)
    row |= {"region_count": count.mean, "region_count_error": count.std_error, "count_method": count.method}
    free = measure(fitted.model, split.x_test, measures=("confidence", "nuclear_norm", "prediction_entropy"))
    row |= {line["measure"]: line["value"] for line in free.rows}
    others = [m for m in models if m is not fitted.model]
    if others:
        row["agreement"] = agreement(fitted.model, split.x_test, others=others).value
    if fitted.initial is None:
        return row
    row["distance"] = parameter_distance(fitted.model, fitted.initial).value
    some = (mislabelled.x_train[:SHARP_POINTS], mislabelled.y_train[:SHARP_POINTS])
    fit = measure(
        fitted.model, *some, measures=("margin", "sharpness", "spectral_norm", "path_norm"), random_state=0
    )
    return row | {line["measure"]: line["value"] for line in fit.rows}


def families(frame: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """The groups among which one chooses: MLPs in all, of clean labels, of equally many points; trees."""
    nets = frame[frame["model"] == "mlp"]
    trees = frame[frame["model"] != "mlp"]
    groups = {"all MLPs": nets, "MLPs, clean labels": nets[nets["label_noise"] == 0]}
    for n in sorted(set(nets["n_train"])):
        one = nets[nets["n_train"] == n]
        groups[f"MLPs, {n:,} points"] = one
        groups[f"MLPs, {n:,} points, clean labels"] = one[one["label_noise"] == 0]
    groups |= {"all trees and forests": trees}
    groups |= {f"{model}s": trees[trees["model"] == model] for model in ("tree", "forest")}
    return {name: rows for name, rows in groups.items() if len(rows) > 1}


def choice_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Every measure on every family: Kendall's tau, the share of pairs, the regret."""
    return measures_on(families(frame), SIDES, NAMES)


def measures_on(
    groups: "Mapping[str, pd.DataFrame]", sides: Mapping[str, str], names: Mapping[str, str]
) -> "pd.DataFrame":
    """What `choose` says of every measure that the rows of a family have, family by family.

    Args:
        groups: family -> its models.
        sides: measure -> "high" or "low", where the better model is expected.
        names: measure -> what it is called in the table.
    """
    import pandas as pd

    tables = []
    for name, rows in groups.items():
        known = {m: side for m, side in sides.items() if m in rows and rows[m].notna().any()}
        table = choose(rows, known)
        table.insert(0, "family", name)
        tables.append(table.assign(measure=[names[m] for m in table["measure"]]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Which measure picks well, family by family, and whether the count is ahead of confidence."""
    table = choice_table(frame)
    nets = frame[frame["model"] == "mlp"]
    clean = nets[nets["label_noise"] == 0]
    _draw(table, out)
    return Summary(
        findings={
            "count": _above(table, "all MLPs", NAMES["region_count"]),
            "confidence": _above(table, "all MLPs", NAMES["confidence"]),
            "ahead": _lead(nets),
            "ahead_clean": _lead(clean),
        },
        figures={
            "choosing.png": "The share of pairs of which each measure picks the better model; 0.5 is a coin."
        },
        notes=f"{len(frame)} models. On which side of a measure the better one is expected was fixed before.",
        tables={"Choosing a model": table, "All models": _models(frame)},
        limits=(
            "One data set and three kinds of models: what orders these may not order others.",
            "Intervals are over configurations, the seeds of one drawn together.",
        ),
    )


def _above(table: "pd.DataFrame", family: str, measure: str) -> Finding:
    rows = table[(table["family"] == family) & (table["measure"] == measure)]
    if not len(rows):
        return Finding(holds=None, evidence="no rows to ask")
    line = rows.iloc[0]
    low, high = float(line["pairs low"]), float(line["pairs high"])
    verdict = judge((low - COIN, high - COIN))
    return Finding(
        holds=verdict.holds,
        evidence=f"{family}: {line['pairs']:.0%} [{low:.0%}, {high:.0%}] of the pairs, "
        f"regret {100 * line['regret']:.1f} points",
        value=float(line["pairs"]),
        interval=(low, high) if low == low else None,
    )


def _lead(rows: "pd.DataFrame") -> Finding:
    ahead = lead(rows, ("region_count", "low"), ("confidence", "high"))
    verdict = judge(ahead.interval)
    return Finding(
        holds=verdict.holds,
        evidence=f"{ahead} of the pairs more than confidence, over {ahead.n} models",
        value=ahead.value,
        interval=ahead.known_interval,
    )


def _models(frame: "pd.DataFrame") -> "pd.DataFrame":
    names = ["model", "n_train", "label_noise", "hidden", "max_depth", "replicate", "train_accuracy"]
    columns = [n for n in (*names, "test_accuracy", *SIDES, "seconds") if n in frame]
    return frame[columns].round(5)


def _draw(table: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.axes import new_figure

    shown = ["all MLPs", "MLPs, clean labels", "all trees and forests"]
    figure = new_figure((11, 4.2))
    for ax, family in zip(figure.subplots(1, 3, sharex=True), shown, strict=True):
        rows = table[table["family"] == family][::-1]
        heights = np.arange(len(rows))
        ax.errorbar(
            rows["pairs"],
            heights,
            xerr=[rows["pairs"] - rows["pairs low"], rows["pairs high"] - rows["pairs"]],
            fmt="o",
        )
        ax.set_yticks(heights, rows["measure"])
        ax.axvline(COIN, color="black", lw=0.8)
        ax.set(title=family, xlabel="pairs decided rightly")
    figure.savefig(out / "choosing.png", dpi=150, bbox_inches="tight")


STUDY = Study(
    name="choosing",
    title="Choosing a model without labels",
    claims={
        "count": "Of two MLPs, that of fewer regions is the better one more often than by chance.",
        "confidence": "So is that of the higher average confidence.",
        "ahead": "Fewer regions pick the better MLP more often than confidence does.",
        "ahead_clean": "They do so among MLPs that were trained on clean labels.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    batch=batch,
    together=together,
    options={"data": "a data set: digits, mnist, fashion_mnist, ..."},
)
