"""One self-contained HTML file from a finished study.

After the page as a whole come its sections: notes, from Markdown to HTML that can do no harm; where the rows
are from; figures as pictures; claims with their verdicts. Charts and tables have files of their own.
"""

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.drawing.palette import TEN
from inscape.errors import StudyError
from inscape.files import replacing
from inscape.reports.findings import Finding, explorer, spec
from inscape.reports.page import file_stem
from inscape.reports.study_run import last_line
from inscape.reports.tables import as_table, duration, rows_table, shown, with_interval

if TYPE_CHECKING:
    from inscape.reports.study_run import StudyRun


def write_report(run: "StudyRun", path: str | Path) -> Path:
    """Write the report of a finished study into a file, and return where it is.

    Args:
        run: what `inscape.studies.run` returned; `inscape.studies.reopen` has it of a store or a folder.
        path: the file, in a folder that is there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from inscape.studies import Study, run
    >>> study = Study(
    ...     name="squares",
    ...     title="Squares",
    ...     configurations=lambda scale: [{"n": n} for n in range(4)],
    ...     cell=lambda configuration: {"square": configuration["n"] ** 2},
    ... )
    >>> with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(1) as executor:
    ...     page = write_report(run(study, out=out, executor=executor), Path(out) / "report.html")
    ...     page.name, page.stat().st_size > 1000
    ('report.html', True)
    """
    from inscape.reports.study_run import StudyRun

    path = Path(path)
    if not isinstance(run, StudyRun):
        raise StudyError(
            f"write_report takes the finished study that inscape.studies.run returns, got {run!r}: of a "
            "store or a folder, inscape.studies.reopen(path) gives it"
        )
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
    chart_script = _asset("chart.js") if charts or rows else ""
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
            chart_script=chart_script,
            allowed=" ".join(hash_source(text) for text in (script, chart_script) if text),
        )
    )


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


def hash_source(text: str) -> str:
    """How a content security policy names a script or a style that may be used."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def html(markdown: str) -> Any:
    """The notes of a study: raw HTML is shown as text, pictures from elsewhere are links, tables sort.

    >>> str(html("*r* = 0.9 <script>")).strip()
    '<p><em>r</em> = 0.9 &lt;script&gt;</p>'
    """
    from markupsafe import Markup

    return Markup(_parser().render(markdown))


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    rules: Any = parser.renderer.rules  # type: ignore[attr-defined]
    rules["table_open"] = lambda *a: '<div class="scroll" tabindex="0"><table class="sortable">'
    rules["table_close"] = lambda *a: "</table></div>\n"
    rules["th_open"] = lambda tokens, i, *a: (
        f'<th scope="col"{_side(tokens[i])} aria-sort="none"><button type="button">'
    )
    rules["th_close"] = lambda *a: "</button></th>\n"
    rules["td_open"] = lambda tokens, i, *a: f"<td{_side(tokens[i])}>"
    for token in ("heading_open", "heading_close"):
        rules[token] = _heading
    return parser


def _side(token: Any) -> str:
    return ' class="number"' if "right" in str(token.attrs.get("style", "")) else ""


def _heading(tokens: Any, i: int, *rest: Any) -> str:
    """Headings below those of the report."""
    level = min(6, int(tokens[i].tag[1:]) + 2)
    return f"<h{level}>" if tokens[i].nesting == 1 else f"</h{level}>\n"


_ELSEWHERE = ("machine", "host")


def origin(run: "StudyRun") -> dict[str, Any]:
    """Facts by name, versions by package, and the command."""
    return {"facts": _facts(run), "versions": _versions(run), "command": command(run)}


def _facts(run: "StudyRun") -> dict[str, str]:
    facts = {
        "study": run.study,
        "from": Path(run.reference).name if run.reference not in ("", run.study) else "",
        "scale": run.scale,
        "seed": str(run.seed),
        **{f"option {name.replace('_', '-')}": str(value) for name, value in run.options.items()},
        **{f"set {name}": _setting(value) for name, value in run.settings.items()},
        "rows": f"{len(run.frame)} finished, {len(run.failed)} failed",
        "store": run.store.name,
        "kind of machine": run.provenance.get("machine", ""),
    }
    if "seconds" in run.frame and len(run.frame):
        seconds = run.frame["seconds"]
        facts["work"] = (
            f"{duration(float(seconds.sum()))} in all, {duration(float(seconds.median()))} for a row (median)"
        )
    if run.finished is not None:
        facts["last row"] = f"{datetime.fromtimestamp(run.finished, UTC):%Y-%m-%d %H:%M} UTC"
    return {name: text for name, text in facts.items() if text}


def _versions(run: "StudyRun") -> dict[str, str]:
    return {name: text for name, text in run.provenance.items() if name not in _ELSEWHERE}


def command(run: "StudyRun") -> str:
    """What to type to get these rows again; Python, if the study is known to no command."""
    name = run.reference or run.study
    if name.endswith(".toml"):
        name = Path(name).name  # where it is on this machine is nobody's business
    elif not run.is_registered and ":" not in name:
        given = {"options": run.options, "settings": run.settings}
        further = "".join(f", {name}={dict(value)!r}" for name, value in given.items() if value)
        variable = name.replace("-", "_")
        variable = variable if variable.isidentifier() else "study"  # a store may name it anything
        return (
            f"inscape.studies.run({variable}, scale={run.scale!r}{further}, "
            f"random_state={run.seed}, out={run.study!r})"
        )
    words = ["inscape", "study", "run", name, "--scale", run.scale, "--seed", str(run.seed)]
    for option, value in run.options.items():
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        words += [f"--{option.replace('_', '-')}", text]
    for key, value in run.settings.items():
        words += ["--set", f"{key}={_setting(value)}"]
    return shlex.join(words)


def _setting(value: Any) -> str:
    """The values of a setting as the command line takes them.

    >>> _setting([0.1, 0.2]), _setting("adam"), _setting([[64, 64]]), _setting(True)
    ('0.1,0.2', 'adam', '[64, 64]', 'true')
    """
    values = value if isinstance(value, list | tuple) else [value]
    return ",".join(v if isinstance(v, str) else "none" if v is None else json.dumps(v) for v in values)


KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg+xml", ".webp": "webp"}

FULL_WIDTH_ABOVE_DOTS = 900
"""Dots."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture as a data address, with its caption and the words for those who cannot see it.

    A figure that is missing, or of a kind that no browser shows, has no `source`.
    """

    name: str
    source: str
    caption: str
    alt: str
    size: tuple[int, int] | None

    @property
    def is_wide(self) -> bool:
        """Whether half of the page would be too narrow for it."""
        return self.size is not None and self.size[0] > FULL_WIDTH_ABOVE_DOTS


def pictures(figures: Sequence[str] | Mapping[str, str], folder: Path) -> list[Picture]:
    """The pictures of these names in the folder of the study."""
    captions = figures if isinstance(figures, Mapping) else dict.fromkeys(figures, "")
    return [_picture(folder / name, caption) for name, caption in captions.items()]


def _picture(path: Path, caption: str) -> Picture:
    kind = KINDS.get(path.suffix.lower())
    content = path.read_bytes() if kind and path.is_file() else b""
    return Picture(
        name=path.name,
        source=f"data:image/{kind};base64,{base64.b64encode(content).decode()}" if content else "",
        caption=caption,
        alt=caption or f"Figure: {path.stem.replace('_', ' ').replace('-', ' ')}",
        size=_size(path) if content else None,
    )


def _size(path: Path) -> tuple[int, int] | None:
    """Width and height, so that the page does not jump while it loads; None of a drawing in SVG."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.size
    except UnidentifiedImageError:
        return None


MARKS = {True: "held", False: "refuted", None: "open"}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement and what became of it; `mark` is the name of its sign, `whisker` its picture."""

    statement: str
    verdict: str
    mark: str
    evidence: str
    value: str
    interval: str
    published: str
    whisker: dict[str, float]


def claims(statements: Mapping[str, str], findings: Mapping[str, Finding]) -> list[Claim]:
    """All claims in their order; the first is the headline."""
    return [_claim(text, findings[key]) for key, text in statements.items() if key in findings]


def _claim(statement: str, finding: Finding) -> Claim:
    value, low, high = shown(finding.value), "", ""
    if finding.interval is not None and finding.value is not None:
        value, low, high = with_interval(finding.value, *finding.interval)
    return Claim(
        statement=statement,
        verdict=finding.verdict,
        mark=MARKS[finding.holds],
        evidence=finding.evidence,
        value=value,
        interval=f"{low} to {high}" if low and high else "",
        published=finding.published,
        whisker=whisker(finding),
    )


def whisker(finding: Finding) -> dict[str, float]:
    """Where value, interval, zero and the published number are on a line, in percent of its width.

    Empty if there is no finite interval.

    >>> whisker(Finding(holds=True, evidence="", value=0.5, interval=(0.25, 0.75), published_value=0.99))
    {'low': 28.0, 'high': 72.0, 'value': 50.0, 'zero': 6.0, 'published': 93.12}
    """
    if finding.interval is None or finding.value is None:
        return {}
    low, high = finding.interval
    marks = {"low": low, "high": high, "value": finding.value, "zero": 0.0}
    if finding.published_value is not None:
        marks["published"] = finding.published_value
    if not all(abs(mark) < float("inf") for mark in marks.values()):
        return {}
    ends = [*marks.values(), *([1.0] if max(map(abs, marks.values())) <= 1 else [])]
    if min(marks.values()) < 0 and max(map(abs, marks.values())) <= 1:
        ends.append(-1.0)
    least, extent = min(ends), (max(ends) - min(ends)) or 1.0
    return {name: round(6 + 88 * (mark - least) / extent, 2) for name, mark in marks.items()}
