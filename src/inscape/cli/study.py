"""`inscape study`: list, run, add to, show, export and merge studies."""

from contextlib import nullcontext
from json import dumps as to_json
from json import loads as read_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inscape.cli import options
from inscape.cli.options import Trust, announce, imports_from
from inscape.cli.output import line_width, print_json, print_table
from inscape.errors import StudyError
from inscape.text_table import paragraph

if TYPE_CHECKING:
    from inscape.reports.study_run import StudyRun

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A known study, a .toml file, or package.module:STUDY.")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder of the study.", show_default="inscape-studies/NAME")
]
Scale = Annotated[
    str,
    typer.Option(
        help="smoke (seconds to minutes), small (minutes to hours), medium (hours, in some studies), paper."
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another value for a setting, or several with commas; repeat it. `study show` lists them.",
    ),
]

MOST_VALUES = 12
"""Of one setting, that are shown."""
_OPTIONS_OF_THE_STUDY = {"allow_extra_args": True, "ignore_unknown_options": True}
study = typer.Typer(no_args_is_help=True, help="Run sweeps over many models, and see what they show.")


@study.command("list")
def list_studies(json: options.Json = False) -> None:
    """List the studies that are known by name."""
    from inscape.sweeps.registry import find, registered
    from inscape.sweeps.study import SCALES

    rows = []
    for name in registered():
        listed = find(name)
        sizes = {scale: len(listed.configurations(scale)) for scale in SCALES}
        rows.append({"name": name, **sizes, "repeats": listed.paper, "title": listed.title})
    if json:
        print_json(rows)
    else:
        columns = {"name": ("study", ""), **{s: (s, "d") for s in SCALES}, "repeats": ("repeats", "")}
        print_table(
            "studies, their number of configurations at each scale, and what they repeat",
            rows,
            columns,
            notes=("name", "title"),
        )


@study.command(context_settings=_OPTIONS_OF_THE_STUDY)
def run(
    context: typer.Context,
    name: Name,
    out: Out = None,
    scale: Scale = "small",
    settings: Settings = None,
    seed: options.Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Continue with what is missing; or refuse to.")
    ] = True,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Work again on the configurations that failed.")
    ] = False,
    work: Annotated[
        bool, typer.Option("--work/--no-work", help="Work on what is missing; or summarise what is there.")
    ] = True,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine.", show_default="one per processor")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Work on the Dask cluster of this scheduler."),
    ] = None,
    trust: Trust = None,
    json: options.Json = False,
) -> None:
    """Run a study, or what is missing of it, and write its summary, figures and report.

    A study may take options of its own, as --data: `inscape study show NAME` names them.
    """
    from inscape.studies import run as run_study
    from inscape.sweeps.executors import dask_executor
    from inscape.sweeps.registry import find

    if scheduler is not None and workers is not None:
        raise StudyError("give --workers for this machine or --scheduler for a cluster, not both")
    with imports_from(trust):
        asked = find(name, announce)
        folder = _folder(asked, out)
        if not resume and (folder / f"{asked.name}.sqlite").exists():
            raise StudyError(
                f"{folder} holds this study already: give another --out, or leave --no-resume out"
            )
        with nullcontext() if scheduler is None else dask_executor(scheduler) as executor:
            result = run_study(
                name,
                scale=scale,
                out=folder,
                options=_options(context),
                settings=_settings(settings),
                random_state=seed,
                executor=executor,
                n_workers=workers,
                retry_failed=retry_failed,
                work=work,
                progress=True,
            )
    if json:
        print_json(result.to_dict())
    else:
        _print_claims(result)


@study.command(context_settings=_OPTIONS_OF_THE_STUDY)
def show(
    context: typer.Context,
    name: Name,
    out: Out = None,
    scale: Scale = "small",
    settings: Settings = None,
    seed: options.Seed = 0,
    trust: Trust = None,
    json: options.Json = False,
) -> None:
    """Show what a study asks, which settings it has, and how far its store is."""
    from inscape.reports.study_run import last_line
    from inscape.sweeps.registry import find
    from inscape.sweeps.store import Store
    from inscape.sweeps.tasks import grid, settings_of

    with imports_from(trust):
        asked = find(name, announce)
        tasks = grid(asked, scale, seed, _options(context), _settings(settings))
    values = settings_of(task.configuration for task in tasks)
    path = _folder(asked, out) / f"{asked.name}.sqlite"
    finished, failed = 0, {}
    if path.exists():
        with Store(path) as store:
            failed = store.failures(tasks)
            keys = store.finished()
            finished = sum(t.key in keys for t in tasks) - len(failed)
    state = {"cells": len(tasks), "finished": finished, "failed": len(failed)}
    state["missing"] = len(tasks) - finished - len(failed)
    if json:
        what = {"study": asked.name, "title": asked.title, "repeats": asked.paper}
        said = {"claims": dict(asked.claims), "options": dict(asked.options), "settings": values}
        print_json({**what, "scale": scale, "seed": seed, **said, **state, "errors": failed})
        return
    typer.echo(f"{asked.name}: {asked.title}")
    if asked.paper:
        typer.echo(f"repeats {asked.paper}")
    for key, statement in asked.claims.items():
        typer.echo(f"  {key}: {statement}")
    for option, help_text in asked.options.items():
        typer.echo(f"  --{option.replace('_', '-')}: {help_text}")
    typer.echo(f"settings at the scale {scale}, each to change with --set NAME=VALUE or VALUE,VALUE,...:")
    for key, known in values.items():
        typer.echo(paragraph(f"  {key}: {_listed(known)}", width=line_width()))
    counts = (
        f"{len(tasks)} configurations, {finished} finished, {len(failed)} failed, {state['missing']} missing"
    )
    typer.echo(f"scale {scale}, seed {seed}: {counts}  ({path})")
    for configuration, error in failed.items():
        typer.echo(f"  failed {configuration}: {last_line(error)}")


@study.command("add")
def add_models(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Models of yours, and models.csv with a line for each.")
    ],
    out: Out = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine.", show_default="one per processor")
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure models of your own, and put them into the tables of the study region-counts.

    DIR/models.csv has the columns file, model (the family), data, and one for each hyper-parameter. The
    rows of the last run in the study's folder stay; without one, yours are all there are.
    """
    from inscape.studies import run as run_study
    from inscape.sweeps.registry import find
    from inscape.sweeps.store import Store

    published = find("region-counts")
    home = _folder(published, out)
    path = home / f"{published.name}.sqlite"
    last: dict[str, Any] | None = None
    if path.exists():
        with Store(path) as store:
            last = store.last_run()
    last = last or {"scale": "small", "seed": 0, "options": {"nets": "none"}, "settings": {}}
    result = run_study(
        published.name,
        scale=last["scale"],
        out=home,
        options=last["options"] | {"own": str(folder)},
        settings=last["settings"],
        random_state=last["seed"],
        n_workers=workers,
        progress=True,
    )
    if json:
        print_json(result.to_dict())
    else:
        _print_claims(result)


@study.command("export")
def export_rows(
    name: Name,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="Table (.csv, .parquet), or rows to merge (.jsonl).")
    ],
    out: Out = None,
    trust: Trust = None,
) -> None:
    """Write all rows of a study's store into a table, or into text that `study merge` reads."""
    from inscape.sweeps.registry import find
    from inscape.sweeps.row_files import export
    from inscape.sweeps.store import Store

    with imports_from(trust):
        asked = find(name, announce)
    with Store(_folder(asked, out) / f"{asked.name}.sqlite") as store:
        n_rows = export(store, to)
    typer.echo(f"{n_rows} rows in {to}")


@study.command("merge")
def merge_rows(
    name: Name,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="FROM...", help="Stores, their folders, or files of `study export --to .jsonl`."
        ),
    ],
    out: Out = None,
    trust: Trust = None,
) -> None:
    """Put the rows of other stores of a study into this one; `study run` then works on what is missing.

    So two machines share a study, and rows that were committed as text are taken up again.
    """
    from inscape.sweeps.references import function_name
    from inscape.sweeps.registry import find
    from inscape.sweeps.row_files import merge
    from inscape.sweeps.store import Store

    with imports_from(trust):
        study = find(name, announce)
    path = _folder(study, out) / f"{study.name}.sqlite"
    with Store(path, study.name, function_name(study.cell)) as store:
        for source in sources:
            typer.echo(f"{source}: {merge(store, source)}")


def _print_claims(result: "StudyRun") -> None:
    """What became of the claims, and where all else is; the tables are on the page and in the report."""
    width = line_width()
    typer.echo(result.title)
    for key, statement in result.claims.items():
        finding = result.summary.findings[key]
        typer.echo(paragraph(f"- {finding.verdict}: {statement} ({finding.evidence})", width=width))
    if notes := result.summary.notes.strip():
        typer.echo(notes if "|" in notes else paragraph(notes, width=width))
    tables = ", ".join(f"{title} ({len(table)} lines)" for title, table in result.summary.tables.items())
    if tables:
        typer.echo(paragraph(f"Tables: {tables}", width=width))
    typer.echo(paragraph(result.footer(), width=width))
    typer.echo(
        f"Written into {result.out}: the page is {result.out / 'summary.md'}, the report "
        f"{result.out / 'report.html'}"
    )


def _folder(study: Any, out: Path | None) -> Path:
    return Path("inscape-studies") / study.name if out is None else out


def _listed(values: list[Any]) -> str:
    """Values as the command line takes them, the first of many."""
    shown = ", ".join(v if isinstance(v, str) else to_json(v) for v in values[:MOST_VALUES])
    return shown if len(values) <= MOST_VALUES else f"{shown}, ... ({len(values)} values)"


def _settings(given: list[str] | None) -> dict[str, list[Any]]:
    """Name -> values of the settings that --set gives."""
    settings: dict[str, list[Any]] = {}
    for word in given or []:
        name, equals, text = word.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise StudyError(f"cannot read --set {word!r}: write NAME=VALUE, or NAME=VALUE,VALUE,...")
        if name.strip() in settings:
            raise StudyError(
                f"--set {name.strip()} is given twice: write all its values with commas between them"
            )
        settings[name.strip()] = setting_values(text)
    return settings


def setting_values(text: str) -> list[Any]:
    """The values of a text with commas between them: numbers, true, false, none, lists, tables or words.

    >>> [setting_values(text) for text in ("0.1,0.2", "[64, 64],[32]", "adam,sgd", "none")]
    [[0.1, 0.2], [[64, 64], [32]], ['adam', 'sgd'], [None]]
    """
    try:
        return list(read_json(f"[{text}]"))
    except ValueError:
        return [_value(word.strip()) for word in text.split(",")]


def _value(word: str) -> Any:
    if word.lower() in ("none", "null"):
        return None
    try:
        return read_json(word.lower() if word.lower() in ("true", "false") else word)
    except ValueError:
        return word


def _options(context: typer.Context) -> dict[str, str]:
    """The options of the study itself: what is left on the command line, as --name VALUE or --name=VALUE."""
    options, rest = {}, list(context.args)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--") or not (equals or rest):
            raise StudyError(f"cannot read {word!r}: options of a study are --name VALUE")
        options[name[2:].replace("-", "_")] = value if equals else rest.pop(0)
    return options
