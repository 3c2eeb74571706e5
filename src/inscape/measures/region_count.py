"""The region count R_d: how many decision regions a random low-dimensional slice of the data meets.

What high and low mean: a model that cuts the hull of a few data points into many regions is a complicated
function there; over many trained models, fewer regions went with a smaller generalisation gap (Li et al.
2025). When it does not hold: among models far from fitting their training data, within one learning rate,
and for families such as k-nearest neighbours; the count of one model alone says little.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import MeasureError, PartitionError, ProbeError, warn
from inscape.measures.measurement import Measurement, Z, mean_with_error
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.partition.decision.adaptive import adaptive_regions
from inscape.partition.decision.exact import exact_regions
from inscape.partition.decision.exact.trees import status_of_all
from inscape.partition.decision.grid import labelled_blocks
from inscape.partition.decision.method import RegionRequest, check_method
from inscape.partition.decision.regions import DecisionPlane, DecisionSegment
from inscape.pictures import Drawn
from inscape.probes import Probe, Segment
from inscape.probes.patch import check_features
from inscape.probes.sampling import draw_probes
from inscape.probes.source import for_model
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, CONVERGED, HEADINGS, NOT_CONVERGED, NOT_DETERMINISTIC, Status

_GIVEN = {"how": "given", "span": None, "length": None, "classes": None}
"""What is on record of how ready probes were drawn."""
UNSEEN_REGIONS = 6.0
"""Regions that n probes together may lack without a sign of it where the model has steps only: what is met on
none of n probes happens on fewer than 3 / n of them, with 95 % confidence, and loses two regions there."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegionCount(Measurement, Drawn):
    """The mean number of decision regions over random probes, with its error.

    The `value` is the mean count, an estimate of R_d, and `std_error` its standard error over the `n` probes,
    NaN for a single one. The `interval` is that of R_d, from Student's t; an adaptive count adds the most
    that it is taken to miss, the upper end of `missed_interval`, to its upper end. The `method` is "exact",
    "adaptive" or "grid". The `status` is "converged" if the resolution is fine enough (see `resolution_bias`)
    or the estimate `missed` is as small, else "not converged in resolution", and why; "convergence not shown"
    in place of "converged" where there are no scores or they are piecewise constant; "complete" if exact,
    with a word on ties where there are any. The `settings` are dim, how ("given" for ready probes), span,
    length, classes, resolution, connectivity.

    Attributes:
        counts: the count on each probe, (n,).
        coarse_mean: the mean count on every second grid point of the same evaluations; None if not known.
        missed: the regions that each count misses on average, as the adaptive method estimates; else None.
        missed_interval: the 95 % interval of that estimate: the true mean on these probes lies between
            mean and mean + missed_interval[1].
        missed_basis: what that estimate rests on.
        reason: why it was counted by that method.
        is_exact: whether each count is exact (the mean over probes is an estimate all the same).
        n_evaluations: at how many points the model was evaluated.
        classes_off_data: labels predicted somewhere on the probes but at none of the data points that span
            them; None if the probes do not end at data points.
    """

    measure: ClassVar[str] = "region_count"

    counts: Ints
    coarse_mean: float | None
    missed: float | None
    missed_interval: tuple[float, float] | None = None
    missed_basis: str | None
    reason: str
    is_exact: bool
    n_evaluations: int
    classes_off_data: tuple[int, ...] | None

    @property
    def mean(self) -> float:
        """The mean count, which is the value."""
        return self.value

    @property
    def resolution_bias(self) -> float | None:
        """What the mean would gain from half the spacing again, estimated by what the last halving gained.

        Regions narrower than the spacing are missed in proportion to it, so each halving of the
        spacing recovers half of what was missing. The count has converged if this is at most 1 % of
        the mean, or at most 5 % and half of the interval's half-width.
        """
        return None if self.coarse_mean is None else self.mean - self.coarse_mean

    def probes_needed(self, half_width: float) -> int:
        """How many probes give a 95 % interval of mean +- `half_width`, at the spread seen here.

        The half-width is taken as 1.96 standard errors: n = (1.96 s / half_width)^2, at least 2.
        """
        if not half_width > 0:
            raise PartitionError(f"half_width={half_width} must be positive")
        if len(self.counts) < 2:
            raise PartitionError("one probe shows no spread: measure at least 2 first")
        s = float(np.std(self.counts, ddof=1))
        root = Z * s / half_width
        if root > 1e9:
            raise PartitionError(f"half_width={half_width} is too small: no number of probes gives it")
        return max(2, math.ceil(root**2))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return super().to_dict() | {"mean": self.mean}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote, also where the value is there as the mean alone."""
        known = {"missed_interval": None} | data
        if "mean" in data and "counts" in data:
            known = {"value": data["mean"], "n": len(data["counts"])} | known
        try:
            result = super().from_dict(known)
        except MeasureError as error:
            raise PartitionError(str(error)) from error
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in result.settings.items()}
        return replace(result, settings=settings)

    def _draw(self, ax: Any) -> Any:
        """How the counts are distributed over probes."""
        from inscape.drawing.measures import draw_counts

        return draw_counts(self.counts, self.mean, self.interval, title=self.provenance.model, ax=ax)

    def __repr__(self) -> str:
        d, n = self.settings["dim"], len(self.counts)
        value = f"{self.value:.3g} +- {self.std_error:.2g}"
        return f"<region count R_{d} = {value} on {n} probes, {self.method}, {self.status.heading}>"


def region_count(
    model: Any,
    x: Any = None,
    *,
    probes: Sequence[Probe] | None = None,
    dim: int = 1,
    n_probes: int = 100,
    method: str = "auto",
    resolution: int | None = None,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    y: npt.ArrayLike | None = None,
    classes: str = "any",
    connectivity: str = "face",
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    n_jobs: int | None = None,
) -> RegionCount:
    """R_d of Def. 4: the expected number of decision regions on the hull of d + 1 random data points.

    R_d = E_{x_1, ..., x_{d+1}} [ number of maximal connected sets of equal prediction in
    Conv{x_1, ..., x_{d+1}} ]  (Li et al. 2025, arXiv 2505.11370, Def. 4), estimated by the mean over
    `n_probes` random hulls. We draw the points without repetition and draw again when two coincide.
    The cost, in forward evaluations, is n_probes times the linear pieces of one segment if the count is
    exact, about 20 to 30 on a segment if it is adaptive (200 to 400 where scores are piecewise constant or
    not known), or the grid points of one hull.

    Args:
        model: anything that `inscape.wrap` takes.
        x: the data that span the probes; see `inscape.sample_probes`.
        probes: ready probes of one dimension instead of data, such as `inscape.sample_probes` returns; what
            says how to draw them (dim, n_probes, how, span, length, y, classes, random_state) is left out.
        dim: the dimension d of the hulls.
        n_probes: how many hulls.
        method: see `inscape.decision_regions`.
        resolution: grid points per axis (200 in 1D, 30 in 2D, at most 4,096 points in all above), or the
            finest step of the adaptive method; see `inscape.decision_regions`.
        how: "pairs" or "direction"; see `inscape.sample_probes`.
        span: for segments, the interval of t.
        length: for "direction", how far to go; by default half of the median distance of two points.
        y: the classes of x, for `classes`.
        classes: "any", "same" or "different".
        connectivity: "face" or "full".
        precision: "float64", or "float32" for a faster exact count whose near ties are repaired.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        n_jobs: threads, as for `inscape.decision_regions`.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> result = region_count(lambda x: (x[:, 0] > 0).astype(int), x, random_state=0)
    >>> sorted(set(result.counts.tolist())), result.status.kind, result.status.detail
    ([1, 2], 'not_shown', 'the model has no scores; raise resolution and compare the counts')
    """
    drawing: dict[str, Any] = {
        "dim": dim,
        "n_probes": n_probes,
        "how": how,
        "span": span,
        "length": length,
        "y": y,
        "classes": classes,
        "random_state": random_state,
    }
    counting: dict[str, Any] = {
        "method": method,
        "resolution": resolution,
        "connectivity": connectivity,
        "precision": precision,
    }
    wrapped = wrap(model)
    if probes is None:
        if x is None:
            raise ProbeError("there is nothing to count on: give x, the data, or probes")
        counter = draw_counter(for_model(wrapped, x), **drawing, **counting)
    else:
        _check_given(x, probes, drawing)
        check_features(wrapped, probes)
        counter = Counter(probes=probes, **counting, variant=_GIVEN)
    with working(n_jobs):
        return counter.count(wrapped, progress=progress)


def _check_given(x: Any, probes: Any, drawing: dict[str, Any]) -> None:
    """Raise an error for ready probes that are none, or beside what would draw others."""
    if x is not None:
        raise ProbeError("x and probes are both given: give x to draw probes from, or the probes alone")
    defaults = signature(draw_counter).parameters
    for name, value in drawing.items():
        default = defaults[name].default
        if value is not default and (default is None or value != default):
            raise ProbeError(f"{name} says how to draw probes: leave it out where probes are given")
    is_list = isinstance(probes, Sequence) and len(probes) > 0
    if not is_list or not all(isinstance(p, Probe) for p in probes):
        raise ProbeError(f"probes must be a list of Segments, Simplices or Patches, got {probes!r}")
    dims = sorted({p.dim for p in probes})
    if len(dims) > 1:
        raise ProbeError(
            f"the probes have dimensions {', '.join(map(str, dims))}: count each dimension apart"
        )


@dataclass
class Tally:
    """The count on each probe, and what was seen on the way.

    Attributes:
        counts: the count on each probe.
        n_evaluations: at how many points the model was evaluated.
        coarse_mean: on a grid, the mean count on every second point; None if not known.
        resolution: on a grid, points per axis.
        missed: the estimated number of regions missed per probe; None if there is no estimate.
        missed_interval: the 95 % interval of that number; None likewise.
        missed_basis: what it rests on.
        not_shown: "convergence not shown" and why, where the model has steps only; None where scores tell.
        status: of exact counts, and of adaptive ones with something special; None where it depends on the
            errors.
        anywhere: the labels that were predicted.
        at_corners: those that were predicted at a corner of a probe.
        provenance: of the results on probes, where they share one.
    """

    counts: list[int] = field(default_factory=list)
    n_evaluations: int = 0
    coarse_mean: float | None = None
    resolution: int | None = None
    missed: float | None = None
    missed_interval: tuple[float, float] | None = None
    missed_basis: str | None = None
    not_shown: Status | None = None
    status: Status | None = None
    anywhere: set[int] = field(default_factory=set)
    at_corners: set[int] = field(default_factory=set)
    provenance: Provenance | None = None

    def see(self, labels: Ints, at_corners: Ints) -> None:
        """Note which labels were predicted."""
        self.anywhere.update(labels.ravel().tolist())
        self.at_corners.update(at_corners.ravel().tolist())

    def warn_if_constant(self, model: Model, name: str) -> None:
        """Warn, two callers up, if only one label was seen."""
        if len(self.anywhere) == 1:
            (label,) = self.anywhere
            warn(
                f"{name} predicts class {model.class_name(label)} everywhere on the probes: "
                "its region count is 1, which says nothing about its complexity"
            )


def count_on_grid(
    model: Model, probes: Sequence[Probe], resolution: int | None, connectivity: str, meter: Meter
) -> Tally:
    """Count on the grid of each probe, and again on every second point of the same evaluations."""
    tally, coarse = Tally(), []
    for block in labelled_blocks(model, probes, resolution, meter=meter, with_scores=True):
        tally.counts += block.components(connectivity)[1].tolist()
        coarse.append(block.coarse_counts(connectivity))
        tally.see(block.labels, block.labels[:, block.lattice.corners()])
        tally.n_evaluations += block.labels.size
        tally.resolution = block.lattice.resolution
        tally.not_shown = tally.not_shown or block.not_shown
    tally.status = NOT_DETERMINISTIC if model.is_random else None
    known = [c for c in coarse if c is not None]
    tally.coarse_mean = float(np.mean(np.concatenate(known))) if known else None
    return tally


def count_exactly(
    model: Model, probes: Sequence[Probe], precision: str, meter: Meter, max_faces: float = math.inf
) -> Tally:
    """Count every region on each probe; the status says on how many there is something to note."""
    tally, special, trees = Tally(), [], []
    for r in exact_regions(model, probes, precision=precision, meter=meter, max_faces=max_faces):
        tally.counts.append(r.n_regions)
        tally.see(r.labels, r.corner_labels)
        tally.n_evaluations += r.n_evaluations
        if isinstance(r, DecisionSegment | DecisionPlane) and r.trees is not None:
            trees.append(r.trees)
        elif r.status != COMPLETE:
            special.append(r.status)
    tally.status = status_of_all(trees) if trees else _of_exact_counts(special, len(tally.counts))
    return tally


def _of_exact_counts(special: list[Status], n: int) -> Status:
    """The status of n exact counts, of which some have a note."""
    if not special:
        return COMPLETE
    first = special[0]
    detail = f"on {len(special)} of {n} probes {first.detail}"
    return Status(first.kind, detail, text=f"{COMPLETE}; {detail}")


def count_adaptively(model: Model, probes: Sequence[Probe], resolution: int | None, meter: Meter) -> Tally:
    """Count on each probe where the scores say that a region could hide; the status says where more could."""
    tally, special, missed, basis = Tally(resolution=resolution), [], [], ""
    for r in adaptive_regions(model, probes, resolution=resolution, meter=meter):
        tally.counts.append(r.n_regions)
        tally.see(r.labels, r.corner_labels)
        tally.n_evaluations += r.n_evaluations
        missed.append(r.missed or 0.0)
        tally.provenance = r.provenance
        basis = r.missed_basis or ""
        if r.status.kind == "not_shown":
            tally.not_shown = r.status
        elif r.status.detail:
            special.append(r.status)
    n = len(tally.counts)
    tally.missed, tally.missed_interval = _mean_missed(
        np.array(missed), has_steps=tally.not_shown is not None
    )
    tally.missed_basis = f"over {n} probes, each like the last: {basis}"
    if special:
        tally.status = _of_adaptive_counts(special, n)
    return tally


def _of_adaptive_counts(special: list[Status], n: int) -> Status:
    """The status of n adaptive counts, of which some did not converge, or whose model is random."""
    first = special[0]
    if first.kind != "not_converged":
        return first
    where = f"on {len(special)} of {n} probes: {first.detail}"
    return Status(first.kind, where, text=f"{HEADINGS[first.kind]} {where}")


def _mean_missed(missed: Floats, *, has_steps: bool) -> tuple[float, tuple[float, float]]:
    """The mean of what was missed on each probe, and its 95 % interval; see `UNSEEN_REGIONS`.

    Between steps, regions are missed in twos, as many as chance has it: the variance of their number is twice
    what is expected.
    """
    n, mean = len(missed), float(missed.mean())
    error = float(np.std(missed, ddof=1)) / math.sqrt(n) if n > 1 else mean
    if not has_steps:
        return mean, (max(0.0, mean - Z * error), mean + Z * error)
    error = math.sqrt(error**2 + 2 * mean / n)
    return mean, (max(0.0, mean - Z * error), mean + Z * error + UNSEEN_REGIONS / n)


@dataclass(frozen=True, eq=False, kw_only=True)
class Counter:
    """Probes and how to count on them: several models can share them.

    Attributes:
        probes: all of one dimension.
        method: "auto", "exact", "adaptive" or "grid".
        resolution: for the grid and the adaptive method.
        connectivity: for the grid.
        precision: for exact counts.
        seed: the seed of the probes, for the record.
        variant: how the probes were drawn, for the record.
    """

    probes: Sequence[Probe]
    method: str = "auto"
    resolution: int | None = None
    connectivity: str = "face"
    precision: str = "float64"
    seed: int | None = None
    variant: dict[str, Any] = field(default_factory=dict)

    def count(
        self,
        model: Model,
        *,
        name: str | None = None,
        progress: bool | Meter | None = None,
    ) -> RegionCount:
        """The region count of a wrapped model, by the method that fits it.

        `name` is what a warning calls the model, if not by its own name.
        """
        request = RegionRequest(
            method=self.method,
            resolution=self.resolution,
            connectivity=self.connectivity,
            precision=self.precision,
        )
        first = request.choose(model, self.probes)
        with meter(progress, "decision regions") as show:
            choice, tally = request.carry_out(
                first,
                self.probes,
                exact=lambda: count_exactly(model, self.probes, self.precision, show, first.max_faces),
                adaptive=lambda: count_adaptively(model, self.probes, self.resolution, show),
                grid=lambda: count_on_grid(model, self.probes, self.resolution, self.connectivity, show),
            )
        is_exact = choice.method == "exact"
        tally.warn_if_constant(model, name or model.name)
        counts = np.array(tally.counts, dtype=np.int64)
        mean, std_error, (low, high) = mean_with_error(counts)
        status = tally.status or _status(mean, (high - low) / 2, tally)
        interval = (max(low, 1.0), high + _most_missed(tally))  # there is at least one region
        off = tuple(sorted(tally.anywhere - tally.at_corners))
        dtype = self.precision if is_exact and model.structure == "piecewise-affine" else None
        return RegionCount(
            value=mean,
            std_error=std_error,
            interval=interval,
            n=len(counts),
            counts=counts,
            coarse_mean=tally.coarse_mean,
            missed=tally.missed,
            missed_interval=tally.missed_interval,
            missed_basis=tally.missed_basis,
            method=choice.method,
            reason=choice.reason,
            is_exact=is_exact and dtype != "float32",
            status=status,
            n_evaluations=tally.n_evaluations,
            classes_off_data=off if self._ends_at_data() else None,
            settings={
                "dim": self.probes[0].dim,
                "resolution": tally.resolution,
                "connectivity": self.connectivity if choice.method == "grid" else None,
                **self.variant,
            },
            provenance=Provenance.of(model, self.seed, dtype)
            if tally.provenance is None
            else replace(tally.provenance, seed=self.seed),
        )

    def _ends_at_data(self) -> bool:
        """Whether the corners of the probes are data points."""
        first = self.probes[0]
        beyond = isinstance(first, Segment) and first.span != (0, 1)
        return self.variant.get("how") == "pairs" and not beyond


def draw_counter(
    x: Any,
    *,
    dim: int = 1,
    n_probes: int = 100,
    method: str = "auto",
    resolution: int | None = None,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    y: npt.ArrayLike | None = None,
    classes: str = "any",
    connectivity: str = "face",
    precision: str = "float64",
    random_state: RandomState = None,
) -> Counter:
    """Random probes, drawn and counted on as `region_count` says."""
    check_method(method)
    n_probes = whole_number(n_probes, "n_probes", 1, ProbeError)
    seed = as_seed(random_state)
    probes = draw_probes(
        x, dim=dim, n=n_probes, how=how, span=span, length=length, y=y, classes=classes, random_state=seed
    )
    variant = {
        "how": how,
        "span": (float(span[0]), float(span[1])),
        "length": probes.length,
        "classes": classes,
    }
    return Counter(
        probes=probes,
        method=method,
        resolution=resolution,
        connectivity=connectivity,
        precision=precision,
        seed=seed,
        variant=variant,
    )


def _most_missed(tally: Tally) -> float:
    """The most regions that each count is taken to miss on average, 0 where there is no estimate."""
    return 0.0 if tally.missed_interval is None else tally.missed_interval[1]


def _status(mean: float, half_width: float, tally: Tally) -> Status:
    """Whether what the resolution hides, as far as can be told, is small beside the mean or its error."""
    hidden = tally.missed
    if tally.coarse_mean is not None:
        hidden = abs(mean - tally.coarse_mean)
    if hidden is None:
        return NOT_CONVERGED
    tolerated = 0.0 if math.isnan(half_width) else min(half_width / 2, 0.05 * mean)
    return (tally.not_shown or CONVERGED) if hidden <= max(0.01 * mean, tolerated) else NOT_CONVERGED
