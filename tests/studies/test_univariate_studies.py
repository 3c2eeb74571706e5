"""Studies of univariate nets: what they write, and findings on tables made by hand."""

import html
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import inscape
from inscape.studies.minima_stability.step_sizes import chains
from inscape.sweeps.registry import find

FIGURES = {
    "edge-of-stability": {"edge.png"},
    "effective-regions": {"regions.png"},
    "minima-stability-step": {"step.png"},
    "minima-stability-sweep": {"solutions.png", "sharpness.png"},
    "minima-stability-weight": {"weight.png"},
    "overparameterisation": {"width.png"},
}
MUST_HOLD = {
    "edge-of-stability": {"lemmas", "theorem_6", "edge"},
    "effective-regions": {"bound", "needed", "kkt"},
    "minima-stability-step": {"same", "jump"},
    "minima-stability-sweep": {"chain", "certified", "theorem_2"},
    "minima-stability-weight": {"centre", "ends", "converges"},
    "overparameterisation": {"dead", "stated", "least"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_study_writes_rows_figures_and_a_page(name, tmp_path):
    with ThreadPoolExecutor(1) as executor:
        done = inscape.studies.run(name, scale="smoke", out=tmp_path, executor=executor)
    assert done.failed == {}
    assert len(done.frame) == len(find(name).configurations("smoke"))
    for figure in FIGURES[name]:
        assert (tmp_path / figure).stat().st_size > 10_000
    findings = done.summary.findings
    assert {key for key in MUST_HOLD[name] if findings[key].holds} == MUST_HOLD[name]
    page = (tmp_path / "summary.md").read_text()
    assert all(claim in page for claim in find(name).claims.values())
    report = html.unescape((tmp_path / "report.html").read_text())
    assert all(claim in report for claim in find(name).claims.values())
    assert all(finding.evidence in report for finding in findings.values())
    assert report.count('<img src="data:image/png;base64,') == len(done.summary.figures)
    assert all(caption in report for caption in done.summary.figures.values())
    assert all(chart.caption for chart in done.summary.charts)
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


@pytest.mark.parametrize("name", FIGURES)
def test_every_scale_has_configurations_that_differ(name):
    for scale in ("smoke", "small", "paper"):
        cells = find(name).configurations(scale)
        assert len({tuple(sorted(c.items())) for c in cells}) == len(cells)


def test_the_sweep_has_at_least_twenty_step_sizes():
    cells = find("minima-stability-sweep").configurations("small")
    assert len({c["step_size"] for c in cells}) >= 20


def test_the_bound_is_not_vacuous_at_the_widths_that_are_used():
    for scale in ("smoke", "small", "paper"):
        for c in find("effective-regions").configurations(scale):
            assert c["width"] >= 400
            assert c["width"] + 1 > 32 * c["r"] + 67


def test_wider_is_said_to_be_better_only_where_wide_networks_fit(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        [
            {"alpha": alpha, "r": 8, "max_steps": 9, "width": int(8 * alpha), "n_alive": int(6 * alpha)}
            | {"least_error": 0.0, "least_loss": 0.6, "final_loss": 0.6, "train_error": 0.1, "replicate": i}
            | {"sign_changes": 3, "status": "converged"}
            | {"error": (0.3 if alpha < 2 else 0.1) + 0.01 * rng.normal(), "fits": alpha > 2}
            for alpha in (1.0, 32.0)
            for i in range(8)
        ]
    )
    study = find("overparameterisation")
    assert study.summarise(frame, tmp_path).findings["width"].holds is True
    unfit = study.summarise(frame.assign(fits=False), tmp_path).findings["width"]
    assert (unfit.holds, unfit.verdict) == (None, "too few fit their data")
    worse = frame.assign(error=0.4 - frame["error"])
    assert study.summarise(worse, tmp_path).findings["width"].holds is False


def test_flows_that_did_not_converge_are_counted_in_the_claim(tmp_path):
    row = {"r": 3, "width": 400, "init": "small", "n": 30, "separated": True, "n_flow_steps": 9}
    row |= {"direction_change": 0.1, "clear": True, "regions": 7, "bound": 163, "label_changes": 3}
    row |= {"regions_before": 90, "plateau_regions": 7, "plateau": 0.5, "stationarity": 1e-4, "error": 0.1}
    row |= {"complementarity": 1e-4, "log10_margin": 3.0, "status": "converged", "converged": True}
    row |= {"loss_reached": True}
    rows = [row | {"replicate": i} for i in range(3)]
    rows += [row | {"replicate": 3, "status": "step limit", "converged": False}]
    rows += [row | {"replicate": 4, "status": "stationary", "converged": False, "loss_reached": False}]
    summary = find("effective-regions").summarise(pd.DataFrame(rows), tmp_path)
    assert summary.findings["bound"].holds is True
    told = "without 2 of 5 that did not (1 whose loss never fell below 1/n, 1 step limit)"
    assert told in summary.findings["bound"].evidence
    assert summary.tables["Flows that are left out"]["replicate"].tolist() == [3, 4]


def test_a_chain_fails_only_where_its_modes_are_known():
    run = {"lower_bound": 1.0, "flattest": 2.0, "bracket_high": 3.9, "limit": 4.0, "sharpest_is_exact": True}
    above = run | {"bracket_high": 4.1}
    enclosed = above | {"sharpest_is_exact": False}
    assert chains([run, run], "runs").holds is True
    assert chains([run, above], "runs").holds is False
    undecided = chains([run, enclosed], "runs")
    assert undecided.holds is None
    assert undecided.evidence.startswith("in 1 of 1 runs; the sharpest mode has up to 0.9750 of 2/η; ")
    assert "the modes of 1 more are only enclosed, up to 1.0250 of 2/η" in undecided.evidence
    assert chains([enclosed], "runs").holds is None
    assert chains([], "runs").holds is None
    assert chains([above, enclosed], "runs").holds is False
    assert chains([run | {"flattest": 5.0}], "runs").holds is False


def minimum(**other):
    """A row of the sweep whose sharpest mode is at the edge."""
    own = {"step_size": 0.5, "replicate": 0, "status": "converged", "steps_done": 10, "loss": 0.0}
    chain = {"lower_bound": 1.0, "flattest": 2.0, "bracket_low": 3.9, "bracket_high": 3.95, "limit": 4.0}
    more = {"sharpness": 3.9, "flattest_gap": 0.0, "roughness": 0.5, "theorem_1": True, "theorem_2": True}
    modes = {"sharpest_is_exact": True, "n_knots_on_data": 1, "delta": 1.0, "delta_stated": 1.0}
    line = {"line_x": [-1.8, 1.8], "line_y": [0.0, 0.0], "knots": [0.0], "jumps": [1.0]}
    data = {"n": 12, "width": 200, "sigma_output": 0.5, "warm_up": 1, "n_steps": 10, "interpolates": True}
    return own | chain | more | modes | line | data | other


def test_a_mode_above_the_edge_is_neither_the_headline_nor_against_the_paper(tmp_path):
    study = find("minima-stability-sweep")
    frame = pd.DataFrame([minimum(), minimum(step_size=0.6, bracket_high=4.02)])
    summary = study.summarise(frame, tmp_path)
    assert next(iter(study.claims)) == "edge"
    assert summary.findings["edge"].holds is True
    assert summary.findings["edge"].published == "the lines coincide (Fig. 3c)"
    assert summary.findings["chain"].holds is False
    assert "the last step is ours" in study.claims["chain"]
    assert any("does not contradict the paper" in limit for limit in summary.limits)
