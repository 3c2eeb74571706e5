"""Decision regions: maximal connected sets of equal prediction on a probe."""

from collections.abc import Sequence
from typing import Any, overload

from inscape.errors import PartitionError, ProbeError, unknown_name
from inscape.models import wrap
from inscape.partition.decision.grid import grid_regions
from inscape.partition.decision.regions import DecisionRegions, GridRegions, SegmentRegions
from inscape.probes import Probe
from inscape.progress import Meter, meter

__all__ = ["DecisionRegions", "GridRegions", "SegmentRegions", "check_method", "decision_regions"]

METHODS = ("auto", "grid")


def check_method(method: str) -> str:
    """The method that stands behind `method`; an unknown name is an error."""
    if method not in METHODS:
        raise PartitionError(unknown_name("method", method, METHODS))
    return "grid"


@overload
def decision_regions(
    model: Any,
    probe: Probe,
    *,
    method: str = ...,
    resolution: int | None = ...,
    connectivity: str = ...,
    progress: bool | Meter | None = ...,
) -> DecisionRegions: ...
@overload
def decision_regions(
    model: Any,
    probe: Sequence[Probe],
    *,
    method: str = ...,
    resolution: int | None = ...,
    connectivity: str = ...,
    progress: bool | Meter | None = ...,
) -> list[DecisionRegions]: ...
def decision_regions(
    model: Any,
    probe: Probe | Sequence[Probe],
    *,
    method: str = "auto",
    resolution: int | None = None,
    connectivity: str = "face",
    progress: bool | Meter | None = None,
) -> DecisionRegions | list[DecisionRegions]:
    """The regions of equal prediction on a probe, or on each of a list of probes in one batch.

    Args:
        model: anything that `inscape.wrap` takes.
        probe: a segment, simplex or patch, or a list of them.
        method: "grid", or "auto" for the best method that fits the model (the grid, for now).
        resolution: grid points per axis; by default 200 in 1D, 30 in 2D, and at most 4,096 points in
            all above.
        connectivity: "face" joins grid points one step apart along one axis (4 neighbours in 2D; on a
            simplex also across, unless at a saddle); "full" also along diagonals (8 in 2D). On a simplex
            the axes are the edges at its most central vertex.
        progress: True shows a bar on stderr; a function gets (points done, points in all).

    >>> from inscape import Segment
    >>> p = decision_regions(lambda x: (x[:, 0] ** 2 > 0.25).astype(int), Segment([-1.0], [1.0]))
    >>> p.n_regions, p.labels.tolist(), p.boundaries.round(2).tolist()
    (3, [1, 0, 1], [0.25, 0.75])
    """
    check_method(method)
    probes = [probe] if isinstance(probe, Probe) else list(probe)
    if not probes or not all(isinstance(p, Probe) for p in probes):
        raise ProbeError(f"expected a Segment, Simplex or Patch, or a list of them, got {probe!r}")
    with meter(progress, "grid points") as show:
        results = grid_regions(
            wrap(model), probes, resolution=resolution, connectivity=connectivity, meter=show
        )
    return results[0] if isinstance(probe, Probe) else results
