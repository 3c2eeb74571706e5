"""Imports point one way through the packages, and `import inscape` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from syntax import forget, nodes_of, tree_of

import inscape

ROOT = Path(inscape.__file__).parent
ORDER = [
    {
        "errors",
        "arrays",
        "drawing",
        "stopping",
        "progress",
        "status",
        "text_table",
    },
    {"seeding", "compiled", "arguments", "serialising"},
    {"budget"},
    {"files", "parallel", "pictures"},
    {"models"},
    {"provenance"},
    {"probes"},
    {"partition"},
    {"measures"},
    {"compare"},
    {"univariate"},
    {"training"},
    {"theory"},
    {"reports"},
    {"correlation"},
    {"sweeps"},
    {"studies"},
    {"explorer"},
    {"cli"},
]
RANK = {name: i for i, names in enumerate(ORDER) for name in names}


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    yield
    forget()


def imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_package_has_a_place_in_the_order():
    names = {p.stem if p.suffix else p.name for p in ROOT.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert names - {"__init__", "__main__", "__pycache__"} == set(RANK)


def test_imports_point_one_way():
    backwards = []
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package in ("__init__", "__main__"):
            continue
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] != "inscape" or parts[1] == package or parts[1] == "__version__":
                continue
            if RANK[parts[1]] >= RANK[package]:
                backwards.append(f"{path.relative_to(ROOT)} imports {name}")
    assert backwards == []


def imports_by_name_of(tree):
    """The calls of import_module and __import__, as their first argument says what they load."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__"):
                yield ast.unparse(node.args[0])


def hidden_imports(tree, name="module.py"):
    """Imports of ours by name: a text that begins with inscape, or a variable outside `NAMED_BY_THE_USER`."""
    return [
        argument
        for argument in imports_by_name_of(tree)
        if argument.lstrip("f").strip("\"'").startswith("inscape")
        or (argument.isidentifier() and name not in NAMED_BY_THE_USER)
    ]


NAMED_BY_THE_USER = {"models/loading.py", "sweeps/references.py"}
"""Where the code that is loaded is named in an argument, a file or a store."""
LAZY_ATTRIBUTES = {"__init__.py", "training/__init__.py"}
"""Where `__getattr__` loads what is below, by tables of names: the one exception."""


def test_no_import_of_ours_hides_behind_its_name():
    """An import by name is not seen above, so it could point upwards."""
    found = {}
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if hidden := hidden_imports(tree_of(path), name):
            found[name] = hidden
    assert set(found) == LAZY_ATTRIBUTES


@pytest.mark.parametrize(
    "line",
    [
        "importlib.import_module('inscape.reports').write_report(run)",
        "import_module(f'inscape.{name}')",
        "__import__('inscape.studies')",
        "importlib.import_module(MODULE)",
    ],
)
def test_imports_by_name_are_seen(line):
    assert hidden_imports(ast.parse(line))
    assert not hidden_imports(ast.parse("importlib.import_module('other.offline')"))


def test_drawing_imports_nothing_else_of_ours():
    for path in (ROOT / "drawing").rglob("*.py"):
        ours = [n for n in imports_of(path) if n.startswith("inscape.")]
        assert all(n.startswith("inscape.drawing.") for n in ours), path


def test_importing_inscape_is_light():
    heavy = "matplotlib pandas sklearn onnxruntime torch numba typer rich starlette anywidget"
    code = f"import inscape, sys; print([m for m in '{heavy}'.split() if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_trees_are_fitted_without_torch():
    """Each process of a study of trees would wait for it."""
    code = (
        "import sys; from inscape.training.data.datasets import split_data; "
        "from inscape.training.fitting import fit; "
        "split = split_data('digits', n_train=20, n_test=20); "
        "fit({'model': 'tree', 'max_depth': 2}, split, random_state=0); "
        "print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


@pytest.mark.parametrize("module", [inscape, inscape.studies, inscape.training])
def test_dir_shows_the_public_names_and_no_others(module):
    assert {name for name in dir(module) if not name.startswith("_")} == {
        name for name in module.__all__ if not name.startswith("_")
    }


def test_public_names_exist_and_are_documented():
    for name in inscape.__all__:
        assert getattr(inscape, name).__doc__
