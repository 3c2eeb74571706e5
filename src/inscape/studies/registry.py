"""The studies that inscape knows by name, one file each in this folder; and those of the user."""

import importlib
from pathlib import Path

from inscape.errors import StudyError, unknown_name
from inscape.studies.references import Announce, find_object, silent
from inscape.studies.study import Study
from inscape.studies.toml_file import read_study

MODULES = {
    "digits": "inscape.studies.digits",
    "edge-of-stability": "inscape.studies.edge_of_stability",
    "effective-regions": "inscape.studies.effective_regions",
    "grokking": "inscape.studies.grokking",
    "local-complexity-map": "inscape.studies.local_complexity_map",
    "local-rank-gaussian": "inscape.studies.local_rank_gaussian",
    "minima-stability-step": "inscape.studies.minima_stability_step",
    "minima-stability-sweep": "inscape.studies.minima_stability_sweep",
    "minima-stability-weight": "inscape.studies.minima_stability_weight",
    "region-counts": "inscape.studies.region_counts",
    "overparameterisation": "inscape.studies.overparameterisation",
    "weight-clusters": "inscape.studies.weight_clusters",
    "weight-decay": "inscape.studies.weight_decay",
}
"""Name of a study -> the module that defines it as STUDY."""


def find(name: str, announce: Announce = silent) -> Study:
    """The study of that name, of a .toml file, or of package.module:STUDY.

    `announce` is told which code runs, before it does: to import it is to run it.
    """
    if not isinstance(name, str):
        raise StudyError(f"expected a Study or the name of one, got {name!r}")
    if name in MODULES:
        study = importlib.import_module(MODULES[name]).STUDY
    elif name.endswith(".toml"):
        study = read_study(Path(name), announce)
    elif ":" in name:
        study = find_object(name, announce)
    else:
        raise StudyError(
            unknown_name("study", name, sorted(MODULES)) + " (or a .toml file, or package.module:STUDY)"
        )
    if not isinstance(study, Study):
        raise StudyError(f"{name} is no inscape.studies.Study but {type(study).__name__}")
    return study
