"""What the runs of the grokking study say, in findings and in figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.reports.findings import Chart, Finding, Summary, in_all, judge
from inscape.studies.local_complexity.training_curves import (
    RANK_POINTS,
    RankThreshold,
    band,
    changed,
    coefficients,
    curve_chart,
    mean_frame,
    mean_of,
)

if TYPE_CHECKING:
    import pandas as pd


CLAIMS = {
    "drop": "After the training images are fitted, local complexity falls, at every He scale (Fig. 3, 8).",
    "robust": "Meanwhile accuracy under the published attack rises (Fig. 3, 8).",
    "masked": "That rise is the attack's loss saturating: within the same radius a loss that does not leaves "
    "at most a tenth of it (not in the paper).",
    "together": "Within a run, accuracy under an attack that does not saturate, radius 0.02, is the "
    "higher the lower local complexity is, after the fit.",
    "variation": "Total variation falls along with local complexity at He scale 2 and 3 (Fig. 3, 8); it is "
    "that of the last hidden layer, as in the published code.",
    "loss": "With the cross-entropy of scores total variation of scores and the rank of the deepest layer "
    "rise, with the published loss they fall: the loss decides (not in the paper).",
    "breaks": "At He scale 1 total variation does not fall (Fig. 8, 9).",
    "bound": "Local complexity stays above the bound of Theorem 7 as the paper estimates it, eq. 42 "
    "(Fig. 9).",
    "constant": "Total variation rises with the Lipschitz constant only: divided by it, as in eq. 42, it "
    "falls along with local complexity at He scale 1 (Fig. 9).",
    "corrected": "It stays above the bound with a true Lipschitz constant.",
    "not_good": "In wide networks every unit is good at every step, B = 0 (Fig. 10).",
    "rank": "The local rank of the deepest layer falls after the fit, as local complexity does (Fig. 12).",
    "decision": "Decision regions fall where linear regions do: within a run, the region count R_1 is the "
    "lower the lower local complexity is, after the fit (not in the papers).",
    "moment": "They fall at the same time: from one measurement to the next, R_1 and local complexity "
    "change together, after the fit (not in the papers).",
}
PLATEAU, LEARNT = 0.01, 0.8
"""Images count as fitted from the first measurement whose training accuracy is within the first of the
highest, if that is at least the second: a saturating loss may never fit some class."""
STEPS_PUBLISHED = 1_000_000
"""Steps of the published runs: one that ends before cannot deny a change, for it may still come."""
LEAST_CHANGE = 0.01
"""The fraction (or the points of accuracy) by which something must change to have changed."""
MASKED_BELOW = 0.1
"""An attack masks if one that does not saturate leaves at most this share of what it leaves."""
THRESHOLDS = (RankThreshold(0.01), RankThreshold(0.1), RankThreshold(1.0), RankThreshold(0.01, relative=True))
PIXEL_ATTACKS = (0.02, 0.05)
SOFT_ATTACK = "attacked_0.02"
"""An attack that does not saturate and leaves every network some accuracy."""
N_ATTACKED = 500
"""Test images that are attacked, at most."""
ETA = SIGMA = 1.0
DENSITY = math.exp(-(ETA**2) / (2 * SIGMA**2)) / (math.sqrt(2 * math.pi) * SIGMA)
"""c_bias of Corollary 3."""
_ATTACKS = ("attacked_published", "attacked_margin", *(f"attacked_{r:g}" for r in PIXEL_ATTACKS))
_VARIATIONS = ("tv", "tv_probabilities", "tv_hidden")
WITH_INTERVAL = ("lc", *_VARIATIONS, *_ATTACKS, "region_count", "excess")
SHOWN = (
    *("train_accuracy", "accuracy", "not_good", "bound_stated", "bound_corrected"),
    *(f"{t.name}_{k}" for t in THRESHOLDS for k in (1, 2, 3, 4)),
)
_SHORT_NAMES = {"softmax-cross-entropy": "softmax + CE", "cross-entropy": "CE"}


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Findings over the runs, the tables of runs and curves, and the figures."""
    runs = prepared(frame)
    curves = mean_frame(runs, ["network", "he_scale", "loss"], WITH_INTERVAL, SHOWN)
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
    fits = [first_fitted(a) for a in runs["train_accuracy"]]
    runs["fit"] = [len(a) - 1 if i is None else i for i, a in zip(fits, runs["lc"], strict=True)]
    runs["seen_after"] = [i is not None and i < len(a) - 1 for i, a in zip(fits, runs["lc"], strict=True)]
    return runs


def first_fitted(accuracy: Sequence[float]) -> int | None:
    """The first measurement with training accuracy on its plateau, which may be below one; None if too low.

    >>> first_fitted([0.1, 0.7, 0.885, 0.89, 0.89]), first_fitted([0.1, 0.2, 0.3])
    (2, None)
    """
    top = max(accuracy)
    return next(i for i, a in enumerate(accuracy) if a >= top - PLATEAU) if top >= LEARNT else None


def bound(tv: float, depth: int, lipschitz: float) -> float:
    """TV L c_bias / max_l C_l of Theorem 7, as it is drawn in Fig. 9: without the terms in xi and B."""
    return tv * depth * DENSITY / lipschitz


def findings(runs: "pd.DataFrame") -> dict[str, Finding]:
    """Which claims hold, from `prepared` runs; those about the fit need runs measured after it.

    Claims of the paper are about runs with its loss, if there are any.
    """
    published = runs[runs["loss"] == "softmax-cross-entropy"]
    theirs = published if len(published) else runs
    wide = theirs[(theirs["width"] == runs["width"].max()) & theirs["seen_after"]]
    deep = wide[wide["depth"] == runs["depth"].max()]
    standard, scaled = deep[deep["he_scale"] == 1], deep[deep["he_scale"] > 1]
    shallow = wide[wide["depth"] < runs["depth"].max()]
    fig12 = shallow if len(shallow) else deep
    fig9 = theirs[
        (theirs["he_scale"] == 1) & (theirs["depth"] == 4) & (theirs["width"] == runs["width"].max())
    ]
    return {
        "drop": _at_every_scale(
            change(deep, "lc", falls=True, published="falls (Fig. 3, 8)"), deep, theirs["he_scale"]
        ),
        "robust": change(deep, "attacked_published", falls=False, points=True, published="rises (Fig. 3, 8)"),
        "masked": _masked(deep),
        "together": _within(deep, "lc", SOFT_ATTACK, positive=False),
        "variation": _variation(scaled),
        "loss": _loss(runs[(runs["width"] == runs["width"].max()) & runs["seen_after"]]),
        "breaks": change(standard, "tv_hidden", falls=False, published="a late rise (Fig. 9)"),
        "bound": _above(fig9, "stated", "above zero (Fig. 9)"),
        "constant": change(standard, "bound_stated", falls=True, published="falls (Fig. 9)"),
        "corrected": _above(fig9, "corrected", ""),
        "not_good": _not_good_units(runs),
        "rank": change(fig12, deepest_rank(runs, fig12), falls=True, published="falls (Fig. 12)"),
        "decision": _within(deep, "lc", "region_count", positive=True),
        "moment": _within(deep, "lc", "region_count", positive=True, changes=True),
    }


def deepest_rank(runs: "pd.DataFrame", some: "pd.DataFrame") -> str:
    """The column of the rank of the deepest layer of some of the runs, at the threshold they ask for."""
    depth = int(some["depth"].max()) if len(some) else int(runs["depth"].max())
    return f"{threshold_of(runs).name}_{depth}"


def threshold_of(runs: "pd.DataFrame") -> RankThreshold:
    """The threshold of the local rank that runs ask for."""
    return RankThreshold(float(runs["tolerance"].iloc[0]))


def change(
    runs: "pd.DataFrame", column: str, *, falls: bool, published: str, points: bool = False
) -> Finding:
    """How a column changed from the fit to the end, in per cent or in points, by He scale.

    The change is judged at every He scale, and the claim is that it holds at all; the number is that of the
    He scale with most runs.
    """
    if not len(runs):
        return Finding(holds=None, evidence="no run was measured after the fit", published=published)
    both = [(r[column][r["fit"]], r[column][-1]) for _, r in runs.iterrows()]
    changes = [b - a if points else b / a - 1 if a else math.nan for a, b in both]
    runs = runs.assign(change=[100 * p for p in changes], last=[r["step"][-1] for _, r in runs.iterrows()])
    groups = {f"He {he:g}": g for he, g in runs.groupby("he_scale")}
    verdicts = [
        changed(
            g["change"] * (-1 if falls else 1),
            100 * LEAST_CHANGE,
            long_enough=g["last"].min() >= STEPS_PUBLISHED,
        )
        for g in groups.values()
    ]
    holds = True if all(verdicts) else False if any(v is False for v in verdicts) else None
    by = {he: mean_of(g["change"]) for he, g in groups.items()}
    unit = " points" if points else " %"
    words = ", ".join(f"{he}: {mean:+.1f}{unit}" for he, (mean, _) in by.items())
    most = f"He {runs['he_scale'].mode().iloc[0]:g}"
    value, interval = by[most]
    tail = f"; the number is that of {most}" if len(by) > 1 else ""
    tail += f"; to deny a change takes two runs or more of {STEPS_PUBLISHED:,} steps" if holds is None else ""
    lengths = f"{runs['last'].min():,}" + (
        f" to {runs['last'].max():,}" if runs["last"].nunique() > 1 else ""
    )
    return Finding(
        holds=holds,
        evidence=f"from the fit to the end {words} ({len(runs)} run{'s' * (len(runs) > 1)} of {lengths} "
        f"steps{tail})",
        value=value,
        interval=interval,
        published=published,
    )


def _at_every_scale(finding: Finding, seen: "pd.DataFrame", asked: Iterable[float]) -> Finding:
    """The finding, undecided if it held but some He scale was not seen after the fit."""
    missing = ", ".join(f"{he:g}" for he in sorted(set(asked) - set(seen["he_scale"])))
    if not (finding.holds and missing):
        return finding
    return replace(
        finding, holds=None, evidence=f"{finding.evidence}; not seen after the fit at He {missing}"
    )


def _masked(runs: "pd.DataFrame") -> Finding:
    """Held if the other loss leaves at most a tenth of the accuracy under the published attack in each run.

    Asked of the runs in which that accuracy rose; the value is the share that is left, a mean.
    """
    if not len(runs):
        return Finding(holds=None, evidence="no run was measured after the fit")
    fits = [r["attacked_published"][r["fit"]] for _, r in runs.iterrows()]
    ends = [(r["attacked_published"][-1], r["attacked_margin"][-1]) for _, r in runs.iterrows()]
    rose = [end - fit >= LEAST_CHANGE for (end, _), fit in zip(ends, fits, strict=True)]
    left = [other / end for (end, other), r in zip(ends, rose, strict=True) if r]
    words = ", ".join(
        f"He {he:g}: {a:.1%} and {b:.1%}" for he, (a, b) in zip(runs["he_scale"], ends, strict=True)
    )
    evidence = f"at the end, under the published attack and under one that does not saturate, {words}"
    if not left:
        return Finding(holds=None, evidence=f"{evidence}; it did not rise in these runs")
    value, interval = mean_of(left)
    last = min(steps[-1] for steps, r in zip(runs["step"], rose, strict=True) if r)
    return Finding(
        holds=changed([MASKED_BELOW - v for v in left], 0.0, long_enough=last >= STEPS_PUBLISHED),
        evidence=f"{evidence}: {min(left):.2f} to {max(left):.2f} is left",
        value=value,
        interval=interval,
    )


def _variation(runs: "pd.DataFrame") -> Finding:
    """That of the last hidden layer decides; those of scores and of probabilities are told beside it."""
    told = {
        "last hidden layer": change(runs, "tv_hidden", falls=True, published="falls (Fig. 3, 8)"),
        "scores": change(runs, "tv", falls=True, published=""),
        "probabilities": change(runs, "tv_probabilities", falls=True, published=""),
    }
    words = "; ".join(f"{what}: {f.evidence}" for what, f in told.items())
    return replace(told["last hidden layer"], evidence=words)


def _loss(runs: "pd.DataFrame") -> Finding:
    """Held if both quantities rise with one loss and fall with the other, in networks that have both."""
    both = [
        (key, g)
        for key, g in runs.groupby(["network", "he_scale"])
        if {"cross-entropy", "softmax-cross-entropy"} <= set(g["loss"])
    ]
    if not both:
        return Finding(holds=None, evidence="no network was seen after the fit with both losses")
    signs, words = [], []
    for (network, he), g in both:
        for loss, falls in (("cross-entropy", False), ("softmax-cross-entropy", True)):
            with_loss = g[g["loss"] == loss]
            changes = [
                change(with_loss, c, falls=falls, published="") for c in ("tv", deepest_rank(runs, with_loss))
            ]
            signs += [f.holds for f in changes]
            numbers = " and ".join(f"{f.value:+.0f} %" for f in changes)
            words.append(f"{network} He {he:g}, {_SHORT_NAMES[str(loss)]}: {numbers}")
    holds = True if all(signs) else False if any(s is False for s in signs) else None
    return Finding(
        holds=holds, evidence="total variation and rank from the fit to the end: " + ", ".join(words)
    )


def _not_good_units(runs: "pd.DataFrame") -> Finding:
    is_wide = runs["width"] == runs["width"].max()
    every = np.concatenate([np.array(b) for b in runs.loc[is_wide, "not_good"]])
    narrow = [max(b) for b in runs.loc[~is_wide, "not_good"]]
    return Finding(
        holds=bool((every == 0).all()),
        evidence=f"at most {every.max():.3g} in wide networks"
        + (f", {max(narrow):.3g} in the narrow one" if narrow else ""),
        value=float(every.max()),
        published="0",
        published_value=0.0,
    )


def _within(runs: "pd.DataFrame", x: str, y: str, *, positive: bool, changes: bool = False) -> Finding:
    """The mean over runs of Spearman's coefficient after the fit, judged by the rule of all studies."""
    values = coefficients(runs, x, y, "fit", changes=changes)
    if len(values) < 2:
        return Finding(holds=None, evidence=f"{len(values)} runs")
    mean, interval = mean_of(values)
    assert interval is not None
    interval = max(interval[0], -1.0), min(interval[1], 1.0)
    return Finding(
        holds=judge(interval if positive else (-interval[1], -interval[0])).holds,
        evidence=f"mean Spearman coefficient {mean:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}] over "
        f"{len(values)} runs, {min(values):+.2f} to {max(values):+.2f}",
        value=mean,
        interval=interval,
    )


def _above(runs: "pd.DataFrame", form: str, published: str) -> Finding:
    if not len(runs):
        return Finding(holds=None, evidence="no runs", published=published)
    lc, bounds = (np.concatenate(runs[name].tolist()) for name in ("lc", f"bound_{form}"))
    finding = in_all(
        lc > bounds, "measurements of one run" if len(runs) == 1 else f"measurements of {len(runs)} runs"
    )
    value, interval = mean_of([a[-1] - b[-1] for a, b in zip(runs["lc"], runs[f"bound_{form}"], strict=True)])
    share = bounds / lc
    return Finding(
        holds=finding.holds,
        evidence=f"{finding.evidence}; the bound is {share.min():.2%} to {share.max():.2%} of local "
        "complexity, whose excess at the end is the value; with the terms in xi and B the left side is "
        f"{runs[f'theorem_7_{form}'].mean():.3g} there",
        value=value,
        interval=interval,
        published=published,
    )


_KEPT = ("train_accuracy", "accuracy", *_ATTACKS, "lc", *_VARIATIONS, "region_count", "not_good")


def _table(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Each run at step 0, where its images are fitted, and at the end."""
    import pandas as pd

    lines = []
    for _, r in runs.iterrows():
        for when, i in (("start", 0), ("fit", r["fit"]), ("end", len(r["lc"]) - 1)):
            line = {"network": r["network"], "he_scale": r["he_scale"], "loss": r["loss"]}
            line |= {"run": r["replicate"], "when": when, "step": r["step"][i]}
            line |= {name: r[name][i] for name in _KEPT}
            line |= {t.name: r[f"{t.name}_{r['depth']}"][i] for t in THRESHOLDS}
            lines.append(line | {"seconds": round(r["seconds"])})
    return pd.DataFrame(lines).round(4)


def _charts(curves: "pd.DataFrame") -> list[Chart]:
    he = curves["he_scale"].map("{:g}".format)
    lines = curves.assign(setting=curves["network"] + ", He " + he + ", " + curves["loss"].map(_SHORT_NAMES))
    shown = {
        "lc": "local complexity",
        "attacked_published": "accuracy under the published attack",
        SOFT_ATTACK: "accuracy under an attack that does not saturate, radius 0.02",
        "tv_hidden": "total variation of the last hidden layer",
        "tv": "total variation of scores",
        "region_count": "decision regions R_1",
        "excess": "LC - eq. 42",
    }
    return [
        curve_chart(lines, name, title=words, ylabel=words, colour="setting", hover=("runs",))
        for name, words in shown.items()
    ]


def _notes(runs: "pd.DataFrame") -> str:
    c = runs.iloc[0]
    lengths = ", ".join(
        f"{net} He {he:g} {_SHORT_NAMES[str(loss)]}: {len(g)} x {max(max(s) for s in g['step']):,} steps"
        for (net, he, loss), g in runs.groupby(["network", "he_scale", "loss"], sort=False)
    )
    pixels = "normalised pixels" if c["normalise"] else "pixels of 0..1"
    decays = "weights and biases" if c["decay_biases"] else "weights, not of biases"
    return (
        f"{c['n_train']} training images of {c['data']}, {pixels}, {c['optimiser']} {c['learning_rate']:g}, "
        f"decay {c['weight_decay']:g} of {decays}, batch {c['batch_size']}. {lengths}. Local complexity and "
        f"total variation at {c['n_points']} test images in {c['n_noise']} networks with noise of sigma = 1 "
        f"on biases, local rank of the network itself at {min(RANK_POINTS, c['n_points'])} of them, attacks "
        f"on {min(N_ATTACKED, c['n_test'])} with 10 steps of "
        f"projected gradients, the published one within {c['attack']:g} of each pixel, R_1 exact on "
        f"{2 * c['n_points']} segments between test images."
    )


_LIMITS = (
    f"A change that did not come within a run of fewer than {STEPS_PUBLISHED:,} steps may come later.",
    "Attacks are of one kind, ten steps of projected gradients; a stronger one gives lower accuracies.",
    "Local complexity depends on sigma and on the scale of layers, so He scales compare over time, "
    "not in height.",
    "The local rank depends on its threshold; the figure shows one, the table of curves four.",
)


_ACCURACIES = {
    "train_accuracy": "train",
    "accuracy": "test",
    "attacked_published": "published attack",
    "attacked_margin": "same radius, other loss",
    SOFT_ATTACK: "attacked, 0.02",
}
_STYLES = {"train": "-", "test": "-"} | dict.fromkeys(list(_ACCURACIES.values())[2:], "--")
DPI = 100


def draw_all(runs: "pd.DataFrame", out: Path) -> dict[str, str]:
    """Every figure that the runs have data for; name -> caption."""
    widest = runs[runs["width"] == runs["width"].max()]
    deep = widest[widest["depth"] == widest["depth"].max()]
    published = widest[widest["loss"] == "softmax-cross-entropy"]
    theirs = published if len(published) else widest
    shallow = theirs[theirs["depth"] < widest["depth"].max()]
    _late(deep, out / "late.png")
    _bound(theirs[(theirs["he_scale"] == 1) & (theirs["depth"] == widest["depth"].max())], out / "bound.png")
    _not_good(runs, out / "not-good.png")
    ranked = shallow if len(shallow) else theirs
    first = ranked["he_scale"].iloc[0]  # one setting: means over He scales are of nothing
    _rank(ranked[ranked["he_scale"] == first], threshold_of(runs), out / "rank.png")
    _decision(deep, out / "decision.png")
    return {
        "late.png": "Accuracies, local complexity, total variation (each over its highest value) and "
        "decision regions, by He scale and loss (Fig. 3 and 8). Bands: 95 % of the mean over runs. Dashed "
        "vertical: images fitted.",
        "bound.png": "Left: local complexity and both forms of the bound of Theorem 7. Right: local "
        "complexity minus eq. 42, mean and interval over runs (Fig. 9).",
        "not-good.png": "Units that are not good, of a wide and a narrow network (Fig. 10).",
        "rank.png": "Local rank per layer, with local complexity and accuracies (Fig. 12).",
        "decision.png": "Decision regions against local complexity after the fit, over time (not in the "
        "papers).",
    }


def curves_of(runs: "pd.DataFrame", columns: Mapping[str, str]) -> dict[str, Any]:
    """Label -> steps, mean over runs and interval, of the runs of one setting."""
    if not len(runs):
        return {}
    return {label: band(runs, name) for name, label in columns.items()}


def _late(runs: "pd.DataFrame", path: Path) -> None:
    settings = list(runs.groupby(["he_scale", "loss"]))
    figure = new_figure((max(6.0, 3.7 * len(settings)), 8.6))
    axes = figure.subplots(4, len(settings), sharex="col", squeeze=False)
    for column, ((he, loss), here) in zip(axes.T, settings, strict=True):
        _late_column(here, column)
        column[0].set_title(f"He {he:g}, {_SHORT_NAMES[str(loss)]}, {len(here)} run{'s' * (len(here) > 1)}")
    for ax in axes[:, 1:].ravel():
        ax.set_ylabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    axes[2, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=DPI)


def _late_column(runs: "pd.DataFrame", axes: Any) -> None:
    """Four curves over training of runs of one setting."""
    from inscape.drawing.curves import draw_runs
    from inscape.drawing.palette import TEN

    plain: dict[str, Any] = {"xlabel": "", "legend": False}
    accuracies = curves_of(runs, _ACCURACIES)
    draw_runs(accuracies, ylabel="accuracy", styles=_STYLES, ax=axes[0], **plain)
    lc, regions = ({name: TEN[4]} for name in ("local complexity", "decision regions R_1"))
    drawn = curves_of(runs, {"lc": "local complexity"})
    draw_runs(drawn, ylabel="local complexity", colours=lc, ax=axes[1], **plain)
    names = {"tv_hidden": "last hidden layer", "tv": "scores", "tv_probabilities": "probabilities"}
    over = {
        label: (s, *(v / np.nanmax(mean) for v in (mean, low, high)))
        for label, (s, mean, low, high) in curves_of(runs, names).items()
    }
    draw_runs(over, ylabel="total variation / highest", ax=axes[2], **plain)
    drawn = curves_of(runs, {"region_count": "decision regions R_1"})
    draw_runs(drawn, ylabel="decision regions R_1", colours=regions, xlabel="step", legend=False, ax=axes[3])
    axes[0].set_ylim(0, 1.02)
    for ax in axes[1:]:
        ax.set_ylim(bottom=0)
    for ax in axes[:-1]:
        ax.tick_params(labelbottom=False)
    fitted = np.mean([r["step"][r["fit"]] for _, r in runs.iterrows()])
    for ax in axes:
        ax.axvline(fitted, color="0.5", ls="--", lw=0.9)


def _bound(runs: "pd.DataFrame", path: Path) -> None:
    from inscape.drawing.curves import draw_runs

    figure = new_figure((9.6, 3.8))
    left, right = figure.subplots(1, 2)
    names = {
        "lc": "local complexity",
        "tv": "total variation of scores",
        "bound_stated": "bound, eq. 42",
        "bound_corrected": "bound, true constant",
    }
    draw_runs(
        curves_of(runs, names),
        ylabel="",
        styles={"total variation of scores": ":"},
        log_y=True,
        legend=False,
        ax=left,
    )
    if len(runs):
        left.legend(frameon=False, fontsize=8, loc=(0.02, 0.58))
    draw_runs(
        curves_of(runs, {"excess": "LC - eq. 42"}), ylabel="LC - bound of eq. 42", legend=False, ax=right
    )
    right.set_ylim(bottom=0)
    title = "one run" if len(runs) == 1 else f"{len(runs)} runs, 95 % interval of the mean"
    right.set_title(title, fontsize=10)
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


def _rank(runs: "pd.DataFrame", threshold: RankThreshold, path: Path) -> None:
    from inscape.drawing.curves import draw_runs
    from inscape.drawing.palette import TEN

    figure = new_figure((11.5, 3.5))
    left, middle, right = figure.subplots(1, 3)
    if len(runs):
        depth = int(runs["depth"].iloc[0])
        ranks = {f"{threshold.name}_{k}": f"layer {k}" for k in range(1, depth + 1)}
        draw_runs(curves_of(runs, ranks), ylabel=f"local rank, threshold {threshold.label}", ax=left)
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
        middle.set_title(f"{runs['network'].iloc[0]}, He scale {runs['he_scale'].iloc[0]:g}", fontsize=10)
    figure.savefig(path, dpi=DPI)


def _decision(runs: "pd.DataFrame", path: Path) -> None:
    from matplotlib.colors import LogNorm

    figure = new_figure((11.5, 3.8))
    settings = list(runs.groupby(["he_scale", "loss"]))
    axes = figure.subplots(1, len(settings), squeeze=False)[0]
    last = max(max(s) for s in runs["step"])
    norm = LogNorm(10, last)
    drawn = None
    for ax, ((he, loss), here) in zip(axes, settings, strict=True):
        for _, run in here.iterrows():
            lc, count, step = (np.array(run[k][run["fit"] :]) for k in ("lc", "region_count", "step"))
            ax.plot(lc, count, color="0.8", lw=0.8, zorder=1)
            drawn = ax.scatter(lc, count, c=step, cmap="viridis_r", norm=norm, s=16, zorder=2)
        ax.set_xlabel("local complexity")
        ax.set_title(f"He {he:g}, {_SHORT_NAMES[str(loss)]}", fontsize=10)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("decision regions R_1")
    if drawn is not None:
        figure.colorbar(drawn, ax=list(axes), label="step", shrink=0.9)
    figure.savefig(path, dpi=DPI)
