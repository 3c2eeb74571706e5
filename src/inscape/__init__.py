"""inscape: measure and draw the regions that a trained model cuts its input space into."""

from inscape.stopping import end_on_interrupt

end_on_interrupt()  # before the imports, which take half a second

from importlib.metadata import version

__version__ = version("inscape")

from inscape import reports, studies, training
from inscape.compare import agreement, compare
from inscape.errors import InscapeError, InscapeWarning
from inscape.explorer import explore
from inscape.measures import (
    adversarial_accuracy,
    confidence,
    density_map,
    hull_crossings,
    local_complexity,
    local_rank,
    margin,
    measure,
    nuclear_norm,
    parameter_distance,
    path_norm,
    prediction_entropy,
    rank,
    region_count,
    sharpness,
    spectral_norm,
    total_variation,
)
from inscape.models import quantile_levels, wrap
from inscape.partition import (
    boundary_distance,
    decision_regions,
    enumerate_regions,
    linear_region,
    linear_regions,
)
from inscape.partition.gallery import animate, side_by_side
from inscape.probes import Ball, Box, Patch, Segment, Simplex, sample_probes
from inscape.studies import correlate
from inscape.training.monitor import Monitor

__all__ = [
    "Ball",
    "Box",
    "InscapeError",
    "InscapeWarning",
    "Monitor",
    "Patch",
    "Segment",
    "Simplex",
    "__version__",
    "adversarial_accuracy",
    "agreement",
    "animate",
    "boundary_distance",
    "compare",
    "confidence",
    "correlate",
    "decision_regions",
    "density_map",
    "enumerate_regions",
    "explore",
    "hull_crossings",
    "linear_region",
    "linear_regions",
    "local_complexity",
    "local_rank",
    "margin",
    "measure",
    "nuclear_norm",
    "parameter_distance",
    "path_norm",
    "prediction_entropy",
    "quantile_levels",
    "rank",
    "region_count",
    "reports",
    "sample_probes",
    "sharpness",
    "side_by_side",
    "spectral_norm",
    "studies",
    "theory",
    "total_variation",
    "training",
    "univariate",
    "wrap",
]


def __getattr__(name: str) -> object:
    """The univariate laboratory and the checks of theory, loaded when first asked for."""
    if name in ("theory", "univariate"):
        import importlib

        return importlib.import_module(f"inscape.{name}")
    raise AttributeError(f"module 'inscape' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, those that are not loaded yet among them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
