"""What a report shows of a study: findings on its claims, charts to look into, and the summary of both."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from inscape.errors import StudyError, unknown_name
from inscape.reports.tables import columns_of, is_numeric, label, plain

if TYPE_CHECKING:
    import pandas as pd


WORDS = {True: "held", False: "did not hold", None: "cannot be said"}
NO_VARIATION = "no variation to test"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether a claim held in these rows (None: they cannot say), and the figures that show it.

    Attributes:
        holds: whether the claim held; None if these rows cannot say.
        evidence: the figures that show it, as a sentence.
        value: the one number that the claim is about.
        interval: its 95 % interval.
        published: what was reported of it.
        published_value: the number that was reported, where it is one: a mark beside the interval.
        unsaid: why nothing can be said, in the place of "cannot be said".

    >>> f = Finding(holds=True, evidence="r = -0.93 over 9 runs", value=-0.93, interval=(-0.98, -0.75))
    >>> f.holds, f.interval
    (True, (-0.98, -0.75))
    """

    holds: bool | None
    evidence: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    published: str = ""
    published_value: float | None = None
    unsaid: str = ""

    @property
    def verdict(self) -> str:
        """In words.

        >>> Finding(holds=None, evidence="", unsaid=NO_VARIATION).verdict
        'no variation to test'
        """
        return self.unsaid if self.holds is None and self.unsaid else WORDS[self.holds]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a claim held, None if that cannot be said, and then why if there is a word for it."""

    holds: bool | None
    unsaid: str = ""


def judge(
    interval: tuple[float, float],
    *,
    strong: float = 0.0,
    published: float | None = None,
    variation: float | None = math.inf,
) -> Verdict:
    """What the interval of an effect that is claimed to be positive says: the one rule of all studies.

    Held: the interval is above zero and reaches what is called strong. Did not hold, since a failure needs
    power: the whole interval is below both what is called strong and the published effect, and what is
    compared varies more between configurations than between seeds. If it does not vary more, there was no
    variation to test; else it cannot be said.

    Args:
        interval: the two ends, NaN where there is none.
        strong: the least effect that the claim is about; 0 where it is about the sign alone.
        published: the effect that was reported, if it was.
        variation: the ratio of the variation between configurations to that between seeds, see
            `inscape.correlation.configurations.variation`; None where no configuration has two seeds, so
            that a failure cannot be told from chance; infinite for a claim that compares no configurations.

    >>> judge((0.7, 1.0), strong=0.5).holds, judge((0.1, 0.4), strong=0.5, published=0.9, variation=3.0).holds
    (True, False)
    >>> judge((0.1, 0.4), strong=0.5, published=0.9, variation=0.8).unsaid
    'no variation to test'
    """
    low, high = interval
    if math.isnan(low) or math.isnan(high):
        return Verdict(holds=None)
    if low > 0 and high >= strong:
        return Verdict(holds=True)
    if variation is not None and not variation > 1:
        return Verdict(holds=None, unsaid=NO_VARIATION)
    bound = strong if published is None else min(strong, published)
    return Verdict(holds=False if high < bound and variation is not None else None)


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The claim that all of some claims hold: it did not as soon as one did not.

    >>> all_of([Verdict(holds=True), Verdict(holds=None, unsaid=NO_VARIATION)]).unsaid
    'no variation to test'
    """
    known = list(verdicts)
    if any(v.holds is False for v in known):
        return Verdict(holds=False)
    open_ones = [v for v in known if v.holds is None]
    if not open_ones:
        return Verdict(holds=True if known else None)
    words = {v.unsaid for v in open_ones}
    return Verdict(holds=None, unsaid=words.pop() if len(words) == 1 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """A figure that can be looked into: columns of a frame, drawn one against the other by the report.

    Attributes:
        title: what stands above it.
        data: the frame whose columns are drawn.
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        kind: "points" or "lines".
        colour: the column whose values are told apart by colour.
        low: the column of the lower end of an interval around y.
        high: the column of its upper end.
        hover: columns that are shown for each point.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is.
        xlabel: the name of the horizontal axis; the column's if empty.
        ylabel: the name of the vertical axis; the column's if empty.
        caption: a sentence below it.

    >>> import pandas
    >>> frame = pandas.DataFrame({"rate": [0.1, 0.01], "count": [3.0, 5.0]})
    >>> chart = Chart(title="Counts and steps", data=frame, x="rate", y="count", kind="points", log_x=True)
    >>> chart.x, chart.y
    ('rate', 'count')
    """

    title: str
    data: "pd.DataFrame"
    x: str
    y: str
    kind: Literal["points", "lines"] = "points"
    colour: str | None = None
    low: str | None = None
    high: str | None = None
    hover: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False
    xlabel: str = ""
    ylabel: str = ""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the rows of a study say.

    Attributes:
        findings: one for each claim, under the same key; the first claim is the headline.
        figures: names of pictures in the folder of the study, each with its caption if this is a mapping.
        notes: text in Markdown.
        charts: figures to look into, for the report.
        tables: title -> frame; each is also written as a CSV file.
        limits: what the measure cannot say, a plain sentence each.

    >>> s = Summary(findings={"falls": Finding(holds=None, evidence="two runs")}, notes="A caveat.")
    >>> list(s.findings), s.notes
    (['falls'], 'A caveat.')
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    figures: Sequence[str] | Mapping[str, str] = ()
    notes: str = ""
    charts: Sequence[Chart] = ()
    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    limits: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("figures", "limits"):
            if isinstance(getattr(self, name), str):
                raise StudyError(f"{name}={getattr(self, name)!r} is one text: give a list of them")


def varied(frame: "pd.DataFrame", key: str) -> str:
    """The values that a setting has in a frame, as words.

    >>> import pandas as pd
    >>> varied(pd.DataFrame({"n_steps": [20_000, 20_000, 50_000]}), "n_steps")
    '20,000, 50,000'
    """
    return ", ".join(f"{value:,}" for value in frame[key].drop_duplicates().tolist())


def in_all(held: Iterable[object], of_what: str) -> Finding:
    """Held if it did in every case; undecided if there is none.

    >>> in_all([True, False], "runs").evidence
    'in 1 of 2 runs'
    """
    cases = [bool(h) for h in held]
    if not cases:
        return Finding(holds=None, evidence=f"no {of_what}")
    return Finding(holds=all(cases), evidence=f"in {sum(cases)} of {len(cases)} {of_what}")


MOST_POINTS = 5000
"""Of one chart: a phone can still draw that many."""
MOST_HOVER = 14
"""Lines that are shown of one point."""
FAVOURITES = (("region_count", "gap"), ("region_count", "test_accuracy"))
"""Columns that are worth a look against each other wherever there are both."""


def spec(chart: Chart) -> dict[str, Any]:
    """A chart of a study; a column that it names and its frame does not have is an error."""
    frame = chart.data
    used = [chart.x, chart.y, chart.colour, chart.low, chart.high, *chart.hover]
    for name in used:
        if name is not None and name not in frame:
            raise StudyError(f"the chart {chart.title!r}: " + unknown_name("column", name, map(str, frame)))
    hover = list(chart.hover) or _usual_hover(frame)
    names = list(dict.fromkeys([name for name in used if name is not None] + hover))
    shown = _thinned(frame)
    return {
        "title": chart.title,
        "caption": chart.caption,
        "n": len(frame),
        "drawn": len(shown),
        "kind": chart.kind,
        **{key: getattr(chart, key) for key in ("x", "y", "colour", "low", "high", "log_x", "log_y")},
        "xlabel": chart.xlabel or label(chart.x),
        "ylabel": chart.ylabel or label(chart.y),
        "hover": hover,
        "labels": {name: label(name) for name in names},
        "columns": columns_of(shown, names),
    }


def explorer(frame: "pd.DataFrame") -> dict[str, Any] | None:
    """Any two columns of the rows against each other, as the reader chooses; None if none varies."""
    varied = _varied(frame)
    numeric = [name for name in varied if is_numeric(frame[name])]
    if not numeric:
        return None
    x, y = _axes(frame, varied, numeric)
    groups = [n for n in varied if n not in (x, y, "seed", "seconds") and frame[n].map(str).nunique() <= 10]
    settings, results = _settings_and_results(frame, varied)
    colour = next((n for n in groups if n in settings and n not in numeric), None)
    colour = colour or next((n for n in groups if n in settings and n != "replicate"), None)
    shown = _thinned(frame)
    accuracies = [name for name in results if "accuracy" in name or name in ("gap", "region_count")]
    return {
        "title": "The rows, any column against any other",
        "n": len(frame),
        "drawn": len(shown),
        "kind": "points",
        "x": x,
        "y": y,
        "colour": colour,
        "numeric": numeric,
        "varied": varied,
        "groups": [n for n in varied if n in groups or n in numeric],
        "hover": list(dict.fromkeys([*settings, *accuracies]))[:MOST_HOVER],
        "labels": {name: label(name) for name in varied},
        "columns": columns_of(shown, varied),
    }


def _axes(frame: "pd.DataFrame", varied: list[str], numeric: list[str]) -> tuple[str, str]:
    """Two columns to begin with: known ones, or the first result by what was varied most."""
    for x, y in FAVOURITES:
        if x in numeric and y in numeric:
            return x, y
    y = next(iter(_settings_and_results(frame, numeric)[1]), numeric[-1])
    settings = [n for n in _settings_and_results(frame, varied)[0] if n not in (y, "replicate")]
    choices = [n for n in settings if n in numeric] or settings or [n for n in varied if n != y] or [y]
    return max(choices, key=lambda name: frame[name].map(str).nunique()), y


def _settings_and_results(frame: "pd.DataFrame", names: list[str]) -> tuple[list[str], list[str]]:
    """The columns before and after the hash of the configuration: what was set, what came out."""
    columns = list(frame.columns)
    hashed = columns.index("configuration") if "configuration" in columns else 1
    results = [n for n in names if columns.index(n) > hashed and n not in ("seed", "seconds")]
    return [n for n in names if columns.index(n) < hashed], results


def _varied(frame: "pd.DataFrame") -> list[str]:
    """The columns that differ between rows and are no lists."""
    columns = []
    for name in frame:
        values = frame[name]
        if name == "configuration" or any(isinstance(v, list | dict | tuple) for v in values):
            continue
        if len({str(plain(v)) for v in values}) > 1:
            columns.append(str(name))
    return columns


def _usual_hover(frame: "pd.DataFrame") -> list[str]:
    """The columns that are shown of a point where the study does not say: those that vary, up to a limit."""
    return _varied(frame)[:MOST_HOVER]


def _thinned(frame: "pd.DataFrame") -> "pd.DataFrame":
    """At most `MOST_POINTS` rows, evenly from all."""
    step = -(-len(frame) // MOST_POINTS)
    return frame if step <= 1 else frame.iloc[::step]
