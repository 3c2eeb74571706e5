"""The studies themselves, a folder for each paper, and what running one of them or your own needs."""

from typing import TYPE_CHECKING, Any

from inscape.correlation.choices import choose
from inscape.correlation.coefficients import Correlation
from inscape.correlation.correlate import Correlations, Stratum, correlate
from inscape.reports.findings import Chart, Finding, Summary
from inscape.reports.study_run import StudyRun
from inscape.sweeps.references import register_moved
from inscape.sweeps.registry import register
from inscape.sweeps.study import Study, cell

if TYPE_CHECKING:
    from inscape.sweeps.run import reopen, run
    from inscape.sweeps.store import Store

__all__ = [
    "Chart",
    "Correlation",
    "Correlations",
    "Finding",
    "Store",
    "Stratum",
    "Study",
    "StudyRun",
    "Summary",
    "cell",
    "choose",
    "correlate",
    "reopen",
    "run",
]

register(
    {
        "choosing": "inscape.studies.choosing:STUDY",
        "digits": "inscape.studies.digits:STUDY",
        "edge-of-stability": "inscape.studies.region_counts.edge_of_stability:STUDY",
        "effective-regions": "inscape.studies.effective_regions.limit:STUDY",
        "grokking": "inscape.studies.local_complexity.grokking.training:STUDY",
        "local-complexity-map": "inscape.studies.local_complexity.map.density:STUDY",
        "local-rank-gaussian": "inscape.studies.local_complexity.gaussian:STUDY",
        "minima-stability-step": "inscape.studies.minima_stability.larger_step:STUDY",
        "minima-stability-sweep": "inscape.studies.minima_stability.step_sizes:STUDY",
        "minima-stability-weight": "inscape.studies.minima_stability.weight:STUDY",
        "overparameterisation": "inscape.studies.effective_regions.width:STUDY",
        "region-counts": "inscape.studies.region_counts:STUDY",
        "same-model-twice": "inscape.studies.same_model_twice:STUDY",
        "weight-clusters": "inscape.studies.local_complexity.weight_clusters:STUDY",
        "weight-decay": "inscape.studies.local_complexity.weight_decay:STUDY",
    }
)
register_moved(
    {
        "inscape.studies.edge_of_stability": "inscape.studies.region_counts.edge_of_stability",
        "inscape.studies.effective_regions": "inscape.studies.effective_regions.limit",
        "inscape.studies.grokking": "inscape.studies.local_complexity.grokking.training",
        "inscape.studies.local_complexity_map": "inscape.studies.local_complexity.map.density",
        "inscape.studies.local_rank_gaussian": "inscape.studies.local_complexity.gaussian",
        "inscape.studies.minima_stability_step": "inscape.studies.minima_stability.larger_step",
        "inscape.studies.minima_stability_sweep": "inscape.studies.minima_stability.step_sizes",
        "inscape.studies.minima_stability_weight": "inscape.studies.minima_stability.weight",
        "inscape.studies.overparameterisation": "inscape.studies.effective_regions.width",
        "inscape.studies.weight_clusters": "inscape.studies.local_complexity.weight_clusters",
        "inscape.studies.weight_decay": "inscape.studies.local_complexity.weight_decay",
    }
)


def __getattr__(name: str) -> Any:
    """What needs databases and processes, loaded when it is first asked for."""
    if name not in ("Store", "reopen", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from inscape.sweeps import run, store

    return getattr(store if name == "Store" else run, name)


def __dir__() -> list[str]:
    return __all__
