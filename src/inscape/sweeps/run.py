"""Run a study: work on what is missing, summarise the rows, and write the page and the report of them."""

import math
import os
import tempfile
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.arguments import whole_number
from inscape.drawing.axes import apart_from_pyplot
from inscape.errors import InscapeError, StudyError, warn
from inscape.files import replacing
from inscape.progress import Meter, meter
from inscape.reports.findings import Finding, Summary
from inscape.reports.page import write_page
from inscape.reports.report import write_report
from inscape.reports.study_run import StudyRun, last_line
from inscape.seeding import RandomState, as_seed
from inscape.sweeps.references import function_name
from inscape.sweeps.registry import find, is_registered
from inscape.sweeps.saved_summary import SavedSummary, figure_files
from inscape.sweeps.store import Store
from inscape.sweeps.study import Study
from inscape.sweeps.sweep import sweep
from inscape.sweeps.tasks import Key, Task, grid

if TYPE_CHECKING:
    import pandas as pd


def run(
    name: "str | Study",
    *,
    scale: str = "small",
    out: str | Path,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
    executor: Executor | None = None,
    n_workers: int | None = None,
    retry_failed: bool = False,
    work: bool = True,
    progress: bool | Meter | None = None,
) -> StudyRun:
    """Run a study, or what is missing of it, and write its summary, figures and report into `out`.

    The rows are in one SQLite file in `out`, `<name>.sqlite`, each put there when it is finished: a study
    that was stopped, by whatever, continues where it was, and several processes may run the same study in
    the same folder. A row depends on the configuration and on `random_state` alone.

    Args:
        name: a known study (`inscape study list`), a .toml file, package.module:STUDY, or a `Study`.
        scale: "smoke" (seconds), "small" (minutes), "paper" (what was published), or another of the study.
        out: the folder of the store, the figures, summary.md and report.html.
        options: further choices that the study offers (`inscape study show NAME`), by name.
        settings: other values for keys of its configurations, which `inscape study show NAME` lists: key ->
            value, or a list of values to vary.
        random_state: the seed of the study; None draws one, which starts anew.
        executor: where to work; the default is a pool of processes on this machine.
        n_workers: how many processes; the default is one for each processor.
        retry_failed: work again on the configurations that failed in an earlier run.
        work: False to summarise the rows that are there, as of a store that others still fill or that was
            merged from several: of a claim that lacks rows the page says how many, and no verdict.
        progress: None for a bar after two seconds, False for none, or a function of
            (configurations done, configurations in all).

    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> squares = Study(
    ...     name="squares",
    ...     title="Squares",
    ...     configurations=lambda scale: [{"n": n} for n in range(4)],
    ...     cell=lambda configuration: {"square": configuration["n"] ** 2},
    ... )
    >>> with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(1) as executor:
    ...     run(squares, out=out, executor=executor).frame["square"].tolist()
    [0, 1, 4, 9]
    """
    study = name if isinstance(name, Study) else find(name)
    _check(out, executor, n_workers)
    asked: dict[str, Any] = {
        "scale": scale,
        "seed": as_seed(random_state),
        "options": dict(options or {}),
        "settings": dict(settings or {}),
        "reference": _reference(name),
    }
    tasks = grid(study, scale, asked["seed"], options, settings)
    path = Path(out) / f"{study.name}.sqlite"
    if not work and (retry_failed or not path.exists()):
        raise StudyError(
            "retry_failed is work: leave it out, or let the study work"
            if retry_failed
            else f"{path} is not there: nothing to summarise"
        )
    with Store(path, study.name, function_name(study.cell)) as store:
        if work:
            with meter(progress, study.name) as show:
                sweep(
                    study, tasks, store, executor, n_workers=n_workers, retry_failed=retry_failed, show=show
                )
        elif store.finished(math.inf).isdisjoint(task.key for task in tasks):
            raise StudyError(
                f"{store.path} has none of the {len(tasks)} rows of the scale {scale!r} with these options: "
                "nothing to summarise"
            )
        store.remember_run(asked)
        return _finish(study, tasks, store, asked, keep=True)


def _check(out: Any, executor: Any, n_workers: int | None) -> None:
    """Refuse what cannot be, before any work is done."""
    if not isinstance(out, str | os.PathLike):
        raise StudyError(f"out={out!r} is not a folder: give one for the store and the figures")
    if executor is not None and not hasattr(executor, "submit"):
        raise StudyError(f"executor={executor!r} is not a concurrent.futures.Executor")
    if n_workers is not None:
        whole_number(n_workers, "n_workers", 1, StudyError)


def reopen(
    path: str | Path, study: "str | Study | None" = None, *, out: str | Path | None = None
) -> StudyRun:
    """The last finished run in a store: its rows, what was saved of them, and its report written again.

    The summary and the figures are those that the run left in the store: nothing that the store names is
    imported, so that one from anywhere can be opened.

    Args:
        path: the store, or the folder that holds it.
        study: the study, to have the rows summarised again by it.
        out: the folder of figures, summary.md and report.html; the default is the one of the store. In
            another folder a store without a summary gives its rows alone, with a warning.

    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from inscape.studies import Study, run
    >>> study = Study(
    ...     name="squares",
    ...     title="Squares",
    ...     configurations=lambda scale: [{"n": n} for n in range(4)],
    ...     cell=lambda configuration: {"square": configuration["n"] ** 2},
    ... )
    >>> with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(1) as executor:
    ...     _ = run(study, out=out, executor=executor)
    ...     reopen(out, study).frame["square"].tolist()
    [0, 1, 4, 9]
    """
    folder = None if out is None else Path(out)
    with Store(_store_in(Path(path))) as store:
        asked = store.last_run()
        if asked is None:
            raise StudyError(f"no run has finished in {store.path}: run the study {store.study!r} to its end")
        if isinstance(study, str):
            asked["reference"], study = _reference(study), find(study)
            if study.name != store.study:
                raise StudyError(f"{store.path} holds the study {store.study!r}, not {study.name!r}")
        if study is not None:
            return _summarised_again(study, store, asked, folder)
        saved = store.last_summary()
        if saved is not None:
            return _reopened(store, saved, asked, folder)
        if folder is None:  # what was written by the study itself says more
            raise StudyError(
                f"{store.path} has no summary of its rows: its last run was stopped, or was of an earlier "
                "version; say which study it is (--study), or give another file (--out) for a report of the "
                "rows alone"
            )
        warn(f"the report has the rows alone: {store.path} has no summary of them")
        study, tasks = _rows_alone(store)
        return _finish(study, tasks, store, asked, folder)


def _summarised_again(study: Study, store: Store, asked: dict[str, Any], out: Path | None) -> StudyRun:
    try:
        tasks = grid(study, asked["scale"], asked["seed"], asked["options"], asked["settings"])
        return _finish(study, tasks, store, asked, out)
    except InscapeError:
        raise
    except Exception as error:  # the rows may be any
        raise StudyError(
            f"the rows of {store.path} are not what the study {study.name!r} summarises: "
            f"{type(error).__name__}: {error}"
        ) from error


def _rows_alone(store: Store) -> tuple[Study, list[Task]]:
    """A study that claims nothing and has been what the store holds."""
    records = store.records()
    known = Study(
        name=store.study,
        title=store.study,
        configurations=lambda scale: [r["configuration"] for r in records],
        cell=dict,
        summarise=lambda frame, out: Summary(
            notes="These are all rows of the store, at whatever scale. What the study claims of them is not "
            "known here: name it with `--study`."
        ),
    )
    return known, [Task(r["configuration"], r["hash"], r["seed"]) for r in records]


def _reference(name: "str | Study") -> str:
    """How the study can be found again: its name, or where its file is."""
    if isinstance(name, Study):
        return name.name
    return str(Path(name).resolve()) if name.endswith(".toml") else name


def _store_in(path: Path) -> Path:
    if not path.is_dir():
        return path
    stores = sorted(path.glob("*.sqlite"))
    if len(stores) != 1:
        raise StudyError(f"{path} holds {len(stores)} stores (*.sqlite): name one")
    return stores[0]


def _finish(
    study: Study,
    tasks: Sequence[Task],
    store: Store,
    asked: Mapping[str, Any],
    out: Path | None = None,
    *,
    keep: bool = False,
) -> StudyRun:
    """Summarise the rows of these tasks that are in the store; write the page and the report.

    `asked` has the scale, the seed, the options, the settings, and the reference by which the study was asked
    for; `out` is the folder of what is written, by default that of the store. To `keep` the summary in the
    store as well is for the end of a run.
    """
    result = _unsummarised(store, tasks, asked, out, title=study.title, claims=study.claims)
    try:
        try:
            summary = _summarised(study, result.frame, result.out)
        except InscapeError:
            raise
        except Exception as error:
            if not asked["settings"]:
                raise  # the study itself is wrong
            raise StudyError(
                f"{study.name} has no summary of rows with these settings ({type(error).__name__}: {error}); "
                f"they are in {store.path}: see inscape study export"
            ) from error
        result = replace(result, summary=_with_all_rows(study, tasks, store.finished(math.inf), summary))
    except StudyError as error:
        with suppress(StudyError):  # the first problem is the one to tell
            _write(replace(result, summary=_not_summarised(study, error)), tasks, store if keep else None)
        raise
    _write(result, tasks, store if keep else None)
    return result


def _with_all_rows(study: Study, tasks: Sequence[Task], there: Set[Key], summary: Summary) -> Summary:
    """The summary in which nothing is said of a claim that lacks rows it is about."""
    findings = {}
    for claim, finding in summary.findings.items():
        about = [t for t in tasks if study.concerns is None or study.concerns(claim, t.configuration)]
        n_missing = sum(task.key not in there for task in about)
        if n_missing:
            evidence = f"{n_missing} of the {len(about)} rows that this is about are missing"
            finding = replace(finding, holds=None, evidence=f"{evidence}; without them: {finding.evidence}")
        findings[claim] = finding
    return replace(summary, findings=findings)


def _reopened(
    store: Store, saved: SavedSummary, asked: Mapping[str, Any], out: Path | None = None
) -> StudyRun:
    """The run whose summary is kept in the store, its figures, page and report written again."""
    tasks = [Task({}, *key) for key in saved.keys]
    result = _unsummarised(store, tasks, asked, out, title=saved.title, claims=saved.claims)
    result = replace(result, summary=saved.summary)
    try:
        for name, content in saved.figures.items():
            path = result.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as draft:
                draft.write_bytes(content)
    except OSError as error:
        raise StudyError(f"cannot write the figures into {result.out}: {error.strerror or error}") from error
    _write(result, tasks, None)
    return result


def _unsummarised(
    store: Store, tasks: Sequence[Task], asked: Mapping[str, Any], out: Path | None, **known: Any
) -> StudyRun:
    """The rows of these tasks; a warning if some have failed, an error if all have."""
    frame, failed = store.frame(tasks), store.failures(tasks)
    if failed:
        _report_failures(store.study, tasks, failed)
    return StudyRun(
        study=store.study,
        frame=frame,
        failed=failed,
        summary=Summary(),
        out=out or store.path.parent,
        store=store.path,
        provenance=store.provenance(),
        finished=store.last_finished(),
        is_registered=is_registered(asked["reference"] or store.study),
        **known,
        **asked,
    )


def _write(result: StudyRun, tasks: Sequence[Task], store: Store | None) -> None:
    """Write summary.md and report.html, after what they are made of is in the store, if one is given."""
    summary, title, claims = result.summary, result.title, result.claims
    if store is not None:
        figures = figure_files(summary, result.out)
        keys = [task.key for task in tasks]
        store.remember_summary(
            SavedSummary(title=title, claims=claims, summary=summary, keys=keys, figures=figures)
        )
    write_page(result.out / "summary.md", title=title, claims=claims, summary=summary, footer=result.footer())
    write_report(result, result.out / "report.html")


def _not_summarised(study: Study, error: StudyError) -> Summary:
    """What stands on the page of rows that could not be summarised."""
    unknown = Finding(holds=None, evidence="not summarised")
    return Summary(
        findings=dict.fromkeys(study.claims, unknown), notes=f"The rows could not be summarised: {error}"
    )


def _report_failures(study: str, tasks: Sequence[Task], failed: dict[str, str]) -> None:
    first, error = next(iter(failed.items()))
    line = f"{len(failed)} of {len(tasks)} configurations failed, the first ({first}) with {last_line(error)}"
    if len(failed) == len(tasks):
        raise StudyError(f"{study}: {line}; mend that and run with --retry-failed (retry_failed=True)")
    warn(f"{study}: {line}")


def _summarised(study: Study, frame: "pd.DataFrame", out: Path) -> Summary:
    """What the study makes of the rows, checked: a finding for each claim.

    It writes its figures into a folder inside `out`, from which each is moved when all are whole.
    """
    try:
        with tempfile.TemporaryDirectory(dir=out, prefix=".figures-") as folder:
            drafts = Path(folder)
            with apart_from_pyplot():
                summary = study.summarise(frame, drafts)
            for path in sorted(p for p in drafts.rglob("*") if p.is_file()):
                target = out / path.relative_to(drafts)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
    except OSError as error:
        raise StudyError(f"cannot write the figures into {out}: {error.strerror or error}") from error
    if set(summary.findings) != set(study.claims):
        raise StudyError(
            f"{study.name}: findings {sorted(summary.findings)} for the claims {sorted(study.claims)}"
        )
    return summary
