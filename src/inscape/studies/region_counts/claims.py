"""What the rows say of each claim of the paper: held, did not hold, or cannot be said."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.coefficients import KINDS, N_RESAMPLES, Correlation, bootstrapped, correlation
from inscape.correlation.correlate import Correlations
from inscape.reports.findings import Finding
from inscape.studies.region_counts.selection import (
    FITTED,
    NETWORKS_TOGETHER,
    TREES_TOGETHER,
    Subject,
    networks,
    part,
    seed_means,
)
from inscape.studies.region_counts.settings import CLASSICAL

if TYPE_CHECKING:
    import pandas as pd

STRONG = 0.5
"""A claimed correlation did not hold if its whole interval is below this: no strong one is left."""
FEW_MISSED = 0.01
"""The share of regions that a grid may miss."""
CLAIMS = {
    "networks": f"Networks of {FITTED:.0%} training accuracy or more: the more regions, the larger the gap.",
    "pooled": "So do different networks taken together.",
    "tree": "So do decision trees, over depths, criteria and splitters.",
    "forest": "So do random forests.",
    "classical": "So do trees and forests taken together.",
    "learning_rate": "A larger learning rate gives fewer regions.",
    "batch_size": "A smaller batch gives fewer regions.",
    "baselines": "The count goes with the gap more than distance to the initial weights and margin do.",
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
    models = {"tree": ("tree",), "forest": ("forest",), "classical": CLASSICAL}
    return (
        (configuration["model"] in models[claim])
        if claim in models
        else (configuration["model"] not in CLASSICAL)
    )


NOTHING = Finding(holds=None, evidence="no rows to ask")


def strongly_positive(c: Correlation) -> bool | None:
    """Not held if the whole interval is below `STRONG`; else held if it is above zero; else not to be said.

    >>> [strongly_positive(Correlation(r, ends, 9)) for r, ends in ((0.9, (0.7, 1.0)), (0.3, (0.1, 0.4)))]
    [True, False]
    """
    low, high = c.interval
    if np.isnan(low):
        return None
    return False if high < STRONG else True if low > 0 else None


def weakest(found: Mapping[Any, Correlation], reported: str = "") -> Finding:
    """The claim that every one of some correlations is positive; its number is that of the weakest."""
    known = [c for c in found.values() if not np.isnan(c.value)]
    texts = [
        f"{name}: no variation" if np.isnan(c.value) else f"{name}: r = {c} over {c.n} configurations"
        for name, c in found.items()
        if c.n > 1
    ]
    if not known:
        return Finding(holds=None, evidence="; ".join(texts) or "too few fitted models", published=reported)
    least = min(known, key=lambda c: c.value)
    verdict = _all(strongly_positive(c) for c in found.values())
    return _finding(verdict, "; ".join(texts), least.value, least.interval, reported)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all held: False as soon as one did not, None if one cannot be said."""
    known = list(verdicts)
    return False if False in known else None if None in known else True


def _finding(
    holds: bool | None, evidence: str, value: float, interval: tuple[float, float], reported: str
) -> Finding:
    known = not np.isnan(interval[0])
    return Finding(
        holds=holds,
        evidence=evidence,
        value=float(value),
        interval=interval if known else None,
        published=reported,
    )


def main_findings(found: Mapping[Subject, Correlations]) -> dict[str, Finding]:
    """Each model alone, and pooled."""
    r = {subject: c.pearson for subject, c in found.items()}
    nets = {s: c for s, c in r.items() if not s.is_pooled and s.model not in CLASSICAL}

    def of(model: str) -> dict[Subject, Correlation]:
        return {s: c for s, c in r.items() if s.model == model}

    return {
        "networks": weakest(nets, "r = .94 to .98 in nine networks"),
        "pooled": weakest(of(NETWORKS_TOGETHER.model), "r = .93"),
        "tree": weakest(of("tree"), "r = .96"),
        "forest": weakest(of("forest"), "r = .98"),
        "classical": weakest(of(TREES_TOGETHER.model), "r = .90"),
    }


def trend_findings(frame: "pd.DataFrame") -> dict[str, Finding]:
    """How the count goes with the logarithm of learning rate and batch size, over configurations."""
    found = {}
    for key, which, sign in (("learning_rate", "learning rate", -1), ("batch_size", "batch size", 1)):
        own = networks(part(frame, which))
        trends = {}
        for name, rows in networks(part(frame, "sweep")).items():
            means = seed_means(own.get(name, rows), [key, "region_count"])
            if len(means) > 1:
                trends[name] = correlation(sign * np.log(means[key]), means["region_count"])
        finding = weakest(trends, "in all three networks of Fig. 3")
        words = (
            "of the count with log(1 / learning rate)" if sign < 0 else "of the count with log(batch size)"
        )
        found[key] = Finding(
            holds=finding.holds,
            evidence=f"correlation {words}: {finding.evidence}",
            value=finding.value,
            interval=finding.interval,
            published=finding.published,
        )
    return found


def baseline_finding(frame: "pd.DataFrame") -> Finding:
    """By how much the count's correlation exceeds the larger one, without its sign, of the two baselines."""
    leads = {}
    for name, rows in networks(part(frame, "sweep")).items():
        means = seed_means(rows, ["region_count", "distance", "margin", "gap"]).to_numpy()
        if len(means) > 3:
            leads[name] = bootstrapped(partial(_lead, means), len(means), None, N_RESAMPLES, 0)
    if not leads:
        return NOTHING
    verdicts = {_above(c.interval, 0.0) for c in leads.values()}
    least = min(leads.values(), key=lambda c: c.value)
    evidence = "; ".join(f"{name}: larger by {c}" for name, c in leads.items())
    return _finding(
        _all(verdicts), evidence, least.value, least.interval, "low correlations of both in Fig. 4"
    )


def _lead(means: Any, weights: Any) -> Any:
    pearson, (count, distance, margin, gap) = KINDS["pearson"], means.T
    others = np.abs([pearson(weights, distance, gap), pearson(weights, margin, gap)]).max(axis=0)
    return pearson(weights, count, gap) - others


def _above(interval: tuple[float, float], bound: float) -> bool | None:
    low, high = interval
    return True if low > bound else False if high < bound else None


def grid_findings(table: "pd.DataFrame") -> dict[str, Finding]:
    """The share of regions that the paper's grids miss in networks, where the count beside them is exact."""
    lines = [line for line in _lines(table) if line["by"] == "exact" and line["model"].model not in CLASSICAL]
    said = {
        "grid": (1, 200, "2.78 with 200 points, 2.78 with 500"),
        "plane_grid": (2, 30, "2.78 with 30 x 30 points, 2.78 with 50 x 50"),
    }
    found = {}
    for key, (dim, points, reported) in said.items():
        mine = [x for x in lines if (x["dimension"], x["points per axis"]) == (dim, points)]
        found[key] = _fewer(mine, "missed share", FEW_MISSED, "{model}: {missed share:.2%}", reported)
    return found


def _lines(table: "pd.DataFrame") -> list[dict[str, Any]]:
    return [dict(zip(table.columns, line, strict=True)) for line in table.to_numpy(object).tolist()]


def _fewer(lines: list[dict[str, Any]], column: str, bound: float, text: str, reported: str) -> Finding:
    """The claim that a column, which has an interval, is below a bound in every line of a table."""
    if not lines:
        return NOTHING
    worst = max(lines, key=lambda line: line[column])
    return _finding(
        _all(_above((-line["high"], -line["low"]), -bound) for line in lines),
        "; ".join(text.format(**line) for line in lines),
        worst[column],
        (worst["low"], worst["high"]),
        reported,
    )


def variant_findings(tables: "Mapping[str, pd.DataFrame]") -> dict[str, Finding]:
    """The claims that a correlation is there as well: from the tables of the variants."""
    found = {}
    for key, column, usual, said in (
        ("dimension", "dimension", 1, "r = .96 to .97 (ResNet18)"),
        ("span", "span", "[0, 1]", "strong"),
        ("probe", "probe", "test pairs", "r = .78 to .99"),
        ("optimiser", "optimiser", "sgd", "r = .78 to .99"),
    ):
        lines = [line for line in _lines(tables[key]) if line[column] != usual]
        found[key] = weakest({f"{x['model']}, {x[column]}": _correlation(x) for x in lines}, said)
    return found


def _correlation(line: dict[str, Any]) -> Correlation:
    return Correlation(line["r"], (line["low"], line["high"]), line["configurations"])


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
        return NOTHING
    ends = {name: (lines[0], _correlation(lines[-1])) for name, lines in by_model.items()}
    verdicts = [strongly_positive(c) and not first["r"] >= c.value for first, c in ends.values()]
    texts = (
        f"{name}: r = {first['r']:+.2f} at epoch {first['epoch']}, {c} at the end"
        for name, (first, c) in ends.items()
    )
    least = min((c for _, c in ends.values()), key=lambda c: c.value)
    reported = "very low at the start, growing from there"
    return _finding(_all(verdicts), "; ".join(texts), least.value, least.interval, reported)
