"""Which folders the code of a study may come from."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from inscape.errors import StudyError

Trust = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        metavar="FOLDER",
        help="Let the study's code come from this folder, not only from what is installed.",
    ),
]


@contextmanager
def imports_from(trusted: Sequence[Path] | None) -> Iterator[None]:
    """Import code from what is installed and from trusted folders; from the working folder only if it is one.

    The processes of a pool that starts in the block look in the same places.
    """
    folders = [folder.resolve() for folder in trusted or ()]
    for folder in folders:
        if not folder.is_dir():
            raise StudyError(f"--trust {folder} is no folder: give the one that holds the module")
    before = sys.path[:]
    sys.path[:] = [*_without_working_folder(before), *map(str, folders)]
    try:
        yield
    finally:
        sys.path[:] = before


def _without_working_folder(path: list[str]) -> list[str]:
    """The path without what Python puts first by itself: the working folder, for `-m` and `-c`."""
    kept = [place for place in path if place]
    here = os.getcwd()
    if getattr(sys.modules["__main__"], "__spec__", None) is not None and here in kept:
        kept.remove(here)
    return kept


def announce(line: str) -> None:
    """Say on stderr what is about to run."""
    typer.echo(f"inscape: {line}", err=True)
