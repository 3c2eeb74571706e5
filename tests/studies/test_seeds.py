"""Two seeds of a study: what is drawn differs, what is computed from the configuration alone does not."""

import json

import pytest

from inscape.sweeps.registry import find, registered
from inscape.sweeps.sweep import OneByOne, work
from inscape.sweeps.tasks import as_tasks

QUICK = {
    "choosing": {"n_train": 60, "epochs": 2, "n_lines": 6},
    "digits": {"n_train": 60, "n_probes": 5, "epochs": 2},
    "edge-of-stability": {"n_steps": 60},
    "effective-regions": {"max_steps": 30},
    "grokking": {"n_steps": 20, "n_times": 3, "n_train": 60, "n_test": 60, "n_points": 4, "width": 8},
    "local-complexity-map": {
        "size": 8,
        "width": 6,
        "epochs": 5,
        "resolution": 6,
        "n_cells": 2,
        "n_networks": 2,
    },
    "local-rank-gaussian": {"n_train": 200, "n_steps": 20, "n_times": 3, "n_points": 4, "width": 8},
    "minima-stability-step": {"n_steps": 30_500},
    "minima-stability-sweep": {"n_steps": 60_000},
    "overparameterisation": {"max_steps": 200},
    "region-counts": {"n_train": 200, "epochs": 20, "counts": {"lines": 20}},
    "same-model-twice": {"n_train": 60, "n_test": 60, "epochs": 2, "n_planes": 2},
    "weight-clusters": {"n_steps": 60, "n_times": 3, "n_train": 60, "n_test": 60, "n_points": 4}
    | {"width": 16, "projection": "pca"},
    "weight-decay": {"n_steps": 20, "n_times": 3, "n_train": 60, "n_test": 60, "n_points": 4, "width": 8},
}
"""Changes to the first configuration at the scale smoke, so that it takes a fraction of a second."""

FIXED = {
    "choosing": {"count_method", "epochs_run", "n_parameters"},
    "digits": {"epochs_run", "n_parameters"},
    "edge-of-stability": {"limit", "track_steps"},
    "effective-regions": {"bound", "label_changes"},
    "grokking": {"step"},
    "local-complexity-map": set(),
    "local-rank-gaussian": {"step"},
    "minima-stability-step": {"limit"},
    "minima-stability-sweep": {"limit"},
    "minima-stability-weight": set(),
    "overparameterisation": {"width"},
    "region-counts": {"count_method", "epochs_run", "n_parameters"},
    "same-model-twice": set(),
    "weight-clusters": {"step"},
    "weight-decay": {"step"},
}
"""Columns that follow from the configuration, whatever is drawn."""

COARSE = {
    *("status", "training_status", "region_count_status", "converged", "interpolates", "separated", "holds"),
    *("lemmas_hold", "theorem_holds", "track_lemmas_hold", "track_theorem_holds", "theorem_1", "theorem_2"),
    *(
        "sharpest_is_exact",
        "steps_done",
        "region_count",
        "regions_before",
        "not_good",
        "n_knots_on_data",
        "fits",
        "loss_reached",
    ),
    "flattest_gap",  # rounding alone where a minimum is certified, and often exactly 0
    *("lr_1_1", "lr_0.1_1", "lr_0.01_1", "lr_relative_0.01_1"),  # the full rank of a few units
    *("regions", "clear", "plateau", "plateau_regions"),  # none before anything is separated
    *("log10_margin", "stationarity", "complementarity", "largest_at_ends", "least_error", "fit", "n_alive"),
}
"""Columns of few values, verdicts and small counts, that two draws may well have in common."""


def row(name, study_seed):
    configuration = find(name).configurations("smoke")[0] | QUICK.get(name, {})
    (cell,) = as_tasks([configuration], study_seed)
    (outcome,) = work(OneByOne(find(name).cell), [cell.seeded])
    assert outcome.error is None, outcome.error
    return json.loads(outcome.row)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::inscape.errors.InscapeWarning")
@pytest.mark.parametrize("name", registered())
def test_another_seed_draws_anew(name):
    first, again, other = row(name, 0), row(name, 0), row(name, 7)
    assert str(again) == str(first)
    alike = {column for column in first if str(first[column]) == str(other[column])}
    assert FIXED[name] <= alike
    assert alike <= FIXED[name] | COARSE
