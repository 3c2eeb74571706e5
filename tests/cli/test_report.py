"""`inscape report`, and the report at the end of every study."""

import html
import re
import shlex
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from inscape.cli import app
from inscape.errors import InscapeWarning, StudyError
from inscape.studies import Chart, Finding, Store, Study, Summary, reopen, run

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


@pytest.mark.slow
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
    assert said.endswith(", the report inscape-studies/depths/report.html\n")
    new = reopen("inscape-studies/depths")
    assert new.frame.drop(columns="seconds").equals(old.frame.drop(columns="seconds"))


def test_with_a_file_named_nothing_else_is_written(inscape, powers, tmp_path):
    before = {p: p.stat().st_mtime_ns for p in powers.out.iterdir()}
    assert reopen(powers.out, out=tmp_path).frame.equals(powers.frame)
    assert inscape("report", "p/powers.sqlite", "-o", "a.html") == "a.html\n"
    assert (tmp_path / "a.html").read_text() == (powers.out / "report.html").read_text()
    assert {p: p.stat().st_mtime_ns for p in powers.out.iterdir()} == before


def edit(store, *statements):
    """Change a store behind our back."""
    db = sqlite3.connect(store)
    with db:
        for statement, *values in statements:
            db.execute(statement, values)
    db.close()


def draw(frame, out):
    (out / "more").mkdir()
    (out / "more" / "cubes.png").write_bytes(PNG)
    return Summary(
        findings={"grow": Finding(holds=True, evidence="in <all>", value=0.5, interval=(0.25, float("nan")))},
        figures={"more/cubes.png": "Cubes, by n"},
        notes="A *note*.",
        charts=[Chart(title="Cubes", data=frame, x="n", y="value", hover=["n"], log_y=True)],
        tables={
            "All of them": frame[["n", "value"]].assign(half=lambda t: t["n"] / 2, name=["a", None, "=1"])
        },
        limits=["Nothing is said of 4."],
    )


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8ffff3f"
    "0005fe02fea735818e0000000049454e44ae426082"
)
CUBES = Study(**vars(POWERS) | {"name": "cubes", "claims": {"grow": "They grow."}, "summarise": draw})


@pytest.fixture
def received(tmp_path):
    """The store of a study that is not known here, which names code that lies beside it."""
    with ThreadPoolExecutor(1) as executor:
        made = run(CUBES, out=tmp_path / "theirs", executor=executor)
    path = tmp_path / "received.sqlite"
    made.store.rename(path)
    asked = '{"scale":"small","seed":0,"options":{},"reference":"beside_the_store:STUDY"}'
    edit(path, ("UPDATE run SET asked = ?", asked))
    (tmp_path / "beside_the_store.py").write_text("open('it-ran', 'w').close()")
    return made


@pytest.mark.parametrize("arguments", [[], ["-o", "a.html"]])
def test_a_report_runs_nothing_that_the_store_names(arguments, inscape, received, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    written = tmp_path / inscape("report", "received.sqlite", *arguments).strip()
    assert not (tmp_path / "it-ran").exists()
    first = (received.out / "report.html").read_text()
    for part in ("They grow.", "in &lt;all&gt;", "Cubes, by n", "data:image/png;base64", "of 4.", "<em>note"):
        assert part in first
    assert above_origin(written.read_text()) == above_origin(first)
    if not arguments:
        assert (tmp_path / "more" / "cubes.png").read_bytes() == PNG
        assert (tmp_path / "all-of-them.csv").read_text() == (received.out / "all-of-them.csv").read_text()


def above_origin(page):
    """A report up to where its rows are from, which names the store and the study as they are called now."""
    return page[: page.index('id="origin"')]


def test_the_figures_in_a_store_stay_in_the_folder_and_are_pictures(inscape, received, tmp_path):
    names = [
        "../out.png",
        str(tmp_path / "root.png"),
        "received.sqlite",
        "x.html",
        "C:\\x.png",
        ".png/../../b.png",
    ]
    edit(tmp_path / "received.sqlite", *[("INSERT INTO figures VALUES (?, ?)", n, b"evil") for n in names])
    (tmp_path / "inner").mkdir()
    (tmp_path / "received.sqlite").rename(tmp_path / "inner" / "received.sqlite")
    inscape("report", "inner")
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    theirs = {name for name in written if name.startswith("theirs")}
    assert written - theirs == {"beside_the_store.py", "inner/received.sqlite", "inner/report.html"} | {
        "inner/summary.md", "inner/all-of-them.csv", "inner/more/cubes.png"
    }  # fmt: skip


@ROWS_ALONE
def test_a_store_of_an_earlier_version_still_opens(inscape, powers, tmp_path):
    edit(powers.store, ("DROP TABLE summary",), ("DROP TABLE figures",))
    message = inscape("report", "p", code=2)  # and the report that is there stays
    assert "p/powers.sqlite has no summary of its rows" in message
    assert "(--study)" in message
    assert inscape("report", "p", "-o", "a.html") == "a.html\n"
    assert "What the study claims of them is not known here" in (tmp_path / "a.html").read_text()
    with pytest.warns(InscapeWarning, match="the rows alone"):
        assert reopen(powers.out, out=tmp_path).frame.equals(powers.frame)
    assert reopen(powers.out, POWERS).title == "Powers"
    with ThreadPoolExecutor(1) as executor:
        run(POWERS, out=powers.out, executor=executor)
    assert reopen(powers.out).title == "Powers"


def test_another_study_can_summarise_the_rows_again(inscape, powers, tmp_path):
    (tmp_path / "moved.py").write_text(
        "from inscape.studies import Study\n"
        "STUDY = Study(name='powers', title='Powers that moved', cell=dict,\n"
        "              configurations=lambda scale: [{'n': n} for n in range(3)])\n"
    )
    assert "--trust" in inscape("report", "p", "--study", "moved:STUDY", code=2)
    inscape("report", "p", "--study", "moved:STUDY", "--trust", ".")
    assert "<h1>Powers that moved</h1>" in (tmp_path / "p" / "report.html").read_text()


def test_it_can_be_shown_at_once(inscape, powers, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    inscape("report", "p", "-o", "a.html", "--open")
    assert shown[0].startswith("file:///")
    assert shown[0].endswith("/a.html")


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
