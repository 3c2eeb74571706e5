"""The region count R_d: how many decision regions a random low-dimensional slice of the data meets.

What high and low mean: a model that cuts the hull of a few data points into many regions is a complicated
function there; over many trained models, fewer regions went with a smaller generalisation gap (Li et al.
2025). When it does not hold: among models far from fitting their training data, within one learning rate,
and for families such as k-nearest neighbours; the count of one model alone says little.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeWarning, PartitionError
from inscape.models import Model, wrap
from inscape.partition.decision import check_method
from inscape.partition.decision.grid import labelled_blocks
from inscape.partition.decision.regions import CONVERGED, NOT_CONVERGED
from inscape.probes import Probe, Segment, sample_probes
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed

SCHEMA = 1
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionCount:
    """The mean number of decision regions over random probes, with its error.

    Attributes:
        mean: the mean count, an estimate of R_d.
        std_error: its standard error over probes; NaN for a single probe.
        interval: the 95 % interval of the mean, from Student's t.
        counts: the count on each probe, (n_probes,).
        coarse_mean: the mean count on every second grid point of the same evaluations; None if not known.
        method: how regions were counted.
        is_exact: whether each count is exact (the mean over probes is an estimate all the same).
        status: "converged" if the resolution is fine enough (see `resolution_bias`), else
            "not converged in resolution".
        n_evaluations: at how many points the model was asked.
        classes_off_data: labels predicted somewhere on the probes but at none of the points that span
            them; None if the probes do not end at these points.
        settings: dim, how, span, length, classes, resolution, connectivity.
        provenance: model, precision, seed, version.
    """

    mean: float
    std_error: float
    interval: tuple[float, float]
    counts: npt.NDArray[np.int64]
    coarse_mean: float | None
    method: str
    is_exact: bool
    status: str
    n_evaluations: int
    classes_off_data: tuple[int, ...] | None
    settings: dict[str, Any]
    provenance: Provenance

    @property
    def resolution_bias(self) -> float | None:
        """What the mean would gain from half the spacing again, estimated by what the last halving gained.

        Regions narrower than the spacing are missed in proportion to it, so each halving of the
        spacing recovers half of what was missing. The count has converged if this is at most 1 % of
        the mean or half of the interval's half-width.
        """
        return None if self.coarse_mean is None else self.mean - self.coarse_mean

    def probes_needed(self, half_width: float) -> int:
        """How many probes give a 95 % interval of mean +- `half_width`, at the spread seen here.

        The first 1.96 standard errors rule is used: n = (1.96 s / half_width)^2, at least 2.
        """
        if not half_width > 0:
            raise PartitionError(f"half_width={half_width} must be positive")
        if len(self.counts) < 2:
            raise PartitionError("one probe shows no spread: measure at least 2 first")
        s = float(np.std(self.counts, ddof=1))
        return max(2, math.ceil((1.959963984540054 * s / half_width) ** 2))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {
            "schema": SCHEMA,
            "measure": "region_count",
            "mean": self.mean,
            "std_error": _or_none(self.std_error),
            "interval": [_or_none(v) for v in self.interval],
            "counts": self.counts.tolist(),
            "coarse_mean": self.coarse_mean,
            "method": self.method,
            "is_exact": self.is_exact,
            "status": self.status,
            "n_evaluations": self.n_evaluations,
            "classes_off_data": None if self.classes_off_data is None else list(self.classes_off_data),
            "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in self.settings.items()},
            "provenance": self.provenance.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        if data.get("schema") != SCHEMA or data.get("measure") != "region_count":
            raise PartitionError(f"not a region count of schema {SCHEMA}: {str(data)[:80]}")
        fields = {k: v for k, v in data.items() if k not in ("schema", "measure")}
        fields["std_error"] = math.nan if data["std_error"] is None else data["std_error"]
        fields["interval"] = tuple(math.nan if v is None else v for v in data["interval"])
        fields["counts"] = np.array(data["counts"], dtype=np.int64)
        off = data["classes_off_data"]
        fields["classes_off_data"] = None if off is None else tuple(off)
        fields["settings"] = {k: tuple(v) if isinstance(v, list) else v for k, v in data["settings"].items()}
        fields["provenance"] = Provenance(**data["provenance"])
        return cls(**fields)

    def plot(self, ax: Any = None) -> Any:
        """Draw how the counts are distributed over probes; returns the matplotlib Axes."""
        from inscape.drawing.counts import draw_counts

        return draw_counts(self.counts, self.mean, self.interval, title=self.provenance.model, ax=ax)

    def __repr__(self) -> str:
        d, n = self.settings["dim"], len(self.counts)
        value = f"{self.mean:.3g} +- {self.std_error:.2g}"
        return f"<region count R_{d} = {value} on {n} probes, {self.method}, {self.status}>"


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
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> RegionCount:
    """R_d of Def. 4: the expected number of decision regions on the hull of d + 1 random data points.

    R_d = E_{x_1, ..., x_{d+1}} [ number of maximal connected sets of equal prediction in
    Conv{x_1, ..., x_{d+1}} ]  (Li et al. 2025, arXiv 2505.11370, Def. 4), estimated by the mean over
    `n_probes` random hulls. We draw the points without repetition and draw again when two coincide.
    The cost is n_probes times the grid points of one hull, in forward evaluations.

    Args:
        model: anything that `inscape.wrap` takes.
        x: the data that span the probes; see `inscape.sample_probes`.
        dim: the dimension d of the hulls.
        n_probes: how many hulls.
        method: see `inscape.decision_regions`.
        resolution: grid points per axis (200 in 1D, 30 in 2D, at most 4,096 points in all above).
        how: "pairs" or "direction"; see `inscape.sample_probes`.
        span: for segments, the interval of t.
        length: for "direction", how far to go.
        y: the classes of x, for `classes`.
        classes: "any", "same" or "different".
        connectivity: "face" or "full".
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: True shows a bar on stderr; a function gets (points done, points in all).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> result = region_count(lambda x: (x[:, 0] > 0).astype(int), x, random_state=0)
    >>> sorted(set(result.counts.tolist())), result.status
    ([1, 2], 'converged')
    """
    check_method(method)
    seed = as_seed(random_state)
    probes = sample_probes(
        x, dim=dim, n=n_probes, how=how, span=span, length=length, y=y, classes=classes, random_state=seed
    )
    settings = {"how": how, "span": tuple(span), "length": length, "classes": classes}
    return count_on(
        wrap(model),
        probes,
        resolution=resolution,
        connectivity=connectivity,
        seed=seed,
        settings=settings,
        progress=progress,
    )


def count_on(
    model: Model,
    probes: Sequence[Probe],
    *,
    resolution: int | None = None,
    connectivity: str = "face",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    progress: bool | Meter | None = None,
) -> RegionCount:
    """The region count of a wrapped model on given probes of one dimension; models can share them."""
    fine, coarse, seen = [], [], _Seen()
    n_evaluations = 0
    with meter(progress, "grid points") as show:
        for block in labelled_blocks(model, probes, resolution, meter=show):
            fine.append(block.components(connectivity)[1])
            coarse.append(block.coarse_counts(connectivity))
            seen.add(block.labels, block.lattice.corners())
            n_evaluations += block.labels.size
            resolution = block.lattice.resolution
    seen.warn_if_constant(model)
    counts = np.concatenate(fine)
    coarse_mean = (
        float(np.mean(np.concatenate([c for c in coarse if c is not None])))
        if coarse[0] is not None
        else None
    )
    mean, std_error, interval = mean_with_error(counts)
    return RegionCount(
        mean=mean,
        std_error=std_error,
        interval=interval,
        counts=counts,
        coarse_mean=coarse_mean,
        method="grid",
        is_exact=False,
        status=_status(mean, interval, coarse_mean),
        n_evaluations=n_evaluations,
        classes_off_data=seen.off_corners() if _ends_at_data(probes) else None,
        settings={
            "dim": probes[0].dim,
            "resolution": resolution,
            "connectivity": connectivity,
            **(settings or {}),
        },
        provenance=Provenance.of(model, seed),
    )


class _Seen:
    """Which labels were predicted, and which of them at the corners of probes."""

    def __init__(self) -> None:
        self.anywhere: set[int] = set()
        self.at_corners: set[int] = set()

    def add(self, labels: npt.NDArray[np.int64], corners: npt.NDArray[np.int64]) -> None:
        self.anywhere.update(np.unique(labels).tolist())
        self.at_corners.update(np.unique(labels[:, corners]).tolist())

    def off_corners(self) -> tuple[int, ...]:
        return tuple(sorted(self.anywhere - self.at_corners))

    def warn_if_constant(self, model: Model) -> None:
        if len(self.anywhere) == 1:
            (label,) = self.anywhere
            warnings.warn(
                f"{model.name} predicts class {model.class_name(label)} everywhere on the probes: "
                "its region count is 1, which says nothing about its complexity",
                InscapeWarning,
                stacklevel=4,
            )


def _ends_at_data(probes: Sequence[Probe]) -> bool:
    return all(p.span == (0, 1) for p in probes if isinstance(p, Segment))


def mean_with_error(values: npt.NDArray[Any]) -> tuple[float, float, tuple[float, float]]:
    """The mean, its standard error, and its 95 % interval from Student's t.

    >>> mean, error, (low, high) = mean_with_error(np.array([1, 2, 3]))
    >>> round(mean, 3), round(error, 3), round(low, 3), round(high, 3)
    (2.0, 0.577, -0.484, 4.484)
    """
    from scipy.special import stdtrit

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return mean, math.nan, (math.nan, math.nan)
    error = float(np.std(values, ddof=1) / math.sqrt(n))
    reach = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    return mean, error, (mean - reach, mean + reach)


def _status(mean: float, interval: tuple[float, float], coarse_mean: float | None) -> str:
    if coarse_mean is None:
        return NOT_CONVERGED
    half_width = (interval[1] - interval[0]) / 2
    allowed = max(0.01 * mean, 0.0 if math.isnan(half_width) else half_width / 2)
    return CONVERGED if abs(mean - coarse_mean) <= allowed else NOT_CONVERGED


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
