"""One self-contained HTML file from a finished study."""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.drawing.palette import TEN
from inscape.errors import StudyError
from inscape.files import replacing
from inscape.reports.charts import explorer, spec
from inscape.reports.origin import origin
from inscape.reports.page import file_stem
from inscape.reports.pictures import pictures
from inscape.reports.prose import html
from inscape.reports.study_run import last_line
from inscape.reports.tables import as_table, rows_table
from inscape.reports.verdicts import claims

if TYPE_CHECKING:
    from inscape.reports.study_run import StudyRun


def write_report(run: "StudyRun", path: str | Path) -> Path:
    """Write the report of a finished study into a file, and return where it is."""
    path = Path(path)
    text = build_report(run)
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise StudyError(f"cannot write the report {path}: {error.strerror or error}") from error
    return path


def build_report(run: "StudyRun") -> str:
    """The report of a finished study, as the text of an HTML file that needs nothing else.

    Claims, numbers and verdicts come first; then charts, figures, tables, limits, notes, all rows, and where
    they are from. Every text of the study is escaped; a policy in the page forbids all requests, and all
    scripts but the two that are in it. The file holds neither the name of a machine nor a path.

    >>> import pandas as pd
    >>> from inscape.studies import StudyRun, Summary
    >>> frame = pd.DataFrame({"n": [1, 2], "square": [1, 4]})
    >>> run = StudyRun(study="squares", title="Squares & more", scale="smoke", seed=0, frame=frame, failed={},
    ...     summary=Summary(), out=Path("."), store=Path("squares.sqlite"))
    >>> "<h1>Squares &amp; more</h1>" in build_report(run)
    True
    """
    summary = run.summary
    charts = [spec(chart) for chart in summary.charts]
    rows = explorer(run.frame)
    script = _asset("report.js")
    plotly = plotly_script() if charts or rows else ""
    return str(
        _template().render(
            run=run,
            claims=claims(run.claims, summary.findings),
            charts=charts,
            explorer=rows,
            figures=pictures(summary.figures, run.out),
            tables={file_stem(title): (title, as_table(table)) for title, table in summary.tables.items()},
            limits=summary.limits,
            notes=html(summary.notes),
            rows=rows_table(run.frame),
            failed={configuration: last_line(error) for configuration, error in run.failed.items()},
            origin=origin(run),
            palette=list(TEN),
            css=_asset("report.css"),
            script=script,
            plotly=plotly,
            allowed=" ".join(_digest(text) for text in (script, plotly) if text),
        )
    )


@cache
def plotly_script() -> str:
    """The library that draws charts, as text."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n")  # as a browser reads it before it checks the digest


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["data"] = data_in_script
    return environment.from_string(_asset("report.html"))


def data_in_script(value: Any) -> Any:
    """JSON that may stand inside a script element, whatever texts it holds."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _digest(script: str) -> str:
    """How the content security policy names a script that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
