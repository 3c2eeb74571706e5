"""What a report says, and that no text of a study can do anything in it."""

import html
import json
import re
import shlex
import tomllib
from dataclasses import replace
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from finished_study import EVIL, evil, finished, rows
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import inscape
from inscape.errors import StudyError
from inscape.reports import build_report, write_report
from inscape.reports.findings import MOST_POINTS, explorer, spec
from inscape.reports.report import command, data_in_script, pictures, whisker
from inscape.reports.report import html as prose
from inscape.reports.tables import MOST_ROWS, as_table, plain, rows_table, shown
from inscape.studies import Chart, Finding, Summary

ROOT = Path(inscape.__file__).parent
LOADING = {"src", "href", "srcset", "action", "formaction", "poster", "data", "background", "xlink:href"}


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open = tag

    def handle_data(self, data):
        if self.open in ("script", "style"):
            self.texts.append((self.open, self.elements[-1][1], data))

    def handle_endtag(self, tag):
        self.open = None

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    Figure(figsize=(2, 1)).savefig(folder / "best.png")
    run = finished(folder)
    return replace(run, summary=replace(run.summary, figures={"best.png": "The best network's plane."}))


@pytest.fixture(scope="module")
def text(example):
    return build_report(example)


def test_a_figure_of_many_panels_has_the_whole_width(tmp_path):
    for name, inches in (("one.png", 6), ("many.png", 11)):
        Figure(figsize=(inches, 4)).savefig(tmp_path / name, dpi=100)
    shown = pictures({"one.png": "", "many.png": "", "none.png": ""}, tmp_path)
    assert [p.is_wide for p in shown] == [False, True, False]


def charts_of(page):
    return {a["data-chart"]: json.loads(t) for _, a, t in page.texts if "data-chart" in a}


def test_it_says_everything(example, text):
    words = [
        *example.claims.values(),
        *(f.evidence for f in example.summary.findings.values()),
        "did not hold", "cannot be said", "0.931", "interval 0.862 to 0.968", "0.98 (CIFAR-10, six networks)",
        "The best network's plane.", "Means by learning rate (Table 2)", *example.summary.limits,
        "<strong>100 %</strong>", "StudyError: the loss is <NaN>", "81 finished, 1 failed",
        "region-counts.sqlite", "Linux x86_64", "numpy 2.0", "2023-11-14 22:13 UTC",
        "inscape study run digits --scale smoke --seed 7 --data digits",
    ]  # fmt: skip
    plain_text = html.unescape(text)
    assert [w for w in words if w not in plain_text] == []
    assert text.index("The claim</p>") < text.index("0.931") < text.index("Further claims")
    assert [a["alt"] for a in Page(text).all("img")] == ["The best network's plane."]
    assert build_report(example) == text  # nothing depends on the time or the place


def test_no_place_of_this_machine_is_in_it(example, text):
    assert "secret-host" not in text
    assert str(example.out) not in text
    assert "Traceback" not in text


def test_it_needs_nothing_from_elsewhere(text):
    page = Page(text)
    assert text.count("const drawChart = ") == 1
    assert len(text) < 1_000_000
    for tag, attributes in page.elements:
        for name in LOADING & set(attributes):
            assert attributes[name].startswith(("data:", "#")), (tag, name)
    assert page.all("link") == page.all("iframe") == []
    for tag, _, content in page.texts:
        assert tag == "script" or not re.search(r"url\(|@import", content)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-inline'" not in policy.split("style-src")[0]


def test_no_text_of_a_study_becomes_an_element(tmp_path):
    page = Page(build_report(evil(tmp_path)))
    assert len(page.all("script")) == 2 + 1 + len(charts_of(page))  # ours, the palette, the charts
    assert page.all("img") == []
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert not [a for a in page.all("a") if a["href"].startswith("javascript")]
    assert charts_of(page)["chart-1"]["columns"]["name"] == [EVIL, "b"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_data_in_a_script_is_the_same_json_and_cannot_end_it(value):
    text = str(data_in_script(value))
    assert json.loads(text) == value
    assert not set("<>&") & set(text)


def test_notes_are_markdown_below_our_headings():
    text = str(prose("# Top\n\n```\na <b>\n```\n\n| a | b |\n|---|---:|\n| x | 1 |"))
    assert "<h3>Top</h3>" in text
    assert "a &lt;b&gt;" in text
    assert '<th scope="col" class="number" aria-sort="none"><button type="button">b</button></th>' in text
    assert '<td class="number">1</td>' in text


def test_every_column_of_every_table_can_be_sorted(text):
    page = Page(text)
    heads = page.all("th")
    assert len(heads) > 10
    assert {(a["scope"], a["aria-sort"]) for a in heads} == {("col", "none")}
    following = [b for (a, _), b in zip(page.elements, page.elements[1:], strict=False) if a == "th"]
    assert {(tag, a["type"]) for tag, a in following} == {("button", "button")}


def test_cells_are_short_and_sort_by_all_digits():
    table = as_table(pd.DataFrame({"a": [1 / 3, np.nan, np.inf], "b": ["x", None, [0.1] * 99]}))
    assert table.columns == [("a", True), ("b", False)]
    a, b = zip(*table.rows, strict=True)
    assert [c.text for c in a] == ["0.3333", "", "∞"]
    assert [c.number for c in a] == [1 / 3, None, np.finfo(float).max]
    assert [c.text[:4] for c in b] == ["x", "", "[0.1"]
    assert max(len(c.text) for c in b) == 60


def test_long_tables_end_with_a_word_on_the_rest(tmp_path):
    frame = pd.DataFrame({"i": range(MOST_ROWS + 5), "k": 1})
    table = rows_table(frame)
    assert (len(table.rows), table.n_rows, table.same) == (MOST_ROWS, MOST_ROWS + 5, {"k": "1"})
    text = build_report(finished(tmp_path, frame=frame, summary=Summary(), claims={}))
    assert f"The first {MOST_ROWS} of {MOST_ROWS + 5} rows" in text


def test_rows_come_without_what_is_the_same_in_all():
    table = rows_table(rows())
    assert table.same == {"model": "mlp", "data": "digits", "train accuracy": "1"}
    assert [name for name, _ in table.columns][-2:] == ["seed", "seconds"]


def test_charts_hold_what_is_drawn_and_shown(example, text):
    first, second, third = charts_of(Page(text)).values()
    frame = example.frame
    assert first["columns"]["region_count"] == pytest.approx(frame["region_count"], rel=1e-5)
    assert first["columns"]["gap"][-1] is None
    assert first["hover"] == ["model", "learning_rate", "batch_size", "train_accuracy", "test_accuracy"]
    assert (first["xlabel"], second["xlabel"], second["log_x"]) == (
        "regions on a segment",
        "learning rate",
        True,
    )
    assert (second["low"], second["high"], second["kind"]) == ("low", "high", "lines")
    assert (third["x"], third["y"], third["colour"]) == ("region_count", "gap", "learning_rate")
    assert {"learning_rate", "batch_size", "test_accuracy", "gap"} <= set(third["hover"])


def test_a_chart_of_a_column_that_is_not_there():
    chart = Chart(title="T", data=rows(), x="region_cout", y="gap")
    with pytest.raises(StudyError, match=r"the chart 'T': unknown column 'region_cout'.*'region_count'"):
        spec(chart)


def test_too_many_points_are_thinned():
    frame = pd.DataFrame({"i": range(2 * MOST_POINTS + 1)})
    found = spec(Chart(title="", data=frame, x="i", y="i"))
    assert found["columns"]["i"] == list(range(0, 2 * MOST_POINTS + 1, 3))
    assert (found["n"], found["drawn"]) == (2 * MOST_POINTS + 1, len(found["columns"]["i"]))


def test_the_explorer_begins_with_what_was_varied_and_what_came_out():
    frame = pd.DataFrame(
        {
            "init": ["a", "b", "b"],
            "r": [1, 2, 3],
            "configuration": list("xyz"),
            "seed": [4, 5, 6],
            "out": [7, 8, 8],
        }
    )
    found = explorer(frame)
    assert (found["x"], found["y"], found["colour"]) == ("r", "out", "init")
    assert explorer(frame.drop(columns="r"))["x"] == "init"
    assert explorer(frame.iloc[:1]) is None
    assert explorer(pd.DataFrame()) is None


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(), pd.DataFrame({"a": [1]}), pd.DataFrame({"a": ["x", None]})]
)
def test_little_to_show(frame, tmp_path):
    text = build_report(
        finished(tmp_path, frame=frame, summary=Summary(), claims={}, failed={}, provenance={}, options={})
    )
    assert "This study states none" in text
    assert "const drawChart = " not in text  # nothing is drawn


def test_figures_that_cannot_be_shown(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    run = finished(tmp_path)
    summary = replace(run.summary, figures=("missing.png", "print.pdf", "broken.png"))
    text = build_report(replace(run, summary=summary))
    assert "missing.png cannot be shown here" in text
    assert "print.pdf cannot be shown here" in text
    assert 'alt="Figure: broken"' in text


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("digits", "inscape study run digits --scale smoke --seed 7 --n-nets 'a b' --data x,y"),
        ("/home/u/my rates.toml", "inscape study run 'my rates.toml' --scale smoke --seed 7"),
        ("pkg.mod:STUDY", "inscape study run pkg.mod:STUDY --scale smoke --seed 7"),
        (
            "my-own",
            "inscape.studies.run(my_own, scale='smoke', options={'n': 3}, random_state=7, out='my-own')",
        ),
    ],
)
def test_the_command_to_repeat(reference, expected, tmp_path):
    options = {"digits": {"n_nets": "a b", "data": ["x", "y"]}, "my-own": {"n": 3}}.get(reference, {})
    found = command(
        finished(
            tmp_path,
            reference=reference,
            is_registered=reference == "digits",
            study="my-own",
            options=options,
        )
    )
    assert found == expected
    if found.startswith("inscape study"):
        assert shlex.split(found)[:3] == ["inscape", "study", "run"]


finite = st.floats(-1e6, 1e6)


@given(st.tuples(finite, finite, finite).map(sorted), finite)
def test_the_little_picture_of_an_interval_keeps_the_order(numbers, published):
    low, value, high = numbers
    places = whisker(
        Finding(holds=True, evidence="", value=value, interval=(low, high), published_value=published)
    )
    assert places["low"] <= places["value"] <= places["high"]
    assert all(0 <= place <= 100 for place in places.values())
    assert (places["published"] <= places["value"]) == (published <= value) or places["published"] == places[
        "value"
    ]


def test_numbers_in_the_words_of_a_publication_are_no_mark():
    finding = Finding(
        holds=True, evidence="", value=0.5, interval=(0.25, 0.75), published="networks of Fig. 3"
    )
    assert set(whisker(finding)) == {"low", "high", "value", "zero"}


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.floats()))
def test_every_value_can_be_shown(value):
    json.dumps(plain(value), allow_nan=False)
    assert isinstance(shown(value), str)


def test_what_is_read_has_contrast():
    """Text of at least 4.5 to 1 on each of its grounds, light and dark (WCAG 2 AA)."""
    css = (ROOT / "reports" / "report.css").read_text()
    pairs = {n: v for n, *v in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)}
    grounds = {"page", "card"}
    for ink, more in {
        "ink": {"held-back", "refuted-back", "open-back"},
        "soft": {"held-back", "refuted-back", "open-back"},
        "accent": set(),
        "held": {"on-mark"},
        "refuted": {"on-mark"},
        "open": {"on-mark"},
    }.items():
        for ground in grounds | more:
            for i in (0, 1):
                assert contrast(pairs[ink][i], pairs[ground][i]) >= 4.5, (ink, ground, i)


def contrast(a, b):
    bright, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_the_files_of_the_page_are_in_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["inscape"]
    others = [
        p.relative_to(ROOT).as_posix()
        for p in ROOT.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    ]
    missing = [p for p in others if not p.endswith(".py") and not any(fnmatch(p, q) for q in patterns)]
    assert missing == []


def test_a_report_that_cannot_be_written(example, tmp_path):
    with pytest.raises(StudyError, match=r"^cannot write the report .*: Is a directory$"):
        write_report(example, tmp_path)


def test_the_command_is_a_call_whatever_the_study_is_named(tmp_path):
    assert command(finished(tmp_path, reference="my-study", is_registered=False)).startswith(
        "inscape.studies.run(my_study, "
    )
    assert command(finished(tmp_path, reference="evil()", is_registered=False)).startswith(
        "inscape.studies.run(study, "
    )


def test_a_report_is_of_a_finished_study(tmp_path):
    with pytest.raises(StudyError, match=r"takes the finished study .*reopen\(path\) gives it"):
        write_report(str(tmp_path), tmp_path / "report.html")


def test_a_notebook_shows_the_claims_of_a_run(tmp_path):
    run = finished(tmp_path)
    shown = run._repr_html_()
    restored = type(run).from_dict(run.to_dict())._repr_html_()
    for key, finding in run.summary.findings.items():
        assert html.escape(run.claims[key], quote=False) in shown
        assert finding.verdict in shown
        assert key in restored
