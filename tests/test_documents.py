"""The Python in README and docs runs as it stands."""

import re
import shlex
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

from inscape.cli import app
from inscape.sweeps.registry import find

ROOT = Path(__file__).parents[1]
NEEDED = {"jax-and-keras.md": ("jax", "flax", "equinox", "jax2onnx", "keras")}
"""Packages that are no dependencies: the page that needs them runs where they are installed."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    missing = [package for package in NEEDED.get(page.name, ()) if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    if page.name in NEEDED:
        warnings.simplefilter("default")  # these packages warn of each other
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
        exec(compile(snippet, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_and_their_options_are_known(page):
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S):
        for line in re.split(r"\n|&&", block.replace("\\\n", " ")):
            words = shlex.split(line, comments=True)
            if words and words[0].endswith("inscape"):
                check_command(words[1:])


def check_command(words):
    command = get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    known = {option for given in command.params for option in (*given.opts, *given.secondary_opts)}
    if command.name in ("run", "show"):  # a study has options of its own
        study = None if words[0].endswith(".toml") else find(words[0])
        known |= {f"--{name.replace('_', '-')}" for name in (study.options if study else ())}
    assert {word for word in words if re.match("--?[a-z]", word)} <= known


def test_the_page_of_the_command_line_has_every_command():
    text = (ROOT / "docs" / "command-line.md").read_text()
    for name in get_command(app).commands:
        assert f"| `inscape {name}" in text


def test_ci_runs_the_test_command_of_the_readme():
    command = re.search(r"^(python3 -m venv .*pytest.*)$", (ROOT / "README.md").read_text(), re.M)
    assert command is not None
    assert "README.md" in (ROOT / ".ci" / "run").read_text()


def test_the_page_of_the_package_index_needs_no_other_file():
    """Pictures and links beside it are not there; its example is README's, which `test_snippets_run` runs."""
    page = (ROOT / "docs" / "package-index.md").read_text()
    assert "](" not in page
    example = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    assert f"```py\n{example}```" in page
    assert 'readme = "docs/package-index.md"' in (ROOT / "pyproject.toml").read_text()


def test_ci_builds_the_site_by_the_command_of_the_contributing_page():
    command = re.search(r"^(python -m sphinx .*?)  #", (ROOT / "CONTRIBUTING.md").read_text(), re.M)[1]
    assert command == "python -m sphinx -q -W --keep-going docs site"
    assert "grep -m 1 -E '^python -m sphinx ' CONTRIBUTING.md" in (ROOT / ".ci" / "run").read_text()


def test_the_glossary_of_the_site_is_the_one_of_the_contributing_page():
    page = (ROOT / "docs" / "glossary.md").read_text()
    start, end = re.findall(r'^:(?:start-after|end-before): "(.*?)(?:\\n)?"$', page, re.M)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert "| decision region, activation region, linear region |" in text.split(start)[1].split(end)[0]
    assert page.count("|") == 0  # no words of its own


def test_the_gallery_has_twelve_pages_and_the_tutorials_five():
    for folder, least in (("gallery", 12), ("tutorials", 5)):
        scripts = sorted((ROOT / "docs" / folder).glob("plot_*.py"))
        assert len(scripts) >= least
        for script in scripts:
            assert re.match(r'r?"""\n\S.*\n=+\n\n\S', script.read_text()), script.name
            assert "plt.show()" in script.read_text() or "animate(" in script.read_text(), script.name


RESULTS = sorted(p for p in (ROOT / "docs" / "results").glob("*.md") if p.name != "index.md")


@pytest.mark.parametrize("page", RESULTS, ids=lambda p: p.name)
def test_a_page_of_results_begins_with_the_verdicts(page):
    """A short paragraph at most, then the table: claim, published, ours, verdict."""
    head, table = page.read_text().split("\n|", 1)
    header = [word.strip() for word in table.split("\n")[0].strip("|").split("|")]
    assert [word for word in header if word in ("claim", "published", "ours", "verdict")] == [
        "claim",
        "published",
        "ours",
        "verdict",
    ]
    assert len(head) < 900, "fine print before the table"
    assert "![" not in head


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_underscores_of_formulas_are_no_emphasis(page):
    """In |A|_p, ..., sum_{j} all between the underscores would be set in italics; ours has asterisks."""
    blocks = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    emphasised = [t for block in blocks for t in block.children or () if t.type in ("em_open", "strong_open")]
    assert {t.markup for t in emphasised} <= {"*", "**"}
