"""A larger step size near a minimum leads to a smoother one (Mulayoff, Michaeli, Soudry 2021, Fig. 1)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.reports.findings import Summary, in_all
from inscape.studies.minima_stability.step_sizes import broken_line, sine_data
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

N, WIDTH, SIGMA_OUTPUT = 6, 300, 0.5
STEP_SIZE, FACTOR = 0.03, 3
WARM_UP, CHANGE_AT = 10_000, 30_000
N_RECORDS = 400
_REPLICATES = {"smoke": 2, "small": 12, "paper": 100}


def configurations(scale: str) -> list[Configuration]:
    """Each starting point with the step size kept, and with it times three from step 30,000."""
    return [
        {"step_size": STEP_SIZE, "factor": factor, "n_steps": 400_000, "replicate": i}
        for i in range(_REPLICATES[scale])
        for factor in (1, FACTOR)
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """One run; both runs of a replicate start at the same net."""
    from inscape.univariate import ShallowNet, gradient_descent, stability

    x, y = sine_data(N)
    start = ShallowNet.random(
        WIDTH, init="gaussian", sigma_output=SIGMA_OUTPUT, random_state=configuration["replicate_seed"]
    )
    run = gradient_descent(
        start,
        x,
        y,
        configuration["step_size"],
        configuration["n_steps"],
        warm_up=WARM_UP,
        change=(CHANGE_AT, configuration["factor"]),
        tolerance=1e-16,
        record=200,
    )
    final = configuration["step_size"] * configuration["factor"]
    found = stability(run.net, x, y, final)
    keep = np.unique(np.linspace(0, len(run.history) - 1, N_RECORDS).astype(int))
    before = run.history.steps <= CHANGE_AT
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
        "sharpness": found.sharpness,
        "limit": found.limit,
        "roughness": found.roughness,
        "holds": found.holds_on_data if found.n_knots_on_data else found.holds,
        "knots": found.knots,
        "jumps": found.jumps,
        **broken_line(run.net, -1.65, 1.65),
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The three panels of the figure for the first pair that interpolates, and how often each claim held."""
    pairs = []
    for _, both in frame.groupby("replicate"):
        if len(both) == 2:
            pairs.append((both[both["factor"] == 1].iloc[0], both[both["factor"] != 1].iloc[0]))
    ended = [(a, b) for a, b in pairs if a["converged"] and b["converged"]]
    shown = ended[0] if ended else pairs[0]
    _draw(frame[frame["replicate"] == shown[0]["replicate"]], out)
    smoother = [b["roughness"] < a["roughness"] for a, b in ended]
    jumped = [b["largest_loss_after"] > 10 * b["loss_at_change"] for _, b in pairs]
    same = [a["checksum_at_change"] == b["checksum_at_change"] for a, b in pairs]
    unstable = [a["sharpness"] > b["limit"] for a, b in ended]
    below = [bool(b["holds"]) for _, b in ended]
    return Summary(
        findings={
            "same": in_all(same, "pairs"),
            "jump": in_all(jumped, "pairs"),
            "unstable": in_all(unstable, "pairs that both interpolate"),
            "smoother": in_all(smoother, "pairs that both interpolate"),
            "chain": in_all(below, "pairs that both interpolate"),
        },
        figures=("step.png",),
        notes=_table(pairs),
    )


def _table(pairs: list[tuple[Any, Any]]) -> str:
    lines = [
        f"{N} points of sin 2x on [-1.5, 1.5]; width {WIDTH}, w, b ~ N(0, 1), v ~ N(0, {SIGMA_OUTPUT}^2).",
        f"Step size {STEP_SIZE} after {WARM_UP:,} steps of warm-up; times {FACTOR} from {CHANGE_AT:,} on.",
        "A pair counts where both runs end at zero loss: the abrupt change can also push too many neurons",
        "off the data for good.",
        "",
        "| start | step size | status | sharpness | 2/eta | int of f'' weighted |",
        "|---|---|---|---|---|---|",
    ]
    for run in (run for pair in pairs for run in pair):
        size, status = run["step_size"] * run["factor"], run["status"]
        numbers = f"{run['sharpness']:.3f} | {run['limit']:.3f} | {run['roughness']:.4f}"
        lines.append(f"| {run['replicate']} | {size:g} | {status} | {numbers} |")
    return "\n".join(lines)


def _draw(runs: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.univariate import draw_curvature, draw_function, draw_losses, draw_weight
    from inscape.univariate import weight

    x, y = sine_data(N)
    figure = new_figure((13, 3.8))
    loss_ax, function_ax, curvature_ax = figure.subplots(1, 3)
    names = {1: "step size kept", FACTOR: f"step size times {FACTOR}"}
    colours = {1: "black", FACTOR: "#3f90da"}
    losses = {names[r["factor"]]: (np.array(r["steps"]), np.array(r["losses"])) for _, r in runs.iterrows()}
    draw_losses(losses, mark=CHANGE_AT, colours=list(colours.values()), ax=loss_ax)
    at = np.linspace(x[0], x[-1], 400)
    for _, run in runs.iterrows():
        factor = run["factor"]
        line = np.array(run["line_x"]), np.array(run["line_y"])
        draw_function(*line, x, y, label=names[factor], colour=colours[factor], ax=function_ax)
        knots, jumps = np.array(run["knots"]), np.abs(np.array(run["jumps"]))
        draw_curvature(
            knots, jumps, x[0], x[-1], label=names[factor], colour=colours[factor], ax=curvature_ax
        )
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
    claims={
        "same": "Until the step size changes, both runs are the same, bit for bit.",
        "jump": "After it changes, the loss rises abruptly (more than tenfold).",
        "unstable": "The minimum of the smaller step size is too sharp for the larger one.",
        "smoother": "The larger step size ends in a smoother function: its int |f''| g is smaller.",
        "chain": "Lower bound <= flattest <= sharpness <= limit (Theorem 2 at knots on data) at the end "
        "of the larger step size.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
