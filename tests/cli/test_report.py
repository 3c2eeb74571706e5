"""`inscape report`, and the report at the end of every study."""

import html
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from inscape.cli import app
from inscape.errors import InscapeWarning, StudyError
from inscape.studies import Store, Study, Summary, reopen, run

TOML = """
name = "depths"
title = "Depths <of> trees"
[grid]
model = "tree"
n_train = 100
n_test = 100
n_probes = 5
max_depth = [2, 4, 6, 8, 10]
"""
ROWS_ALONE = pytest.mark.filterwarnings("default:the report has the rows alone")
POWERS = Study(
    name="powers",
    title="Powers",
    configurations=lambda scale: [{"n": n} for n in range(3)],
    cell=lambda configuration: {"value": configuration["n"] ** 2},
)


@pytest.fixture
def inscape(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return invoke


@pytest.fixture
def powers(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        return run(POWERS, out=tmp_path / "p", executor=executor)


def test_a_study_in_toml_from_run_to_report_and_again(inscape, tmp_path):
    (tmp_path / "depths.toml").write_text(TOML)
    with ThreadPoolExecutor(1) as executor:
        old = run("depths.toml", out="first", random_state=3, executor=executor)
    first = (old.out / "report.html").read_text()
    assert "<h1>Depths &lt;of&gt; trees</h1>" in first
    assert "The larger the region count, the larger the gap." in first
    (old.out / "report.html").unlink()
    assert inscape("report", "first") == "first/report.html\n"
    assert (old.out / "report.html").read_text() == first
    # the command that the report gives leads to the same rows
    command = html.unescape(re.search(r'id="command">(.*?)</code>', first)[1])
    assert command == "inscape study run depths.toml --scale small --seed 3"
    said = inscape(*shlex.split(command)[1:], "--workers", "1")
    assert said.endswith("the report is inscape-studies/depths/report.html\n")
    new = reopen("inscape-studies/depths")
    assert new.frame.drop(columns="seconds").equals(old.frame.drop(columns="seconds"))


@ROWS_ALONE
def test_with_a_file_named_nothing_else_is_written(inscape, powers, tmp_path):
    before = {p: p.stat().st_mtime_ns for p in powers.out.iterdir()}
    with pytest.warns(InscapeWarning, match="the rows alone, since unknown study 'powers'"):
        assert reopen(powers.out, out=tmp_path).frame.equals(powers.frame)
    assert inscape("report", "p/powers.sqlite", "-o", "a.html") == "a.html\n"
    assert "What the study claims of them is not known here" in (tmp_path / "a.html").read_text()
    assert {p: p.stat().st_mtime_ns for p in powers.out.iterdir()} == before


def test_a_study_that_moved_can_be_named(inscape, powers, tmp_path):
    message = inscape("report", "p", code=2)  # and the report that is there stays
    assert message.startswith(
        "inscape: the study of p/powers.sqlite is not found here: unknown study 'powers'"
    )
    assert "(--study)" in message
    (tmp_path / "moved.py").write_text(
        "from inscape.studies import Study\n"
        "STUDY = Study(name='powers', title='Powers that moved', cell=dict,\n"
        "              configurations=lambda scale: [{'n': n} for n in range(3)])\n"
    )
    inscape("report", "p", "--study", "moved:STUDY")
    assert "<h1>Powers that moved</h1>" in (tmp_path / "p" / "report.html").read_text()


@ROWS_ALONE
def test_it_can_be_shown_at_once(inscape, powers, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    inscape("report", "p", "-o", "a.html", "--open")
    assert shown[0].startswith("file:///")
    assert shown[0].endswith("/a.html")


@ROWS_ALONE
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no store nowhere: run the study first"),
        (["."], "holds 0 stores"),
        (["p", "-o", "missing/a.html"], "cannot write the report missing/a.html: No such file or directory"),
        (["p", "--study", "dgits"], "did you mean 'digits'?"),
        (["p", "--study", "digits"], "p/powers.sqlite holds the study 'powers', not 'digits'"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, message, inscape, powers):
    line = inscape("report", *arguments, code=2)
    assert message in line
    assert line.splitlines()[-1].startswith("inscape: ")


def test_a_report_that_cannot_be_written_loses_no_row(tmp_path):
    (tmp_path / "report.html").mkdir()
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(StudyError, match=r"^cannot write the report .*directory"),
    ):
        run(POWERS, out=tmp_path, executor=executor)
    with Store(tmp_path / "powers.sqlite") as store:
        assert len(store.finished()) == 3
    assert (tmp_path / "summary.md").exists()
    (tmp_path / "report.html").rmdir()
    assert len(reopen(tmp_path, POWERS).frame) == 3
    assert (tmp_path / "report.html").exists()


def test_rows_that_cannot_be_summarised_still_have_a_report(tmp_path):
    def summarise(frame, out):
        raise StudyError("no <good> rows")

    study = Study(**vars(POWERS) | {"summarise": summarise, "claims": {"a": "They grow."}})
    with ThreadPoolExecutor(1) as executor, pytest.raises(StudyError, match="no <good> rows"):
        run(study, out=tmp_path, executor=executor)
    report = (tmp_path / "report.html").read_text()
    assert "They grow." in report
    assert "no &lt;good&gt; rows" in report


def test_numbers_that_are_not_finite_are_left_out_of_json(powers):
    from dataclasses import replace

    from inscape.studies import Finding

    finding = Finding(holds=None, evidence="none", value=float("nan"), interval=(float("nan"), 1.0))
    found = replace(powers, summary=Summary(findings={"a": finding})).to_dict()
    assert found["findings"] == {"a": {"holds": None, "evidence": "none"}}
    assert found["report"] == str(powers.out / "report.html")
