"""The weight g for samples and for whole distributions (Mulayoff, Michaeli, Soudry 2021, Fig. 2)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats
from inscape.drawing.axes import new_figure
from inscape.reports.findings import Finding, Summary, in_all
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

DISTRIBUTIONS = ("uniform", "gaussian", "laplace")
GRID_OF_X = np.linspace(-3, 3, 241)
_SIZES = {"smoke": (20, 320), "small": (20, 80, 320, 1280), "paper": (20, 80, 320, 1280, 5120, 20480)}
_REPLICATES = {"smoke": 2, "small": 20, "paper": 200}


def configurations(scale: str) -> list[Configuration]:
    """Distributions by sample sizes."""
    return [
        {"distribution": d, "n": n, "replicate": i}
        for d in DISTRIBUTIONS
        for n in _SIZES[scale]
        for i in range(_REPLICATES[scale])
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """The weight of a sample with mean 0 and standard deviation 1, and its distance to the population's."""
    from inscape.univariate import population_weight, weight

    x = _draws(
        configuration["distribution"], configuration["n"], np.random.default_rng(configuration["seed"])
    )
    x = np.sort((x - x.mean()) / x.std())
    g, population = weight(GRID_OF_X, x), population_weight(GRID_OF_X, configuration["distribution"])
    ends = weight(np.array([x[0], x[-1], x[0] - 1, x[-1] + 1]), x)
    shown = configuration["n"] == 20 and configuration["replicate"] == 0
    return {
        "distance": np.abs(g - population).max() / population.max(),
        "place_of_largest": GRID_OF_X[g.argmax()],
        "largest_at_ends": ends.max() / g.max(),
        "sample": x if shown else None,
        "g": g if shown else None,
    }


def _draws(distribution: str, n: int, rng: np.random.Generator) -> Floats:
    if distribution == "uniform":
        return rng.uniform(-1, 1, n)
    return rng.standard_normal(n) if distribution == "gaussian" else rng.laplace(size=n)


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The three panels, and how fast the samples' weights come near the population's."""
    figures = _draw(frame, out)
    table = frame.groupby(["distribution", "n"])["distance"].mean().unstack("distribution")
    rates = {d: np.polyfit(np.log(table.index), np.log(table[d]), 1)[0] for d in table if len(table) > 1}
    words = ", ".join(f"{d} n^{rate:.2f}" for d, rate in rates.items()) or "one size of samples"
    return Summary(
        findings={
            "centre": in_all(frame["place_of_largest"].abs() < 1, "samples"),
            "ends": in_all(frame["largest_at_ends"] < 1e-12, "samples"),
            "converges": Finding(
                holds=all(r < -0.3 for r in rates.values()) if rates else None, evidence=words
            ),
        },
        figures=figures,
        notes=f"{len(frame)} samples, each with mean 0 and standard deviation 1. The table has the mean "
        "largest distance to the population's g, over its largest value.",
        tables={"Distances": table.reset_index().round(5)},
    )


def _draw(frame: "pd.DataFrame", out: Path) -> dict[str, str]:
    """The weights of the samples that rows keep, and the caption; neither if there is none."""
    from inscape.drawing.univariate import draw_weights
    from inscape.univariate import population_weight

    shown = frame[frame["g"].notna()].sort_values(
        "distribution", key=lambda names: names.map(DISTRIBUTIONS.index)
    )
    if shown.empty:
        return {}
    figure = new_figure((4 * len(shown), 3.4))
    panels = np.ravel(figure.subplots(1, len(shown)))
    for ax, name, g, sample in zip(panels, *(shown[k] for k in ("distribution", "g", "sample")), strict=True):
        draw_weights(GRID_OF_X, np.array(g), population_weight(GRID_OF_X, name), np.array(sample), ax=ax)
        ax.set_title(name)
    figure.savefig(out / "weight.png", dpi=150)
    return {"weight.png": "The weight g of samples, thin, beside that of the distribution they are from."}


STUDY = Study(
    name="minima-stability-weight",
    title="The weight g of samples and of distributions",
    paper="Mulayoff, Michaeli and Soudry 2021, Fig. 2",
    claims={
        "centre": "g is largest near the centre of the data (within one standard deviation of the mean).",
        "ends": "g is zero at the extreme points and beyond them.",
        "converges": "g of a sample tends to g of the population, about as n^-1/2.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
