"""The Python in README and docs runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
        exec(compile(snippet, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_ci_runs_the_test_command_of_the_readme():
    command = re.search(r"^(python3 -m venv .*pytest.*)$", (ROOT / "README.md").read_text(), re.M)
    assert command is not None
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
