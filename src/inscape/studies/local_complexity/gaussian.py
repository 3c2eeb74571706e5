"""Local complexity and local rank on correlated Gaussians (Patel, Montufar 2025, Fig. 2 and 7)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.correlation.coefficients import N_RESAMPLES, Correlation, bootstrapped, correlation
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Chart, Finding, Summary
from inscape.studies.local_complexity.training_curves import (
    Look,
    band,
    curve_chart,
    mean_frame,
    mean_of,
    watch,
)
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

D_IN, D_OUT, DEPTH = 100, 2, 4
SIGMA, RANK_EPS, STRENGTH = 0.1, (0.1, 1.0), 0.5
MAIN = 1.0
"""The threshold of the rank that findings are about."""
_PARTS = tuple(f"lc_{k}" for k in range(1, DEPTH + 1))
PUBLISHED = {2: 0.852, 3: 0.957, 4: 0.985}
CLAIMS = {
    **{
        f"layer_{k}": f"Local complexity and the local rank of layer {k} go together (Fig. 7)."
        for k in PUBLISHED
    },
    "fall": "Both fall late in training (Fig. 2).",
}
_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "optimiser": "adam", "weight_decay": 0.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "width": 32,
        "n_train": 5000,
        "n_steps": 1000,
        "n_times": 8,
        "n_points": 12,
        "n_noise": 2,
    },
    "small": {
        "width": 200,
        "n_train": 200_000,
        "n_steps": 15_000,
        "n_times": 20,
        "n_points": 40,
        "n_noise": 4,
    },
    "paper": {
        "width": 200,
        "n_train": 1_000_000,
        "n_steps": 200_000,
        "n_times": 40,
        "n_points": 500,
        "n_noise": 16,
    },
}
N_RUNS = 6


def configurations(scale: str) -> list[Configuration]:
    """Six runs, each with a cross-covariance of its own."""
    return [{**SETTINGS[scale], **_COMMON, "replicate": i} for i in range(N_RUNS)]


def gaussian_pair(
    n: int, cross: Floats, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """X ~ N(0, I) and Y ~ N(0, I) with cross-covariance E[Y X'] = cross, whose norm is below one.

    >>> cross = np.array([[0.6, 0.0], [0.0, 0.0]])
    >>> x, y = gaussian_pair(100_000, cross, np.random.default_rng(0))
    >>> bool(np.abs(y.T @ x / 100_000 - cross).max() < 0.02)
    True
    """
    x = rng.standard_normal((n, cross.shape[1]), dtype=np.float32)
    rest = np.linalg.cholesky(np.eye(len(cross)) - cross @ cross.T).astype(np.float32)
    noise = rng.standard_normal((n, len(cross)), dtype=np.float32)
    return x, x @ cross.T.astype(np.float32) + noise @ rest.T


def random_cross(rng: np.random.Generator) -> Floats:
    """A Gaussian matrix, its largest singular value set to `STRENGTH`."""
    cross = rng.normal(size=(D_OUT, D_IN))
    return np.asarray(STRENGTH * cross / np.linalg.norm(cross, 2))


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run on a sample so large that it is hardly seen twice."""
    from inscape.training.networks import mlp

    rng = np.random.default_rng([c["seed"], 0])
    cross = random_cross(rng)
    train, test = gaussian_pair(c["n_train"], cross, rng), gaussian_pair(1000, cross, rng)
    net = mlp(D_IN, (c["width"],) * DEPTH, D_OUT, random_state=c["seed"])
    points = test[0][: c["n_points"]]
    look = Look(
        x=points,
        sigma=SIGMA,
        n_noise=c["n_noise"],
        rank_eps=RANK_EPS,
        rank_points=len(points),
        also=(_Error(*test),),
    )
    return watch(net, train, test, c, look, {})


class _Error:
    """The mean square of the error on test points."""

    def __init__(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        self._x, self._y = x, y

    def __call__(self, model: Any) -> dict[str, float]:
        return {"test_mse": float(np.mean((model.scores(self._x) - self._y) ** 2))}


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Pearson's coefficient of LC and the local rank of each layer, over all looks at all runs."""
    import pandas as pd

    pairs = [(eps, k) for eps in RANK_EPS for k in range(1, DEPTH + 1)]
    found = {pair: layer_correlation(frame, *pair) for pair in pairs}
    means = {pair: mean_curve_correlation(frame, *pair) for pair in pairs}
    table = pd.DataFrame(
        [
            {
                "layer": k,
                "threshold": eps,
                "of_means": means[eps, k].value,
                "of_means_low": means[eps, k].interval[0],
                "of_means_high": means[eps, k].interval[1],
                "pooled": c.value,
                "pooled_low": c.interval[0],
                "pooled_high": c.interval[1],
                "published": PUBLISHED.get(k),
                "looks": c.n,
            }
            for (eps, k), c in found.items()
        ]
    )
    main, other = ([f"lr_{eps:g}_{k}" for k in range(1, DEPTH + 1)] for eps in (MAIN, RANK_EPS[0]))
    curves = mean_frame(frame, ["width"], ["lc", *main], [*other, "tv", "test_mse", *_PARTS])
    _draw(frame, means, out)
    findings = {f"layer_{k}": _agrees(means[MAIN, k], found[MAIN, k], p) for k, p in PUBLISHED.items()}
    findings["fall"] = _both_fall(frame)
    return Summary(
        findings=findings,
        figures={
            "rank.png": "Local complexity, local rank per layer and error over training: mean of six "
            "runs and its 95 % interval (Fig. 2, 7).",
            "scatter.png": "Local rank against local complexity, every look at every run.",
        },
        notes=_notes(frame),
        charts=_charts(frame, curves),
        tables={"Correlation per layer": table.round(4), "Curves": curves.round(4)},
        limits=(
            "The coefficient depends on which steps are looked at: ours are logarithmic, the paper's "
            "are not told.",
            "It depends on the threshold of the rank, which the paper does not tell either: two are given.",
            "Looks at one run are not independent; intervals resample whole runs, of which there are six.",
            "Over all looks runs differ by more than the rank of layer 2 moves, which hides its coefficient.",
        ),
    )


def layer_correlation(frame: "pd.DataFrame", eps: float, layer: int) -> Correlation:
    """Pearson's coefficient over all looks at all runs, resampled by runs; NaN where the rank is constant."""
    lc, rank = (np.concatenate([np.array(v) for v in frame[c]]) for c in ("lc", f"lr_{eps:g}_{layer}"))
    runs = np.repeat(np.arange(len(frame)), [len(v) for v in frame["lc"]])
    return correlation(lc, rank, clusters=runs)


def mean_curve_correlation(frame: "pd.DataFrame", eps: float, layer: int) -> Correlation:
    """The same of the two curves that are means over runs, as they are drawn in Fig. 7; n is that of runs."""
    lc, rank = (np.array(frame[c].tolist(), dtype=np.float64) for c in ("lc", f"lr_{eps:g}_{layer}"))

    def statistic(weights: Floats) -> Floats:
        a, b = (weights @ curves / weights.sum(axis=1, keepdims=True) for curves in (lc, rank))
        a, b = (v - v.mean(axis=1, keepdims=True) for v in (a, b))
        spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
        flat = spread <= 1e-12 * (lc**2).mean()
        return np.where(flat, np.nan, (a * b).sum(axis=1) / np.where(flat, 1.0, spread))

    return bootstrapped(statistic, len(frame), None, N_RESAMPLES, 0)


def _agrees(of_means: Correlation, pooled: Correlation, published: float) -> Finding:
    known = not np.isnan(of_means.interval[0])
    low, high = of_means.interval
    return Finding(
        holds=bool(low > 0) if known else None,
        evidence=f"r = {of_means.value:.3f} [{low:.3f}, {high:.3f}] of the means over {of_means.n} runs, "
        f"{pooled.value:.3f} [{pooled.interval[0]:.3f}, {pooled.interval[1]:.3f}] over all {pooled.n} looks; "
        f"threshold {MAIN:g}",
        value=of_means.value if known else None,
        interval=of_means.interval if known else None,
        published=f"r = {published}",
    )


def _both_fall(frame: "pd.DataFrame") -> Finding:
    deepest = f"lr_{MAIN:g}_{DEPTH}"
    falls = {name: mean_of([v[-1] / v[0] - 1 for v in frame[name]]) for name in ("lc", deepest)}
    (lc, interval), (rank, _) = falls["lc"], falls[deepest]
    return Finding(
        holds=bool(lc < 0 and rank < 0),
        evidence=f"from start to end local complexity {lc:+.1%}, local rank of layer {DEPTH} {rank:+.1%}",
        value=lc,
        interval=interval,
        published="a sudden drop late in training (Fig. 2)",
    )


def _charts(frame: "pd.DataFrame", curves: "pd.DataFrame") -> list[Chart]:
    import pandas as pd

    lines = pd.concat(
        [
            curves.assign(
                layer=f"layer {k}", rank=curves[c], low=curves[f"{c}_low"], high=curves[f"{c}_high"]
            )
            for k in range(1, DEPTH + 1)
            for c in (f"lr_{MAIN:g}_{k}",)
        ],
        ignore_index=True,
    )
    points = pd.concat(
        [
            pd.DataFrame(
                {"run": r["replicate"], "step": r["step"], "lc": r["lc"], "rank": r[f"lr_{MAIN:g}_{k}"]}
            ).assign(layer=f"layer {k}")
            for _, r in frame.iterrows()
            for k in range(2, DEPTH + 1)
        ],
        ignore_index=True,
    )
    return [
        Chart(
            title=f"Local rank against local complexity, threshold {MAIN:g}",
            data=points,
            x="lc",
            y="rank",
            colour="layer",
            hover=("run", "step"),
            xlabel="local complexity",
            ylabel="local rank",
        ),
        curve_chart(
            lines,
            "rank",
            title=f"Local rank per layer over training, threshold {MAIN:g}",
            ylabel="local rank",
            colour="layer",
            interval=("low", "high"),
        ),
    ]


def _draw(frame: "pd.DataFrame", found: Mapping[tuple[float, int], Correlation], out: Path) -> None:
    from inscape.drawing.curves import draw_fit, draw_runs
    from inscape.drawing.palette import TEN

    steps = frame["step"].iloc[0]
    figure = new_figure((11.5, 3.6))
    left, middle, right = figure.subplots(1, 3)
    parts = {"all": band(steps, frame["lc"])}
    parts |= {f"layer {k}": band(steps, frame[f"lc_{k}"]) for k in range(1, DEPTH + 1)}
    colours = {"all": TEN[4]} | {f"layer {k}": TEN[k - 1] for k in range(1, 4)} | {"layer 4": TEN[6]}
    draw_runs(parts, ylabel="local complexity", colours=colours, ax=left)
    ranks = {f"layer {k}": band(steps, frame[f"lr_{MAIN:g}_{k}"]) for k in range(1, DEPTH + 1)}
    draw_runs(ranks, ylabel=f"local rank, threshold {MAIN:g}", colours=colours, legend=False, ax=middle)
    draw_runs({"error": band(steps, frame["test_mse"])}, ylabel="mean square error", legend=False, ax=right)
    figure.savefig(out / "rank.png", dpi=100)
    figure = new_figure((11.5, 3.6))
    for ax, k in zip(figure.subplots(1, DEPTH - 1), range(2, DEPTH + 1), strict=True):
        c = found[MAIN, k]
        lc, rank = (np.concatenate([np.array(v) for v in frame[n]]) for n in ("lc", f"lr_{MAIN:g}_{k}"))
        title = f"layer {k}: r of means {c.value:.3f} (published {PUBLISHED[k]})"
        draw_fit(lc, rank, None, xlabel="local complexity", ylabel="local rank", title=title, ax=ax)
    figure.savefig(out / "scatter.png", dpi=100)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    return (
        f"MLP {DEPTH}x{c['width']} from R^{D_IN} to R^{D_OUT}, {c['n_train']:,} pairs of Gaussians whose "
        f"cross-covariance has norm {STRENGTH:g}, mean square error, Adam {c['learning_rate']:g}, batch "
        f"{c['batch_size']}, {max(c['step']):,} steps; {c['n_points']} test points, sigma = {SIGMA:g}."
    )


STUDY = Study(
    name="local-rank-gaussian",
    title="Local complexity and local rank on correlated Gaussians",
    paper="Patel and Montufar 2025, Fig. 2 and 7",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
