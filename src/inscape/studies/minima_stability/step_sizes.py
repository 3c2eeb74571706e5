"""Sharpness against step size (Mulayoff, Michaeli, Soudry 2021, Fig. 3)."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Finding, Summary, in_all, varied
from inscape.sweeps.study import Configuration, Study
from inscape.univariate import ShallowNet

if TYPE_CHECKING:
    import pandas as pd


def sine_data(n: int) -> tuple[Floats, Floats]:
    """The function sin 2x at n equally spaced places of [-1.5, 1.5]."""
    x = np.linspace(-1.5, 1.5, n)
    return x, np.sin(2 * x)


def broken_line(net: ShallowNet, low: float, high: float) -> dict[str, Floats]:
    """Ends, knots and values of a net on [low, high], to be drawn later."""
    inner = net.knots
    t = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
    return {"line_x": t, "line_y": net(t)}


def chain_holds(run: Any) -> bool | None:
    """Whether 1 + 2 int |f''| g <= flattest <= the largest sharpness of a mode <= 2 / eta, to 0.1 %.

    At knots on data points the sharpness is that of the sharpest mode: Theorem 2 allows it to exceed 2 / eta,
    by so much that no run could fail; this can. None if only the enclosure of the modes exceeds it.
    """
    rising = (run["lower_bound"], run["flattest"], run["bracket_high"], run["limit"])
    steps = [a <= b * 1.001 for a, b in pairwise(rising)]
    return None if all(steps[:-1]) and not steps[-1] and not run["sharpest_is_exact"] else all(steps)


def chains(runs: Iterable[Any], of_what: str) -> Finding:
    """Held if the chain does in every run; undecided if in some run it is, and it fails in none."""
    judged = [(chain_holds(run), run["bracket_high"] / run["limit"]) for run in runs]
    known, enclosed = ([p for p in judged if (p[0] is None) == open_] for open_ in (False, True))
    finding = in_all([holds for holds, _ in known], of_what)
    words = (
        f"{finding.evidence}; the sharpest mode has up to {max(r for _, r in known):.4f} of 2/η"
        if known
        else ""
    )
    if not enclosed:
        return Finding(holds=finding.holds, evidence=words or finding.evidence)
    more = (
        f"the modes of {len(enclosed)} more are only enclosed, up to {max(r for _, r in enclosed):.4f} of 2/η"
    )
    return Finding(
        holds=False if finding.holds is False and known else None,
        evidence="; ".join(filter(None, (words, more))),
    )


NETWORK: Configuration = {"n": 12, "width": 200, "sigma_output": 0.5, "warm_up": 50_000}
"""Data, network and warm-up of every run."""
AT_EDGE = 0.05
LIMITS = (
    "A run whose sharpest mode is above 2/η does not contradict the paper: by its Lemma 3 at most 2/η in "
    "every mode is enough to stay at a minimum, which is not to say that it is needed.",
)
_KEPT = (
    "sharpness",
    "flattest",
    "flattest_gap",
    "roughness",
    "lower_bound",
    "limit",
    "holds",
    "holds_on_data",
    "theorem_1",
    "theorem_2",
    "delta",
    "delta_stated",
    "n_knots_on_data",
    "sharpest_is_exact",
    "knots",
    "jumps",
)
"""What is kept of the stability of a minimum."""
_SHOWN = [
    *("step_size", "replicate", "status", "steps_done", "loss", "sharpness", "flattest", "lower_bound"),
    *("roughness", "limit", "bracket_low", "bracket_high", "n_knots_on_data", "delta", "delta_stated"),
]
_SIZES = {
    "smoke": np.array([0.05, 0.2, 0.4]),
    "small": np.geomspace(0.005, 0.8, 30),
    "paper": np.geomspace(0.003, 0.9, 60),
}
_REPLICATES = {"smoke": 1, "small": 2, "paper": 20}
_STEPS = {"smoke": 1_000_000, "small": 2_000_000, "paper": 10_000_000}


def configurations(scale: str) -> list[Configuration]:
    """Step sizes by starting points."""
    return [
        {"step_size": round(float(size), 4), "n_steps": _STEPS[scale], **NETWORK, "replicate": i}
        for size in _SIZES[scale]
        for i in range(_REPLICATES[scale])
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """One run from the replicate's starting point, and the stability of where it ended."""
    from inscape.univariate import ShallowNet, gradient_descent, stability

    x, y = sine_data(configuration["n"])
    start = ShallowNet.random(
        configuration["width"],
        init="gaussian",
        sigma_output=configuration["sigma_output"],
        random_state=configuration["replicate_seed"],
    )
    size, n_steps, warm_up = (configuration[key] for key in ("step_size", "n_steps", "warm_up"))
    run = gradient_descent(start, x, y, size, n_steps, warm_up=warm_up, tolerance=1e-14, patience=10_000)
    stable = stability(run.net, x, y, size)
    numbers = stable.to_dict()
    return {
        "status": run.status,
        "interpolates": run.converged,
        "loss": run.loss,
        "steps_done": run.n_steps,
        **{name: numbers[name] for name in _KEPT},
        "bracket_low": stable.bracket[0],
        "bracket_high": stable.bracket[1],
        **broken_line(run.net, -1.8, 1.8),
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The three panels, and the chain on every run that interpolates."""
    fitted = frame[frame["interpolates"]]
    _draw_solutions(fitted[fitted["replicate"] == 0], int(frame["n"].iloc[0]), out)
    _draw_sharpness(frame, out)
    ratio = fitted["sharpness"] / fitted["limit"]
    first = fitted[ratio > 1 - AT_EDGE].groupby("replicate")["step_size"].min()
    large = fitted["step_size"] >= fitted["replicate"].map(first)
    near = ratio[large]
    span = (
        f" (ratio {near.min():.3f} to {near.max():.3f}, {(near > 0.98).sum()} within 2 %)"
        if len(near)
        else ""
    )
    low, high = fitted["step_size"].quantile([0.25, 0.75]) if len(fitted) else (0, 0)
    rough = fitted.loc[fitted["step_size"] <= low, "roughness"].mean()
    smooth = fitted.loc[fitted["step_size"] >= high, "roughness"].mean()
    off = fitted[fitted["n_knots_on_data"] == 0]
    quarters = f"{rough:.3f} over the smallest quarter of step sizes, {smooth:.3f} over the largest"
    return Summary(
        findings={
            "edge": replace(
                in_all(
                    (near - 1).abs() <= AT_EDGE, f"runs from the first of their start that reaches it{span}"
                ),
                published="the lines coincide (Fig. 3c)",
            ),
            "chain": replace(
                chains([run for _, run in fitted.iterrows()], "runs that interpolate"),
                published="the steps before the last (Theorem 1, Lemma 4)",
            ),
            "certified": in_all(fitted["flattest_gap"] <= 1e-9, "runs that interpolate"),
            "theorem_1": in_all(off["theorem_1"], "runs that interpolate without a knot on a data point"),
            "theorem_2": in_all(fitted["theorem_2"], "runs that interpolate"),
            "smoother": Finding(
                holds=bool(smooth < rough) if len(fitted) > 2 else None,
                evidence=f"mean ∫|f″|g {quarters}",
            ),
        },
        figures={
            "solutions.png": "Left: what small, medium and large step sizes end at, and the data. Right: "
            "where their slopes change and by how much, under the weight g.",
            "sharpness.png": "Sharpness at the end of each run, that of the flattest network of the same "
            "function, and the lower bound, under the limit 2/η.",
        },
        limits=LIMITS,
        notes=_notes(frame, fitted),
        tables={"Runs": frame[_SHOWN].sort_values(["step_size", "replicate"]).round(5)},
    )


def _notes(frame: "pd.DataFrame", fitted: "pd.DataFrame") -> str:
    outcomes = ", ".join(f"{n} {status}" for status, n in frame["status"].value_counts().items())
    span = ((fitted["bracket_high"] - fitted["bracket_low"]) / fitted["sharpness"]).max()
    ratio = fitted["flattest"] / fitted["lower_bound"]
    on_data = int((fitted["n_knots_on_data"] > 0).sum())
    return "\n".join(
        [
            f"{varied(frame, 'n')} points of sin 2x on +-1.5, width {varied(frame, 'width')},",
            f"w, b ~ N(0, 1), v ~ N(0, {varied(frame, 'sigma_output')}^2),",
            f"warm-up over {varied(frame, 'warm_up')} steps, at most {varied(frame, 'n_steps')} steps.",
            f"{len(frame)} runs: {outcomes}. Only runs that interpolate are judged.",
            f"{on_data} of {len(fitted)} have knots on data points: their sharpness is a bracket over modes;",
            f"the widest is {span:.2%} of the sharpness.",
            f"The flattest implementation is {ratio.min():.2f} to {ratio.max():.2f} times the lower bound.",
        ]
    )


def _draw_solutions(fitted: "pd.DataFrame", n: int, out: Path) -> None:
    from inscape.drawing.palette import TEN
    from inscape.drawing.univariate import draw_curvature, draw_function, draw_weight
    from inscape.univariate import weight

    x, y = sine_data(n)
    figure = new_figure((11, 3.8))
    left, right = figure.subplots(1, 2)
    ordered = fitted.sort_values("step_size")
    picked = sorted({0, len(ordered) // 2, len(ordered) - 1}) if len(ordered) else []
    for colour, (_, run) in zip(("black", TEN[0], TEN[2]), ordered.iloc[picked].iterrows(), strict=False):
        label = f"step size {run['step_size']:g}"
        line = np.array(run["line_x"]), np.array(run["line_y"])
        draw_function(*line, x, y, label=label, colour=colour, ax=left)
        knots, jumps = np.array(run["knots"]), np.abs(np.array(run["jumps"]))
        draw_curvature(knots, jumps, x[0], x[-1], label=label, colour=colour, ax=right)
    at = np.linspace(x[0], x[-1], 400)
    draw_weight(at, weight(at, x), ax=right)
    left.set_title("solutions")
    right.set_title("|f''| and g")
    if len(ordered):
        left.legend(frameon=False)
        right.legend(frameon=False)
    figure.savefig(out / "solutions.png", dpi=150)


def _draw_sharpness(frame: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.univariate import draw_sharpness

    fitted = frame[frame["interpolates"]].sort_values("step_size")
    names = {"sharpness": "measured", "flattest": "flattest implementation", "lower_bound": "lower bound"}
    series = {label: fitted[name].to_numpy(dtype=float) for name, label in names.items()}
    others = frame.loc[~frame["interpolates"].astype(bool), "step_size"].to_numpy(dtype=float)
    ax = draw_sharpness(fitted["step_size"].to_numpy(dtype=float), series, others)
    ax.figure.savefig(out / "sharpness.png", dpi=150)


STUDY = Study(
    name="minima-stability-sweep",
    title="Sharpness, its flattest implementation and the lower bound against step size",
    paper="Mulayoff, Michaeli and Soudry 2021, Fig. 3",
    claims={
        "edge": f"Large step sizes end at the edge: sharpness within {AT_EDGE:.0%} of 2/η.",
        "chain": "1 + 2 ∫|f″|g ≤ flattest ≤ sharpness of every mode ≤ 2/η, "
        "whether or not knots lie on data (the last step is ours).",
        "certified": "The flattest implementation is certified to a relative gap of 1e-9.",
        "theorem_1": "∫|f″|g ≤ 1/η - 1/2 where no knot lies on a data point.",
        "theorem_2": "∫|f″|g ≤ 1/η - 1/2 + Δ in the larger reading, knots on data or not.",
        "smoother": "Larger step sizes end in smoother functions.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
