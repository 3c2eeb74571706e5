"""One number and its error: the measures."""

from inscape.measures.hull_crossings import HullCrossings, hull_crossings
from inscape.measures.local_complexity import DensityMap, LocalComplexity, density_map, local_complexity
from inscape.measures.local_rank import LocalRank, local_rank
from inscape.measures.margin import Margin, margin
from inscape.measures.measure import MeasureTable, measure
from inscape.measures.measurement import Measurement
from inscape.measures.parameters.distance import ParameterDistance, parameter_distance
from inscape.measures.parameters.norms import Norm, path_norm, spectral_norm
from inscape.measures.rank import Ranking, rank
from inscape.measures.region_count import RegionCount, region_count
from inscape.measures.robustness import AdversarialAccuracy, adversarial_accuracy
from inscape.measures.sharpness import Sharpness, sharpness
from inscape.measures.total_variation import TotalVariation, total_variation
from inscape.measures.unlabelled import (
    Agreement,
    Confidence,
    NuclearNorm,
    PredictionEntropy,
    agreement,
    confidence,
    nuclear_norm,
    prediction_entropy,
)

__all__ = [
    "AdversarialAccuracy",
    "Agreement",
    "Confidence",
    "DensityMap",
    "HullCrossings",
    "LocalComplexity",
    "LocalRank",
    "Margin",
    "MeasureTable",
    "Measurement",
    "Norm",
    "NuclearNorm",
    "ParameterDistance",
    "PredictionEntropy",
    "Ranking",
    "RegionCount",
    "Sharpness",
    "TotalVariation",
    "adversarial_accuracy",
    "agreement",
    "confidence",
    "density_map",
    "hull_crossings",
    "local_complexity",
    "local_rank",
    "margin",
    "measure",
    "nuclear_norm",
    "parameter_distance",
    "path_norm",
    "prediction_entropy",
    "rank",
    "region_count",
    "sharpness",
    "spectral_norm",
    "total_variation",
]
