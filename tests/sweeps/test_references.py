"""References to code by name: where it is now, and where earlier versions of inscape had it."""

import sqlite3
from contextlib import closing

import pytest

from inscape.errors import StudyError
from inscape.studies import Store
from inscape.sweeps.references import current, find_object, function_name
from inscape.sweeps.registry import find, read_study, registered

EARLIER = {
    "choosing": "inscape.studies.choosing",
    "digits": ("inscape.studies.digits", "inscape.studies.trained"),
    "edge-of-stability": "inscape.studies.edge_of_stability",
    "effective-regions": "inscape.studies.effective_regions",
    "grokking": "inscape.studies.grokking",
    "local-complexity-map": "inscape.studies.local_complexity_map",
    "local-rank-gaussian": "inscape.studies.local_rank_gaussian",
    "minima-stability-step": "inscape.studies.minima_stability_step",
    "minima-stability-sweep": "inscape.studies.minima_stability_sweep",
    "minima-stability-weight": "inscape.studies.minima_stability_weight",
    "region-counts": ("inscape.studies.region_counts", "inscape.studies.region_counts.rows"),
    "overparameterisation": "inscape.studies.overparameterisation",
    "same-model-twice": "inscape.studies.same_model_twice",
    "weight-clusters": "inscape.studies.weight_clusters",
    "weight-decay": "inscape.studies.weight_decay",
}
"""Name of a study -> the module that held it and its function, or one for each, before they moved."""


@pytest.mark.parametrize("name", EARLIER)
def test_a_study_and_its_function_are_found_by_what_earlier_versions_called_them(name):
    modules = EARLIER[name]
    study_module, cell_module = (modules, modules) if isinstance(modules, str) else modules
    assert find(f"{study_module}:STUDY") is find(name)
    assert find_object(f"{cell_module}:cell") is find(name).cell
    assert current(f"{cell_module}:cell") == function_name(find(name).cell)


def test_no_study_is_forgotten():
    assert set(EARLIER) == set(registered())


def test_a_store_of_an_earlier_version_goes_on(tmp_path):
    path = tmp_path / "digits.sqlite"
    Store(path, "digits", "inscape.studies.trained:cell").close()
    with Store(path, "digits", function_name(find("digits").cell)) as store:
        assert store.study == "digits"
    with pytest.raises(StudyError, match=r"holds rows of inscape.studies.trained:cell, not of math:cos"):
        Store(path, "digits", "math:cos")
    with closing(sqlite3.connect(path)) as db, db:  # closed, and committed
        db.execute("UPDATE function SET name = x'00'")
    db.close()
    with pytest.raises(StudyError, match="is damaged"):
        Store(path, "digits", "math:cos")


def test_a_toml_file_of_an_earlier_version_is_read(tmp_path):
    path = tmp_path / "depths.toml"
    path.write_text('function = "inscape.studies.trained:cell"\n[grid]\nmodel = "tree"\nmax_depth = [2, 3]\n')
    study = read_study(path)
    assert study.cell is find("digits").cell
    assert len(study.configurations("small")) == 2
