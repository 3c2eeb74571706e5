"""What a report shows of a study: findings on its claims, charts to look into, and the summary of both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether a claim held in these rows (None: they cannot say), and the figures that show it.

    `value` and `interval` are the one number that the claim is about, `published` what was reported of it.
    """

    holds: bool | None
    evidence: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    published: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """A figure that can be looked into: columns of a frame, drawn one against the other by the report.

    `low` and `high` are the columns of an interval around `y`, `colour` the one whose values are told
    apart, `hover` those that are shown for each point.
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
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    figures: Sequence[str] | Mapping[str, str] = ()
    notes: str = ""
    charts: Sequence[Chart] = ()
    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    limits: Sequence[str] = ()


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
