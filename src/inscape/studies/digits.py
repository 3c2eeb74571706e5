"""Region counts and generalisation of networks, trees and forests on scikit-learn's digits."""

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.correlation.correlate import correlate, positive
from inscape.reports.findings import Finding, Summary
from inscape.sweeps.study import Configuration, Study
from inscape.sweeps.trained_model import batch, cell, check, together

if TYPE_CHECKING:
    import pandas as pd

FITTED_FROM = 0.98
LIMITS = (
    "The count is made on segments between data points: what a model does elsewhere is not seen.",
    "Configurations that share a hyper-parameter are not independent; a correlation over them is no cause.",
    "A gap rests on the 1197 images that were not trained on: its standard error is up to 1.4 percent.",
)
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        "rates": (0.1, 0.01),
        "sizes": (16, 64),
        "decays": (0.0,),
        "depths": (3, 8),
        "epochs": 20,
        "seeds": 1,
    },
    "small": {
        "rates": (0.1, 0.03, 0.01),
        "sizes": (16, 64, 256),
        "decays": (1e-4, 1e-5, 0.0),
        "depths": range(3, 13),
        "epochs": 150,
        "seeds": 3,
    },
    "paper": {
        "rates": (0.1, 0.03, 0.01),
        "sizes": (16, 64, 256),
        "decays": (1e-5, 1e-6, 1e-7),
        "depths": range(3, 18),
        "epochs": 200,
        "seeds": 5,
    },
}


def configurations(scale: str) -> list[Configuration]:
    """Learning rates by batch sizes by weight decays of an MLP; depths of trees and forests."""
    s = _SCALES[scale]
    base = {"data": "digits", "n_train": 600, "n_probes": 40 if scale == "smoke" else 200}
    fixed = {"model": "mlp", "epochs": s["epochs"], "normalise": False}  # pixels are in 0..1 already
    nets: list[Configuration] = [
        {**fixed, "learning_rate": r, "batch_size": b, "weight_decay": w}
        for r, b, w in product(s["rates"], s["sizes"], s["decays"])
    ]
    trees = [
        {"model": model, "max_depth": depth, "criterion": criterion}
        for model, depth, criterion in product(("tree", "forest"), s["depths"], ("gini", "entropy"))
    ]
    return [{**base, **c, "replicate": i} for c in nets + trees for i in range(s["seeds"])]


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The correlations of each family, pooled, and within the networks by hyper-parameter."""
    varied = ("learning_rate", "batch_size", "weight_decay", "max_depth", "criterion")
    everything = correlate(frame, by=[name for name in varied if name in frame])
    everything.plot().figure.savefig(out / "scatter.png", dpi=150)
    figures = {"scatter.png": "All models, a point for each configuration."}
    charts, notes = [everything.chart("All models")], f"All models:\n\n```\n{everything}\n```"
    apart = everything.models or dict.fromkeys(frame["model"].unique(), everything)
    findings = {
        family: positive(apart[family].pearson)
        if family in apart
        else Finding(holds=None, evidence="no rows")
        for family in ("tree", "forest")
    }
    findings["networks"] = Finding(holds=None, evidence="no network fits its training data")
    nets = frame[frame["model"] == "mlp"]
    if (nets["train_accuracy"] >= FITTED_FROM).any():
        fitted = correlate(nets, min_train_accuracy=FITTED_FROM)
        fitted.plot().figure.savefig(out / "networks.png", dpi=150)
        figures["networks.png"] = f"The networks of {FITTED_FROM:.0%} training accuracy or more."
        charts.insert(0, fitted.chart(f"Networks of {FITTED_FROM:.0%} training accuracy or more"))
        notes += f"\n\nNetworks that fit their data:\n\n```\n{fitted}\n```"
        findings["networks"] = positive(fitted.pearson)
    return Summary(findings=findings, figures=figures, notes=notes, charts=charts, limits=LIMITS)


MODELS = {"networks": "mlp", "tree": "tree", "forest": "forest"}
"""What each claim is about."""

STUDY = Study(
    name="digits",
    title="Region counts and generalisation gaps of networks, trees and forests on the digits",
    paper="after Li et al. 2025, Fig. 2 and 5",
    claims={
        "networks": f"Networks of {FITTED_FROM:.0%} training accuracy or more with more "
        "regions have larger gaps.",
        "tree": "So do decision trees, over depths and criteria.",
        "forest": "So do random forests.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    batch=batch,
    together=together,
    check=check,
    concerns=lambda claim, configuration: configuration["model"] == MODELS[claim],
)
