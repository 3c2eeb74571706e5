"""Options of studies, and stores that are opened again."""

import html
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import inscape
from inscape.errors import StudyError
from inscape.studies import Finding, Store, Study, Summary, reopen, run

POWERS = Study(
    name="powers",
    title="Powers of small numbers",
    configurations=lambda scale, power="2": [{"n": n, "power": int(power)} for n in range(3)],
    cell=lambda configuration: {"value": configuration["n"] ** configuration["power"]},
    summarise=lambda frame, out: Summary(tables={"Powers, all": frame[["n", "value"]]}),
    options={"power": "what the number is raised to"},
)


def test_options_reach_the_grid_and_a_store_can_be_opened_again(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        first = run(POWERS, out=tmp_path, options={"power": "3"}, random_state=5, executor=executor)
    again = reopen(tmp_path, POWERS)
    assert first.frame["value"].tolist() == again.frame["value"].tolist() == [0, 1, 8]
    assert (again.scale, again.seed, again.options) == ("small", 5, {"power": "3"})
    assert again.provenance["inscape"] == inscape.__version__
    assert pd.read_csv(tmp_path / "powers-all.csv")["value"].tolist() == [0, 1, 8]
    assert "| 2 | 8 |" in (tmp_path / "summary.md").read_text()


def test_an_option_that_the_study_does_not_have(tmp_path):
    with pytest.raises(StudyError, match=r"'pwer'.*did you mean 'power'"):
        run(POWERS, out=tmp_path, options={"pwer": "3"})
    assert list(tmp_path.iterdir()) == []


def test_only_a_finished_run_can_be_opened_again(tmp_path):
    with pytest.raises(StudyError, match="0 stores"):
        reopen(tmp_path)
    Store(tmp_path / "a.sqlite", "a").close()
    with pytest.raises(StudyError, match="no run has finished"):
        reopen(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"out": None}, "not a folder"),
        ({"executor": 3}, "Executor"),
        ({"n_workers": 0}, "n_workers=0 is too small"),
        ({"name": 3}, "the name of one, got 3"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(wrong, words, tmp_path):
    arguments = {"name": POWERS, "out": tmp_path} | wrong
    with pytest.raises(StudyError, match=words):
        run(arguments.pop("name"), **arguments)
    assert list(tmp_path.iterdir()) == []


LADDER = Study(
    name="ladder",
    title="Sums",
    paper="Nobody 2020, Fig. 1",
    claims={"large": "Sums are large.", "known": "All is known."},
    configurations=lambda scale: (
        [{"n": n, "kind": k} for n in (1, 2, 3) for k in ("odd", "even")] + [{"n": 9}]
    ),
    cell=lambda c: {"twice": 2 * c["n"], "broken": 1 / (c["n"] - 2)},
    summarise=lambda frame, out: Summary(
        findings={key: Finding(holds=True, evidence=f"{len(frame)} rows") for key in ("large", "known")}
    ),
    concerns=lambda claim, c: claim == "known" or c["n"] > 2,
)


def climbed(tmp_path, **more):
    with ThreadPoolExecutor(1) as executor:
        return run(LADDER, out=tmp_path, executor=executor, **more)


def test_any_setting_can_have_other_values(tmp_path):
    result = climbed(tmp_path, settings={"n": [5, 7], "kind": "odd"})
    assert sorted(zip(result.frame["n"], result.frame["kind"].fillna("-"), strict=True)) == [
        (5, "-"),
        (5, "odd"),
        (7, "-"),
        (7, "odd"),
    ]
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "settings={'n': [5, 7], 'kind': 'odd'}" in html.unescape(report)
    again = reopen(tmp_path, LADDER)
    assert again.settings == result.settings == {"n": [5, 7], "kind": "odd"}
    assert again.frame["twice"].tolist() == result.frame["twice"].tolist()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"m": 3}, "unknown setting 'm': expected one of 'n', 'kind'"),
        ({"n": "three"}, "n='three' is a text: expected a number, such as 1"),
        ({"kind": [3]}, "kind=3 is a number: expected a text"),
        ({"n": []}, "has no value"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_any_work(settings, words, tmp_path):
    with pytest.raises(StudyError, match=words):
        climbed(tmp_path, settings=settings)
    assert list(tmp_path.iterdir()) == []


def test_a_verdict_needs_all_the_rows_it_is_about(tmp_path):
    with pytest.warns(inscape.InscapeWarning, match="2 of 7 configurations failed"):
        result = climbed(tmp_path)
    found = result.summary.findings
    assert (found["large"].holds, found["large"].evidence) == (True, "5 rows")
    assert found["known"].holds is None
    assert found["known"].evidence == ("2 of the 7 rows that this is about are missing; without them: 5 rows")
    assert "**cannot be said**: All is known." in (tmp_path / "summary.md").read_text()


def test_rows_that_are_there_are_summarised_without_work(tmp_path):
    with pytest.raises(StudyError, match=r"ladder\.sqlite is not there: nothing to summarise"):
        climbed(tmp_path, work=False)
    assert list(tmp_path.iterdir()) == []
    climbed(tmp_path, settings={"n": 1})
    with pytest.raises(StudyError, match="retry_failed is work"):
        climbed(tmp_path, work=False, retry_failed=True)
    partial = climbed(tmp_path, work=False)
    assert len(partial.frame) == 2
    assert partial.summary.findings["known"].holds is None
    assert "5 of the 7 rows that this is about are missing" in partial.summary.findings["known"].evidence
    with pytest.raises(StudyError, match="has none of the 3 rows of the scale 'small' with these options"):
        climbed(tmp_path, work=False, settings={"n": 99})
