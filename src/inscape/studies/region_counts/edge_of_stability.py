"""Region count and step size in the two-layer network of Theorem 6 (Li et al. 2025, Appendix G).

Gradient descent on f(x) = sum_j a_j relu(w_j . x), a_j = +-1 fixed, square loss. Two choices are ours, since
the paper has no experiment. The last coordinate of x is 1, so that units can be inactive at all data: on data
that surround the origin half of the units are active whatever happens, and step sizes above 2 / sharpness
diverge. And the step size warms up: without that, large ones kill all units in a few steps.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Finding, Summary, in_all, varied
from inscape.status import DIVERGED
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd


NETWORK: Configuration = {"n": 30, "width": 100, "sigma": 0.3}
"""Data and network of every run."""
DIM = 3
LABELS = ("wave", "random")
AT_EDGE = 0.1
_SIZES = {
    "smoke": np.array([0.01, 0.1, 0.5]),
    "small": np.geomspace(0.0075, 0.75, 13),
    "paper": np.geomspace(0.0075, 0.75, 25),
}
_REPLICATES = {"smoke": 1, "small": 2, "paper": 10}
_STEPS = {"smoke": 6_000, "small": 12_000, "paper": 100_000}
_RECORDS = 12


def configurations(scale: str) -> list[Configuration]:
    """Step sizes over two decades, for two ways to label, by starting points."""
    return [
        {
            "step_size": round(float(size), 5),
            "labels": labels,
            "n_steps": _STEPS[scale],
            **NETWORK,
            "replicate": i,
        }
        for size in _SIZES[scale]
        for labels in LABELS
        for i in range(_REPLICATES[scale])
    ]


def sample(configuration: Configuration) -> tuple[Floats, Floats, Any]:
    """Points (u, 1) with u uniform in a square, targets -1 or +1, and the network to start from."""
    from inscape.theory import TwoLayer

    labels, n, k = (configuration[key] for key in ("labels", "n", "width"))
    rng = np.random.default_rng([configuration["replicate_seed"], LABELS.index(labels)])
    x = np.hstack([rng.uniform(-1, 1, size=(n, DIM - 1)), np.ones((n, 1))])
    y = np.where(np.sin(4 * x[:, 0] + x[:, 1]) > 0, 1.0, -1.0)
    if labels == "random":
        y = rng.choice([-1.0, 1.0], n)
    w = configuration["sigma"] * rng.normal(size=(k, DIM))
    return x, y, TwoLayer(w, rng.choice([-1.0, 1.0], k), np.zeros(k))


def cell(configuration: Configuration) -> dict[str, Any]:
    """One run, measured on the way and at its end."""
    from inscape.theory import two_layer_descent

    x, y, start = sample(configuration)
    size, n_steps = configuration["step_size"], configuration["n_steps"]
    run = two_layer_descent(start, x, y, size, n_steps, warm_up=n_steps // 3, n_records=_RECORDS)
    rows = [_measures(net, x) for net in run.nets]
    track = {f"track_{key}": [row[key] for row in rows] for key in rows[0]}
    return {
        "status": run.status,
        "loss": float(run.losses[-1]),
        "limit": 2 / size,
        "start_sharpness": rows[0]["sharpness"],
        **rows[-1],
        "edge_bound": 4 * len(x) / (float((x**2).sum(axis=1).min()) * size) + 2,
        "track_steps": run.steps.tolist(),
        "track_loss": run.losses.tolist(),
        **track,
    }


def _measures(net: Any, x: Floats) -> dict[str, Any]:
    """Region count, active units, sharpness and the bounds of one network."""
    from inscape.theory import rc_lemma7, rc_lemma8, rc_theorem6

    i, j = np.triu_indices(len(x), 1)
    bound, lemma7, lemma8 = rc_theorem6(net, x), rc_lemma7(net, x[i], x[j]), rc_lemma8(net, x)
    active = float(net.active(x).sum(axis=1).mean())
    return {
        "regions": bound.lhs,
        "active": active,
        "sharpness": net.sharpness(x),
        "units_bound": 2 * active + 2,
        "bound": bound.rhs,
        "lemmas_hold": lemma7.holds is True and lemma8.holds is True,
        "theorem_holds": bound.holds is True,
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The panels, and what the theorem gets right and what it does not."""
    from scipy.stats import spearmanr

    fitted = frame[frame["status"] != DIVERGED]
    _draw(fitted, out)
    large = fitted[fitted["limit"] < fitted["start_sharpness"]]
    small = fitted[fitted["limit"] >= 2 * fitted["start_sharpness"]]
    ratio = large["sharpness"] / large["limit"]
    below = small["sharpness"] / small["limit"]
    track = fitted["track_theorem_holds"].explode(), fitted["track_lemmas_hold"].explode()
    power = _slope(large["step_size"], large["active"])
    trend = [
        float(spearmanr(rows["step_size"], rows["regions"]).statistic)
        for _, rows in large.groupby("labels")
        if rows["step_size"].nunique() > 3
    ]
    loose = fitted["edge_bound"] / fitted["regions"]
    ends = [f"{100 * q:.0f} %: {ratio.quantile(q):.2f}" for q in (0, 0.5, 1)] if len(ratio) else []
    return Summary(
        findings={
            "lemmas": in_all(track[1], "networks on the way, all pairs of points"),
            "theorem_6": in_all(track[0], "networks on the way"),
            "edge": Finding(
                holds=bool((ratio - 1).abs().median() <= AT_EDGE) if len(ratio) > 2 else None,
                evidence=f"{((ratio - 1).abs() <= AT_EDGE).sum()} of {len(ratio)} runs end within "
                f"{AT_EDGE:.0%}; "
                f"sharpness over 2 / eta, quantiles {', '.join(ends)}",
            ),
            "assumption_2": Finding(
                holds=bool(((below - 1).abs() <= AT_EDGE).all()) if len(below) else None,
                evidence=f"over 2 / eta it is {below.min():.3f} to {below.max():.3f} in {len(below)} runs",
            ),
            "fewer_active": Finding(
                holds=bool(power < -0.5) if len(large) > 4 else None,
                evidence=f"mean active units fall like eta^{power:.2f} at the edge",
            ),
            "fewer_regions": Finding(
                holds=bool(max(trend) < -0.5) if trend else None,
                evidence="rank correlation of step size and region count at the edge: "
                + ", ".join(f"{t:+.2f}" for t in trend),
            ),
            "tight": Finding(
                holds=bool(loose.median() < 10),
                evidence=f"4 N / (r^2 eta) + 2 is {loose.min():.0f} to {loose.max():.0f} times that",
            ),
        },
        figures={
            "edge.png": "Sharpness, active units and regions at the end of each run against its step size, "
            "with the bounds on them."
        },
        notes=_notes(frame, fitted),
    )


def _slope(x: "pd.Series[float]", y: "pd.Series[float]") -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if x.nunique() > 1 else float("nan")


def _notes(frame: "pd.DataFrame", fitted: "pd.DataFrame") -> str:
    outcomes = ", ".join(f"{n} {status}" for status, n in frame["status"].value_counts().items())
    return "\n".join(
        [
            f"{varied(frame, 'n')} points (u, 1), u uniform in a square, labels a wave or random; width "
            f"{varied(frame, 'width')}, a_j = +-1, w ~ N(0, {varied(frame, 'sigma')}^2);",
            f"{varied(frame, 'n_steps')} steps, a third of them warm-up.",
            f"{len(frame)} runs: {outcomes}. The sharpness at the start is "
            f"{fitted['start_sharpness'].min():.1f} to {fitted['start_sharpness'].max():.1f}.",
            "f is linear in w between kinks: the sharpness depends on which units are active where, and on",
            "nothing else. It cannot rise to 2 / eta for small eta; for large eta units must die.",
        ]
    )


def _draw(frame: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.curves import draw_series, draw_tracks

    figure = new_figure((14, 7.6))
    ends, ways = figure.subplots(2, 3)
    mean = frame.groupby("step_size").mean(numeric_only=True)
    size = mean.index.to_numpy(dtype=float)

    def column(name: str) -> Floats:
        return mean[name].to_numpy(dtype=float)

    draw_series(size, {"sharpness": column("sharpness")}, {"2 / step size": 2 / size}, ax=ends[0])
    ends[0].set_title("sharpness at the end")
    draw_series(size, {"active units per point": column("active")}, {}, ax=ends[1])
    ends[1].set_title("active units at the end")
    counts = {
        f"region count, {labels} labels": rows.groupby("step_size")["regions"].mean().to_numpy(dtype=float)
        for labels, rows in frame.groupby("labels")
    }
    bounds = {
        "N(x) + N(x') + 2 (Lemma 7)": column("units_bound"),
        "2 N sharpness / r² + 2": column("bound"),
        "4 N / (r² step size) + 2": column("edge_bound"),
    }
    draw_series(size, counts, bounds, ax=ends[2])
    ends[2].set_ylim(top=30 * float(column("edge_bound").max()))
    ends[2].set_title("mean region count at the end, and its bounds")
    some = frame[(frame["replicate"] == 0) & (frame["labels"] == LABELS[1])].sort_values("step_size")
    titles = {
        "sharpness": "sharpness · step size / 2",
        "active": "active units",
        "regions": "mean region count",
    }
    for ax, (name, title) in zip(ways, titles.items(), strict=True):
        tracks = [_track(run, name) for _, run in some.iterrows()]
        draw_tracks(tracks, legend=name == "active", ax=ax)
        ax.set_xlabel("steps")
        ax.set_title(f"{title} along training")
    ways[0].axhline(1.0, color="black", lw=1.0, ls="--")
    ways[0].set_yscale("log")
    ways[1].set_yscale("log")
    figure.savefig(out / "edge.png", dpi=110)


def _track(run: "pd.Series[Any]", name: str) -> tuple[float, Floats, Floats]:
    """The step size, the steps, and a quantity there; the sharpness in units of 2 / step size."""
    size, steps = float(run["step_size"]), np.array(run["track_steps"]) + 1.0
    values = np.array(run[f"track_{name}"], dtype=np.float64)
    return size, steps, values * size / 2 if name == "sharpness" else values


STUDY = Study(
    name="edge-of-stability",
    title="Region count, active units and sharpness against step size in a two-layer network",
    paper="Li et al. 2025, Appendix G",
    claims={
        "lemmas": "Lemma 7 (regions and active units) and Lemma 8 (sharpness and active units) hold.",
        "theorem_6": "The mean region count is at most 2 N sharpness / r^2 + 2.",
        "edge": f"Step sizes eta above 2 / (first sharpness) end within {AT_EDGE:.0%} of sharpness 2 / eta.",
        "assumption_2": f"Step sizes below half of that end within {AT_EDGE:.0%} of sharpness "
        "2 / eta as well.",
        "fewer_active": "At the edge larger step sizes leave fewer active units, by more than a square root.",
        "fewer_regions": "At the edge larger step sizes leave fewer regions.",
        "tight": "The bound at the edge is within a factor 10 of the region count.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
