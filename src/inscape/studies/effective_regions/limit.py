"""How many linear regions remain in the limit of gradient flow (Safran, Vardi, Lee 2022, Theorem 4.2)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.reports.findings import Finding, Summary, in_all
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

INITS = ("small", "gaussian", "theorem")
NAMES = {"small": "small (1e-3)", "gaussian": "standard", "theorem": "theorem's scales"}
RADIUS = 1.0
CONVERGED_BELOW_RESIDUAL = 1e-3
_GRID: dict[str, dict[str, Any]] = {
    "smoke": {"changes": (3,), "widths": (400,), "n": 30, "replicates": 1, "max_steps": 600},
    "small": {"changes": (1, 3, 5, 8), "widths": (400, 800), "n": 50, "replicates": 2, "max_steps": 4000},
    "paper": {
        "changes": (1, 2, 3, 5, 8, 10),
        "widths": (400, 800, 1600, 3200),
        "n": 100,
        "replicates": 20,
        "max_steps": 6000,
    },
}


def configurations(scale: str) -> list[Configuration]:
    """All r at the least width, and r = 3 at every width, for the three initialisations."""
    g = _GRID[scale]
    shapes = [(r, g["widths"][0]) for r in g["changes"]] + [(3, k) for k in g["widths"][1:]]
    fixed = {"n": g["n"], "max_steps": g["max_steps"]}
    return [
        {"r": r, "width": k, "init": init, **fixed, "replicate": i}
        for r, k in shapes
        for init in INITS
        for i in range(g["replicates"])
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """One flow; teacher and sample are those of (r, replicate), whatever the width and initialisation."""
    from inscape.univariate import (
        ShallowNet,
        gradient_flow,
        kkt_residual,
        label_changes,
        labels_of,
        limit_regions,
        population_error,
        random_teacher,
        region_bound,
        shortest_interval,
    )

    r, n, init = configuration["r"], configuration["n"], configuration["init"]
    rng = np.random.default_rng([r, n, configuration["replicate_seed"]])
    teacher = random_teacher(r, radius=RADIUS, strict=True, random_state=rng)
    rho = shortest_interval(teacher, -RADIUS, RADIUS)
    x = rng.uniform(-RADIUS, RADIUS, n)
    y = labels_of(teacher, x)
    scale = {"n_changes": r, "shortest": rho, "n": n} if init == "theorem" else {}
    start = ShallowNet.random(
        configuration["width"], init=init, random_state=np.random.default_rng(configuration["seed"]), **scale
    )
    run = gradient_flow(start, x, y, max_steps=configuration["max_steps"])
    separated = run.margin > 0
    kkt = kkt_residual(run.net, x, y) if separated else None
    limit = limit_regions(run.net, x, y) if separated else None
    return {
        "status": run.status,
        "converged": run.converged,
        "separated": separated,
        "loss_reached": run.log_loss < -np.log(n),
        "n_flow_steps": run.n_steps,
        "log10_margin": float(np.log10(run.margin)) if separated else None,
        "direction_change": run.direction_change if np.isfinite(run.direction_change) else None,
        "stationarity": None if kkt is None else kkt.stationarity,
        "complementarity": None if kkt is None else kkt.complementarity,
        "regions_before": start.n_linear_regions(),
        "regions": None if limit is None else limit.n_regions,
        "clear": limit is not None and limit.is_clear,
        "plateau": None if limit is None else limit.plateau,
        "plateau_regions": None if limit is None else limit.plateau_regions,
        "regions_strict": run.net.n_linear_regions(),
        "label_changes": label_changes(x, y),
        "bound": region_bound(label_changes(x, y)),
        "rho": rho,
        "error": population_error(run.net, teacher, -RADIUS, RADIUS),
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Counts against r and against the width, and the claims over the flows that the theorem is about."""
    done = frame[frame["converged"].astype(bool) & frame["clear"].astype(bool)]
    _draw(done, out)
    share = done["regions"] / done["bound"]
    wide = done[done["r"] == 3].groupby("width")["regions"].mean()
    means = ", ".join(f"{count:.1f} at width {width}" for width, count in wide.items())
    span = (
        f"{done['regions'].min():.0f} to {done['regions'].max():.0f} regions"
        if len(done)
        else "no flow converged"
    )
    asked = f"flows that converged, {_left_out(frame, done)}"
    return Summary(
        findings={
            "bound": in_all(done["regions"] <= done["bound"], f"{asked} ({span})"),
            "needed": in_all(done["regions"] >= done["label_changes"], asked),
            "kkt": in_all(
                (done["stationarity"] < CONVERGED_BELOW_RESIDUAL)
                & (done["complementarity"] < CONVERGED_BELOW_RESIDUAL),
                asked,
            ),
            "width": Finding(
                holds=bool(wide.max() <= wide.min() + 2) if len(wide) > 1 else None,
                evidence=f"r = 3: {means}",
            ),
            "far": Finding(
                holds=bool((share <= 0.25).all()) if len(share) else None,
                evidence=f"at most {share.max():.1%} of 32 r + 67" if len(share) else "no flow converged",
            ),
        },
        figures={
            "regions.png": "Linear regions in the limit against the number of label changes r, under the "
            "bound 32 r + 67."
        },
        notes=_notes(frame, done),
        tables={"Flows that are left out": _rest(frame, done), "All flows": _flows(frame)},
    )


def _left_out(frame: "pd.DataFrame", done: "pd.DataFrame") -> str:
    """How many flows the claims are not about, and why: the theorem starts from a loss below 1 / n."""
    rest = _rest(frame, done)
    if not len(rest):
        return "which are all"
    never = ~rest["loss_reached"].astype(bool)
    kinds = rest["status"][~never].value_counts().items()
    why = [f"{never.sum()} whose loss never fell below 1/n"] * bool(never.any())
    why += [f"{n} {status}" for status, n in kinds]
    return f"without {len(rest)} of {len(frame)} that did not ({', '.join(why)})"


def _rest(frame: "pd.DataFrame", done: "pd.DataFrame") -> "pd.DataFrame":
    columns = ["r", "width", "init", "replicate", "status", "separated", "loss_reached", "n_flow_steps"]
    return frame.drop(done.index)[[*columns, "direction_change"]].reset_index(drop=True)


def _flows(frame: "pd.DataFrame") -> "pd.DataFrame":
    names = ["r", "width", "init", "replicate", "status", "regions", "bound", "label_changes"]
    names += ["regions_before", "plateau_regions", "plateau", "stationarity", "complementarity", "error"]
    return frame[names].reset_index(drop=True)


def _notes(frame: "pd.DataFrame", done: "pd.DataFrame") -> str:
    columns = ["label_changes", "regions_before", "regions", "bound", "stationarity", "log10_margin", "error"]
    table = done.groupby(["r", "width", "init"])[columns].mean().round(4) if len(done) else done
    outcomes = ", ".join(f"{n} {status}" for status, n in frame["status"].value_counts().items())
    others = done[done["regions"] != done["plateau_regions"]]
    told = ", ".join(
        f"{row.plateau_regions:.0f} on a plateau of {row.plateau:.0%} in place of {row.regions:.0f} "
        f"(r = {row.r}, {row.init}, replicate {row.replicate})"
        for row in others.itertuples()
    )
    return "\n".join(
        [
            f"Uniform data on [-1, 1], {frame['n'].iloc[0]} points, random teachers with r changes of sign, "
            f"zero nowhere else. {outcomes}.",
            "Regions are those of the limit, counted by active sets. A count under tolerances would be "
            f"another in {len(others)} of {len(done)} flows{': ' if told else ''}{told}.",
            "Means over flows that converged and whose active sets are clear:",
            "",
            "```",
            table.to_string(),
            "```",
            "",
            "The theorem's scales are those of Thm. 2.3 for this width; its own, above 50,000, is not met.",
        ]
    )


def _draw(done: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.univariate import draw_region_counts

    figure = new_figure((11, 4.0))
    left, right = figure.subplots(1, 2)
    narrow = done[done["width"] == done["width"].min()] if len(done) else done
    for ax, rows, key, words in (
        (left, narrow, "r", "changes of sign r"),
        (right, done[done["r"] == 3], "width", "width"),
    ):
        groups = {
            NAMES[str(init)]: (g[key].to_numpy(dtype=float), g["regions"].to_numpy(dtype=float))
            for init, g in rows.groupby("init", sort=False)
        }
        bound = rows.drop_duplicates(key).sort_values(key)
        draw_region_counts(
            groups,
            bound[key].to_numpy(dtype=float),
            32 * bound["r"].to_numpy(dtype=float) + 67,
            xlabel=words,
            ax=ax,
        )
    right.set_title("r = 3")
    figure.savefig(out / "regions.png", dpi=150)


STUDY = Study(
    name="effective-regions",
    title="The effective number of linear regions in the limit of gradient flow",
    paper="Safran, Vardi and Lee 2022, Theorem 4.2",
    claims={
        "bound": "The limit has at most 32 r + 67 linear regions, r the number of label changes.",
        "needed": "It has at least r linear regions.",
        "kkt": "The flow ends at a KKT point: stationarity and complementarity below "
        f"{CONVERGED_BELOW_RESIDUAL:g}.",
        "width": "The number does not grow with the width (by more than 2).",
        "far": "The bound is far away: the number stays below a quarter of it.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
