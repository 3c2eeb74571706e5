"""What a region count is: the mean, its error, and how it was made."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.errors import PartitionError
from inscape.measures.statistics import Z
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import Status


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionCount:
    """The mean number of decision regions over random probes, with its error.

    Attributes:
        mean: the mean count, an estimate of R_d.
        std_error: its standard error over probes; NaN for a single probe.
        interval: the 95 % interval of R_d, from Student's t; an adaptive count adds the most that it is taken
            to miss, the upper end of `missed_interval`, to its upper end.
        counts: the count on each probe, (n_probes,).
        coarse_mean: the mean count on every second grid point of the same evaluations; None if not known.
        missed: the regions that each count misses on average, as the adaptive method estimates; else None.
        missed_interval: the 95 % interval of that estimate: the true mean on these probes lies between
            mean and mean + missed_interval[1].
        missed_basis: what that estimate rests on.
        method: how regions were counted, "exact", "adaptive" or "grid".
        reason: why so.
        is_exact: whether each count is exact (the mean over probes is an estimate all the same).
        status: "converged" if the resolution is fine enough (see `resolution_bias`) or the estimate `missed`
            is as small, else "not converged in resolution", and why; "convergence not shown" in place of
            "converged" where there are no scores or they are piecewise constant; "complete" if exact, with a
            word on ties where there are any.
        n_evaluations: at how many points the model was asked.
        classes_off_data: labels predicted somewhere on the probes but at none of the data points that span
            them; None if the probes do not end at data points.
        settings: dim, how, span, length, classes, resolution, connectivity.
        provenance: model, precision, seed, version.
    """

    mean: float
    std_error: float
    interval: tuple[float, float]
    counts: npt.NDArray[np.int64]
    coarse_mean: float | None
    missed: float | None
    missed_basis: str | None
    method: str
    reason: str
    is_exact: bool
    status: Status
    n_evaluations: int
    classes_off_data: tuple[int, ...] | None
    settings: dict[str, Any]
    provenance: Provenance
    missed_interval: tuple[float, float] | None = None

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
        return {"schema": SCHEMA, "measure": "region_count"} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        check_schema(data, "measure", "region_count", what="region count", error=PartitionError)
        result: Self = restored_fields(cls, data, what="region count", error=PartitionError)
        span = result.settings.get("span")
        return result if span is None else replace(result, settings=result.settings | {"span": tuple(span)})

    def plot(self, ax: Any = None) -> Any:
        """Draw how the counts are distributed over probes; returns the matplotlib Axes."""
        from inscape.drawing.counts import draw_counts

        return draw_counts(self.counts, self.mean, self.interval, title=self.provenance.model, ax=ax)

    def __repr__(self) -> str:
        d, n = self.settings["dim"], len(self.counts)
        value = f"{self.mean:.3g} +- {self.std_error:.2g}"
        return f"<region count R_{d} = {value} on {n} probes, {self.method}, {self.status}>"
