"""What the rows say of each claim of the paper, by the rule of `inscape.reports.findings.judge`.

A claimed correlation held if its interval is above zero and reaches `STRONG_FROM`. It did not hold only where
all of the interval is below `STRONG_FROM` and below the published value, and where counts and gaps vary more
between configurations than between seeds; every finding prints that ratio. This rule was fixed when
the rows of scale small were known, two of the 90 trees and forests of scale paper, and none of scale medium.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import KINDS, N_RESAMPLES, Correlation, bootstrapped, correlation
from inscape.correlation.configurations import variation
from inscape.correlation.correlate import Correlations
from inscape.reports.findings import Finding, Verdict, all_of, judge
from inscape.studies.region_counts import published
from inscape.studies.region_counts.selection import (
    FITTED_FROM,
    NETWORKS_TOGETHER,
    TREES_TOGETHER,
    Subject,
    least_variation,
    networks,
    part,
    seed_means,
    variation_of,
)
from inscape.studies.region_counts.settings import CLASSICAL, TREES

if TYPE_CHECKING:
    import pandas as pd

STRONG_FROM = 0.5
"""The least correlation that the paper's claims are about."""
FEW_MISSED = 0.01
"""The share of regions that a grid may miss."""
CLAIMS = {
    "networks": f"Networks of {FITTED_FROM:.0%} training accuracy or more: the more regions, the "
    "larger the gap.",
    "pooled": "So do different networks taken together, on one data set.",
    "tree": "So do decision trees, over depths, criteria and splitters.",
    "forest": "So do random forests.",
    "classical": "So do trees and forests taken together.",
    "learning_rate": "A larger learning rate gives fewer regions.",
    "batch_size": "A smaller batch gives fewer regions.",
    "baselines": "The count goes with the gap more than distance to the initial weights and margin do.",
    "earlier": "It goes with the gap more than sharpness and local complexity do (not asked in the paper).",
    "grid": f"200 grid points miss less than {FEW_MISSED:.0%} of the regions on a line.",
    "plane_grid": f"30 x 30 grid points miss less than {FEW_MISSED:.0%} of the regions on a triangle.",
    "dimension": "The correlation is there in 2 to 5 dimensions as well.",
    "span": "It is there on segments that reach beyond their points.",
    "probe": "It is there between training points, and along random directions.",
    "optimiser": "It is there for networks trained by Adam or Adagrad.",
    "augmentation": "Mixup, and crop and flip, give fewer regions.",
    "evolution": "The correlation is weak at the start and grows while networks are trained.",
}


def concerns(claim: str, configuration: Mapping[str, Any]) -> bool:
    """Whether a claim is about a configuration: those of trees and forests about these, the others not."""
    models = {"tree": ("tree",), "forest": ("forest",), "classical": TREES}
    return (
        (configuration["model"] in models[claim])
        if claim in models
        else (configuration["model"] not in CLASSICAL)
    )


NO_ROWS = Finding(holds=None, evidence="no rows to ask")


@dataclass(frozen=True)
class ComparedCorrelation:
    """A correlation, the published one, and how much more the compared numbers vary than between seeds."""

    r: Correlation
    variation: float | None = None
    published: float | None = None

    def judged(self) -> Verdict:
        """By the rule of all studies, where a correlation below `STRONG_FROM` is not the claimed one."""
        return judge(self.r.interval, strong=STRONG_FROM, published=self.published, variation=self.variation)

    def __str__(self) -> str:
        if np.isnan(self.r.value):
            return "no variation"
        ratio = "one seed" if self.variation is None else f"variation {self.variation:.1f}"
        return f"r = {self.r} over {self.r.n} configurations, {ratio}"


def weakest(
    compared: Mapping[Any, ComparedCorrelation], reported: str = "", reported_value: float | None = None
) -> Finding:
    """The claim that every one of some correlations is strong; its number is that of the weakest."""
    theirs: dict[str, Any] = {"published": reported, "published_value": reported_value}
    if not compared:
        return Finding(holds=None, evidence="nothing was measured of fitted models", **theirs)
    known = [c for c in compared.values() if not np.isnan(c.r.value)]
    evidence = "; ".join(f"{name}: {c}" for name, c in compared.items() if c.r.n > 1)
    if not known:
        return Finding(holds=None, evidence=evidence or "too few fitted models", **theirs)
    least = min(known, key=lambda c: c.r.value).r
    verdict = all_of(c.judged() for c in compared.values())
    return replace(_finding(verdict, evidence, least.value, least.interval), **theirs)


def _finding(
    verdict: Verdict, evidence: str, value: float, interval: tuple[float, float], reported: str = ""
) -> Finding:
    known = not np.isnan(interval[0])
    return Finding(
        holds=verdict.holds,
        evidence=evidence,
        value=float(value),
        interval=interval if known else None,
        published=reported,
        unsaid=verdict.unsaid,
    )


def main_findings(by_subject: Mapping[Subject, Correlations]) -> dict[str, Finding]:
    """Each model alone, and pooled."""
    compared = {
        s: ComparedCorrelation(
            c.pearson, least_variation(c.variation.values()), published.correlation(s.model, s.data)
        )
        for s, c in by_subject.items()
    }
    nets = {s: c for s, c in compared.items() if not s.is_pooled and s.model not in CLASSICAL}

    def of(model: str) -> Finding:
        reported = published.CORRELATION[model]
        of_model = {s: c for s, c in compared.items() if s.model == model}
        return weakest(of_model, f"r = {reported:.2f}".replace("0.", "."), reported)

    return {
        "networks": weakest(nets, "r = .94 to .98 in nine networks"),
        "pooled": of(NETWORKS_TOGETHER),
        "tree": of("tree"),
        "forest": of("forest"),
        "classical": of(TREES_TOGETHER),
    }


def trend_findings(frame: "pd.DataFrame") -> dict[str, Finding]:
    """How the count correlates with the logarithm of learning rate and batch size, over configurations."""
    findings = {}
    for key, which, sign in (("learning_rate", "learning rate", -1), ("batch_size", "batch size", 1)):
        own = networks(part(frame, which))
        trends = {}
        for name, rows in networks(part(frame, "sweep")).items():
            used = own.get(name, rows)
            means = seed_means(used, [key, "region_count"])
            if len(means) > 1:
                r = correlation(sign * np.log(means[key]), means["region_count"])
                trends[name] = ComparedCorrelation(r, variation(used["region_count"], used["configuration"]))
        finding = weakest(trends, "in all three networks of Fig. 3")
        words = (
            "of the count with log(1 / learning rate)" if sign < 0 else "of the count with log(batch size)"
        )
        findings[key] = replace(finding, evidence=f"correlation {words}: {finding.evidence}")
    return findings


BASELINES = {
    "baselines": (
        ("distance", "margin"),
        "'low' for both in the text of Fig. 4; their file of ResNet18: .74 (distance), .60 (margin)",
    ),
    "earlier": (("sharpness", "local_complexity"), ""),
}
"""Claim -> the measures beside the count, and what was published of them."""


def baseline_findings(frame: "pd.DataFrame") -> dict[str, Finding]:
    """By how much the count's correlation exceeds the largest one, without its sign, of other measures."""
    return {key: _ahead_of(frame, *given) for key, given in BASELINES.items()}


def _ahead_of(frame: "pd.DataFrame", others: tuple[str, ...], reported: str) -> Finding:
    leads, asked = {}, []
    for name, rows in networks(part(frame, "sweep")).items():
        means = seed_means(rows, ["region_count", "gap", *others]).to_numpy()
        if len(means) > 3:
            leads[name] = bootstrapped(partial(_lead, means), len(means), None, N_RESAMPLES, 0)
            asked.append(rows)
    if not leads:
        return NO_ROWS
    verdicts = all_of(
        judge(c.interval, variation=variation_of(rows, "region_count"))
        for c, rows in zip(leads.values(), asked, strict=True)
    )
    least = min(leads.values(), key=lambda c: c.value)
    evidence = "; ".join(f"{name}: larger by {c}" for name, c in leads.items())
    return _finding(verdicts, evidence, least.value, least.interval, reported)


def _lead(means: Any, weights: Any) -> Any:
    pearson, (count, gap, *others) = KINDS["pearson"], means.T
    best = np.abs([pearson(weights, other, gap) for other in others]).max(axis=0)
    return pearson(weights, count, gap) - best


def grid_findings(table: "pd.DataFrame") -> dict[str, Finding]:
    """The share of regions that the paper's grids miss in networks, where the count beside them is exact."""
    lines = [line for line in _lines(table) if line["by"] == "exact" and line["model"].model not in CLASSICAL]
    said = {
        "grid": (1, 200, "2.78 with 200 points, 2.78 with 500"),
        "plane_grid": (2, 30, "2.78 with 30 x 30 points, 2.78 with 50 x 50"),
    }
    findings = {}
    for key, (dim, points, reported) in said.items():
        chosen = [x for x in lines if (x["dimension"], x["points per axis"]) == (dim, points)]
        findings[key] = _fewer(chosen, "missed share", FEW_MISSED, "{model}: {missed share:.2%}", reported)
    return findings


def _lines(table: "pd.DataFrame") -> list[dict[str, Any]]:
    return [dict(zip(table.columns, line, strict=True)) for line in table.to_numpy(object).tolist()]


def _fewer(lines: list[dict[str, Any]], column: str, bound: float, text: str, reported: str) -> Finding:
    """The claim that a column, which has an interval, is below a bound in every line of a table."""
    if not lines:
        return NO_ROWS
    worst = max(lines, key=lambda line: line[column])
    return _finding(
        all_of(judge((bound - line["high"], bound - line["low"])) for line in lines),
        "; ".join(text.format(**line) for line in lines),
        worst[column],
        (worst["low"], worst["high"]),
        reported,
    )


def variant_findings(tables: "Mapping[str, pd.DataFrame]") -> dict[str, Finding]:
    """The claims that a correlation is there as well: from the tables of the variants."""
    findings = {}
    for key, column, usual, said in (
        ("dimension", "dimension", 1, "r = .96 to .97 (ResNet18)"),
        ("span", "span", "[0, 1]", "strong"),
        ("probe", "probe", "test pairs", "r = .78 to .99"),
        ("optimiser", "optimiser", "sgd", "r = .78 to .99"),
    ):
        lines = [line for line in _lines(tables[key]) if line[column] != usual]
        findings[key] = weakest({f"{x['model']}, {x[column]}": _compared(x) for x in lines}, said)
    return findings


def _compared(line: dict[str, Any]) -> ComparedCorrelation:
    """A line of a table; a number that it lacks is NaN there."""
    ratio, reported = (line.get(key) for key in ("variation", "published"))
    return ComparedCorrelation(
        Correlation(line["r"], (line["low"], line["high"]), line["configurations"]),
        None if ratio is None or np.isnan(ratio) else float(ratio),
        None if reported is None or np.isnan(reported) else float(reported),
    )


def augmentation_finding(table: "pd.DataFrame") -> Finding:
    """The change of the count over pairs of equal learning rate and batch size."""
    text = "{model}, {augmentation}: {change:+.2f} [{low:+.2f}, {high:+.2f}] regions"
    return _fewer(
        _lines(table), "change", 0.0, text, "2.65 with mixup, 2.72 with crop and flip, 3.31 without"
    )


def evolution_finding(table: "pd.DataFrame") -> Finding:
    """The correlation at the start and at the end of training."""
    by_model: dict[Subject, list[dict[str, Any]]] = {}
    for line in _lines(table):
        by_model.setdefault(line["model"], []).append(line)
    if not by_model:
        return NO_ROWS
    ends = {name: (lines[0], _compared(lines[-1])) for name, lines in by_model.items()}
    verdicts = [_grown(first["r"], last) for first, last in ends.values()]
    texts = (
        f"{name}: r = {first['r']:+.2f} at epoch {first['epoch']}, at the end {c}"
        for name, (first, c) in ends.items()
    )
    least = min((c.r for _, c in ends.values()), key=lambda c: c.value)
    reported = "very low at the start, growing from there"
    return _finding(all_of(verdicts), "; ".join(texts), least.value, least.interval, reported)


def _grown(first: float, last: ComparedCorrelation) -> Verdict:
    """Strong in the end, and more so than at the start; a fall is a failure where it can be seen."""
    verdict = last.judged()
    if verdict.holds and first >= last.r.value:
        return Verdict(holds=None if last.variation is None else False)
    return verdict
