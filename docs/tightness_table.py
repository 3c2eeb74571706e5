"""The table of theory.md from tightness.csv: `python docs/tightness_table.py` writes it again."""

import csv
import math
import re
from pathlib import Path

CSV = Path(__file__).parent / "tightness.csv"
PAGE = Path(__file__).parent / "theory.md"
HEAD = (
    "| statement | n | median ratio | violated | vacuous | corrected: median ratio | violated | vacuous "
    "| does not apply |"
)
RULE = "|" + "---|" * 9
TABLE = re.compile(re.escape(f"{HEAD}\n{RULE}\n") + r"(\|.*\n)+")


def rows() -> str:
    """The table in Markdown."""
    with CSV.open(newline="") as file:
        lines = [_line(row) for row in csv.DictReader(file)]
    return "\n".join([HEAD, RULE, *lines]) + "\n"


def write() -> None:
    """Put the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: rows(), page), encoding="utf-8")


def _line(row: dict[str, str]) -> str:
    name, *which = row["statement"].split(", ")
    cells = [", ".join([f"`{name}`", *which]), row["stated n"]]
    for form in ("stated", "corrected"):
        cells.append(_number(row[f"{form} median ratio"]))
        cells += [_share(row[f"{form} {key}"]) for key in ("violated", "vacuous")]
    unfit = row["does not apply"]
    return f"| {' | '.join(cells)} | {'' if unfit == '0' else unfit} |"


def _number(text: str) -> str:
    """Two digits, or all before the point, in groups of three."""
    if text == "":
        return "-"
    value = float(text)
    return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 10 else f"{value:.2g}"


def _share(text: str) -> str:
    return f"{float(text):.0%}".replace("%", " %") if text else "-"


if __name__ == "__main__":
    write()
