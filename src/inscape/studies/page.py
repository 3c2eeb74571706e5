"""The summary of a study on one page of Markdown."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from inscape.errors import StudyError
from inscape.studies.study import Study, Summary

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 60
"""Of a table on the page; its CSV file has all."""
WORDS = {True: "held", False: "did not hold", None: "cannot be said"}


def write_page(path: Path, study: Study, summary: Summary, footer: str) -> None:
    """Write the claims and whether they held, notes, tables, figures and limits; and each table as CSV."""
    lines = [f"# {study.title}", ""]
    for key, statement in study.claims.items():
        finding = summary.findings[key]
        lines.append(f"- **{WORDS[finding.holds]}**: {statement} ({finding.evidence})")
    if study.claims:
        lines.append("")
    if summary.notes:
        lines += [summary.notes.strip(), ""]
    for title, table in summary.tables.items():
        lines += [f"## {title}", "", markdown(table.head(MOST_LINES)), ""]
        if len(table) > MOST_LINES:
            lines += [f"{len(table) - MOST_LINES} more lines in `{file_stem(title)}.csv`.", ""]
    for name in summary.figures:
        lines += [f"![{Path(name).stem}]({name})", ""]
        if isinstance(summary.figures, Mapping):
            lines += [summary.figures[name], ""]
    if summary.limits:
        lines += ["## Limits", "", *(f"- {limit}" for limit in summary.limits), ""]
    try:
        for title, table in summary.tables.items():
            table.to_csv(path.parent / f"{file_stem(title)}.csv", index=False)
        path.write_text("\n".join([*lines, footer, ""]), encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot write into {path.parent}: {error.strerror or error}") from error


def file_stem(title: str) -> str:
    """The name of the file of a table.

    >>> file_stem("Correlation per network (Fig. 2)")
    'correlation-per-network-fig-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def markdown(table: "pd.DataFrame") -> str:
    r"""A table as Markdown, numbers to four digits.

    >>> import pandas as pd
    >>> print(markdown(pd.DataFrame({"net": ["a|b", None], "r": [0.98765432, 3.0]})))
    | net | r |
    | --- | ---: |
    | a\|b | 0.9877 |
    |  | 3 |
    """
    numeric = [kind.kind in "iuf" for kind in table.dtypes]
    head = ["| " + " | ".join(map(str, table.columns)) + " |"]
    head.append("| " + " | ".join("---:" if n else "---" for n in numeric) + " |")
    return "\n".join([*head, *("| " + " | ".join(map(_cell, row)) + " |" for row in table.to_numpy(object))])


def _cell(value: object) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")
