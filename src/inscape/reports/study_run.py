"""A finished study: its rows, what they say, and where everything is."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inscape.errors import StudyError
from inscape.pictures import Shown
from inscape.reports.findings import Finding, Summary
from inscape.reports.page import literal
from inscape.serialising import SCHEMA, LeftOut, check_schema, restored_fields

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyRun(Shown):
    """A finished study: its rows as a frame, what they say, and where everything is.

    Attributes:
        study: its name.
        scale: "smoke", "small" or another size.
        seed: the seed of the study.
        frame: a row for each configuration that was finished.
        failed: configuration -> error, of those that failed.
        summary: what the rows say: findings, figures, tables.
        out: the folder with `summary.md`, figures and the report.
        store: the SQLite file with the rows.
        title: what stands above the report.
        claims: key -> sentence.
        options: options that were given, by name.
        settings: other values of keys of the configurations that were given.
        reference: what the study was asked for by.
        provenance: versions, and the host.
        finished: when the last row was, in seconds since 1970.
        is_registered: whether `reference` is a name that the command line knows.
    """

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
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    finished: float | None = None
    is_registered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without rows, charts and tables, which the store and the report have."""
        findings = self.summary.findings.items()
        return {
            "schema": SCHEMA,
            "study": self.study,
            "scale": self.scale,
            "seed": self.seed,
            "options": dict(self.options),
            "settings": dict(self.settings),
            "n_rows": len(self.frame),
            "failed": self.failed,
            "findings": {key: _plain(f) for key, f in findings},
            "figures": [str(self.out / name) for name in self.summary.figures],
            "summary": str(self.out / "summary.md"),
            "report": str(self.out / "report.html"),
            "store": str(self.store),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The run that `to_dict` wrote; what it left out says so when it is used."""
        check_schema(data, what="study run", error=StudyError)
        missing = {"n_rows", "findings", "figures", "summary", "store"} - data.keys()
        if missing:
            raise StudyError(f"not a whole study run: {', '.join(sorted(missing))} missing")
        out = Path(data["summary"]).parent
        names = ("title", "claims", "reference", "provenance", "finished", "is_registered")
        unwritten: dict[str, Any] = {name: LeftOut(name, StudyError) for name in names}
        run: Self = restored_fields(
            cls,
            data,
            what="study run",
            error=StudyError,
            frame=LeftOut("frame", StudyError, length=data["n_rows"]),
            summary=_restored_summary(data, out),
            out=out,
            store=Path(data["store"]),
            **unwritten,
        )
        return run

    def footer(self) -> str:
        """One line on where the numbers come from."""
        return (
            f"Study {literal(self.study)}, scale {self.scale}, seed {self.seed}: {len(self.frame)} rows, "
            f"{len(self.failed)} failed; store {literal(self.store.name)}."
        )

    def _shown_frame(self) -> "pd.DataFrame":
        """The claims with their verdicts."""
        import pandas as pd

        claims = {} if isinstance(self.claims, LeftOut) else self.claims
        rows = [
            {"claim": claims.get(key, key), "verdict": f.verdict, "evidence": f.evidence}
            for key, f in self.summary.findings.items()
        ]
        return pd.DataFrame(rows, columns=["claim", "verdict", "evidence"])

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


def _restored_summary(data: Mapping[str, Any], out: Path) -> Summary:
    findings = {
        key: restored_fields(Finding, f, what="finding", error=StudyError)
        for key, f in data["findings"].items()
    }
    unwritten: Any = {name: LeftOut(name, StudyError) for name in ("notes", "charts", "tables", "limits")}
    figures = tuple(str(Path(figure).relative_to(out)) for figure in data["figures"])
    return Summary(findings=findings, figures=figures, **unwritten)


def last_line(error: str) -> str:
    r"""What a traceback ends with.

    >>> last_line("Traceback (most recent call last):\n  ...\nValueError: one is odd")
    'ValueError: one is odd'
    """
    return (error.strip().splitlines() or [""])[-1]
