"""Run a study: work on what is missing, then summarise the rows."""

import warnings
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.errors import InscapeWarning, StudyError, unknown_name
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.studies.cells import Cell, as_cells
from inscape.studies.page import write_page
from inscape.studies.registry import find
from inscape.studies.store import Store
from inscape.studies.study import SCALES, Finding, Study, Summary
from inscape.studies.sweep import sweep
from inscape.studies.work import function_name

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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        findings = self.summary.findings.items()
        return {
            "schema": 1,
            "study": self.study,
            "scale": self.scale,
            "seed": self.seed,
            "n_rows": len(self.frame),
            "failed": self.failed,
            "findings": {key: {"holds": f.holds, "evidence": f.evidence} for key, f in findings},
            "figures": [str(self.out / name) for name in self.summary.figures],
            "summary": str(self.out / "summary.md"),
            "store": str(self.store),
        }

    def footer(self) -> str:
        """One line on where the numbers come from."""
        return (
            f"Study `{self.study}`, scale {self.scale}, seed {self.seed}: {len(self.frame)} rows, "
            f"{len(self.failed)} failed; store `{self.store.name}`."
        )

    def __repr__(self) -> str:
        held = [f.holds for f in self.summary.findings.values()]
        return (
            f"StudyRun({self.study!r}, {self.scale}: {len(self.frame)} rows, {len(self.failed)} failed, "
            f"{held.count(True)} of {len(held)} claims held)"
        )


def run(
    name: "str | Study",
    *,
    scale: str = "small",
    out: str | Path,
    random_state: RandomState = 0,
    executor: Executor | None = None,
    n_workers: int | None = None,
    retry_failed: bool = False,
    progress: bool | Meter | None = None,
) -> StudyRun:
    """Run a study, or what is missing of it, and write its summary and figures into `out`.

    The rows are in one SQLite file in `out`, `<name>.sqlite`, each put there when it is finished: a study
    that was stopped, by whatever, continues where it was, and several processes may run the same study in
    the same folder. A row depends on the configuration and on `random_state` alone.

    Args:
        name: a known study (`inscape study list`), a .toml file, package.module:STUDY, or a `Study`.
        scale: "smoke" (seconds), "small" (minutes) or "paper" (what was published).
        out: the folder of the store, the figures and summary.md.
        random_state: the seed of the study; None draws one, which starts anew.
        executor: where to work; the default is a pool of processes on this machine.
        n_workers: how many processes; the default is one for each processor.
        retry_failed: work again on the cells that failed in an earlier run.
        progress: True for a bar on stderr, or a function of (cells done, cells in all).

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
    cells = grid(study, scale, seed := as_seed(random_state))
    out = Path(out)
    with Store(out / f"{study.name}.sqlite", study.name, function_name(study.cell)) as store:
        with meter(progress, study.name) as show:
            sweep(study, cells, store, executor, n_workers=n_workers, retry_failed=retry_failed, show=show)
        frame, failed = store.frame(cells), store.failures(cells)
    if failed:
        _report_failures(study, cells, failed)
    result = StudyRun(
        study=study.name,
        scale=scale,
        seed=seed,
        frame=frame,
        failed=failed,
        summary=Summary(),
        out=out,
        store=out / f"{study.name}.sqlite",
    )
    try:
        result = replace(result, summary=summarised(study, frame, out))
    except StudyError as error:
        with suppress(StudyError):  # the first problem is the one to tell
            write_page(out / "summary.md", study, _unsaid(study, error), result.footer())
        raise
    write_page(out / "summary.md", study, result.summary, result.footer())
    return result


def _unsaid(study: Study, error: StudyError) -> Summary:
    """What stands on the page of rows that could not be summarised."""
    unknown = Finding(holds=None, evidence="not summarised")
    return Summary(
        findings=dict.fromkeys(study.claims, unknown), notes=f"The rows could not be summarised: {error}"
    )


def grid(study: Study, scale: str, seed: int) -> list[Cell]:
    """The cells of a study at a scale."""
    if scale not in SCALES:
        raise StudyError(unknown_name("scale", scale, SCALES))
    cells = as_cells(study.configurations(scale), seed)
    if not cells:
        raise StudyError(f"the study {study.name!r} has no configurations at the scale {scale!r}")
    return cells


def _report_failures(study: Study, cells: list[Cell], failed: dict[str, str]) -> None:
    first, error = next(iter(failed.items()))
    line = f"{len(failed)} of {len(cells)} cells failed, the first ({first}) with {error.splitlines()[-1]}"
    if len(failed) == len(cells):
        raise StudyError(f"{study.name}: {line}; mend that and run with --retry-failed (retry_failed=True)")
    warnings.warn(f"{study.name}: {line}", InscapeWarning, stacklevel=3)


def summarised(study: Study, frame: "pd.DataFrame", out: Path) -> Summary:
    """What the study makes of the rows, checked: a finding for each claim."""
    try:
        summary = study.summarise(frame, out)
    except OSError as error:
        raise StudyError(f"cannot write the figures into {out}: {error.strerror or error}") from error
    if set(summary.findings) != set(study.claims):
        raise StudyError(
            f"{study.name}: findings {sorted(summary.findings)} for the claims {sorted(study.claims)}"
        )
    return summary
