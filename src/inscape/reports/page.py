"""The summary of a study on one page of Markdown."""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from inscape.errors import StudyError
from inscape.files import replacing
from inscape.reports.findings import Summary
from inscape.reports.tables import column_forms, number, shown, write_csv

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 60
"""Of a table on the page; its CSV file has all."""
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|`|(?<!\s)\*|\*(?!\s)|(?<!\w)_|_(?!\w)"  # escapes, code, emphasis
    r"|<(?=[A-Za-z/!?])|\](?=[(\[:])|&(?=#?\w+;)|~(?=~)"  # elements, links and pictures, entities, strokes
)


def write_page(path: Path, *, title: str, claims: Mapping[str, str], summary: Summary, footer: str) -> None:
    """Write the claims and whether they held, notes, tables, figures and limits; and each table as CSV.

    The notes are Markdown; every other text is shown as it is, whatever it looks like.
    """
    lines = [f"# {literal(title)}", ""]
    for key, statement in claims.items():
        finding = summary.findings[key]
        lines.append(f"- **{finding.verdict}**: {literal(statement)} ({literal(finding.evidence)})")
    if claims:
        lines.append("")
    if summary.notes:
        lines += [summary.notes.strip(), ""]
    for heading, table in summary.tables.items():
        lines += [f"## {literal(heading)}", "", markdown(table.head(MOST_LINES)), ""]
        if len(table) > MOST_LINES:
            lines += [f"{len(table) - MOST_LINES} more lines in `{file_stem(heading)}.csv`.", ""]
    for name in summary.figures:
        lines += [f"![{literal(Path(name).stem)}]({_address(name)})", ""]
        if isinstance(summary.figures, Mapping):
            lines += [literal(summary.figures[name]), ""]
    if summary.limits:
        lines += ["## Limits", "", *(f"- {literal(limit)}" for limit in summary.limits), ""]
    try:
        for heading, table in summary.tables.items():
            write_csv(table, path.parent / f"{file_stem(heading)}.csv")
        with replacing(path) as draft:
            text = "\n".join([*lines, footer, ""])
            draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise StudyError(f"cannot write into {path.parent}: {error.strerror or error}") from error


def literal(text: object) -> str:
    r"""A text in one line of Markdown that shows it as it is: no element, link, picture or emphasis.

    Only what would be markup is escaped, so that the source reads well too.

    >>> print(literal("n_train <= 3 * |a|, r = 0.9 [0.8, 1]"))
    n_train <= 3 * |a|, r = 0.9 [0.8, 1]
    >>> print(literal("<b> ![x](y) *bold* `code`"))
    \<b> ![x\](y) \*bold\* \`code\`
    """
    return _MARKUP.sub(r"\\\g<0>", " ".join(str(text).split()))


def _address(name: str) -> str:
    """The name of a file as the address of a picture."""
    from urllib.parse import quote

    return quote(name)


def file_stem(title: str) -> str:
    """The name of the file of a table.

    >>> file_stem("Correlation per network (Fig. 2)")
    'correlation-per-network-fig-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def markdown(table: "pd.DataFrame") -> str:
    r"""A table as Markdown, numbers with the digits that matter.

    >>> import pandas as pd
    >>> print(markdown(pd.DataFrame({"net": ["a|b", None], "r": [0.98765432, 3.0]})))
    | net | r |
    | --- | ---: |
    | a\|b | 0.988 |
    |  | 3.000 |
    """
    numeric = [kind.kind in "iuf" for kind in table.dtypes]
    header = ["| " + " | ".join(map(_cell, map(str, table.columns))) + " |"]
    header.append("| " + " | ".join("---:" if n else "---" for n in numeric) + " |")
    forms = column_forms(table)
    rows = [map(_cell, row, forms) for row in table.to_numpy(object)]
    return "\n".join([*header, *("| " + " | ".join(row) + " |" for row in rows)])


def _cell(value: object, form: Callable[[float], str] = number) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return form(value) if math.isfinite(value) else shown(value)
    return literal(value).replace("|", "\\|")
