"""What commands give: tables for people and JSON for machines, both on stdout, and pictures in files."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from inscape.errors import InscapeError
from inscape.files import replacing
from inscape.text_table import Columns, notes_below, paragraph, text_table

_SPACES = 2


def print_json(value: Any) -> None:
    """Print plain JSON; anything that is not (NaN, arrays) is a bug of ours and raises."""
    typer.echo(as_json(value))


def as_json(value: Any, indent: int = 0) -> str:
    """Plain JSON in lines, but a list of numbers or texts on one line.

    >>> print(as_json({"counts": [1, 2, 3], "of": [{"n": 1}]}))
    {
      "counts": [1, 2, 3],
      "of": [
        {
          "n": 1
        }
      ]
    }
    """
    inner, outer = " " * (indent + _SPACES), " " * indent
    if isinstance(value, Mapping) and value:
        pairs = [f"{json.dumps(str(k))}: {as_json(v, indent + _SPACES)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + pair for pair in pairs) + f"\n{outer}}}"
    if isinstance(value, list | tuple) and any(isinstance(v, Mapping | list | tuple) for v in value):
        return "[\n" + ",\n".join(inner + as_json(v, indent + _SPACES) for v in value) + f"\n{outer}]"
    return json.dumps(value, allow_nan=False)


def print_table(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Columns, *, notes: tuple[str, str] | None = None
) -> None:
    """Print chosen columns of plain rows, and below them the notes on each.

    Args:
        title: the line above the table.
        rows: the rows.
        columns: key of a row -> (heading, format such as ".3f"; "" for text).
        notes: the keys of a row's name and of its note, if there are notes.
    """
    width = line_width()
    print_lines(title, text_table(rows, columns, width=width))
    if notes is not None:
        print_lines("", notes_below([(row[notes[0]], row[notes[1]]) for row in rows], width=width))


def print_lines(title: str, text: str) -> None:
    """Print text below a title, if there is one, and nothing if there is no text."""
    if text:
        typer.echo(f"{paragraph(title, width=line_width())}\n{text}\n" if title else f"{text}\n")


def line_width() -> int | None:
    """The width of the terminal; None if there is none, since a pipe has no width to fold for."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def check_picture(path: Path) -> None:
    """Raise an error for a file that no picture can be drawn into."""
    from inscape.partition.region_files import PICTURES

    if path.suffix.lower() not in PICTURES:
        raise InscapeError(f"cannot draw into {path}: the file must end in {', '.join(PICTURES)}")
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise an error for a file in a folder that does not exist, before anything is worked out for it."""
    if not path.parent.is_dir():
        raise InscapeError(f"cannot write {path}: there is no folder {path.parent}")


def save_picture(ax: Any, path: Path) -> None:
    """Write the figure of Axes into a file, whole or not at all."""
    try:
        with replacing(path) as draft:
            ax.figure.savefig(draft, dpi=150)
    except OSError as error:
        raise InscapeError(f"cannot write {path}: {error.strerror or error}") from error
