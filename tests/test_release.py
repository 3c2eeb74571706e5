"""What is released: one version, a source distribution, and a wheel that works away from the repository."""

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import inscape

ROOT = Path(__file__).parents[1]
GENERATED = ("auto_gallery", "auto_tutorials", "pages", "examples", "__pycache__", "*.egg-info")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def run(*command, cwd, **environment):
    """What a command says, run without the modules that PYTHONPATH would put before the installed ones."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=plain | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_version_stands_in_one_place_and_is_cited():
    """Code asks the installed package; the citation file cannot, so it is compared."""
    assert inscape.__version__ == VERSION
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(VERSION)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    written = [p for p in (ROOT / "src").rglob("*.py") if f'"{VERSION}"' in p.read_text()]
    assert written == []


def test_the_package_index_links_to_what_is_public():
    """The paper of the citation; an address of the repository comes with the steps of a release."""
    addresses = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    cited = re.search(r"arXiv:(\S+?)\"", (ROOT / "CITATION.cff").read_text())[1]
    assert addresses["Paper"] == f"https://arxiv.org/abs/{cited}"
    steps = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Release\n")[1].split("\n## ")[0]
    assert all(f"`{name}`" in steps for name in ("[project.urls]", "Repository", "docs/package-index.md"))


def test_the_workflow_runs_what_ci_runs():
    text = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    assert "run: .ci/run\n" in text
    for classifier in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]:
        if found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier):
            assert f'"{found[1]}"' in text


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel, built from the source distribution as `python -m build` does it."""
    folder = tmp_path_factory.mktemp("source")
    for name in (
        "pyproject.toml",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CITATION.cff",
        "constraints.txt",
    ):
        shutil.copy(ROOT / name, folder)
    for name in ("src", "docs", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*GENERATED))
    run(sys.executable, "-m", "build", "--no-isolation", cwd=folder)
    (source,), (built,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert any(name.endswith("docs/conf.py") for name in names)
    for file in ("CITATION.cff", "constraints.txt", "tests/oracles/bisection.py", "benchmarks/__main__.py"):
        assert any(name.endswith(file) for name in names), file
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A fresh environment outside of the repository that has the wheel, and sees the packages it needs."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=folder,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    seen = [path for path in sys.path if path.endswith("site-packages")] or site.getsitepackages()
    (packages / "dependencies.pth").write_text("\n".join(seen))
    share_compiled_loops(ROOT / "src" / "inscape", packages / "inscape")
    return folder


def share_compiled_loops(source, target):
    """Loops that are compiled already are not compiled again: numba asks for the time of the file alone."""
    for path in source.rglob("*.py"):
        times = path.stat()
        os.utime(target / path.relative_to(source), ns=(times.st_atime_ns, times.st_mtime_ns))
    for path in source.rglob("__pycache__/*.nb[ci]"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("inscape/")}
    source = ROOT / "src"
    there = {p.relative_to(source).as_posix() for p in (source / "inscape").rglob("*") if p.is_file()}
    assert {name for name in there if "__pycache__" not in name} == packed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_works_away_from_the_repository(environment, tmp_path):
    inscape_command = environment / "bin" / "inscape"
    where = run(environment / "bin" / "python", "-c", "import inscape; print(inscape.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    assert run(inscape_command, "--version", cwd=tmp_path).strip() == f"inscape {VERSION}"
    told = json.loads(run(inscape_command, "demo", "--quick", "--json", cwd=tmp_path))
    assert len(told["models"]) == 15
    assert all(Path(tmp_path / name).stat().st_size for name in told["pictures"] + told["files"])
    run(
        inscape_command,
        "study",
        "run",
        "digits",
        "--scale",
        "smoke",
        "--out",
        "digits",
        "--workers",
        "1",
        cwd=tmp_path,
    )
    run(inscape_command, "report", "digits", "--out", "report.html", cwd=tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<html" in page
    assert "Region counts and generalisation gaps of networks, trees and forests on the digits" in page
