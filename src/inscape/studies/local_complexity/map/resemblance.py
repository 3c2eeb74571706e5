"""What the maps of local complexity say: density against measured length, and how maps resemble others.

The pictures of the study are drawn at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Chart, Finding, Summary, judge
from inscape.studies.local_complexity.map.coordinate_network import image_of, patch, with_weights
from inscape.studies.local_complexity.training_curves import mean_of

if TYPE_CHECKING:
    import pandas as pd


CLAIMS = {
    "slope": "Square by square, the density f is the expected length of boundary per area: slope 1 (Thm. 2).",
    "scatter": "What is left between them is the chance of finitely many noisy networks, no more.",
    "total": "Over the whole square both add up to the same.",
    "resembles": "f is high where the regions of the network itself are dense (Fig. 1).",
    "weights": "Noise on weights too leaves the map much as it is (Fig. 5).",
    "factor": "Without the Gaussian factor the map still resembles the regions (Fig. 6).",
}
SIGMAS = (0.025, 0.05, 0.1)
MAIN_SIGMA = 0.05
N_RESAMPLES = 1000
_RESEMBLES_ABOVE = 0.5
"""Maps resemble each other if they correlate by as much as this, in the sense of the rule of all studies."""
EXACT_BELOW_ERROR = 1e-3
"""The mean square error up to which a network represents its image, as those of the paper do "exactly":
others cannot deny what was said of such."""


def at_sigma(what: str, sigma: float) -> str:
    """The column of what was measured at a sigma."""
    return f"{what}_{sigma:g}"


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Slopes with intervals, resemblances, and the pictures."""
    import pandas as pd

    sigmas = [sigma for sigma in SIGMAS if at_sigma("density", sigma) in frame]
    fits = {sigma: length_fit(frame, sigma) for sigma in sigmas}
    alike = pd.DataFrame([line for _, run in frame.iterrows() for line in _resemblances(run, sigmas)])
    points = _points(frame, sigmas)
    return Summary(
        findings=_findings(fits, alike, float(frame["loss"].max())),
        figures=draw_all(frame, out, fits),
        notes=_notes(frame),
        charts=[
            Chart(
                title="Measured length of boundary against the density f, square by square, "
                f"sigma = {MAIN_SIGMA:g}",
                data=points[points["sigma"].astype(float) == MAIN_SIGMA],
                x="density",
                y="length",
                colour="replicate",
                low="low",
                high="high",
                hover=("square",),
                xlabel="density f",
                ylabel="length per area",
                caption="A point for each square of each network; the length is a mean over noisy networks, "
                "with its 95 % interval.",
            )
        ],
        tables={
            "Slopes": _slopes(fits),
            "Resemblance of maps": alike.round(4),
            "Squares": points.round(4),
        },
        limits=(
            "The exact partition has the edges of all units; those of units without a path to the output, "
            "which f leaves out, are none in networks of this width.",
            "Slopes are of finitely many noisy networks; the interval is a bootstrap over them.",
            "Slopes count as 1 if the interval has 1 or they are within 5 % of it, totals within 2 %.",
            "Noise of sigma on every weight of layers of this width moves deep layers more than "
            "noise on biases.",
        ),
    )


def _findings(fits: "dict[float, LengthFit]", alike: "pd.DataFrame", error: float) -> dict[str, Finding]:
    main = fits[MAIN_SIGMA]
    return {
        "slope": Finding(
            holds=all(f.slope[0] <= 1 <= f.slope[1] or abs(f.value - 1) < 0.05 for f in fits.values()),
            evidence="; ".join(
                f"sigma {s:g}: {f.value:.3f} [{f.slope[0]:.3f}, {f.slope[1]:.3f}]" for s, f in fits.items()
            ),
            value=main.value,
            interval=main.slope,
            published="1 (Theorem 2)",
            published_value=1.0,
        ),
        "scatter": Finding(
            holds=all(0.7 < f.scatter < 1.4 for f in fits.values()),
            evidence="residuals over their standard errors, root mean square: "
            + ", ".join(f"{f.scatter:.2f} at sigma {s:g}" for s, f in fits.items()),
            value=main.scatter,
        ),
        "total": Finding(
            holds=all(
                f.total[1][0] <= 1 <= f.total[1][1] or abs(f.total[0] - 1) < 0.02 for f in fits.values()
            ),
            evidence="length over integral of f: "
            + ", ".join(f"{f.total[0]:.4f} at sigma {s:g}" for s, f in fits.items()),
            value=main.total[0],
            interval=main.total[1],
            published="1 (Theorem 2)",
            published_value=1.0,
        ),
        "resembles": resemblance(alike, "f and lengths of the network itself", error),
        "weights": resemblance(alike, "f with noise on biases and on weights too", error),
        "factor": resemblance(alike, "without Gaussian factor and lengths of the network itself", error),
    }


def _slopes(fits: "dict[float, LengthFit]") -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "sigma": s,
                "slope": f.value,
                "slope_low": f.slope[0],
                "slope_high": f.slope[1],
                "total": f.total[0],
                "total_low": f.total[1][0],
                "total_high": f.total[1][1],
                "scatter": f.scatter,
                "squares": f.n,
            }
            for s, f in fits.items()
        ]
    ).round(5)


@dataclass(frozen=True)
class LengthFit:
    """The regression of measured lengths on the density, with intervals from resampled noisy networks.

    Attributes:
        value: the slope.
        slope: its interval.
        total: all length over all density, and its interval.
        scatter: the root mean square of residuals from slope 1 in units of their standard errors, over what
            it is by chance alone: sqrt((m - 1) / (m - 3)), as the errors are those of m networks themselves.
        n: how many squares of the grid.
    """

    value: float
    slope: tuple[float, float]
    total: tuple[float, tuple[float, float]]
    scatter: float
    n: int


def length_fit(frame: "pd.DataFrame", sigma: float) -> LengthFit:
    """The fit over the squares of all networks at one sigma."""
    density = np.array([np.ravel(d) for d in frame[at_sigma("density", sigma)]])
    lengths = np.array([np.array(v) for v in frame[at_sigma("length", sigma)]])  # (runs, networks, squares)
    m, rng = lengths.shape[1], np.random.default_rng(0)
    slopes, totals = [], []
    for weights in rng.multinomial(m, np.full(m, 1 / m), size=N_RESAMPLES) / m:
        mean = np.einsum("m,rmc->rc", weights, lengths)
        slopes.append(_slope(density.ravel(), mean.ravel()))
        totals.append(mean.sum() / density.sum())
    mean, error = lengths.mean(axis=1), lengths.std(axis=1, ddof=1) / np.sqrt(m)
    known = error > 0
    z = (mean - density)[known] / error[known]
    total = float(mean.sum() / density.sum())
    return LengthFit(
        _slope(density.ravel(), mean.ravel()),
        _middle(slopes),
        (total, _middle(totals)),
        float(np.sqrt((z**2).mean() * (m - 3) / (m - 1))) if len(z) and m > 3 else 0.0,
        density.size,
    )


def _slope(x: Floats, y: Floats) -> float:
    return float(np.polyfit(x, y, 1)[0])


def _middle(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _resemblances(run: Any, sigmas: list[float]) -> list[dict[str, Any]]:
    """Pearson's coefficient between pairs of maps of one network."""
    lines = []
    n = round(len(run["plain_length"]) ** 0.5)
    plain = np.array(run["plain_length"])
    for sigma in sigmas:
        maps = {
            (noise, kind): np.array(run[f"map_{sigma:g}_{noise}_{kind}"])
            for noise in ("bias", "bias+weights")
            for kind in ("density", "norms")
        }
        coarse = {key: _coarse(m, n) for key, m in maps.items()}
        pairs = {
            "f and lengths of the network itself": (np.array(run[at_sigma("density", sigma)]), plain),
            "f with noise on biases and on weights too": (
                maps["bias", "density"],
                maps["bias+weights", "density"],
            ),
            "f and without Gaussian factor": (maps["bias", "density"], maps["bias", "norms"]),
            "without Gaussian factor and lengths of the network itself": (coarse["bias", "norms"], plain),
        }
        for what, (a, b) in pairs.items():
            r = float(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1])
            lines.append({"network": run["replicate"], "sigma": sigma, "maps": what, "pearson": r})
    return lines


def _coarse(values: Floats, n: int) -> Floats:
    """The mean of a map on a grid that includes its border, over n by n squares."""
    square = np.minimum((np.linspace(0, 1, len(values)) * n).astype(int), n - 1)
    flat = (square[:, None] * n + square).ravel()
    count = np.bincount(flat, minlength=n * n)
    return np.asarray(np.bincount(flat, weights=values.ravel(), minlength=n * n) / np.maximum(count, 1))


def resemblance(alike: "pd.DataFrame", what: str, error: float) -> Finding:
    """Whether two maps correlate by `_RESEMBLES_ABOVE`, over all networks.

    It is not denied by networks that do not represent their image; `error` is that of the worst fit.
    """
    correlations = alike[(alike["maps"] == what) & (alike["sigma"] == MAIN_SIGMA)]["pearson"]
    mean, interval = mean_of(correlations)
    interval = None if interval is None else (max(interval[0], -1.0), min(interval[1], 1.0))
    others = alike[alike["maps"] == what].groupby("sigma")["pearson"].mean()
    words = ", ".join(f"{r:+.2f} at sigma {s:g}" for s, r in others.items())
    holds = None if interval is None else judge(interval, strong=_RESEMBLES_ABOVE).holds
    other = holds is False and error > EXACT_BELOW_ERROR
    words += f", over {len(correlations)} network{'s' * (len(correlations) > 1)}"
    words += f", whose mean square error, up to {error:.2g}, is no exact fit as in the paper" * other
    return Finding(
        holds=None if other else holds,
        evidence=f"Pearson's r of {what}: {words}",
        value=mean,
        interval=interval,
        published="by eye",
    )


def _points(frame: "pd.DataFrame", sigmas: list[float]) -> "pd.DataFrame":
    """One line per square, network and sigma."""
    import pandas as pd

    tables = []
    for _, run in frame.iterrows():
        for sigma in sigmas:
            lengths = np.array(run[at_sigma("length", sigma)])
            mean, error = lengths.mean(axis=0), lengths.std(axis=0, ddof=1) / np.sqrt(len(lengths))
            columns: Mapping[str, Any] = {
                "sigma": f"{sigma:g}",
                "replicate": run["replicate"],
                "square": np.arange(len(mean)),
                "density": run[at_sigma("density", sigma)],
                "length": mean,
                "low": mean - 1.96 * error,
                "high": mean + 1.96 * error,
            }
            tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    counts = ", ".join(f"{n:,}" for n in frame["n_regions"])
    losses = ", ".join(f"{v:.2g}" for v in frame["loss"])
    return (
        f"{len(frame)} network{'s' * (len(frame) > 1)} {c['depth']}x{c['width']} of two coordinates, "
        f"fitted to {c['size']}x{c['size']} pixels of the image ({Path(c['image']).name}) by "
        f"Adam {c['learning_rate']:g} over {c['epochs']} epochs (mean square error {losses}); {counts} "
        f"linear regions. Lengths are those of the exact partition of {c['n_networks']} networks with noise "
        f"on biases, in {c['n_cells']}x{c['n_cells']} squares."
    )


DPI = 100
_SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def draw_all(frame: "pd.DataFrame", out: Path, fits: Mapping[float, Any]) -> dict[str, str]:
    """Write the four pictures; name -> caption."""
    run = frame.iloc[0]
    _map(run, out / "map.png")
    _sigmas(run, list(fits), out / "sigmas.png")
    _variants(run, out / "variants.png")
    _lengths(frame, fits, out / "lengths.png")
    return {
        "map.png": "The image, what the network makes of it, its exact linear regions, and the density f at "
        "sigma = 0.05 (Fig. 1).",
        "sigmas.png": "f at three values of sigma (Fig. 4).",
        "variants.png": "sigma = 0.05: noise on biases (left) and on weights too (right, Fig. 5), with (top) "
        "and without (bottom, Fig. 6) the Gaussian factor, where colours begin at the least value.",
        "lengths.png": "Length of boundary per area of the exact partition, averaged over noisy networks, "
        "against f, square by square; black: slope 1 (not in the paper).",
    }


def _map(run: Any, path: Path) -> None:
    from inscape.models import wrap
    from inscape.partition import linear_regions

    net = with_weights(run, run["weights"])
    figure = new_figure((14, 3.7))
    axes = figure.subplots(1, 4)
    axes[0].imshow(image_of(run), cmap="gray", vmin=0, vmax=1, extent=(-1, 1, -1, 1))
    axes[0].set_title("image")
    t = np.linspace(-1, 1, 200)
    points = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    shown = wrap(net).scores(points).reshape(200, 200)
    axes[1].imshow(shown, cmap="gray", vmin=0, vmax=1, extent=(-1, 1, -1, 1), origin="lower")
    axes[1].set_title("network")
    regions = linear_regions(net, patch(), budget=None)
    regions.plot(ax=axes[2])
    axes[2].set_title(f"{regions.n_regions:,} linear regions")
    _density(run, MAIN_SIGMA, "bias", "density", axes[3], "density f, sigma = 0.05")
    for ax in axes:
        _plain(ax)
    figure.savefig(path, dpi=DPI)


def _sigmas(run: Any, sigmas: list[float], path: Path) -> None:
    figure = new_figure((11.5, 3.5))
    for ax, sigma in zip(figure.subplots(1, len(sigmas)), sigmas, strict=True):
        _density(run, sigma, "bias", "density", ax, f"sigma = {sigma:g}")
        _plain(ax)
    figure.savefig(path, dpi=DPI)


def _variants(run: Any, path: Path) -> None:
    figure = new_figure((8.2, 7))
    axes = figure.subplots(2, 2)
    for row, kind in zip(axes, ("density", "norms"), strict=True):
        for ax, noise in zip(row, ("bias", "bias+weights"), strict=True):
            where = "biases" if noise == "bias" else "biases and weights"
            _density(run, MAIN_SIGMA, noise, kind, ax, f"noise on {where}{', no factor' * (kind == 'norms')}")
            _plain(ax)
    figure.savefig(path, dpi=DPI)


def _lengths(frame: "pd.DataFrame", fits: Mapping[float, Any], path: Path) -> None:
    from inscape.drawing.curves import draw_fit

    figure = new_figure((11.5, 3.8))
    for ax, (sigma, fit) in zip(figure.subplots(1, len(fits)), fits.items(), strict=True):
        density = np.concatenate([np.ravel(d) for d in frame[at_sigma("density", sigma)]])
        length = np.concatenate([np.mean(v, axis=0) for v in frame[at_sigma("length", sigma)]])
        low, high = fit.slope
        draw_fit(
            density,
            length,
            None,
            xlabel="density f",
            ylabel="length per area",
            title=f"sigma = {sigma:g}: slope {fit.value:.3f} [{low:.3f}, {high:.3f}]",
            ax=ax,
        )
        ax.axline((0, 0), slope=1, color="black", lw=1)
    figure.savefig(path, dpi=DPI)


def _density(run: Any, sigma: float, noise: str, kind: str, ax: Any, title: str) -> None:
    from inscape.drawing.measures import draw_density
    from inscape.drawing.planes.frame import Scene

    values = np.array(run[f"map_{sigma:g}_{noise}_{kind}"])
    draw_density(values, Scene(_SQUARE), from_zero=kind == "density", title=title, ax=ax)


def _plain(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("")
    ax.set_ylabel("")
