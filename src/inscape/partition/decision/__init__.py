"""Decision regions: maximal connected sets of equal prediction on a probe."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, overload

from inscape.arguments import old_names
from inscape.budget import BUDGET, as_budget
from inscape.errors import ProbeError
from inscape.models import wrap
from inscape.parallel import working
from inscape.partition.decision.adaptive import adaptive_regions
from inscape.partition.decision.exact import exact_regions
from inscape.partition.decision.grid import grid_regions
from inscape.partition.decision.method import RegionRequest
from inscape.partition.decision.regions import (
    DecisionGrid,
    DecisionMesh,
    DecisionPlane,
    DecisionRegions,
    DecisionSegment,
)
from inscape.probes import Probe
from inscape.probes.patch import check_features
from inscape.progress import Meter, meter

__all__ = [
    "DecisionGrid",
    "DecisionMesh",
    "DecisionPlane",
    "DecisionRegions",
    "DecisionSegment",
    "decision_regions",
]

__getattr__ = old_names(
    __name__,
    {
        "CellRegions": DecisionMesh,
        "GridRegions": DecisionGrid,
        "PlaneDecision": DecisionPlane,
        "SegmentRegions": DecisionSegment,
    },
)


@overload
def decision_regions(
    model: Any,
    probe: Probe,
    *,
    method: str = ...,
    resolution: int | None = ...,
    connectivity: str = ...,
    tolerance: float | None = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> DecisionRegions: ...
@overload
def decision_regions(
    model: Any,
    probe: Sequence[Probe],
    *,
    method: str = ...,
    resolution: int | None = ...,
    connectivity: str = ...,
    tolerance: float | None = ...,
    precision: str = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[DecisionRegions]: ...
def decision_regions(
    model: Any,
    probe: Probe | Sequence[Probe],
    *,
    method: str = "auto",
    resolution: int | None = None,
    connectivity: str = "face",
    tolerance: float | None = None,
    precision: str = "float64",
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
) -> DecisionRegions | list[DecisionRegions]:
    """The regions of equal prediction on a probe, or on each of a list of probes in one batch.

    Args:
        model: anything that `inscape.wrap` takes.
        probe: a segment, simplex or patch, or a list of them.
        method: "exact" finds every region on segments and planes of piecewise-affine networks, tree ensembles
            and linear classifiers, and on segments of most classifiers of scikit-learn;
            "adaptive" works for every model and probe, and refines where the scores say that a region could
            hide; "grid" samples evenly. "auto" is exact where that is possible and affordable (at most
            2,000 evaluations per segment, or 10 s in all, or on planes five times the work of the adaptive
            method, as estimated from a few lines across the probes), else adaptive, also where exact fails,
            with a warning; with a `resolution`, the grid. The result has the `reason`.
        resolution: grid points per axis; by default 200 in 1D, 30 in 2D, and at most 4,096 points in
            all above. For "adaptive", the finest step: the extent of the probe over this (2^14 in 1D,
            200 in 2D, as far as 4,096 samples go above).
        connectivity: for the grid, "face" joins points one step apart along one axis (4 neighbours in 2D; on
            a simplex also across, unless at a saddle); "full" also along diagonals (8 in 2D). On a simplex
            the axes are the edges at its most central vertex.
        tolerance: for "adaptive" on segments, how far from the truth a boundary may be, in t; None spends
            nothing on it, and takes the point where the chords of the two scores cross.
        precision: "float64", or "float32" for a faster "exact" method whose near ties are repaired; its
            regions agreed in all our tests, but that is not proved, so they are not called exact.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that method="exact" may take on planes of a network, as estimated beforehand, see
            `linear_regions`; None for no limit. "auto" has limits of its own, and takes another method.
        n_jobs: threads, as for `linear_regions`. With more than one, "adaptive" calls a function of your own
            in several at a time; a torch module is left to the threads of torch.

    >>> import numpy as np
    >>> from inscape import Segment
    >>> p = decision_regions(lambda x: (x[:, 0] ** 2 > 0.25).astype(int), Segment([-1.0], [1.0]))
    >>> p.n_regions, p.labels.tolist(), p.boundaries.round(2).tolist()
    (3, [1, 0, 1], [0.25, 0.75])
    >>> q = decision_regions(lambda x: np.c_[x, x**2 - 0.5], Segment([-1.0], [1.0]), tolerance=1e-9)
    >>> q.method, q.labels.tolist(), q.boundaries.round(6).tolist()
    ('adaptive', [1, 0], [0.316987])
    """
    probes = [probe] if isinstance(probe, Probe) else list(probe) if isinstance(probe, Iterable) else []
    if not probes or not all(issubclass(kind, Probe) for kind in {type(p) for p in probes}):
        raise ProbeError(f"expected a Segment, Simplex or Patch, or a list of them, got {probe!r}")
    wrapped = wrap(model)
    check_features(wrapped, probes)
    request = RegionRequest(
        method=method,
        resolution=resolution,
        connectivity=connectivity,
        tolerance=tolerance,
        precision=precision,
        budget=as_budget(budget),
    )
    with wrapped.unchanged():
        first = request.choose(wrapped, probes)
        with meter(progress, "decision regions") as show, working(n_jobs):
            request.check_budget(wrapped, probes)
            choice, regions = request.carry_out(
                first,
                probes,
                exact=lambda: [
                    *exact_regions(
                        wrapped,
                        probes,
                        precision=precision,
                        meter=show,
                        max_faces=first.max_faces,
                        reason=first.reason,
                    )
                ],
                adaptive=lambda: [
                    *adaptive_regions(wrapped, probes, resolution=resolution, tolerance=tolerance, meter=show)
                ],
                grid=lambda: grid_regions(
                    wrapped, probes, resolution=resolution, connectivity=connectivity, meter=show
                ),
            )
    reason = choice.reason
    regions = [r if r.reason == reason else replace(r, reason=reason) for r in regions]
    return regions[0] if isinstance(probe, Probe) else regions
