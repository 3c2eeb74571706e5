"""What is exact, of every model of the tests: `python docs/exactness_table.py` writes the table of models.md.

Whether it is true is what the tests check: each model that it calls exact is compared with its own
predictions on both sides of every boundary.
"""

import importlib
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
HEAD = "| model | segments | planes |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(\|.*\n)+")
KINDS = {
    "modules": "torch",
    "estimators": "scikit-learn",
    "tree_ensembles": "trees",
    "boosted": "boosting",
    "onnx_estimators": "onnx",
    "tree_numbers": "numbers of trees",
}
"""File of the zoo -> how the table calls what is in it."""
LIBRARIES = ("torch", "scikit-learn", "xgboost-cpu", "lightgbm", "catboost", "skl2onnx", "onnxmltools")


def rows() -> list[tuple[str, str, str]]:
    """Model, segments, planes: "exact", "adaptive" or "refused"."""
    folder = str(ROOT / "tests" / "fixtures")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    lines = []
    for file, kind in KINDS.items():
        cases: dict[str, Any] = importlib.import_module(file).CASES
        lines += [(f"{kind}: {name}", case.segments, case.planes) for name, case in cases.items()]
    return lines


def text(lines: list[tuple[str, str, str]]) -> str:
    """The table in Markdown."""
    return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write() -> None:
    """Put the table and the versions of the libraries into the page."""
    page = TABLE.sub(lambda _: text(rows()), PAGE.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    page = re.sub(r"\(Made with .*\)", f"(Made with {versions}.)", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
