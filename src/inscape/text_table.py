"""Tables as plain text that is never cut: columns beyond the width go on below, notes stand underneath."""

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TableRow = dict[str, Any]
"""A line of a table that we make: the values by their columns."""
Columns = Mapping[str, tuple[str, str]]
"""Key of a row -> (heading, format such as ".3f"; "" for text)."""
_BETWEEN = "  "


def text_table(rows: Sequence[Mapping[str, Any]], columns: Columns, *, width: int | None = None) -> str:
    """Chosen columns of plain rows, each as wide as its longest text; "" if there is no row.

    A column in which no row has a value is left out. What is wider than `width` goes on in a second table
    below the first, behind the same first columns, up to the first one of texts.

    >>> columns = {"model": ("model", ""), "regions": ("regions", ".2f"), "gap": ("gap", ".0%")}
    >>> rows = [{"model": "tree", "regions": 4.5, "gap": None}, {"model": "net", "regions": 12, "gap": 0.12}]
    >>> print(text_table(rows, columns))
    model  regions  gap
    -------------------
    tree      4.50    -
    net      12.00  12%
    >>> print(text_table(rows, columns, width=16))
    model  regions
    --------------
    tree      4.50
    net      12.00
    <BLANKLINE>
    model  gap
    ----------
    tree     -
    net    12%
    """
    if not rows:
        return ""
    used = {key: column for key, column in columns.items() if any(_is_there(row[key]) for row in rows)}
    blocks = _blocks(
        [_column(rows, key, *column) for key, column in used.items()], _n_first(used.values()), width
    )
    return "\n\n".join(_lines(block) for block in blocks)


def notes_below(notes: Iterable[tuple[str, str]], *, width: int | None = None) -> str:
    """A paragraph for each note, behind the names that it is about; "" if there is none.

    >>> print(notes_below([("tree", "ties"), ("net", ""), ("forest", "ties"), ("tree", "ties")]))
    tree, forest: ties
    """
    about: dict[str, list[str]] = {}
    for name, note in notes:
        if note:
            names = about.setdefault(note, [])
            names += [name] if name not in names else []
    return "\n".join(paragraph(f"{', '.join(names)}: {note}", width=width) for note, names in about.items())


def paragraph(text: str, *, width: int | None = None) -> str:
    """A paragraph in lines of at most `width`, words longer than that left whole."""
    if width is None:
        return text
    lines = textwrap.wrap(
        text, width, subsequent_indent=_BETWEEN, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def _is_there(value: Any) -> bool:
    return value is not None and value != ""


def _text(value: Any, form: str) -> str:
    if value is None or value != value:
        return "-"
    return format(value, form) if form else " ".join(str(value).split())


def _column(rows: Sequence[Mapping[str, Any]], key: str, heading: str, form: str) -> list[str]:
    """The heading and the texts of a column, all of one length."""
    texts = [heading, *(_text(row[key], form) for row in rows)]
    longest = max(map(_length, texts))
    fills = [" " * (longest - _length(text)) for text in texts]
    return [fill + text if form else text + fill for text, fill in zip(texts, fills, strict=True)]


def _length(text: str) -> int:
    """Places that a text takes on a terminal, where East Asian characters are as wide as two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _n_first(columns: Iterable[tuple[str, str]]) -> int:
    """How many columns stand before all others: those up to the first one of texts."""
    forms = [form for _, form in columns]
    return forms.index("") + 1 if "" in forms else 1


def _blocks(columns: list[list[str]], n_first: int, width: int | None) -> list[list[list[str]]]:
    """The columns of one table after the other, none wider than `width` where that is possible."""
    first, rest = columns[:n_first], columns[n_first:]
    blocks = [list(first)]
    for column in rest:
        row = [c[0] for c in (*blocks[-1], column)]
        if width is not None and len(blocks[-1]) > n_first and _length(_BETWEEN.join(row)) > width:
            blocks.append(list(first))
        blocks[-1].append(column)
    return blocks


def _lines(columns: list[list[str]]) -> str:
    heading, *rows = [_BETWEEN.join(row).rstrip() for row in zip(*columns, strict=True)]
    rule = "-" * max(map(_length, [heading, *rows]))
    return "\n".join([heading, rule, *rows])
