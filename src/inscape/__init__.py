"""inscape: measure and draw the regions that a trained model cuts its input space into."""

from importlib.metadata import version

__version__ = version("inscape")

from inscape import studies, training
from inscape.errors import InscapeError, InscapeWarning
from inscape.measures import measure, rank, region_count
from inscape.models import wrap
from inscape.partition import decision_regions, linear_regions
from inscape.probes import Patch, Segment, Simplex, sample_probes
from inscape.studies import correlate

__all__ = [
    "InscapeError",
    "InscapeWarning",
    "Patch",
    "Segment",
    "Simplex",
    "__version__",
    "correlate",
    "decision_regions",
    "linear_regions",
    "measure",
    "rank",
    "region_count",
    "sample_probes",
    "studies",
    "training",
    "univariate",
    "wrap",
]


def __getattr__(name: str) -> object:
    """The univariate laboratory, loaded when it is first asked for."""
    if name == "univariate":
        import importlib

        return importlib.import_module("inscape.univariate")
    raise AttributeError(f"module 'inscape' has no attribute {name!r}")
