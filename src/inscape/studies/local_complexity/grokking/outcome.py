"""What the runs of the grokking study say, in findings and in figures."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.reports.findings import Chart, Finding, Summary, in_all
from inscape.studies.local_complexity.training_curves import (
    band,
    coefficients,
    curve_chart,
    mean_frame,
    mean_of,
)

if TYPE_CHECKING:
    import pandas as pd


CLAIMS = {
    "drop": "After the training images are fitted, local complexity falls, at every He scale (Fig. 3, 8).",
    "robust": "Meanwhile accuracy under attack rises (Fig. 3, 8).",
    "together": "Within a run, accuracy under attack is the higher the lower local complexity is, "
    "after the fit.",
    "variation": "Total variation falls along with local complexity at He scale 2 and 3 (Fig. 3, 8).",
    "breaks": "At He scale 1 it does not (Fig. 8, 9).",
    "bound": "Local complexity stays above the bound of Theorem 7 as the paper estimates it, eq. 42 "
    "(Fig. 9).",
    "constant": "Total variation rises with the Lipschitz constant only: divided by it, as in eq. 42, it "
    "falls along with local complexity at He scale 1 (Fig. 9).",
    "corrected": "It stays above the bound with a true Lipschitz constant.",
    "not_good": "In wide networks every unit is good at every step, B = 0 (Fig. 10).",
    "rank": "The local rank of the deepest layer falls after the fit, as local complexity does (Fig. 12).",
    "decision": "Decision regions fall where linear regions do: within a run, the region count R_1 is the "
    "lower the lower local complexity is, after the fit (not in the papers).",
    "moment": "They fall at the same time: from look to look, R_1 and local complexity change together, "
    "after the fit (not in the papers).",
}
FITTED = 0.999
"""Training accuracy at which the images count as fitted."""
ATTACKED, STRONGER = "attacked_0.02", "attacked_0.05"
"""The attack that findings are about, radius 0.02, which leaves every network some accuracy; and one more."""
ETA = SIGMA = 1.0
DENSITY = math.exp(-(ETA**2) / (2 * SIGMA**2)) / (math.sqrt(2 * math.pi) * SIGMA)
"""c_bias of Corollary 3."""
WITH_INTERVAL = (ATTACKED, STRONGER, "lc", "tv", "region_count", "excess")
SHOWN = (
    *("train_accuracy", "accuracy", "attacked_0.1", "not_good"),
    *("bound_stated", "bound_corrected"),
    *(f"lr_{eps}_{k}" for eps in ("0.1", "1") for k in (1, 2, 3, 4)),
)


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Findings over the runs, the tables of runs and curves, and the figures."""
    runs = prepared(frame)
    curves = mean_frame(runs, ["network", "he_scale"], WITH_INTERVAL, SHOWN)
    figures = draw_all(runs, out)
    return Summary(
        findings=findings(runs),
        figures=figures,
        notes=_notes(runs),
        charts=_charts(curves),
        tables={"Runs": _table(runs), "Curves": curves.round(4)},
        limits=_LIMITS,
    )


def prepared(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The runs with what follows from their columns: the bounds, and where the images are fitted."""
    runs = frame.copy()
    runs["network"] = [f"{d}x{w}" for d, w in zip(runs["depth"], runs["width"], strict=True)]
    for form in ("stated", "corrected"):
        runs[f"bound_{form}"] = [
            [bound(tv, d, c) for tv, c in zip(r["tv"], r[f"lipschitz_{form}"], strict=True)]
            for d, (_, r) in zip(runs["depth"], runs.iterrows(), strict=True)
        ]
    runs["excess"] = [
        (np.array(a) - np.array(b)).tolist() for a, b in zip(runs["lc"], runs["bound_stated"], strict=True)
    ]
    fitted = [np.flatnonzero(np.array(a) >= FITTED) for a in runs["train_accuracy"]]
    runs["fit"] = [int(at[0]) if len(at) else len(a) - 1 for at, a in zip(fitted, runs["lc"], strict=True)]
    runs["is_fitted"] = [len(at) > 0 for at in fitted]
    return runs


def bound(tv: float, depth: int, lipschitz: float) -> float:
    """TV L c_bias / max_l C_l of Theorem 7, as it is drawn in Fig. 9: without the terms in xi and B."""
    return tv * depth * DENSITY / lipschitz


def findings(runs: "pd.DataFrame") -> dict[str, Finding]:
    """Which claims hold, from `prepared` runs; claims about the fit need runs that fit their images."""
    wide = runs[(runs["width"] == runs["width"].max()) & runs["is_fitted"]]
    deep = wide[wide["depth"] == wide["depth"].max()]
    standard, scaled = deep[deep["he_scale"] == 1], deep[deep["he_scale"] > 1]
    shallow = wide[wide["depth"] < runs["depth"].max()]
    fig9 = runs[(runs["he_scale"] == 1) & (runs["depth"] == 4) & (runs["width"] == runs["width"].max())]
    every = np.concatenate([np.array(b) for b in runs.loc[runs["width"] == runs["width"].max(), "not_good"]])
    narrow = runs[runs["width"] < runs["width"].max()]["not_good"]
    most = max((max(b) for b in narrow), default=0.0)
    return {
        "drop": _change(deep, "lc", _relative, falls=True, published="falls (Fig. 3, 8)"),
        "robust": _robust(deep),
        "together": _within(deep, "lc", ATTACKED, positive=False),
        "variation": _change(scaled, "tv", _relative, falls=True, published="falls (Fig. 3, 8)"),
        "breaks": _change(standard, "tv", _relative, falls=False, published="a late rise (Fig. 9)"),
        "bound": _above(fig9, "stated", "above zero (Fig. 9)"),
        "constant": _change(standard, "bound_stated", _relative, falls=True, published="falls (Fig. 9)"),
        "corrected": _above(fig9, "corrected", ""),
        "not_good": Finding(
            holds=bool((every == 0).all()) if len(every) else None,
            evidence=f"at most {every.max():.3g} in wide networks, {most:.3g} in the narrow one",
            value=float(every.max()),
            published="0",
        ),
        "rank": _change(
            shallow, f"lr_1_{runs['depth'].max() - 1}", _relative, falls=True, published="falls (Fig. 12)"
        ),
        "decision": _within(deep, "lc", "region_count", positive=True),
        "moment": _within(deep, "lc", "region_count", positive=True, changes=True),
    }


def _relative(before: float, after: float) -> float:
    return after / before - 1 if before else math.nan


def _difference(before: float, after: float) -> float:
    return after - before


Change = Callable[[float, float], float]


def _change(runs: "pd.DataFrame", column: str, of: Change, *, falls: bool, published: str) -> Finding:
    """How a column changed from the fit to the end; the value is that of the setting with most runs."""
    if not len(runs):
        return Finding(holds=None, evidence="no run fitted its images", published=published)
    runs = runs.assign(change=[of(r[column][r["fit"]], r[column][-1]) for _, r in runs.iterrows()])
    by = {f"He {he:g}": mean_of(group["change"]) for he, group in runs.groupby("he_scale")}
    words = ", ".join(f"{he}: {mean:+.1%}" for he, (mean, _) in by.items())
    signs = [mean < 0 if falls else mean > 0 for mean, _ in by.values()]
    most = runs["he_scale"].mode().iloc[0]
    value, interval = by[f"He {most:g}"]
    which = f"; the number is that of He {most:g}" if len(by) > 1 else ""
    return Finding(
        holds=all(signs),
        evidence=f"from the fit to the end {words} ({len(runs)} run{'s' * (len(runs) > 1)}{which})",
        value=value,
        interval=interval,
        published=published,
    )


def _robust(runs: "pd.DataFrame") -> Finding:
    weaker, stronger = (
        _change(runs, name, _difference, falls=False, published="rises (Fig. 3, 8)")
        for name in (ATTACKED, STRONGER)
    )
    return replace(weaker, evidence=f"{weaker.evidence} at radius 0.02; {stronger.evidence} at radius 0.05")


def _within(runs: "pd.DataFrame", x: str, y: str, *, positive: bool, changes: bool = False) -> Finding:
    """The mean over runs of Spearman's coefficient after the fit; held if the interval says so."""
    found = coefficients(runs, x, y, "fit", changes=changes)
    if len(found) < 2:
        return Finding(holds=None, evidence=f"{len(found)} runs")
    mean, interval = mean_of(found)
    assert interval is not None
    interval = max(interval[0], -1.0), min(interval[1], 1.0)
    return Finding(
        holds=bool(interval[0] > 0 if positive else interval[1] < 0),
        evidence=f"mean Spearman coefficient {mean:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}] over "
        f"{len(found)} runs, {min(found):+.2f} to {max(found):+.2f}",
        value=mean,
        interval=interval,
    )


def _above(runs: "pd.DataFrame", form: str, published: str) -> Finding:
    lc, bounds = (np.array(runs[name].tolist()) for name in ("lc", f"bound_{form}"))
    if not len(runs):
        return Finding(holds=None, evidence="no runs", published=published)
    found = in_all((lc > bounds).ravel(), f"looks at {len(runs)} runs")
    value, interval = mean_of((lc - bounds)[:, -1])
    share = bounds / lc
    return Finding(
        holds=found.holds,
        evidence=f"{found.evidence}; the bound is {share.min():.2%} to {share.max():.2%} of local "
        "complexity, whose excess at the end is the value; with the terms in xi and B the left side is "
        f"{runs[f'theorem_7_{form}'].mean():.3g} there",
        value=value,
        interval=interval,
        published=published,
    )


_KEPT = ("accuracy", "attacked_0.02", "attacked_0.05", "attacked_0.1", "lc", "tv", "region_count", "not_good")


def _table(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Each run at step 0, where its images are fitted, and at the end."""
    import pandas as pd

    lines = []
    for _, r in runs.iterrows():
        for when, i in (("start", 0), ("fit", r["fit"]), ("end", len(r["lc"]) - 1)):
            line = {"network": r["network"], "he_scale": r["he_scale"], "run": r["replicate"], "when": when}
            line |= {"step": r["step"][i], **{name: r[name][i] for name in _KEPT}}
            lines.append(line | {"seconds": round(r["seconds"])})
    return pd.DataFrame(lines).round(4)


def _charts(curves: "pd.DataFrame") -> list[Chart]:
    lines = curves.assign(setting=curves["network"] + ", He " + curves["he_scale"].map("{:g}".format))
    shown = {
        "lc": "local complexity",
        ATTACKED: "accuracy under attack, radius 0.02",
        "tv": "total variation",
        "region_count": "decision regions R_1",
        "excess": "LC - eq. 42",
    }
    return [
        curve_chart(lines, name, title=words, ylabel=words, colour="setting", hover=("runs",))
        for name, words in shown.items()
    ]


def _notes(runs: "pd.DataFrame") -> str:
    first = runs.iloc[0]
    lengths = ", ".join(
        f"{net} He {he:g}: {len(g)} x {max(max(s) for s in g['step']):,} steps"
        for (net, he), g in runs.groupby(["network", "he_scale"], sort=False)
    )
    return (
        f"{first['n_train']} training images of {first['data']}, pixels 0..1, AdamW "
        f"{first['learning_rate']:g}, weight decay {first['weight_decay']:g}, batch {first['batch_size']}. "
        f"{lengths}. Local complexity and total variation at {first['n_points']} test images in "
        f"{first['n_noise']} networks with noise of sigma = 1 on biases, local rank of the network itself "
        "at 30 of them, attacks on 500 with 10 steps of projected gradients, R_1 exact on "
        f"{2 * first['n_points']} segments between test images."
    )


_LIMITS = (
    "Runs end long before the paper's million steps: what falls later still is not seen.",
    "The attack is one: ten steps of projected gradients; a stronger one gives lower accuracies.",
    "Local complexity depends on sigma and on the scale of layers, so He scales compare over time, "
    "not in height.",
    "The local rank depends on its threshold; the figure shows one, the table of curves two.",
)


_ACCURACIES = {
    "train_accuracy": "train",
    "accuracy": "test",
    "attacked_0.02": "attacked, 0.02",
    "attacked_0.05": "attacked, 0.05",
    "attacked_0.1": "attacked, 0.1",
}
_STYLES = {"train": "-", "test": "-", "attacked, 0.02": "--", "attacked, 0.05": "--", "attacked, 0.1": "--"}
DPI = 100


def draw_all(runs: "pd.DataFrame", out: Path) -> dict[str, str]:
    """Every figure that the runs have data for; name -> caption."""
    widest = runs[runs["width"] == runs["width"].max()]
    deep = widest[widest["depth"] == widest["depth"].max()]
    _late(deep, out / "late.png")
    _bound(deep[deep["he_scale"] == 1], out / "bound.png")
    _not_good(runs, out / "not-good.png")
    _rank(widest[widest["depth"] < widest["depth"].max()], out / "rank.png")
    _decision(deep, out / "decision.png")
    return {
        "late.png": "Accuracies, local complexity, total variation and decision regions at He scale 1, 2 and "
        "3 (Fig. 3 and 8). Bands: 95 % of the mean over runs. Dashed vertical: all images fitted.",
        "bound.png": "Left: local complexity and both forms of the bound of Theorem 7. Right: local "
        "complexity minus eq. 42, mean and interval over runs (Fig. 9).",
        "not-good.png": "Units that are not good, of a wide and a narrow network (Fig. 10).",
        "rank.png": "Local rank per layer, with local complexity and accuracy under attack (Fig. 12).",
        "decision.png": "Decision regions against local complexity after the fit, over time (not in the "
        "papers).",
    }


def curves_of(runs: "pd.DataFrame", columns: Mapping[str, str]) -> dict[str, Any]:
    """Label -> steps, mean over runs and interval, of the runs of one setting."""
    if not len(runs):
        return {}
    steps = runs["step"].iloc[0]
    return {label: band(steps, runs[name]) for name, label in columns.items()}


def _late(runs: "pd.DataFrame", path: Path) -> None:
    from inscape.drawing.curves import draw_runs
    from inscape.drawing.palette import TEN

    scales = sorted(runs["he_scale"].unique())
    figure = new_figure((3.7 * len(scales), 8.6))
    axes = figure.subplots(4, len(scales), sharex="col", squeeze=False)
    rows = {"lc": "local complexity", "tv": "total variation", "region_count": "decision regions R_1"}
    for j, he in enumerate(scales):
        here = runs[runs["he_scale"] == he]
        draw_runs(
            curves_of(here, _ACCURACIES),
            ylabel="accuracy",
            styles=_STYLES,
            xlabel="",
            legend=False,
            ax=axes[0, j],
        )
        for i, (name, words) in enumerate(rows.items(), start=1):
            draw_runs(
                curves_of(here, {name: words}),
                ylabel=words,
                colours={words: TEN[4]},
                xlabel="step" if i == 3 else "",
                legend=False,
                ax=axes[i, j],
            )
            axes[i, j].set_ylim(bottom=0)
        fitted = np.mean([r["step"][r["fit"]] for _, r in here.iterrows()])
        for ax in axes[:, j]:
            ax.axvline(fitted, color="0.5", ls="--", lw=0.9)
        axes[0, j].set_ylim(0, 1.02)
        axes[0, j].tick_params(labelbottom=False)
        axes[0, j].set_title(f"He scale {he:g}, {len(here)} run{'s' * (len(here) > 1)}")
        if j:
            for ax in axes[:, j]:
                ax.set_ylabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(path, dpi=DPI)


def _bound(runs: "pd.DataFrame", path: Path) -> None:
    from inscape.drawing.curves import draw_runs

    figure = new_figure((9.6, 3.8))
    left, right = figure.subplots(1, 2)
    names = {
        "lc": "local complexity",
        "tv": "total variation",
        "bound_stated": "bound, eq. 42",
        "bound_corrected": "bound, true constant",
    }
    draw_runs(
        curves_of(runs, names), ylabel="", styles={"total variation": ":"}, log_y=True, legend=False, ax=left
    )
    if len(runs):
        left.legend(frameon=False, fontsize=8, loc=(0.02, 0.58))
    draw_runs(
        curves_of(runs, {"excess": "LC - eq. 42"}), ylabel="LC - bound of eq. 42", legend=False, ax=right
    )
    right.set_ylim(bottom=0)
    right.set_title(f"{len(runs)} runs, 95 % interval of the mean", fontsize=10)
    figure.savefig(path, dpi=DPI)


def _not_good(runs: "pd.DataFrame", path: Path) -> None:
    from inscape.drawing.curves import draw_runs

    four = runs[(runs["depth"] == runs["depth"].max()) & (runs["he_scale"] == 1)]
    curves: dict[str, Any] = {}
    for width, here in four.groupby("width"):
        label = f"width {width} ({len(here)} run{'s' * (len(here) > 1)})"
        curves |= curves_of(here, {"not_good": label})
    figure = new_figure((5.6, 3.4))
    draw_runs(curves, ylabel="units not good, B", ax=figure.subplots())
    figure.savefig(path, dpi=DPI)


def _rank(runs: "pd.DataFrame", path: Path) -> None:
    from inscape.drawing.curves import draw_runs
    from inscape.drawing.palette import TEN

    figure = new_figure((11.5, 3.5))
    left, middle, right = figure.subplots(1, 3)
    if len(runs):
        depth = int(runs["depth"].iloc[0])
        ranks = {f"lr_1_{k}": f"layer {k}" for k in range(1, depth + 1)}
        draw_runs(curves_of(runs, ranks), ylabel="local rank, threshold 1", ax=left)
        draw_runs(
            curves_of(runs, {"lc": "lc"}),
            ylabel="local complexity",
            legend=False,
            colours={"lc": TEN[4]},
            ax=middle,
        )
        draw_runs(curves_of(runs, _ACCURACIES), ylabel="accuracy", styles=_STYLES, legend=False, ax=right)
        right.set_ylim(0, 1.45)
        right.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
        middle.set_title(f"{runs['network'].iloc[0]}, He scale 1", fontsize=10)
    figure.savefig(path, dpi=DPI)


def _decision(runs: "pd.DataFrame", path: Path) -> None:
    from matplotlib.colors import LogNorm

    figure = new_figure((11.5, 3.8))
    scales = sorted(runs["he_scale"].unique())
    axes = figure.subplots(1, len(scales), squeeze=False)[0]
    last = max(max(s) for s in runs["step"])
    norm = LogNorm(10, last)
    drawn = None
    for ax, he in zip(axes, scales, strict=True):
        for _, run in runs[runs["he_scale"] == he].iterrows():
            lc, count, step = (np.array(run[k][run["fit"] :]) for k in ("lc", "region_count", "step"))
            ax.plot(lc, count, color="0.8", lw=0.8, zorder=1)
            drawn = ax.scatter(lc, count, c=step, cmap="viridis_r", norm=norm, s=16, zorder=2)
        ax.set_xlabel("local complexity")
        ax.set_title(f"He scale {he:g}", fontsize=10)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("decision regions R_1")
    if drawn is not None:
        figure.colorbar(drawn, ax=list(axes), label="step", shrink=0.9)
    figure.savefig(path, dpi=DPI)
