"""Linear regions: pieces of a segment or faces of a plane on which a network is one affine map, exactly."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from inscape.arguments import old_names, positive_number, whole_number
from inscape.budget import BUDGET, MEMORY, as_budget, within_budget
from inscape.errors import PartitionError, ProbeError, unknown_name
from inscape.models import Model, wrap
from inscape.parallel import Shares, Tell, fitting, in_order, working
from inscape.partition.linear.regions import (
    KNOT_TOLERANCE,
    PRECISIONS,
    LinearPlane,
    LinearSegment,
)
from inscape.probes import Patch, Probe, Segment
from inscape.probes.patch import check_features
from inscape.probes.segment import as_segments
from inscape.progress import Meter, meter

if TYPE_CHECKING:
    from inscape.models.graph import Graph

__all__ = ["LinearPlane", "LinearSegment", "linear_regions"]

__getattr__ = old_names(__name__, {"PlaneRegions": LinearPlane, "SegmentPieces": LinearSegment})


@overload
def linear_regions(
    model: Any,
    probe: Segment,
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> LinearSegment: ...
@overload
def linear_regions(
    model: Any,
    probe: Patch,
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> LinearPlane: ...
@overload
def linear_regions(
    model: Any,
    probe: Sequence[Segment],
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[LinearSegment]: ...
@overload
def linear_regions(
    model: Any,
    probe: Sequence[Patch],
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[LinearPlane]: ...
@overload
def linear_regions(
    model: Any,
    probe: Probe,
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> LinearSegment | LinearPlane: ...
@overload
def linear_regions(
    model: Any,
    probe: Sequence[Probe],
    *,
    n_layers: int | None = ...,
    max_regions: int | None = ...,
    memory: int = ...,
    tolerance: float = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[LinearSegment] | list[LinearPlane]: ...
def linear_regions(
    model: Any,
    probe: Probe | Sequence[Probe],
    *,
    n_layers: int | None = None,
    max_regions: int | None = None,
    memory: int = MEMORY,
    tolerance: float = KNOT_TOLERANCE,
    precision: str = "float64",
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
) -> LinearSegment | LinearPlane | list[LinearSegment] | list[LinearPlane]:
    """The linear regions of a piecewise-affine network on a segment or a plane, or on each of a list.

    On a segment, layer by layer every breakpoint is found as the root of a linear function between the
    breakpoints of the layers before (ExactLine: Sotoudeh & Thakur 2019, arXiv 1908.06214). On a patch or a
    triangle a planar subdivision is refined layer by layer (as in SyReNN, ibid., and edge subdivision:
    Berzins 2023). No sampling is involved. The cost is about one forward evaluation per piece or vertex.

    Args:
        model: a torch module, or what `inscape.wrap` made of one; it must be piecewise affine.
        probe: a `Segment`, a `Patch`, a `Simplex` with two or three vertices, or a list of probes of one
            dimension.
        n_layers: on planes, how many piecewise-linear layers to take into account; None for all.
        max_regions: on planes, stop before a layer that would make more faces, with status "budget reached".
        memory: bytes that the tensors may take in each thread, however many pieces there are.
        tolerance: on segments, knots nearer than this fraction of the span are one: rounding moves a knot by
            about 1e-14.
        precision: on segments, "float64", or "float32" for speed; see `LinearSegment.precision`.
        progress: None for a bar after two seconds, False for none; a function gets
            (thousandths of probes done, in all).
        budget: seconds that it may take, as estimated from a few lines across a plane and a small patch of
            it, or on segments from the first second of work; else a `BudgetError` says how long it would
            take. None for no limit; a plane for which `n_layers` or `max_regions` is given has none.
        n_jobs: threads, which change no number: 1 for one, -1 for every core, -2 for all but one. None is
            every core, or what `INSCAPE_JOBS` says; one in a worker process.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    >>> with torch.no_grad():
    ...     _ = net[0].weight.fill_(1.0), net[0].bias.copy_(torch.tensor([-0.25, -0.5]))
    >>> q = linear_regions(net, Segment([0.0], [1.0]))
    >>> q.n_regions, q.knots.tolist()
    (3, [0.25, 0.5])
    """
    wrapped = wrap(model)
    probes = [probe] if isinstance(probe, Probe) else list(probe)
    check_arguments(memory, tolerance, precision)
    limit = as_budget(budget)
    results: Sequence[LinearSegment | LinearPlane]
    if len({p.dim for p in probes if isinstance(p, Probe)}) > 1:
        raise ProbeError("the probes of one call must have one dimension: give segments or planes, not both")
    check_features(wrapped, probes)
    with meter(progress, "linear regions") as show, wrapped.unchanged(), working(n_jobs):
        if probes and all(isinstance(p, Probe) and p.dim == 2 for p in probes):
            from inscape.partition.linear.exact_cost import check_planes

            if precision != "float64":
                raise PartitionError(f"precision={precision!r} is for segments: planes are cut in float64")
            if n_layers is None and max_regions is None:
                check_planes(wrapped, probes, limit)
            results = _on_planes(wrapped, probes, n_layers, max_regions, memory, show)
        else:
            if n_layers is not None or max_regions is not None:
                raise ProbeError(
                    "n_layers and max_regions are for planes: a Patch or a Simplex with three vertices"
                )
            watch = within_budget(show, limit, "these segments", "give fewer or shorter ones")
            results = _on_segments(wrapped, probes, memory, tolerance, precision, watch)
    return results[0] if isinstance(probe, Probe) else results


def check_arguments(memory: int, tolerance: float, precision: str) -> None:
    """Raise an error for arguments that make no sense."""
    if precision not in PRECISIONS:
        raise PartitionError(unknown_name("precision", precision, PRECISIONS))
    whole_number(memory, "memory", 1, PartitionError, f", in bytes; {MEMORY} is the default")
    if positive_number(tolerance, "tolerance", PartitionError, zero=True) >= 1:
        raise PartitionError(f"tolerance={tolerance} must be at least 0 and below 1: a fraction of the span")


def _on_segments(
    model: Model, probes: list[Probe], memory: int, tolerance: float, precision: str, show: Meter
) -> list[LinearSegment]:
    segments = as_segments(probes)
    from inscape.partition.linear.segments.linear_segments import linear_segments

    return linear_segments(
        model, segments, memory=memory, tolerance=tolerance, precision=precision, meter=show
    )


def _on_planes(
    model: Model, probes: list[Probe], n_layers: int | None, max_regions: int | None, memory: int, show: Meter
) -> list[LinearPlane]:
    from inscape.partition.linear.planes.subdivision import confirmed_on, plane_regions

    def job(graph: "Graph", probe: Probe, tell: Tell) -> LinearPlane:
        return plane_regions(
            model,
            graph,
            probe,
            n_layers=n_layers,
            max_regions=max_regions,
            memory=memory,
            meter=lambda done, total: tell(done / total),
        )

    jobs = (partial(job, confirmed_on(model, probe), probe) for probe in probes)
    return list(in_order(jobs, Shares(show, len(probes)).hear, ahead=fitting(memory)))
