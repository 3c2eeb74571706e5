"""The figures of the grokking study."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.studies.local_complexity.training_curves import band

if TYPE_CHECKING:
    import pandas as pd

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
