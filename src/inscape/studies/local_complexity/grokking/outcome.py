"""What the runs of the grokking study say."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inscape.reports.findings import Chart, Finding, Summary, in_all
from inscape.studies.local_complexity.grokking.learning_curves import draw_all
from inscape.studies.local_complexity.training_curves import coefficients, curve_chart, mean_frame, mean_of

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
