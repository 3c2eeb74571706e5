"""Local complexity and local rank on correlated Gaussians (Patel, Montufar 2025, Fig. 2 and 7)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Array, Float32s, Floats
from inscape.correlation.coefficients import N_RESAMPLES, Correlation, bootstrapped, correlation
from inscape.drawing.axes import new_figure
from inscape.reports.findings import NO_VARIATION, Chart, Finding, Summary, Verdict, all_of, judge
from inscape.studies.local_complexity.training_curves import (
    NetworkMeasurement,
    RankThreshold,
    band,
    changed,
    curve_chart,
    longest,
    mean_frame,
    mean_of,
    watch,
)
from inscape.sweeps.checkpoints import checkpoint_of
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

D_IN, D_OUT, DEPTH = 100, 2, 4
SIGMA, STRENGTH = 0.1, 0.5
AUTHORS_THRESHOLD = RankThreshold(0.01)
"""The threshold of the rank that findings are about: that of the authors' published code."""
THRESHOLDS = (AUTHORS_THRESHOLD, RankThreshold(0.1), RankThreshold(1.0), RankThreshold(0.01, relative=True))
LAYERS = range(1, DEPTH + 1)
_LAYER_COLUMNS = tuple(f"lc_{k}" for k in LAYERS)
PUBLISHED_CORRELATIONS = {2: 0.852, 3: 0.957, 4: 0.985}
PUBLISHED_RANKS = {2: (97, 74), 3: (94, 34), 4: (91, 6)}
"""Layer -> its rank at the start and at the end of the authors' figure, after 500,000 steps."""
DROP_FROM_STEP, DROP_UP_TO_STEP = 20_000, 200_000
"""Between these steps the published drop comes: a run that ends before the second cannot deny it."""
LEAST_FALL, LEAST_MOVE_OF_RANK = 0.25, 0.1
"""A drop is a fall by this fraction or more; a rank that moves by less has nothing to go with."""
LEAST_FALL_BY_LAYER = 0.01
"""The fraction of its rank that a layer must lose more than the one before, to fall the more."""
CLAIMS = {
    **{
        f"layer_{k}": f"Local complexity and the local rank of layer {k} go together (Fig. 7)."
        for k in PUBLISHED_CORRELATIONS
    },
    "fall": "Both fall late in training, by a quarter or more (Fig. 2).",
    "depth": "The rank falls the more the deeper the layer (Fig. 7: layers 2, 3, 4).",
}
_COMMON = {
    "batch_size": 64,
    "learning_rate": 1e-4,
    "optimiser": "adamw",
    "weight_decay": 0.01,
    "decay_biases": False,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"width": 32, "n_steps": 1000, "n_times": 8, "n_points": 12, "n_noise": 2},
    "small": {"width": 200, "n_steps": 60_000, "n_times": 20, "n_points": 40, "n_noise": 4},
    "paper": {"width": 200, "n_steps": 500_000, "n_times": 40, "n_points": 500, "n_noise": 16},
}
N_RUNS = 6


def configurations(scale: str) -> list[Configuration]:
    """Six runs, each with a cross-covariance of its own."""
    return [{**SETTINGS[scale], **_COMMON, "replicate": i} for i in range(N_RUNS)]


def gaussian_pair(n: int, cross: Floats, rng: np.random.Generator) -> tuple[Float32s, Float32s]:
    """X ~ N(0, I) and Y ~ N(0, I) with cross-covariance E[Y X'] = cross, whose norm is below one.

    >>> cross = np.array([[0.6, 0.0], [0.0, 0.0]])
    >>> x, y = gaussian_pair(100_000, cross, np.random.default_rng(0))
    >>> bool(np.abs(y.T @ x / 100_000 - cross).max() < 0.02)
    True
    """
    x = rng.standard_normal((n, cross.shape[1]), dtype=np.float32)
    rest = np.linalg.cholesky(np.eye(len(cross)) - cross @ cross.T).astype(np.float32)
    free = rng.standard_normal((n, len(cross)), dtype=np.float32)
    return x, x @ cross.T.astype(np.float32) + free @ rest.T


def random_cross(rng: np.random.Generator) -> Floats:
    """A Gaussian matrix, its largest singular value set to `STRENGTH`."""
    cross = rng.normal(size=(D_OUT, D_IN))
    return np.asarray(STRENGTH * cross / np.linalg.norm(cross, 2))


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run, on pairs that are never seen twice."""
    from inscape.training.networks import mlp

    rng = np.random.default_rng([c["seed"], 0])
    cross = random_cross(rng)
    test = gaussian_pair(1000, cross, rng)
    net = mlp(D_IN, (c["width"],) * DEPTH, D_OUT, random_state=c["seed"])
    points = test[0][: c["n_points"]]
    measured = NetworkMeasurement(
        x=points,
        sigma=SIGMA,
        n_noise=c["n_noise"],
        thresholds=THRESHOLDS,
        rank_points=len(points),
        also=(_Error(*test),),
    )
    return watch(net, _Fresh(cross, rng), test, c, measured, {}, checkpoint_of(c))


class _Fresh:
    """Draws pairs, many at a time."""

    def __init__(self, cross: Floats, rng: np.random.Generator, at_once: int = 2**14) -> None:
        self._cross, self._rng, self._size = cross, rng, at_once
        self._draw(0)

    def __call__(self, n: int) -> tuple[Float32s, Float32s]:
        if len(self._x) - self._used < n:
            self._draw(max(n, self._size))
        taken = slice(self._used, self._used + n)
        self._used += n
        return self._x[taken], self._y[taken]

    def _draw(self, n: int) -> None:
        self._before = self._rng.bit_generator.state
        self._x, self._y = gaussian_pair(n, self._cross, self._rng)
        self._used = 0

    def state(self) -> dict[str, Any]:
        """From which the pairs that are to come can be drawn."""
        return {"rng": self._before, "drawn": len(self._x), "used": self._used}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._rng.bit_generator.state = state["rng"]
        self._draw(state["drawn"])
        self._used = state["used"]


class _Error:
    """The mean square of the error on test points."""

    def __init__(self, x: Array, y: Array) -> None:
        self._x, self._y = x, y

    def __call__(self, model: Any) -> dict[str, float]:
        return {"test_mse": float(np.mean((model.scores(self._x) - self._y) ** 2))}


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Pearson's coefficient of LC and the local rank of each layer, over all measurements of all runs."""
    pairs = [(t, k) for t in THRESHOLDS for k in LAYERS]
    by_pair = {pair: layer_correlation(frame, *pair) for pair in pairs}
    means = {pair: mean_curve_correlation(longest(frame), *pair) for pair in pairs}
    main = [f"{AUTHORS_THRESHOLD.name}_{k}" for k in LAYERS]
    other = [f"{t.name}_{k}" for t in THRESHOLDS[1:] for k in LAYERS]
    curves = mean_frame(frame, ["width"], ["lc", *main], [*other, "tv", "test_mse", *_LAYER_COLUMNS])
    _draw(frame, means, out)
    of_means, pooled = ({k: c[AUTHORS_THRESHOLD, k] for k in LAYERS} for c in (means, by_pair))
    runs = "one run" if len(frame) == 1 else f"mean of {len(frame)} runs and its 95 % interval"
    return Summary(
        findings=findings_of(frame, of_means, pooled),
        figures={
            "rank.png": f"Local complexity, local rank per layer and error over training: {runs} "
            "(Fig. 2, 7).",
            "scatter.png": "Local rank against local complexity, every measurement of every run.",
        },
        notes=_notes(frame),
        charts=_charts(frame, curves),
        tables={
            "Correlation per layer": _correlations(by_pair, means).round(4),
            "Ranks": _ranks(frame).round(2),
            "Curves": curves.round(4),
        },
        limits=(
            "The coefficient depends on the steps at which networks are measured: ours are logarithmic, the "
            "paper's are not told.",
            "It depends on the threshold of the rank; findings are about that of the published code, "
            "three others are in the table.",
            "Measurements of one run are not independent; intervals resample whole runs.",
        ),
    )


def _correlations(pooled: Mapping[Any, Correlation], means: Mapping[Any, Correlation]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "layer": k,
                "threshold": t.label,
                "of_means": means[t, k].value,
                "of_means_low": means[t, k].interval[0],
                "of_means_high": means[t, k].interval[1],
                "pooled": c.value,
                "pooled_low": c.interval[0],
                "pooled_high": c.interval[1],
                "published": PUBLISHED_CORRELATIONS.get(k),
                "measurements": c.n,
            }
            for (t, k), c in pooled.items()
        ]
    )


def _ranks(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Of each run, layer and threshold: the rank at the start and at the end, and how low and high it was."""
    import pandas as pd

    lines = []
    for _, r in frame.iterrows():
        for t in THRESHOLDS:
            for k in LAYERS:
                rank = r[f"{t.name}_{k}"]
                line = {"run": r["replicate"], "steps": r["step"][-1], "layer": k}
                line |= {"threshold": t.label, "start": rank[0], "end": rank[-1]}
                lines.append(line | {"least": min(rank), "most": max(rank)})
    return pd.DataFrame(lines)


def layer_correlation(frame: "pd.DataFrame", threshold: RankThreshold, layer: int) -> Correlation:
    """Pearson's coefficient over all measurements, resampled by runs; NaN where the rank is constant."""
    lc, rank = (np.concatenate([np.array(v) for v in frame[c]]) for c in ("lc", f"{threshold.name}_{layer}"))
    runs = np.repeat(np.arange(len(frame)), [len(v) for v in frame["lc"]])
    return correlation(lc, rank, clusters=runs)


def mean_curve_correlation(frame: "pd.DataFrame", threshold: RankThreshold, layer: int) -> Correlation:
    """The same of the two curves that are means over runs, as they are drawn in Fig. 7; n is that of runs."""
    lc, rank = (np.array(frame[c].tolist(), dtype=np.float64) for c in ("lc", f"{threshold.name}_{layer}"))

    def statistic(weights: Floats) -> Floats:
        a, b = (weights @ curves / weights.sum(axis=1, keepdims=True) for curves in (lc, rank))
        a, b = (v - v.mean(axis=1, keepdims=True) for v in (a, b))
        spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
        flat = spread <= 1e-12 * (lc**2).mean()
        return np.where(flat, np.nan, (a * b).sum(axis=1) / np.where(flat, 1.0, spread))

    return bootstrapped(statistic, len(frame), None, N_RESAMPLES, 0)


def findings_of(
    frame: "pd.DataFrame", of_means: Mapping[int, Correlation], pooled: Mapping[int, Correlation]
) -> dict[str, Finding]:
    """Which claims hold, given both coefficients of each layer at the main threshold."""
    findings = {f"layer_{k}": _agrees(frame, k, of_means[k], pooled[k]) for k in PUBLISHED_CORRELATIONS}
    return findings | {"fall": _both_fall(frame), "depth": _depth(frame)}


def _agrees(frame: "pd.DataFrame", layer: int, of_means: Correlation, pooled: Correlation) -> Finding:
    """Held if the interval over runs is above zero, and the rank moves enough to go with anything."""
    known = not np.isnan(of_means.interval[0])
    rank = np.mean(longest(frame)[f"{AUTHORS_THRESHOLD.name}_{layer}"].tolist(), axis=0)
    moves = float(np.ptp(rank) / rank.max()) if rank.max() else 0.0
    words = f"; the mean rank moves from {rank[0]:.1f} to {rank[-1]:.1f}"
    verdict = judge(of_means.interval, published=PUBLISHED_CORRELATIONS[layer])
    if moves < LEAST_MOVE_OF_RANK:
        words += f", by less than {LEAST_MOVE_OF_RANK:.0%}"
        verdict = Verdict(holds=None, unsaid=NO_VARIATION)
    return Finding(
        holds=verdict.holds,
        unsaid=verdict.unsaid,
        evidence=f"r = {_number(of_means)} of the means over {of_means.n} run{'s' * (of_means.n > 1)}, "
        f"{_number(pooled)} over all {pooled.n} measurements; threshold {AUTHORS_THRESHOLD.eps:g}{words}",
        value=None if np.isnan(of_means.value) else of_means.value,
        interval=of_means.interval if known else None,
        published=f"r = {PUBLISHED_CORRELATIONS[layer]}",
        published_value=PUBLISHED_CORRELATIONS[layer],
    )


def _number(c: Correlation) -> str:
    """The coefficient, with its interval if there are runs enough for one."""
    low, high = c.interval
    return f"{c.value:.3f}" + ("" if np.isnan(low) else f" [{low:.3f}, {high:.3f}]")


def late_change(steps: Sequence[float], values: Sequence[float]) -> float:
    """From the last measurement before a tenth of the steps to the last: a fraction of the former.

    >>> late_change([0, 10, 100, 1000], [3.0, 2.0, 4.0, 1.0])
    -0.75
    """
    early = max(i for i, step in enumerate(steps) if step <= steps[-1] / 10)
    return values[-1] / values[early] - 1 if values[early] else float("nan")


def _both_fall(frame: "pd.DataFrame") -> Finding:
    """Whether LC and the rank of the deepest layer fell by `LEAST_FALL`, by the rule for changes in runs."""
    deepest = f"{AUTHORS_THRESHOLD.name}_{DEPTH}"
    falls = {
        name: [-late_change(r["step"], r[name]) for _, r in frame.iterrows()] for name in ("lc", deepest)
    }
    (lc, interval), (rank, _) = (mean_of(np.negative(v)) for v in falls.values())
    n_steps = min(steps[-1] for steps in frame["step"])
    verdicts = [changed(v, LEAST_FALL, long_enough=n_steps >= DROP_UP_TO_STEP) for v in falls.values()]
    holds = all_of(Verdict(holds=v) for v in verdicts).holds
    short = (
        ""
        if holds or n_steps >= DROP_UP_TO_STEP
        else f"; the published drop ends at {DROP_UP_TO_STEP:,}, our runs before"
    )
    return Finding(
        holds=holds,
        evidence=f"from a tenth of the steps to the end, {n_steps:,}, local complexity {lc:+.1%}, local rank "
        f"of layer {DEPTH} {rank:+.1%} ({len(frame)} run{'s' * (len(frame) > 1)}){short}",
        value=100 * lc,
        interval=None if interval is None else (100 * interval[0], 100 * interval[1]),
        published=f"a sudden drop between {DROP_FROM_STEP:,} and {DROP_UP_TO_STEP:,} steps (Fig. 2)",
    )


def _depth(frame: "pd.DataFrame") -> Finding:
    """Whether the fraction of the rank that is left falls from layer 2 to 3 to 4, by the same rule."""
    left = np.array(
        [
            [
                r[f"{AUTHORS_THRESHOLD.name}_{k}"][-1] / max(r[f"{AUTHORS_THRESHOLD.name}_{k}"][0], 1.0)
                for k in PUBLISHED_RANKS
            ]
            for _, r in frame.iterrows()
        ]
    )
    n_steps = min(steps[-1] for steps in frame["step"])
    least_fall = -np.diff(left, axis=1).max(axis=1)
    ends = ", ".join(
        f"layer {k}: {ranks[:, 0].mean():.0f} to {ranks[:, 1].mean():.0f}"
        for k in PUBLISHED_RANKS
        for ranks in (np.array([(r[0], r[-1]) for r in frame[f"{AUTHORS_THRESHOLD.name}_{k}"]]),)
    )
    return Finding(
        holds=changed(least_fall, LEAST_FALL_BY_LAYER, long_enough=n_steps >= DROP_UP_TO_STEP),
        evidence=f"from start to end, {n_steps:,} steps, {ends}",
        value=float(left[:, -1].mean()),
        published=", ".join(f"layer {k}: {a} to {b}" for k, (a, b) in PUBLISHED_RANKS.items()),
    )


def _charts(frame: "pd.DataFrame", curves: "pd.DataFrame") -> list[Chart]:
    import pandas as pd

    lines = pd.concat(
        [
            curves.assign(
                layer=f"layer {k}", rank=curves[c], low=curves[f"{c}_low"], high=curves[f"{c}_high"]
            )
            for k in LAYERS
            for c in (f"{AUTHORS_THRESHOLD.name}_{k}",)
        ],
        ignore_index=True,
    )
    points = pd.concat(
        [
            pd.DataFrame(
                {
                    "run": r["replicate"],
                    "step": r["step"],
                    "lc": r["lc"],
                    "rank": r[f"{AUTHORS_THRESHOLD.name}_{k}"],
                }
            ).assign(layer=f"layer {k}")
            for _, r in frame.iterrows()
            for k in range(2, DEPTH + 1)
        ],
        ignore_index=True,
    )
    return [
        Chart(
            title=f"Local rank against local complexity, threshold {AUTHORS_THRESHOLD.eps:g}",
            data=points,
            x="lc",
            y="rank",
            colour="layer",
            hover=("run", "step"),
            xlabel="local complexity",
            ylabel="local rank",
            caption="A point for each layer at each step of each run.",
        ),
        curve_chart(
            lines,
            "rank",
            title=f"Local rank per layer over training, threshold {AUTHORS_THRESHOLD.eps:g}",
            ylabel="local rank",
            colour="layer",
            interval=("low", "high"),
        ),
    ]


def _draw(frame: "pd.DataFrame", pooled: Mapping[tuple[RankThreshold, int], Correlation], out: Path) -> None:
    from inscape.drawing.curves import draw_fit, draw_runs
    from inscape.drawing.palette import TEN

    figure = new_figure((11.5, 3.6))
    left, middle, right = figure.subplots(1, 3)
    curves = {"all": band(frame, "lc")}
    curves |= {f"layer {k}": band(frame, f"lc_{k}") for k in LAYERS}
    colours = {"all": TEN[4]} | {f"layer {k}": TEN[k - 1] for k in range(1, 4)} | {"layer 4": TEN[6]}
    draw_runs(curves, ylabel="local complexity", colours=colours, ax=left)
    ranks = {f"layer {k}": band(frame, f"{AUTHORS_THRESHOLD.name}_{k}") for k in LAYERS}
    draw_runs(
        ranks,
        ylabel=f"local rank, threshold {AUTHORS_THRESHOLD.eps:g}",
        colours=colours,
        legend=False,
        ax=middle,
    )
    draw_runs({"error": band(frame, "test_mse")}, ylabel="mean square error", legend=False, ax=right)
    figure.savefig(out / "rank.png", dpi=100)
    figure = new_figure((11.5, 3.6))
    for ax, k in zip(figure.subplots(1, DEPTH - 1), range(2, DEPTH + 1), strict=True):
        c = pooled[AUTHORS_THRESHOLD, k]
        lc, rank = (
            np.concatenate([np.array(v) for v in frame[n]]) for n in ("lc", f"{AUTHORS_THRESHOLD.name}_{k}")
        )
        title = f"layer {k}: r of means {c.value:.3f} (published {PUBLISHED_CORRELATIONS[k]})"
        draw_fit(lc, rank, None, xlabel="local complexity", ylabel="local rank", title=title, ax=ax)
    figure.savefig(out / "scatter.png", dpi=100)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    return (
        f"MLP {DEPTH}x{c['width']} from R^{D_IN} to R^{D_OUT}, fresh pairs of Gaussians at every step, whose "
        f"cross-covariance has norm {STRENGTH:g}, mean square error, {c['optimiser']} "
        f"{c['learning_rate']:g}, weight decay {c['weight_decay']:g}"
        f"{'' if c['decay_biases'] else ', not of biases'}, batch {c['batch_size']}, "
        f"{max(c['step']):,} steps, {len(frame)} run{'s' * (len(frame) > 1)}; {c['n_points']} test points, "
        f"sigma = {SIGMA:g}."
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
