"""The Python in README and docs runs as it stands."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

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
