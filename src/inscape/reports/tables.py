"""Tables that a reader can sort."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.reports.numbers import plain, shown

if TYPE_CHECKING:
    import pandas as pd

LARGEST = float(np.finfo(float).max)
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
    return Table(
        columns=[(label(name), n) for name, n in zip(frame.columns, numeric, strict=True)],
        rows=[[_cell(value) for value in row] for row in frame.head(MOST_ROWS).to_numpy(object)],
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


def _cell(value: Any) -> Cell:
    number = value if isinstance(value, float) and np.isinf(value) else plain(value)
    if not isinstance(number, int | float):
        return Cell(shown(value), None)
    return Cell(shown(value), float(max(-LARGEST, min(number, LARGEST))))


def columns_of(frame: "pd.DataFrame", names: Sequence[str]) -> dict[str, list[Any]]:
    """Columns as plain JSON, floats to six digits: more cannot be seen in a chart."""
    return {name: [_rounded(plain(v)) for v in frame[name]] for name in names}


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
