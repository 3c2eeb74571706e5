"""What commands print: tables for people and JSON for machines, both on stdout."""

import json
from collections.abc import Sequence
from typing import Any

import typer


def print_json(value: Any) -> None:
    """Print plain JSON; anything that is not (NaN, arrays) is a bug of ours and raises."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, rows: Sequence[dict[str, Any]], columns: dict[str, tuple[str, str]]) -> None:
    """Print chosen columns of plain rows.

    Args:
        title: the line above the table.
        rows: the rows.
        columns: key of a row -> (heading, format such as ".3f"; "" for text).
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading, form in columns.values():
        table.add_column(heading, justify="right" if form else "left")
    for row in rows:
        table.add_row(*[_cell(row[key], form) for key, (_, form) in columns.items()])
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 120)  # a pipe has no width; do not fold for it
    console.print(table)


def _cell(value: Any, form: str) -> str:
    return "-" if value is None or value != value else format(value, form) if form else str(value)
