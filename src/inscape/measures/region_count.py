"""The region count R_d: how many decision regions a random low-dimensional slice of the data meets.

What high and low mean: a model that cuts the hull of a few data points into many regions is a complicated
function there; over many trained models, fewer regions went with a smaller generalisation gap (Li et al.
2025). When it does not hold: among models far from fitting their training data, within one learning rate,
and for families such as k-nearest neighbours; the count of one model alone says little.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import ProbeError
from inscape.measures.region_count_result import RegionCount
from inscape.measures.statistics import mean_with_error
from inscape.measures.tally import Tally, count_adaptively, count_exactly, count_on_grid
from inscape.models import Model, wrap
from inscape.partition.decision.method import Request, check_method
from inscape.probes import Probe, Segment
from inscape.probes.sampling import draw_probes
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import CONVERGED, NOT_CONVERGED, Status


def region_count(
    model: Any,
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
    progress: bool | Meter | None = None,
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
        dim: the dimension d of the hulls.
        n_probes: how many hulls.
        method: see `inscape.decision_regions`.
        resolution: grid points per axis (200 in 1D, 30 in 2D, at most 4,096 points in all above), or the
            finest step of the adaptive method; see `inscape.decision_regions`.
        how: "pairs" or "direction"; see `inscape.sample_probes`.
        span: for segments, the interval of t.
        length: for "direction", how far to go.
        y: the classes of x, for `classes`.
        classes: "any", "same" or "different".
        connectivity: "face" or "full".
        precision: "float64", or "float32" for a faster exact count whose near ties are repaired.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: True shows a bar on stderr; a function gets (work done, work in all).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> result = region_count(lambda x: (x[:, 0] > 0).astype(int), x, random_state=0)
    >>> sorted(set(result.counts.tolist())), result.status
    ([1, 2], 'convergence not shown: the model has no scores')
    """
    counter = draw_counter(
        x,
        dim=dim,
        n_probes=n_probes,
        method=method,
        resolution=resolution,
        how=how,
        span=span,
        length=length,
        y=y,
        classes=classes,
        connectivity=connectivity,
        precision=precision,
        random_state=random_state,
    )
    return counter.count(wrap(model), progress=progress)


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
        request = Request(method=self.method, resolution=self.resolution, connectivity=self.connectivity)
        choice = request.choose(model, self.probes)
        with meter(progress, "regions") as show:
            choice, tally = request.carry_out(
                choice,
                self.probes,
                exact=lambda: count_exactly(model, self.probes, self.precision, show),
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
        dtype = self.precision if is_exact and model.structure != "trees" else None
        return RegionCount(
            mean=mean,
            std_error=std_error,
            interval=interval,
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
            provenance=Provenance.of(model, self.seed, dtype),
        )

    def _ends_at_data(self) -> bool:
        """Whether the corners of the probes are data points."""
        first = self.probes[0]
        beyond = isinstance(first, Segment) and first.span != (0, 1)
        return self.variant.get("how") != "direction" and not beyond


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
        "length": None if length is None else float(length),
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
    noise = 0.0 if math.isnan(half_width) else min(half_width / 2, 0.05 * mean)
    return (tally.not_shown or CONVERGED) if hidden <= max(0.01 * mean, noise) else NOT_CONVERGED
