"""Tables as CSV files that a spreadsheet opens without running anything in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.files import replacing

if TYPE_CHECKING:
    import pandas as pd

FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""With these a spreadsheet takes a text for a formula, or looks behind them for one."""


def write_csv(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table whole or not at all; texts that look like formulas get an apostrophe before them.

    Only texts and the names of columns do: numbers stay numbers, negative ones too.
    """
    texts = frame.apply(lambda column: column if column.dtype.kind in "biuf" else column.map(as_text))
    texts.columns = [as_text(name) for name in frame.columns]
    with replacing(path) as draft:
        texts.to_csv(draft, index=False, errors="backslashreplace")


def as_text(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula, its lines ended by a newline; other values as they are.

    A lone carriage return would end the line of the table, and what follows it would be a cell of its own.

    >>> as_text("=1+1"), as_text("@SUM(A1)"), as_text("a=b"), as_text(-1.5)
    ("'=1+1", "'@SUM(A1)", 'a=b', -1.5)
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(FORMULA) else text
