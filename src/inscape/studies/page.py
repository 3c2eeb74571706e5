"""The summary of a study on one page of Markdown."""

from pathlib import Path

from inscape.errors import StudyError
from inscape.studies.study import Study, Summary

_WORDS = {True: "held", False: "did not hold", None: "cannot be said"}


def write_page(path: Path, study: Study, summary: Summary, footer: str) -> None:
    """Write the claims and whether they held, the notes and the figures."""
    lines = [f"# {study.title}", ""]
    for key, statement in study.claims.items():
        finding = summary.findings[key]
        lines.append(f"- **{_WORDS[finding.holds]}**: {statement} ({finding.evidence})")
    if study.claims:
        lines.append("")
    if summary.notes:
        lines += [summary.notes.strip(), ""]
    for name in summary.figures:
        lines += [f"![{Path(name).stem}]({name})", ""]
    try:
        path.write_text("\n".join([*lines, footer, ""]), encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot write into {path.parent}: {error.strerror or error}") from error
