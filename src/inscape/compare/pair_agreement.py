"""How far two models agree: on random probes between data points, and at the data points themselves.

What high and low mean: of a model and its next checkpoint, export or quantised copy, how much of what lies
between the data was left alone; of two trainings, how far the data decide what is learnt. When it does not
hold: two models that give one label everywhere agree, and so do two that share a mistake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats
from inscape.budget import BUDGET, as_budget
from inscape.compare.comparison import shares_of
from inscape.compare.matching import Matching
from inscape.compare.on_probes import (
    Pair,
    both_regions,
    disagreements_along,
    joint_missed,
    joint_reason,
    joint_status,
    own_regions,
    regions_on,
)
from inscape.errors import MeasureError, ProbeError, unknown_name
from inscape.measures.measurement import Measurement, as_source, mean_with_error, wilson
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.partition.decision.method import RegionRequest
from inscape.pictures import Drawn
from inscape.probes import Probe, sample_probes
from inscape.probes.sampling import draw_probes
from inscape.probes.source import for_models
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, Status

UNSEEN = 3.0
"""What is met on none of n probes happens on fewer than 3 / n of them, with 95 % confidence."""
N_COMPARED = 12
"""Data points at which classes are matched."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairAgreement(Measurement, Drawn):
    """The mean share of random probes on which two models have the same label, with its error.

    The `value` is that mean, `std_error` its standard error over the `n` probes, and the `interval` from
    Student's t, cut off at 0 and 1; where all shares are 1 its lower end is 1 - 3 / n. The `settings` are
    dim, how, span, length and resolution.

    Attributes:
        names: of the two models.
        shares: the share of each probe's length or area on which they agree, (n,).
        at_points: the share of the data points at which they do.
        at_points_interval: its 95 % interval (Wilson).
        n_points: how many data points that were.
        is_exact: whether every share is exact (the mean over probes is an estimate all the same).
        n_evaluations: at how many points the models were evaluated on the probes, together.
        missed: what the adaptive method estimates that it missed of the regions of both models, per probe.
        missed_basis: what that estimate rests on.
        reason: why this method was taken.
        second: the provenance of the second model; `provenance` is that of the first.
    """

    measure: ClassVar[str] = "pair_agreement"

    names: tuple[str, str]
    shares: Floats
    at_points: float
    at_points_interval: tuple[float, float]
    n_points: int
    is_exact: bool
    n_evaluations: int
    missed: float | None
    missed_basis: str | None
    reason: str
    second: Provenance

    @property
    def mean(self) -> float:
        """The mean share of agreement, which is the value."""
        return self.value

    @property
    def disagreement(self) -> float:
        """The mean share on which the labels differ."""
        return 1.0 - self.value

    def _draw(self, ax: Any) -> Any:
        """How the shares are distributed over probes."""
        from inscape.drawing.measures import draw_values

        title = f"{self.names[0]} and {self.names[1]}"
        return draw_values(
            self.shares, self.value, xlabel="share of agreement", title=title, of="probes", ax=ax
        )

    def __repr__(self) -> str:
        value = f"{self.value:.4g} +- {self.std_error:.2g} on {self.n} probes"
        a, b = self.names
        return (
            f"<agreement of {a} and {b} = {value}, {self.at_points:.4g} at {self.n_points} data points, "
            f"{self.method}, {self.status.heading}>"
        )


def agreement(
    a: Any,
    b: Any,
    x: Any,
    *,
    n_probes: int = 100,
    dim: int = 1,
    method: str = "auto",
    resolution: int | None = None,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
) -> PairAgreement:
    """The mean share of random probes on which two models have the same label; and at the data points.

    The cost is that of `inscape.region_count` of both models.

    Args:
        a: anything that `inscape.wrap` takes.
        b: another model of the same inputs and classes, matched as `inscape.compare` does.
        x: the data that span the probes; see `inscape.sample_probes`.
        n_probes: how many probes.
        dim: 1 for segments, 2 for triangles.
        method: see `inscape.compare`.
        resolution: see `inscape.compare`.
        how: "pairs" or "direction"; see `inscape.sample_probes`.
        span: for segments, the interval of t.
        length: for "direction", how far to go.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: see `inscape.compare`.
        n_jobs: threads, as for `inscape.decision_regions`.

    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> ours, theirs = (lambda x: np.c_[0 * x, x - 0.5]), (lambda x: np.c_[0 * x, x - 0.6])
    >>> r = agreement(ours, theirs, x, n_probes=200, random_state=0)
    >>> bool(r.interval[0] < r.mean < r.interval[1]), r.at_points
    (True, 0.9)
    """
    if dim not in (1, 2):
        raise ProbeError(f"dim={dim!r}: models are compared on segments (1) and triangles (2)")
    n_probes = whole_number(n_probes, "n_probes", 1, ProbeError)
    seed = as_seed(random_state)
    first, second = wrap(a), wrap(b)
    source = as_source(for_models((first, second), x))
    probes = draw_probes(
        source,
        dim=dim,
        n=n_probes,
        how=how,
        span=span,
        length=length,
        y=None,
        classes="any",
        random_state=seed,
    )
    points = source.everything()[0]
    request = RegionRequest(method=method, resolution=resolution, budget=as_budget(budget))
    with meter(progress, "two models") as show, working(n_jobs):
        pair = Pair(first, second, Matching(first, second, points[:N_COMPARED]))
        shares, points_agree = _shares(pair, list(probes), request, show), _at_points(pair, points)
    mean, error, interval = mean_with_error(shares["shares"])
    dtype = "float64" if shares["is_exact"] else None
    return PairAgreement(
        value=mean,
        std_error=error,
        interval=_within(interval, shares["shares"]),
        n=len(probes),
        names=pair.names,
        settings={
            "dim": dim,
            "how": how,
            "span": [float(span[0]), float(span[1])],
            "length": probes.length,
            "resolution": resolution,
        },
        provenance=Provenance.of(first, seed, dtype),
        second=Provenance.of(second, seed, dtype),
        **points_agree,
        **shares,
    )


def _at_points(pair: Pair, points: Any) -> dict[str, Any]:
    """The share of data points at which both have the same label, and its interval."""
    alike = np.equal(*pair.matching.common(pair.a.labels(points), pair.b.labels(points)))
    n = len(alike)
    return {
        "at_points": float(alike.mean()),
        "at_points_interval": wilson(int(alike.sum()), n),
        "n_points": n,
    }


def _within(interval: tuple[float, float], shares: Floats) -> tuple[float, float]:
    """An interval of a mean share: between 0 and 1, and not a point where nothing was seen to differ."""
    low, high = interval
    if (shares == 1.0).all():
        return max(0.0, 1.0 - UNSEEN / len(shares)), 1.0
    return (low, high) if math.isnan(low) else (max(0.0, low), min(1.0, high))


def _shares(pair: Pair, probes: Sequence[Probe], request: RegionRequest, show: Meter) -> dict[str, Any]:
    """The share of agreement on each probe, and how it was found."""
    both = both_regions(pair, probes, request, show) if probes[0].dim == 1 else None
    if both is not None:
        first, second = (own.regions for own in both)
        differ = disagreements_along(first, second, pair.matching)
        regions = [*first, *second]
        missed = [joint_missed(a, b)["missed"] for a, b in zip(first, second, strict=True)]
        status = [joint_status(a, b) for a, b in zip(first, second, strict=True)]
        reason = joint_reason(*both)
    else:
        every = regions_on(pair, probes, request, show)
        regions = [r.regions for r in every]
        differ = np.array(
            [shares_of(r.regions)[np.not_equal(*r.pairs[r.regions.labels].T)].sum() for r in every]
        )
        missed, status = [r.missed for r in regions], [r.status for r in regions]
        reason = regions[0].reason
    known = [m for m in missed if m is not None]
    methods = {r.method for r in regions}
    return {
        "shares": 1.0 - differ,
        "method": methods.pop() if len(methods) == 1 else "adaptive",
        "is_exact": all(r.is_exact for r in regions),
        "n_evaluations": sum(r.n_evaluations for r in regions),
        "missed": float(np.mean(known)) if known else None,
        "missed_basis": next((r.missed_basis for r in regions if r.missed_basis), None),
        "reason": reason,
        "status": _status(status),
    }


def _status(every: list[Status]) -> Status:
    """The status of all probes: complete, or that of the first with something to note, and on how many."""
    special = [s for s in every if s != COMPLETE and s.kind != "converged"]
    if not special:
        return every[0]
    first = special[0]
    detail = f"on {len(special)} of {len(every)} probes: {first.detail or first.heading}"
    return Status(first.kind, detail)


NAME = "churn"
N_PROBES = 20


class Churn:
    """The share of fixed segments on which a model's label is not that of the last call, nor of the first.

    Only the regions of those two are kept, no copy of the model.

    Args:
        x: the points between which the segments run, at least two.
        n_probes: how many segments.
        method: see `inscape.decision_regions`.
        random_state: of the segments.
    """

    def __init__(self, x: Any, *, n_probes: int = N_PROBES, method: str = "auto", random_state: int) -> None:
        n_probes = whole_number(n_probes, "n_probes", 1, MeasureError)
        self.settings = {"n_probes": n_probes, "method": method, "dim": 1}
        self._probes = sample_probes(x, n=n_probes, random_state=random_state)
        self._request = RegionRequest(method=method)
        self._first: list[Any] | None = None
        self._last: list[Any] | None = None

    def row(self, model: Model) -> dict[str, float | None]:
        """The columns of a call: "churn" against the last one and "churn_first", each with its error.

        They are None at the first call, where there is nothing to compare with.
        """
        choice = self._request.choose(model, self._probes)
        now = own_regions(model, self._probes, self._request, choice, lambda done, total: None).regions
        row: dict[str, float | None] = {}
        for name, before in ((NAME, self._last), (f"{NAME}_first", self._first)):
            row |= {name: None, f"{name}_error": None}
            if before is not None:
                row[name], row[f"{name}_error"] = mean_with_error(disagreements_along(before, now))[:2]
        self._first, self._last = self._first or now, now
        return row


def churn_of(x: Any, settings: dict[str, Any], random_state: int) -> Churn:
    """The churn with given settings, which are checked."""
    known = ("n_probes", "method")
    for name in settings:
        if name not in known:
            raise MeasureError(unknown_name(f"setting of {NAME}", name, known))
    return Churn(x, **settings, random_state=random_state)
