"""Local complexity at the end of training against weight decay (Patel, Montufar 2025, Fig. 13)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import KINDS, N_RESAMPLES, Correlation, bootstrapped, correlation
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Chart, Finding, Summary, judge
from inscape.studies.local_complexity.training_curves import (
    NetworkMeasurement,
    band,
    curve_chart,
    image_split,
    mean_frame,
    watch,
)
from inscape.sweeps.checkpoints import checkpoint_of
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

SIGMA = 1.0
PUBLISHED_R2 = 0.6972
DROPPED_BELOW = 0.9
"""The drop has come when local complexity is below this fraction of its largest value."""
_DIGITS = {"log_inverse": 3, "final": 2, "lc": 2, "lc_low": 2, "lc_high": 2, "accuracy": 4, "tv": 3}
_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "n_noise": 1, "decay_biases": False}
READINGS = {"adamw": "", "adam": "_l2"}
"""Optimiser -> the ending of its claims. The published code says 'adam' and is AdamW, on weights only; read
literally, Adam adds the decay to the gradient, where it acts far sooner."""
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "decays": {"adamw": np.geomspace(0.1, 10, 3), "adam": np.geomspace(1e-4, 1e-1, 4)},
        "n_steps": {"adamw": 1500, "adam": 1500},
        "fixed": {
            "data": "digits",
            "n_train": 300,
            "n_test": 150,
            "width": 100,
            "n_times": 8,
            "n_points": 50,
            "learning_rate": 1e-3,
        },
        "replicates": 1,
    },
    "small": {
        "decays": {"adamw": np.geomspace(0.01, 10, 7), "adam": np.geomspace(1e-5, 1e-2, 7)},
        "n_steps": {"adamw": 10_000, "adam": 2500},
        "fixed": {
            "data": "mnist",
            "n_train": 1000,
            "n_test": 1000,
            "width": 1000,
            "n_times": 12,
            "n_points": 60,
        },
        "replicates": 2,
    },
    "paper": {
        "decays": {"adamw": np.geomspace(1e-4, 1e-1, 21), "adam": np.geomspace(1e-6, 1e-1, 21)},
        "n_steps": {"adamw": 1_000_000, "adam": 200_000},
        "fixed": {
            "data": "mnist",
            "n_train": 1000,
            "n_test": 1000,
            "width": 1000,
            "n_times": 40,
            "n_points": 1000,
        },
        "replicates": 8,
    },
}


def configurations(scale: str) -> list[Configuration]:
    """Both readings of the optimiser, weight decays, replicates."""
    s = SETTINGS[scale]
    return [
        {
            "optimiser": optimiser,
            "weight_decay": float(f"{decay:.3g}"),
            "n_steps": s["n_steps"][optimiser],
            **(_COMMON | s["fixed"]),
            "replicate": i,
        }
        for optimiser in READINGS
        for i in range(s["replicates"])
        for decay in s["decays"][optimiser]
    ]


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run; images and initial weights are those of the replicate, whatever the weight decay."""
    from inscape.training.networks import mlp

    split = image_split(c)
    net = mlp(split.x_train.shape[1], (c["width"],), split.n_classes, random_state=c["replicate_seed"])
    measured = NetworkMeasurement(x=split.x_test[: c["n_points"]], sigma=SIGMA, n_noise=c["n_noise"])
    return watch(net, split.train, split.test, c, measured, {"accuracy": {}}, checkpoint_of(c))


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """For each reading the regression of the final value on log(1 / lambda), and when the drop comes."""
    runs = frame.assign(
        final=[lc[-1] for lc in frame["lc"]],
        log_inverse=np.log(1 / frame["weight_decay"]),
        drop_step=[drop_step(r["step"], r["lc"]) for _, r in frame.iterrows()],
        final_accuracy=[a[-1] for a in frame["accuracy"]],
    )
    findings: dict[str, Finding] = {}
    figures = {}
    for optimiser, ending in READINGS.items():
        of_optimiser = runs[runs["optimiser"] == optimiser]
        findings |= {f"{name}{ending}": f for name, f in findings_of(of_optimiser).items()}
        if len(of_optimiser):
            name = f"decay{ending.replace('_', '-')}.png"
            _draw(of_optimiser, out / name)
            how = "decoupled (AdamW, as in the published code)" if not ending else "in the gradient (L2)"
            figures[name] = (
                f"Decay {how}. Left: local complexity over training. Right: at the end, against "
                "log(1/lambda), with the regression (Fig. 13)."
            )
    curves = mean_frame(runs, ["optimiser", "weight_decay"], ["lc"], ["accuracy", "tv"])
    columns = ["optimiser", "weight_decay", "replicate", "log_inverse", "final", "drop_step"]
    columns += ["final_accuracy"]
    return Summary(
        findings=findings,
        figures=figures,
        notes=_notes(frame),
        charts=_charts(runs[columns], curves),
        tables={"Final values": runs[columns].round(_DIGITS), "Curves": curves.round(_DIGITS)},
        limits=(
            "Runs are short: for the smallest decays the drop has not come, and the end is not a limit.",
            "Decoupled decay acts over 1 / (learning rate x lambda) steps: fewer steps with larger decays "
            "stand for the paper's million, and need not end where it does.",
            f"The loss is cross-entropy and sigma = {SIGMA:g}; the paper states neither for this figure.",
        ),
    )


def findings_of(runs: "pd.DataFrame") -> dict[str, Finding]:
    """What the runs of one reading say; nothing if even the largest decay had no time to act."""
    names = ("linear", "grows", "sooner")
    if not len(runs):
        return dict.fromkeys(names, Finding(holds=None, evidence="no runs"))
    acted = runs["weight_decay"].max() * runs["learning_rate"].iloc[0] * max(runs["step"].iloc[0])
    if runs["optimiser"].iloc[0] == "adamw" and acted < 1:
        words = f"learning rate x decay x steps is at most {acted:.2g}: decay had no time to act"
        return dict.fromkeys(names, Finding(holds=None, evidence=words))
    if runs["weight_decay"].nunique() < 2:
        return dict.fromkeys(names, Finding(holds=None, evidence="one weight decay"))
    x, y = (runs[name].to_numpy(dtype=float) for name in ("log_inverse", "final"))
    fit, slope = r_squared(x, y, runs["weight_decay"]), float(np.polyfit(x, y, 1)[0])
    pearson = correlation(runs["log_inverse"], runs["final"], clusters=runs["weight_decay"])
    dropped = runs[runs["drop_step"].notna()]
    decays = dropped["weight_decay"]
    sooner = correlation(np.log(decays), dropped["drop_step"], kind="spearman", clusters=decays)
    return {
        "linear": Finding(
            holds=judge(fit.interval, strong=PUBLISHED_R2).holds,
            evidence=f"R^2 = {fit.value:.3f} [{fit.interval[0]:.3f}, {fit.interval[1]:.3f}] over "
            f"{len(runs)} runs of {max(runs['step'].iloc[0]):,} steps, slope {slope:.3g} per unit of "
            "log(1/lambda)",
            value=fit.value,
            interval=fit.known_interval,
            published=f"R^2 = {PUBLISHED_R2}",
            published_value=PUBLISHED_R2,
        ),
        "grows": Finding(
            holds=judge(pearson.interval, published=PUBLISHED_R2**0.5).holds,
            evidence=f"r = {pearson}",
            value=pearson.value,
            interval=pearson.known_interval,
            published=f"r = {PUBLISHED_R2**0.5:.3f}",
            published_value=PUBLISHED_R2**0.5,
        ),
        "sooner": Finding(
            holds=judge((-sooner.interval[1], -sooner.interval[0])).holds,
            evidence=f"Spearman's coefficient of lambda and the step of the drop {sooner}; "
            f"{len(runs) - len(dropped)} of {len(runs)} runs ended before it, and it was seen at "
            f"{dropped['drop_step'].nunique()} different steps",
            value=None if np.isnan(sooner.value) else sooner.value,
            interval=sooner.known_interval,
            published="sooner (Fig. 13, left)",
        ),
    }


def _charts(runs: "pd.DataFrame", curves: "pd.DataFrame") -> list[Chart]:
    return [
        Chart(
            title="Final local complexity against weight decay",
            data=runs,
            x="log_inverse",
            y="final",
            colour="optimiser",
            hover=("weight_decay", "replicate", "final_accuracy"),
            xlabel="log(1/lambda)",
            ylabel="local complexity",
            caption="A point for each run, lambda its weight decay.",
        ),
        *(
            curve_chart(
                curves[curves["optimiser"] == optimiser],
                "lc",
                title=f"Local complexity over training, {optimiser}",
                ylabel="local complexity",
                colour="weight_decay",
            )
            for optimiser in curves["optimiser"].unique()
        ),
    ]


def r_squared(x: Any, y: Any, clusters: Any = None) -> Correlation:
    """The coefficient of determination of a straight line, with its bootstrap interval over clusters of runs.

    Runs of one weight decay are nearly the same: the decays are what is resampled, not the runs.

    >>> round(r_squared([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]).value, 6)
    1.0
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return bootstrapped(
        lambda weights: KINDS["pearson"](weights, a, b) ** 2, len(a), clusters, N_RESAMPLES, 0
    )


def drop_step(steps: list[int], lc: list[float]) -> float:
    """The first step after the largest value with less than `DROPPED_BELOW` of that; NaN if there is none.

    >>> drop_step([0, 10, 100, 1000], [1.0, 2.0, 1.9, 1.0])
    1000.0
    """
    top = int(np.argmax(lc))
    late = (float(s) for s, v in zip(steps[top:], lc[top:], strict=True) if v < DROPPED_BELOW * lc[top])
    return next(late, float("nan"))


def _draw(runs: "pd.DataFrame", path: Path) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    from inscape.drawing.curves import draw_fit, draw_runs

    x, y = (runs[name].to_numpy(dtype=float) for name in ("log_inverse", "final"))
    fit, slope = r_squared(x, y, runs["weight_decay"]), np.polyfit(x, y, 1)
    figure = new_figure((10.4, 3.9))
    left, right = figure.subplots(1, 2)
    groups = {decay: runs[runs["weight_decay"] == decay] for decay in sorted(runs["weight_decay"].unique())}
    curves = {f"{decay:.2g}": band(g, "lc") for decay, g in groups.items()}
    shades = colormaps["viridis"](np.linspace(0.9, 0.05, len(curves)))
    colours = {name: to_hex(shade) for name, shade in zip(curves, shades, strict=True)}
    plain = {name: (s, m, m * np.nan, m * np.nan) for name, (s, m, _, _) in curves.items()}
    draw_runs(plain, ylabel="local complexity", colours=colours, legend=False, ax=left)
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=8, title="weight decay", title_fontsize=8)
    draw_fit(
        x,
        y,
        (float(slope[1]), float(slope[0])),
        xlabel="log(1 / weight decay)",
        ylabel="local complexity at the end",
        title=f"R$^2$ = {fit.value:.3f} (published: {PUBLISHED_R2})",
        ax=right,
    )
    figure.savefig(path, dpi=100)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    lengths = ", ".join(
        f"{optimiser} {len(g)} x {max(g['step'].iloc[0]):,} steps"
        for optimiser, g in frame.groupby("optimiser")
    )
    return (
        f"One hidden layer of {c['width']}, {c['n_train']} images of {c['data']}, learning rate "
        f"{c['learning_rate']:g}, decay of weights, not of biases, batch {c['batch_size']}; {lengths}; local "
        f"complexity at {c['n_points']} test images, sigma = {SIGMA:g}."
    )


_CLAIMS = {
    "linear": "Final local complexity follows log(1/lambda) at least as closely as published, "
    f"R^2 = {PUBLISHED_R2}",
    "grows": "It is the higher the smaller the weight decay is",
    "sooner": "The drop comes sooner with more weight decay",
}
STUDY = Study(
    name="weight-decay",
    title="Local complexity at the end of training against weight decay",
    paper="Patel and Montufar 2025, Fig. 13",
    claims={
        f"{name}{ending}": f"{words}{', with the decay as an L2 penalty in Adam' if ending else ''}."
        for ending in READINGS.values()
        for name, words in _CLAIMS.items()
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
