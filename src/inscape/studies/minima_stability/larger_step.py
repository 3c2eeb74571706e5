"""A larger step size near a minimum leads to a smoother one (Mulayoff, Michaeli, Soudry 2021, Fig. 1)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.errors import StudyError
from inscape.reports.findings import Summary, in_all, varied
from inscape.studies.minima_stability.step_sizes import broken_line, chains, sine_data
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

STEP_SIZE, FACTOR = 0.03, 3
NETWORK: Configuration = {
    "n": 6,
    "width": 300,
    "sigma_output": 0.5,
    "warm_up": 10_000,
    "change_at": 30_000,
    "n_steps": 400_000,
}
"""Data, network and times of every run."""
N_RECORDS = 400
_SHOWN = [
    *("replicate", "step_size", "factor", "status", "steps_done", "loss", "loss_at_change"),
    *("largest_loss_after", "sharpness", "flattest", "lower_bound", "bracket_high", "limit", "roughness"),
    "n_knots_on_data",
]
_REPLICATES = {"smoke": 2, "small": 12, "paper": 100}


def configurations(scale: str) -> list[Configuration]:
    """Each starting point with the step size kept, and with it times three from step 30,000."""
    return [
        {"step_size": STEP_SIZE, "factor": factor, **NETWORK, "replicate": i}
        for i in range(_REPLICATES[scale])
        for factor in (1, FACTOR)
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """One run; both runs of a replicate start at the same net."""
    from inscape.univariate import ShallowNet, gradient_descent, stability

    x, y = sine_data(configuration["n"])
    change_at = configuration["change_at"]
    start = ShallowNet.random(
        configuration["width"],
        init="gaussian",
        sigma_output=configuration["sigma_output"],
        random_state=configuration["replicate_seed"],
    )
    run = gradient_descent(
        start,
        x,
        y,
        configuration["step_size"],
        configuration["n_steps"],
        warm_up=configuration["warm_up"],
        change=(change_at, configuration["factor"]),
        tolerance=1e-16,
        record=200,
    )
    final = configuration["step_size"] * configuration["factor"]
    stable = stability(run.net, x, y, final)
    keep = np.unique(np.linspace(0, len(run.history) - 1, N_RECORDS).astype(int))
    before = run.history.steps <= change_at
    return {
        "status": run.status,
        "converged": run.converged,
        "loss": run.loss,
        "steps_done": run.n_steps,
        "steps": run.history.steps[keep],
        "losses": run.history.loss[keep],
        "loss_at_change": run.history.loss[before][-1],
        "checksum_at_change": run.history.parameters[before][-1].sum(),
        "largest_loss_after": run.history.loss[~before].max(initial=run.loss),
        "sharpness": stable.sharpness,
        "limit": stable.limit,
        "roughness": stable.roughness,
        "flattest": stable.flattest,
        "lower_bound": stable.lower_bound,
        "bracket_high": stable.bracket[1],
        "sharpest_is_exact": stable.sharpest_is_exact,
        "n_knots_on_data": stable.n_knots_on_data,
        "knots": stable.knots,
        "jumps": stable.jumps,
        **broken_line(run.net, -1.65, 1.65),
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The three panels of the figure for the first pair that interpolates, and how often each claim held."""
    pairs = []
    for _, both in frame.groupby([*NETWORK, "step_size", "replicate"]):
        kept, others = both[both["factor"] == 1], both[both["factor"] != 1]
        pairs += [(kept.iloc[0], other) for _, other in others.iterrows()] if len(kept) else []
    if not pairs:
        raise StudyError("no pair of runs to compare: one with factor 1, and one with another")
    ended = [(a, b) for a, b in pairs if a["converged"] and b["converged"]]
    _draw(ended[0] if ended else pairs[0], out)
    smoother = [b["roughness"] < a["roughness"] for a, b in ended]
    jumped = [b["largest_loss_after"] > 10 * b["loss_at_change"] for _, b in pairs]
    same = [a["checksum_at_change"] == b["checksum_at_change"] for a, b in pairs]
    unstable = [a["sharpness"] > b["limit"] for a, b in ended]
    return Summary(
        findings={
            "same": in_all(same, "pairs"),
            "jump": in_all(jumped, "pairs"),
            "unstable": in_all(unstable, "pairs that both interpolate"),
            "smoother": in_all(smoother, "pairs that both interpolate"),
            "chain": chains([b for _, b in ended], "pairs that both interpolate"),
        },
        figures={
            "step.png": "Two runs from one start: the loss, with the time at which one step size is raised; "
            "the functions they end at; and where their slopes change, under the weight g."
        },
        notes=_notes(frame),
        tables={"Runs": frame[_SHOWN].sort_values(["replicate", "factor"]).round(6)},
    )


def _notes(frame: "pd.DataFrame") -> str:
    has = {key: varied(frame, key) for key in (*NETWORK, "step_size", "factor")}
    return (
        f"{has['n']} points of sin 2x on [-1.5, 1.5]; width {has['width']}, w, b ~ N(0, 1), "
        f"v ~ N(0, {has['sigma_output']}^2). Step size {has['step_size']} after {has['warm_up']} steps of "
        f"warm-up; times {has['factor']} from {has['change_at']} on. A pair counts where both runs end at "
        "zero loss: the abrupt change can also push too many neurons off the data for good."
    )


def _draw(runs: tuple[Any, Any], out: Path) -> None:
    from inscape.drawing.univariate import draw_curvature, draw_function, draw_losses, draw_weight
    from inscape.univariate import weight

    x, y = sine_data(int(runs[0]["n"]))
    figure = new_figure((13, 3.8))
    loss_ax, function_ax, curvature_ax = figure.subplots(1, 3)
    names = ("step size kept", f"step size times {runs[1]['factor']:g}")
    colours = ("black", "#3f90da")
    losses = {
        name: (np.array(r["steps"]), np.array(r["losses"])) for name, r in zip(names, runs, strict=True)
    }
    draw_losses(losses, mark=int(runs[0]["change_at"]), colours=list(colours), ax=loss_ax)
    at = np.linspace(x[0], x[-1], 400)
    for name, colour, run in zip(names, colours, runs, strict=True):
        line = np.array(run["line_x"]), np.array(run["line_y"])
        draw_function(*line, x, y, label=name, colour=colour, ax=function_ax)
        knots, jumps = np.array(run["knots"]), np.abs(np.array(run["jumps"]))
        draw_curvature(knots, jumps, x[0], x[-1], label=name, colour=colour, ax=curvature_ax)
    draw_weight(at, weight(at, x), ax=curvature_ax)
    function_ax.legend(frameon=False)
    function_ax.set_ylim(-1.7, 2.2)
    curvature_ax.legend(frameon=False)
    loss_ax.set_title("loss")
    function_ax.set_title("functions")
    curvature_ax.set_title("|f''| and g")
    figure.savefig(out / "step.png", dpi=150)


STUDY = Study(
    name="minima-stability-step",
    title="A larger step size near a minimum leads to a smoother one",
    paper="Mulayoff, Michaeli and Soudry 2021, Fig. 1",
    claims={
        "same": "Until the step size changes, both runs are the same, bit for bit.",
        "jump": "After it changes, the loss rises abruptly (more than tenfold).",
        "unstable": "The minimum of the smaller step size is too sharp for the larger one.",
        "smoother": "The larger step size ends in a smoother function: its ∫|f″|g is smaller.",
        "chain": "1 + 2 ∫|f″|g ≤ flattest ≤ sharpness of every mode ≤ 2/η at the end of the larger "
        "step size.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
