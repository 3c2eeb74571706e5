"""The claims of a study with their verdicts, numbers and intervals."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from inscape.reports.findings import Finding
from inscape.reports.numbers import shown
from inscape.reports.page import WORDS

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
    low, high = finding.interval or (float("nan"), float("nan"))
    return Claim(
        statement=statement,
        verdict=WORDS[finding.holds],
        mark=MARKS[finding.holds],
        evidence=finding.evidence,
        value=shown(finding.value),
        interval=f"{shown(low)} to {shown(high)}" if low == low and high == high else "",
        published=finding.published,
        whisker=whisker(finding),
    )


def whisker(finding: Finding) -> dict[str, float]:
    """Where value, interval, zero and the published number are on a line, in percent of its width.

    Empty if there is no finite interval.

    >>> whisker(Finding(holds=True, evidence="", value=0.5, interval=(0.25, 0.75), published="0.99"))
    {'low': 28.0, 'high': 72.0, 'value': 50.0, 'zero': 6.0, 'published': 93.12}
    """
    if finding.interval is None or finding.value is None:
        return {}
    low, high = finding.interval
    places = {"low": low, "high": high, "value": finding.value, "zero": 0.0}
    if (published := _number(finding.published)) is not None:
        places["published"] = published
    if not all(abs(place) < float("inf") for place in places.values()):
        return {}
    ends = [*places.values(), *([1.0] if max(map(abs, places.values())) <= 1 else [])]
    if min(places.values()) < 0 and max(map(abs, places.values())) <= 1:
        ends.append(-1.0)
    least, extent = min(ends), (max(ends) - min(ends)) or 1.0
    return {name: round(6 + 88 * (place - least) / extent, 2) for name, place in places.items()}


def _number(text: str) -> float | None:
    """The one number of a text, brackets and powers aside; None if there are several, a bound or percents.

    >>> [_number(t) for t in ("r = 0.98 (six networks)", "-0.6", "0.91 to 0.98", "1/2", "98 %", "< 0.1", "")]
    [0.98, -0.6, None, None, None, None, None]
    >>> _number("R^2 = 0.7")
    0.7
    """
    outside = re.sub(r"\(.*?\)|(?<=[A-Za-z])\^\d+", "", text)
    found = re.findall(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?", outside)
    return float(found[0]) if len(found) == 1 and not set("%<>≤≥") & set(outside) else None
