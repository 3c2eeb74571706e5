"""`inscape report`: the report of a study that was run, as one HTML file."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from inscape.cli.options import Trust, announce, imports_from


def report(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="The .sqlite file of a study, or its folder.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The report.", show_default="report.html beside the store"
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Have the rows summarised again by this study: a known one, a .toml file, or "
            "package.module:STUDY.",
            show_default="the summary in the store",
        ),
    ] = None,
    trust: Trust = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write the report of the last run in a store: one file that opens offline.

    Without --out its summary and figures are written again as well; with it, nothing but that file. No code
    runs but inscape's, and that of --study.
    """
    from inscape.reports import write_report
    from inscape.studies import reopen
    from inscape.sweeps.registry import find

    with imports_from(trust):
        if study is not None:
            find(study, announce)
        if out is None:
            path = reopen(store, study).out / "report.html"
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = write_report(reopen(store, study, out=folder), out)
    typer.echo(str(path))
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
