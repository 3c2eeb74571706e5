"""One number and its error: the measures."""

from importlib import import_module
from typing import Any

from inscape.measures.ranking import Ranking, rank
from inscape.measures.region_count import region_count
from inscape.measures.region_count_result import RegionCount
from inscape.measures.table import MeasureTable, measure

HOMES = {
    "local_complexity": "local_complexity",
    "density_map": "local_complexity",
    "LocalComplexity": "complexity_result",
    "DensityMap": "complexity_result",
    "local_rank": "local_rank",
    "LocalRank": "local_rank",
    "total_variation": "total_variation",
    "TotalVariation": "total_variation",
    "hull_crossings": "hull_crossings",
    "HullCrossings": "hull_crossings",
    "sharpness": "sharpness",
    "Sharpness": "sharpness",
    "margin": "margin",
    "Margin": "margin",
    "parameter_distance": "distance",
    "ParameterDistance": "distance",
    "spectral_norm": "norms",
    "path_norm": "norms",
    "adversarial_accuracy": "robustness",
    "AdversarialAccuracy": "robustness",
}
"""Where names that need torch live; they are loaded when first asked for."""

__all__ = ["MeasureTable", "Ranking", "RegionCount", "measure", "rank", "region_count", *HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(f"inscape.measures.{HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
