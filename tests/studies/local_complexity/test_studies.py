"""The five studies of the local-complexity paper, each in a reduced form."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import inscape
from inscape.studies.local_complexity import gaussian, weight_clusters, weight_decay
from inscape.studies.local_complexity.gaussian import layer_correlation, mean_curve_correlation
from inscape.studies.local_complexity.grokking import outcome
from inscape.studies.local_complexity.grokking import training as grokking
from inscape.studies.local_complexity.map import density
from inscape.studies.local_complexity.training_curves import RankThreshold
from inscape.sweeps.registry import find

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "local-complexity"
FIGURES = {
    "grokking": {"late.png", "bound.png", "not-good.png", "rank.png", "decision.png"},
    "local-complexity-map": {"map.png", "sigmas.png", "variants.png", "lengths.png"},
    "local-rank-gaussian": {"rank.png", "scatter.png"},
    "weight-clusters": {"clusters.png"},
    "weight-decay": {"decay.png", "decay-l2.png"},
}


@pytest.fixture
def reduced(monkeypatch):
    """The scale smoke, made smaller still."""
    settings = [
        grokking.Setting(depth=d, width=w, he_scale=he, n_steps=steps, n_times=4, n_runs=n)
        for d, w, he, steps, n in (
            (4, 12, 2.0, 160, 1),
            (3, 12, 1.0, 160, 1),
            (4, 3, 1.0, 60, 1),
            (4, 12, 1.0, 160, 2),
            (4, 12, 3.0, 160, 1),
        )
    ]
    settings.append(replace(settings[0], loss=grokking.PLAIN))
    monkeypatch.setitem(grokking.SETTINGS, "smoke", settings)
    small = {"n_train": 40, "n_test": 30, "n_points": 6, "learning_rate": 0.01}
    monkeypatch.setitem(grokking.FIXED, "smoke", grokking.FIXED["smoke"] | small)
    decay = weight_decay.SETTINGS["smoke"]
    fixed = decay["fixed"] | {"width": 20, "n_times": 4, "n_points": 10, "n_train": 60}
    shorter = {"fixed": fixed, "n_steps": {"adamw": 200, "adam": 200}}
    monkeypatch.setitem(weight_decay.SETTINGS, "smoke", decay | shorter)
    gauss = {"width": 12, "n_steps": 60, "n_times": 4, "n_points": 5}
    smoke = gaussian.SETTINGS["smoke"]
    monkeypatch.setitem(gaussian.SETTINGS, "smoke", smoke | gauss)
    clusters = weight_clusters.SETTINGS["smoke"] | {"width": 30, "n_steps": 100, "n_times": 4, "n_points": 5}
    monkeypatch.setitem(weight_clusters.SETTINGS, "smoke", clusters)
    maps = {"size": 12, "width": 8, "epochs": 20, "resolution": 10, "n_networks": 6, "n_cells": 4}
    smoke = density.SETTINGS["smoke"]
    monkeypatch.setitem(density.SETTINGS, "smoke", smoke | maps)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_study_writes_rows_figures_tables_and_a_page(name, tmp_path, reduced):
    options = {"projection": "pca"} if name == "weight-clusters" else {}
    with ThreadPoolExecutor(1) as executor:
        done = inscape.studies.run(name, scale="smoke", out=tmp_path, executor=executor, options=options)
    assert done.failed == {}
    assert len(done.frame) == len(find(name).configurations("smoke", **options))
    assert set(done.summary.figures) == FIGURES[name]
    for figure in FIGURES[name]:
        assert (tmp_path / figure).stat().st_size > 5_000
    page = (tmp_path / "summary.md").read_text()
    assert all(claim in page for claim in find(name).claims.values())
    assert done.summary.charts
    assert all(chart.caption for chart in done.summary.charts)
    assert done.summary.limits
    for chart in done.summary.charts:
        assert len(chart.data)
        wanted = {chart.x, chart.y, *chart.hover} | {c for c in (chart.colour, chart.low, chart.high) if c}
        assert wanted <= set(chart.data)
    for table in done.summary.tables.values():
        assert len(table)
    for study in (None, name):  # as it was said, and said again
        again = inscape.studies.reopen(tmp_path, study)
        same = [f.evidence for f in again.summary.findings.values()]
        assert same == [f.evidence for f in done.summary.findings.values()]


@pytest.mark.parametrize("name", FIGURES)
def test_every_scale_has_configurations_that_differ(name):
    for scale in ("smoke", "small", "paper"):
        cells = find(name).configurations(scale)
        assert len({tuple(sorted(c.items())) for c in cells}) == len(cells)


def test_the_settings_of_the_paper():
    small = grokking.configurations("small")
    assert {c["he_scale"] for c in small if (c["depth"], c["width"]) == (4, 200)} == {1.0, 2.0, 3.0}
    he_2 = {c["loss"] for c in small if c["he_scale"] == 2}
    assert he_2 == {"softmax-cross-entropy", "cross-entropy"}
    assert {c["loss"] for c in small if c["he_scale"] != 2} == {"softmax-cross-entropy"}
    assert all(c["normalise"] and not c["decay_biases"] and c["tolerance"] == 0.01 for c in small)
    assert {round(c["attack"] / 0.3081, 3) for c in small} == {round(80 / 255, 3)}
    assert {c["n_steps"] for c in grokking.configurations("paper")} == {1_000_000}
    assert any((c["depth"], c["width"]) == (3, 200) for c in small)
    assert all(c["data"] == "mnist" and c["n_train"] == 1000 for c in small)
    assert all(
        (c["optimiser"], c["learning_rate"], c["weight_decay"]) == ("adamw", 1e-4, 0.01) for c in small
    )
    assert {c["data"] for c in grokking.configurations("smoke")} == {"digits"}
    assert len(gaussian.configurations("small")) == 6
    assert {(c["optimiser"], c["decay_biases"]) for c in gaussian.configurations("paper")} == {
        ("adamw", False)
    }
    assert {c["optimiser"] for c in weight_decay.configurations("paper")} == {"adam", "adamw"}
    assert density.SIGMAS == (0.025, 0.05, 0.1)
    assert weight_clusters.configurations("paper", projection="pca")[0]["width"] == 5000
    assert {c["width"] for c in weight_decay.configurations("small")} == {1000}


def test_runs_of_one_replicate_start_alike_whatever_the_weight_decay(reduced):
    one, two = (
        c | {"seed": i, "replicate_seed": 3} for i, c in enumerate(weight_decay.configurations("smoke")[:2])
    )
    a, b = weight_decay.cell(one), weight_decay.cell(two)
    assert a["lc"][0] == b["lc"][0]
    assert a["lc"][-1] != b["lc"][-1]


def test_r_squared_is_that_of_the_regression():
    from scipy.stats import linregress

    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=30), rng.normal(size=30)
    found = weight_decay.r_squared(x, 2 * x + noise)
    assert found.value == pytest.approx(linregress(x, 2 * x + noise).rvalue ** 2)
    assert found.interval[0] < found.value < found.interval[1]
    twice = [np.tile(v, 2) for v in (x, 2 * x + noise, np.arange(30))]  # a copy of each run adds nothing
    assert weight_decay.r_squared(*twice).interval == pytest.approx(found.interval)


def test_the_drop_is_counted_from_the_largest_value():
    assert weight_decay.drop_step([0, 1, 2, 3], [0.1, 1.0, 0.95, 0.8]) == 3
    assert np.isnan(weight_decay.drop_step([0, 1], [1.0, 0.95]))


def test_gaussian_pairs_have_the_cross_covariance_and_unit_variances():
    rng = np.random.default_rng(1)
    cross = gaussian.random_cross(rng)
    assert np.linalg.norm(cross, 2) == pytest.approx(gaussian.STRENGTH)
    x, y = gaussian.gaussian_pair(200_000, cross, rng)
    assert np.abs(y.T @ x / len(x) - cross).max() < 0.012
    assert np.abs(y.T @ y / len(x) - np.eye(2)).max() < 0.012


def test_the_correlation_of_layers_resamples_runs():
    steps = np.linspace(0, 1, 5)
    frame = pd.DataFrame(
        {
            "lc": [(steps + i).tolist() for i in range(6)],
            "lr_1_2": [(2 * steps + 2 * i).tolist() for i in range(6)],
        }
    )
    found = layer_correlation(frame, RankThreshold(1.0), 2)
    assert found.value == pytest.approx(1)
    assert found.n == 30
    assert mean_curve_correlation(frame, RankThreshold(1.0), 2).value == pytest.approx(1)


def test_means_over_runs_correlate_where_runs_are_offset_against_each_other():
    rng = np.random.default_rng(0)
    time = np.linspace(0, 1, 9)
    lc = [time + 5 * rng.normal() for _ in range(6)]
    rank = [time + 5 * rng.normal() for _ in range(6)]
    frame = pd.DataFrame({"lc": [v.tolist() for v in lc], "lr_1_2": [v.tolist() for v in rank]})
    found = mean_curve_correlation(frame, RankThreshold(1.0), 2)
    assert found.value == pytest.approx(np.corrcoef(np.mean(lc, axis=0), np.mean(rank, axis=0))[0, 1])
    assert found.interval == pytest.approx((1, 1))
    assert abs(layer_correlation(frame, RankThreshold(1.0), 2).value) < 0.9
    flat = frame.assign(lr_1_2=[[3.0] * 9] * 6)
    assert np.isnan(mean_curve_correlation(flat, RankThreshold(1.0), 2).value)


def gaussian_runs(n_steps, ends, lc=(40.0, 44.0, 20.0), n=6):
    """Runs of three looks whose ranks start at 90 and end as told, per layer."""
    rows = []
    for i in range(n):
        row = {"replicate": i, "width": 8, "step": [0, n_steps // 10, n_steps], "lc": [v + i for v in lc]}
        for t in gaussian.THRESHOLDS:
            row |= {f"{t.name}_{k}": [90.0 + i, 90.0 + i, end + i] for k, end in enumerate(ends, start=1)}
        rows.append(row)
    return pd.DataFrame(rows)


def gaussian_findings(frame):
    means = {k: mean_curve_correlation(frame, gaussian.AUTHORS_THRESHOLD, k) for k in (2, 3, 4)}
    pooled = {k: layer_correlation(frame, gaussian.AUTHORS_THRESHOLD, k) for k in (2, 3, 4)}
    return gaussian.findings_of(frame, means, pooled)


def test_a_rank_that_hardly_moves_says_nothing_and_short_runs_deny_nothing():
    published = gaussian_findings(gaussian_runs(500_000, (90, 74, 34, 6)))
    assert {k for k, f in published.items() if f.holds} == set(published)
    fall = np.mean([(20 + i) / (44 + i) for i in range(6)]) - 1
    assert published["fall"].value == pytest.approx(100 * fall)
    alone = gaussian_findings(gaussian_runs(500_000, (90, 74, 34, 6), lc=(40.0, 44.0, 34.0), n=1))
    assert alone["fall"].holds is None  # -23 %, one run
    still = gaussian_findings(gaussian_runs(500_000, (90, 89, 88, 87), lc=(40.0, 44.0, 43.0)))
    assert {still[f"layer_{k}"].holds for k in (2, 3, 4)} == {None}
    assert still["layer_2"].verdict == "no variation to test"
    assert still["fall"].holds is False
    short = gaussian_findings(gaussian_runs(12_500, (90, 89, 88, 87)))
    assert short["fall"].holds is None
    assert "our runs before" in short["fall"].evidence


def test_runs_that_disagree_neither_hold_nor_deny():
    """The mean of these falls would be enough; that one run did not fall, and one layer of it, says more."""
    frame = gaussian_runs(500_000, (90, 74, 34, 6))
    frame["lc"] = [[40.0, 44.0, 44.0 * (1 - fall)] for fall in (0.5, 0.5, 0.5, 0.4, 0.4, 0.0)]
    frame["lr_0.01_3"] = [[90.0, 90.0, 34.0]] * 5 + [[90.0, 90.0, 89.0]]
    found = gaussian_findings(frame)
    assert found["fall"].value == pytest.approx(-100 * 2.3 / 6)
    assert (found["fall"].holds, found["depth"].holds) == (None, None)
    reverse = gaussian_findings(gaussian_runs(500_000, (6, 34, 74, 90)))
    assert reverse["depth"].holds is False
    assert gaussian_findings(gaussian_runs(12_500, (6, 34, 74, 90)))["depth"].holds is None


def test_published_verdicts_are_those_of_the_rows_beside_them():
    def rows_of(name):
        lines = (RESULTS / name).read_text().splitlines()[1:]
        return pd.DataFrame([line["configuration"] | line["row"] for line in map(json.loads, lines)])

    grokked = outcome.findings(outcome.prepared(rows_of("grokking-rows.jsonl")))
    found = {outcome.CLAIMS[key]: f for key, f in grokked.items()}
    gauss = gaussian_findings(rows_of("gaussian-rows.jsonl"))
    found |= {gaussian.CLAIMS[key]: f for key, f in gauss.items()}
    table = pd.read_csv(RESULTS / "findings.csv", dtype={"verdict": str})
    table = table[table["study"].isin(["grokking", "local-rank-gaussian"])].set_index("claim")
    assert set(table.index) == set(found)
    for claim, line in table.iterrows():
        assert line["verdict"] == found[claim].verdict
        ours = [line[key] for key in ("ours", "low", "high")]
        value, interval = found[claim].value, found[claim].interval or (None, None)
        expected = [np.nan if v is None else v for v in (value, *interval)]
        assert ours == pytest.approx(expected, abs=2e-3, nan_ok=True)


def test_gaussian_runs_of_several_lengths_are_summarised(tmp_path):
    ends = (90, 74, 34, 6)
    runs = [gaussian_runs(500_000, ends), gaussian_runs(1_000_000, ends, n=2)]
    runs.append(gaussian_runs(500_000, ends).assign(step=[[0, 500_000]] * 6))
    runs[2] = runs[2].map(lambda v: v[-2:] if isinstance(v, list) else v)
    frame = pd.concat(runs, ignore_index=True).assign(batch_size=64, n_points=2, optimiser="adamw")
    frame = frame.assign(learning_rate=1e-4, weight_decay=0.01, decay_biases=False)
    for column in ("tv", "test_mse", *(f"lc_{k}" for k in (1, 2, 3, 4))):
        frame[column] = frame["lc"]
    done = gaussian.summarise(frame, tmp_path)
    assert done.tables["Curves"][["step", "runs"]].to_numpy().tolist() == [
        [0, 2],
        [100_000, 2],
        [1_000_000, 2],
    ]
    assert "(14 runs)" in done.findings["fall"].evidence


def test_decoupled_decay_that_had_no_time_to_act_says_nothing():
    row = {"optimiser": "adamw", "learning_rate": 1e-4, "step": [0, 2500], "drop_step": np.nan}
    rows = [row | {"weight_decay": d, "log_inverse": -np.log(d), "final": 1.0} for d in (0.001, 0.01, 0.1)]
    found = weight_decay.findings_of(pd.DataFrame(rows))
    assert {f.holds for f in found.values()} == {None}
    assert "no time to act" in found["linear"].evidence


def test_an_interval_on_both_sides_of_zero_refutes_nothing():
    rng = np.random.default_rng(0)
    row = {"optimiser": "adam", "learning_rate": 1e-4, "step": [0, 2500]}
    decays = np.repeat([1e-4, 1e-3, 1e-2, 1e-1], 3)
    rows = [
        row | {"weight_decay": d, "log_inverse": -np.log(d), "final": rng.normal(), "drop_step": rng.normal()}
        for d in decays
    ]
    found = weight_decay.findings_of(pd.DataFrame(rows))
    for key in ("grows", "sooner"):
        low, high = found[key].interval
        assert low < 0 < high
        assert found[key].holds is None
    falls = weight_decay.findings_of(pd.DataFrame(rows).assign(final=np.log(decays)))
    assert falls["grows"].holds is False  # all of it is on the other side

    unsure = weight_clusters.findings_of([0.1, 0.2, 0.3], [0.2, 0.1, 0.3], [-0.1, 0.0, 0.1])
    assert (unsure["clusters"].holds, unsure["drop"].holds) == (None, None)
    risen = weight_clusters.findings_of([0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [0.1, 0.11, 0.12])
    assert (risen["clusters"].holds, risen["drop"].holds) == (True, False)
