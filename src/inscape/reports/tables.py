"""Tables that a reader can sort, values as people read them, and CSV files that no spreadsheet runs."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.files import replacing

if TYPE_CHECKING:
    import pandas as pd


SORTED_AS_INFINITE = float(np.finfo(float).max)
"""By which what is infinite, or a whole number beyond all floats, is sorted."""
MOST_ROWS = 500
"""Of one table in the page; the store has all."""


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number by which the column is sorted, if it is one."""

    text: str
    number: float | None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns as (label, whether they hold numbers), and rows of cells; `n_rows` were there to show."""

    columns: list[tuple[str, bool]]
    rows: list[list[Cell]]
    n_rows: int
    same: dict[str, str]


def as_table(frame: "pd.DataFrame", same: dict[str, str] | None = None) -> Table:
    """The first rows of a frame."""
    numeric = [is_numeric(frame.iloc[:, i]) for i in range(frame.shape[1])]
    forms = column_forms(frame)
    return Table(
        columns=[(label(name), n) for name, n in zip(frame.columns, numeric, strict=True)],
        rows=[
            [_cell(value, form) for value, form in zip(row, forms, strict=True)]
            for row in frame.head(MOST_ROWS).to_numpy(object)
        ],
        n_rows=len(frame),
        same=same or {},
    )


def rows_table(frame: "pd.DataFrame") -> Table:
    """The rows of a study: what differs between them in columns, what is the same in all said once."""
    texts = {name: {str(plain(v)) for v in frame[name]} for name in frame}
    alike = [name for name in frame if len(texts[name]) == 1 and len(frame) > 1]
    last = [name for name in ("seed", "seconds") if name in frame and name not in alike]
    first = [name for name in frame if name not in (*alike, *last, "configuration")]
    same = {
        label(name): shown(frame[name].iloc[0])
        for name in alike
        if name != "configuration" and not isinstance(frame[name].iloc[0], list | dict)
    }
    return as_table(frame[[*first, *last]], {name: text for name, text in same.items() if text})


def is_numeric(values: "pd.Series[Any]") -> bool:
    """Whether a column holds numbers, some of them perhaps missing."""
    known = [v for v in map(plain, values) if v is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)


def label(name: object) -> str:
    """A column's name as words."""
    return str(name).replace("_", " ")


def column_forms(frame: "pd.DataFrame") -> list[Callable[[float], str]]:
    """How the numbers of each column are written."""
    columns = [[plain(v) for v in frame.iloc[:, i]] for i in range(frame.shape[1])]
    return [numbers_alike([v for v in column if isinstance(v, float)]) for column in columns]


def _cell(value: Any, form: Callable[[float], str]) -> Cell:
    known = value if isinstance(value, float) and np.isinf(value) else plain(value)
    if not isinstance(known, int | float):
        return Cell(shown(value), None)
    text = form(known) if isinstance(known, float) and math.isfinite(known) else shown(value)
    return Cell(text, float(max(-SORTED_AS_INFINITE, min(known, SORTED_AS_INFINITE))))


def columns_of(frame: "pd.DataFrame", names: Sequence[str]) -> dict[str, list[Any]]:
    """Columns as plain JSON, floats to six digits: more cannot be seen in a chart."""
    return {name: [_rounded(plain(with_few_digits(v))) for v in frame[name]] for name in names}


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


MOST_CHARACTERS = 60
"""Characters of a list or a dict in a cell of a table."""


def plain(value: Any) -> Any:
    """A value that JSON knows: scalars of numpy as Python's, None for what is missing or not finite.

    >>> plain(float("nan")), plain(float("inf")), plain(True), plain((1, 2))
    (None, None, True, '[1, 2]')
    """
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, default=str)
    return None if value != value else str(value)


def with_few_digits(value: Any) -> Any:
    """A value with the numbers inside lists and dictionaries as people read them; others as they are.

    >>> with_few_digits([2.0617283, -5.98e-17]), with_few_digits(2.0617283)
    ([2.062, 0.0], 2.0617283)
    """
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, dict):
        return {key: with_few_digits(v) for key, v in value.items()}
    if not isinstance(value, list | tuple):
        return value
    sizes = [abs(v) for v in value if isinstance(v, float) and math.isfinite(v)]
    least = 1e-12 * max(sizes, default=0.0)  # below it is rounding, beside the others
    return [
        (float(f"{v:.4g}") if abs(v) > least else 0.0)
        if isinstance(v, float) and math.isfinite(v)
        else with_few_digits(v)
        for v in value
    ]


def shown(value: Any) -> str:
    """A value in a few characters: of a float the digits that matter, a long list cut off.

    >>> [shown(v) for v in (0.98765432, 123456.7, 1e-7, 3.0, 1200, True, None, float("inf"), "a")]
    ['0.9877', '123457', '1e-07', '3', '1200', 'yes', '', '∞', 'a']
    """
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "-∞"
    value = plain(with_few_digits(value))
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    text = str(value)
    return (
        text
        if len(text) <= MOST_CHARACTERS or not text.startswith(("[", "{"))
        else text[: MOST_CHARACTERS - 1] + "…"
    )


def number(value: float) -> str:
    """A number with at most four decimals where it is not tiny: four digits of it, fewer of a small one.

    >>> [number(v) for v in (0.98765, 12.3456, 0.0312345, -0.005497, 0.00010001, 1.026e-14, 2e12)]
    ['0.9877', '12.35', '0.0312', '-0.0055', '0.0001', '1e-14', '2e+12']
    """
    size = abs(value)
    if 1e4 <= size < 1e9:
        return f"{value:.0f}"
    digits = 4 if size >= 0.1 or size == 0 else 3 if size >= 0.01 else 2 if size >= 1e-6 else 1
    return f"{value:.{digits}g}"


def numbers_alike(values: Sequence[float]) -> Callable[[float], str]:
    """How the numbers of a column are written: with equal decimals, four digits of the largest.

    But each as it is where they are short already, as settings are, and each by itself where they span more
    than three powers of ten.

    >>> [numbers_alike(v)(v[0]) for v in ([0.005497, 0.12345], [0.1, 0.03], [1.026e-14, 0.5], [3.25, 18.611])]
    ['0.0055', '0.1', '1e-14', '3.25']
    """
    sizes = [abs(v) for v in values if v and math.isfinite(v)]
    is_short = all(float(f"{v:.3g}") == v for v in sizes)
    if not sizes or is_short or max(sizes) / min(sizes) > 1e3 or not 1e-3 <= max(sizes) < 1e9:
        return number
    decimals = max(0, 3 - math.floor(math.log10(max(sizes))))
    return lambda value: f"{value:.{decimals}f}" if math.isfinite(value) else shown(value)


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A number and the ends of its interval, to two digits of half its width.

    >>> with_interval(0.823456, 0.2312, 0.99871), with_interval(-0.005497, -0.0071, -0.0039)
    (('0.82', '0.23', '1.00'), ('-0.0055', '-0.0071', '-0.0039'))
    """
    half = (high - low) / 2
    if not (math.isfinite(half) and half > 0 and math.isfinite(value)):
        return shown(value), shown(low), shown(high)
    decimals = min(max(0, 1 - math.floor(math.log10(half))), 12)
    small, middle, large = (f"{v + 0.0:.{decimals}f}" for v in (low, value, high))
    return middle, small, large


def duration(seconds: float) -> str:
    """A time in at most two units.

    >>> [duration(s) for s in (0.04, 7.23, 200, 7500, 200000)]
    ['0.04 s', '7.2 s', '3 min 20 s', '2 h 5 min', '2 d 7 h']
    """
    if seconds < 60:
        return f"{seconds:.2g} s"
    for size, unit, small, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            return f"{whole} {unit} {rest // small} {small_unit}" if rest // small else f"{whole} {unit}"
    raise AssertionError("unreachable")


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
