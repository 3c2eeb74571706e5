"""The study of two trainings: a smoke run, and findings on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

import inscape
from inscape.studies import same_model_twice
from inscape.studies.same_model_twice import STUDY


@pytest.mark.filterwarnings("ignore::inscape.errors.InscapeWarning")
def test_a_smoke_run_writes_rows_figures_tables_and_a_page(tmp_path, monkeypatch):
    smoke = same_model_twice.SETTINGS["smoke"]
    monkeypatch.setitem(
        same_model_twice.SETTINGS,
        "smoke",
        smoke | {"fixed": smoke["fixed"] | {"n_train": 100, "epochs": 2, "n_planes": 2}},
    )
    run = inscape.studies.run("same-model-twice", scale="smoke", out=tmp_path, n_workers=1)
    frame = run.frame
    assert len(frame) == 6
    assert ((frame["agreement"] >= 0) & (frame["agreement"] <= 1)).all()
    assert (np.abs(frame["agreement"] - frame["agreement_grid"]) < 0.05).all()
    assert set(run.summary.findings) == set(STUDY.claims)
    assert (tmp_path / "scores.png").stat().st_size > 1000
    assert (tmp_path / "report.html").exists()


def table(same, other, wide, error, missed):
    """Rows of two data sets and three replicates, with little noise."""
    rng = np.random.default_rng(0)
    rows = []
    for data in ("one", "two"):
        for replicate in range(3):
            for first, second, share in (
                ("narrow", "narrow", same),
                ("wide", "wide", wide),
                ("narrow", "wide", other),
                ("deep", "forest", 0.1),
            ):
                exact = share + 0.001 * rng.normal()
                rows.append(
                    {
                        "data": data,
                        "replicate": replicate,
                        "first": first,
                        "second": second,
                        "agreement": exact,
                        "agreement_grid": exact + error,
                        "error": error + 1e-5 * rng.uniform(),
                        "largest_error": 2 * error,
                        "iou": 0.5,
                        "iou_grid": 0.5,
                        "regions": 10.0 + 0.1 * rng.uniform(),
                        "regions_grid": 10.0 - missed,
                        "at_test_points": 0.9,
                        "accuracy_first": 0.9,
                        "accuracy_second": 0.9,
                        "planes": [exact],
                        "planes_grid": [exact + error],
                        "n_train": 100,
                        "epochs": 2,
                        "n_planes": 1,
                    }
                )
    return pd.DataFrame(rows)


def test_findings_of_a_table_in_which_every_claim_holds(tmp_path):
    found = STUDY.summarise(table(0.8, 0.6, 0.9, 0.002, 1.0), tmp_path).findings
    assert {key: f.holds for key, f in found.items()} == dict.fromkeys(STUDY.claims, True)
    assert found["same"].value == pytest.approx(0.25, abs=0.01)
    assert found["wide"].value == pytest.approx(0.1, abs=0.01)
    assert found["grid"].value == pytest.approx(0.008, abs=1e-4)


def test_findings_of_a_table_in_which_none_does(tmp_path):
    found = STUDY.summarise(table(0.5, 0.7, 0.3, 0.05, -2.0), tmp_path).findings
    assert {key: f.holds for key, f in found.items()} == dict.fromkeys(STUDY.claims, False)


def test_pairs_with_a_network_that_learnt_nothing_are_left_out_and_counted(tmp_path):
    rows = table(0.8, 0.6, 0.9, 0.002, 1.0)
    failed = (rows["data"] == "two") & (rows["first"] == "narrow")
    rows.loc[failed, ["agreement", "accuracy_first"]] = 0.1
    summary = STUDY.summarise(rows, tmp_path)
    assert summary.findings["wide"].value == pytest.approx(0.1, abs=0.01)
    assert "below an accuracy of 0.2: 6 of 18 here" in summary.notes
