"""A finished study: its rows, what they say, and the page and the report that are written of them."""

import importlib
import math
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.errors import InscapeWarning, StudyError
from inscape.files import replacing
from inscape.studies.cells import Cell
from inscape.studies.page import literal, write_page
from inscape.studies.said import Said, figure_files
from inscape.studies.store import Store
from inscape.studies.study import Finding, Study, Summary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyRun:
    """A finished study: its rows as a frame, what they say, and where everything is."""

    study: str
    scale: str
    seed: int
    frame: "pd.DataFrame"
    failed: dict[str, str]
    summary: Summary
    out: Path
    store: Path
    title: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    finished: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        findings = self.summary.findings.items()
        return {
            "schema": 1,
            "study": self.study,
            "scale": self.scale,
            "seed": self.seed,
            "options": dict(self.options),
            "n_rows": len(self.frame),
            "failed": self.failed,
            "findings": {key: _plain(f) for key, f in findings},
            "figures": [str(self.out / name) for name in self.summary.figures],
            "summary": str(self.out / "summary.md"),
            "report": str(self.out / "report.html"),
            "store": str(self.store),
        }

    def footer(self) -> str:
        """One line on where the numbers come from."""
        return (
            f"Study {literal(self.study)}, scale {self.scale}, seed {self.seed}: {len(self.frame)} rows, "
            f"{len(self.failed)} failed; store {literal(self.store.name)}."
        )

    def __repr__(self) -> str:
        held = [f.holds for f in self.summary.findings.values()]
        return (
            f"StudyRun({self.study!r}, {self.scale}: {len(self.frame)} rows, {len(self.failed)} failed, "
            f"{held.count(True)} of {len(held)} claims held)"
        )


def _plain(finding: Finding) -> dict[str, Any]:
    """Verdict and evidence, and of the numbers those that there are."""
    known = {k: v for k, v in asdict(finding).items() if v not in (None, "") and v == v}
    if "interval" in known and not all(math.isfinite(end) for end in known["interval"]):
        del known["interval"]
    return {"holds": finding.holds, **known, "evidence": finding.evidence}


def finish(
    study: Study,
    cells: Sequence[Cell],
    store: Store,
    asked: Mapping[str, Any],
    out: Path | None = None,
    *,
    keep: bool = False,
) -> StudyRun:
    """Summarise the rows of these cells that are in the store; write the page and the report.

    `asked` has the scale, the seed, the options, and the reference by which the study was asked for; `out` is
    the folder of what is written, by default that of the store. To `keep` the summary in the store as well is
    for the end of a run.
    """
    result = _unsummarised(store, cells, asked, out, title=study.title, claims=study.claims)
    try:
        result = replace(result, summary=summarised(study, result.frame, result.out))
    except StudyError as error:
        with suppress(StudyError):  # the first problem is the one to tell
            _write(replace(result, summary=_unsaid(study, error)), cells, store if keep else None)
        raise
    _write(result, cells, store if keep else None)
    return result


def finished_before(store: Store, said: Said, asked: Mapping[str, Any], out: Path | None = None) -> StudyRun:
    """The run whose summary is kept in the store, its figures, page and report written again."""
    cells = [Cell({}, *key) for key in said.keys]
    result = _unsummarised(store, cells, asked, out, title=said.title, claims=said.claims)
    result = replace(result, summary=said.summary)
    try:
        for name, content in said.figures.items():
            path = result.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as draft:
                draft.write_bytes(content)
    except OSError as error:
        raise StudyError(f"cannot write the figures into {result.out}: {error.strerror or error}") from error
    _write(result, cells, None)
    return result


def _unsummarised(
    store: Store, cells: Sequence[Cell], asked: Mapping[str, Any], out: Path | None, **known: Any
) -> StudyRun:
    """The rows of these cells; a warning if some have failed, an error if all have."""
    frame, failed = store.frame(cells), store.failures(cells)
    if failed:
        _report_failures(store.study, cells, failed)
    return StudyRun(
        study=store.study,
        frame=frame,
        failed=failed,
        summary=Summary(),
        out=out or store.path.parent,
        store=store.path,
        provenance=store.provenance(),
        finished=store.last_finished(),
        **known,
        **asked,
    )


def _write(result: StudyRun, cells: Sequence[Cell], store: Store | None) -> None:
    """Write summary.md and report.html, after what they are made of is in the store, if one is given.

    Reports are made of studies, so they import this package. The way back is by name and only when a study
    ends: that keeps imports pointing one way.
    """
    summary, title, claims = result.summary, result.title, result.claims
    if store is not None:
        figures = figure_files(summary, result.out)
        keys = [cell.key for cell in cells]
        store.remember_summary(Said(title=title, claims=claims, summary=summary, keys=keys, figures=figures))
    write_page(result.out / "summary.md", title=title, claims=claims, summary=summary, footer=result.footer())
    importlib.import_module("inscape.reports").write_report(result, result.out / "report.html")


def _unsaid(study: Study, error: StudyError) -> Summary:
    """What stands on the page of rows that could not be summarised."""
    unknown = Finding(holds=None, evidence="not summarised")
    return Summary(
        findings=dict.fromkeys(study.claims, unknown), notes=f"The rows could not be summarised: {error}"
    )


def _report_failures(study: str, cells: Sequence[Cell], failed: dict[str, str]) -> None:
    first, error = next(iter(failed.items()))
    line = f"{len(failed)} of {len(cells)} cells failed, the first ({first}) with {last_line(error)}"
    if len(failed) == len(cells):
        raise StudyError(f"{study}: {line}; mend that and run with --retry-failed (retry_failed=True)")
    warnings.warn(f"{study}: {line}", InscapeWarning, stacklevel=3)


def last_line(error: str) -> str:
    r"""What a traceback ends with.

    >>> last_line("Traceback (most recent call last):\n  ...\nValueError: one is odd")
    'ValueError: one is odd'
    """
    return (error.strip().splitlines() or [""])[-1]


def summarised(study: Study, frame: "pd.DataFrame", out: Path) -> Summary:
    """What the study makes of the rows, checked: a finding for each claim.

    It writes its figures into a folder inside `out`, from which each is moved when all are whole.
    """
    try:
        with tempfile.TemporaryDirectory(dir=out, prefix=".figures-") as folder:
            drafts = Path(folder)
            summary = study.summarise(frame, drafts)
            for path in sorted(p for p in drafts.rglob("*") if p.is_file()):
                place = out / path.relative_to(drafts)
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)
    except OSError as error:
        raise StudyError(f"cannot write the figures into {out}: {error.strerror or error}") from error
    if set(summary.findings) != set(study.claims):
        raise StudyError(
            f"{study.name}: findings {sorted(summary.findings)} for the claims {sorted(study.claims)}"
        )
    return summary
