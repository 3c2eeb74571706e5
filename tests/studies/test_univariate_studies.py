import html
from concurrent.futures import ThreadPoolExecutor

import pytest

import inscape
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
