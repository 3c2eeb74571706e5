"""Exact decision regions: of networks and trees on segments and planes, of other estimators on segments."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter

from inscape.arrays import Shape
from inscape.budget import MEMORY
from inscape.errors import InscapeError, PartitionError
from inscape.models import Model
from inscape.models.base import check_size
from inscape.parallel import Job, Shares, Tell, fitting, in_order
from inscape.partition.decision.regions import DecisionRegions, DecisionSegment
from inscape.probes import Probe, Segment
from inscape.probes.segment import as_segment
from inscape.progress import Meter
from inscape.provenance import Provenance

MOST_SEGMENTS_IN_BLOCK = 256
MOST_NUMBERS_IN_BLOCK = 2**21

ON_SEGMENTS = {
    "quadratic": "scores that are quadratic along a line",
    "neighbours": "nearest neighbours",
    "votes": "votes of exact members",
}
"""Structures that are exact on segments only, in words; networks and trees also are on planes."""
QUICKLY_EXACT = {"trees": "tree ensemble", **ON_SEGMENTS}
"""Structures whose exact regions take less time than a grid, in words."""


def why_not_exact(model: Model, input_shape: Shape, dim: int) -> str | None:
    """Why there are no exact regions of a model on probes of a dimension; None if there are."""
    if dim > 2:
        return "exact regions are computed on segments and planes only"
    if model.structure in ON_SEGMENTS:
        words = ON_SEGMENTS[model.structure]
        return None if dim == 1 else f"exact regions of this kind ({words}) are computed on segments only"
    if model.structure == "trees":
        return None
    from inscape.models.graph.trace import check_precision

    try:
        check_precision(model)
        model.graph(input_shape)
    except InscapeError as error:
        return error.reason
    return None


def exact_regions(
    model: Model,
    probes: Sequence[Probe],
    *,
    precision: str,
    meter: Meter,
    max_faces: float = math.inf,
    reason: str = "",
) -> Iterator[DecisionRegions]:
    """The exact decision regions of a model on each probe, in order.

    A plane of a network with more than `max_faces` linear regions is given up with an error. The results on
    segments, which may be many, carry the reason of the method from the start.
    """
    done = 0
    for dim, group in groupby(probes, key=attrgetter("dim")):
        if dim > 1 and model.structure in ON_SEGMENTS:
            raise PartitionError(
                f"the exact regions of {model.name} ({ON_SEGMENTS[model.structure]}) are computed on "
                "segments only",
                remedy="use method='grid' or 'adaptive'",
            )
        if dim == 2:
            on_group: Iterator[DecisionRegions] = _on_planes(
                model, group, max_faces, meter, done, len(probes)
            )
        else:
            on_group = _on_segments(model, group, precision, reason, meter, done, len(probes))
        for regions in on_group:
            yield regions
            done += 1


def n_vertices_on(model: Model, plane: Probe) -> int:
    """Find the decision regions of a network on a plane; how many vertices its subdivision has."""
    (regions,) = exact_regions(model, [plane], precision="float64", meter=lambda done, total: None)
    return int(regions.n_evaluations)


def _on_planes(
    model: Model, probes: Iterator[Probe], max_faces: float, meter: Meter, done: int, total: int
) -> Iterator[DecisionRegions]:
    """The regions on each patch or triangle."""
    if model.structure == "trees":
        jobs: Iterator[Job[DecisionRegions]] = _tree_jobs(model, probes)
    else:
        from inscape.partition.decision.exact.networks import plane_jobs

        jobs = plane_jobs(model, probes, max_faces)
    with model.unchanged():
        yield from in_order(jobs, Shares(meter, total, done).hear, ahead=fitting(MEMORY))


def _tree_jobs(model: Model, probes: Iterator[Probe]) -> Iterator[Job[DecisionRegions]]:
    from inscape.partition.decision.exact.trees import tree_plane

    def job(probe: Probe, tell: Tell) -> DecisionRegions:
        tell(0.0)
        regions = tree_plane(model, probe, provenance=provenance)
        tell(1.0)
        return regions

    provenance = Provenance.of(model)
    for probe in probes:
        check_size(model, probe.input_shape)
        yield partial(job, probe)


def _on_segments(
    model: Model, probes: Iterator[Probe], precision: str, reason: str, meter: Meter, done: int, total: int
) -> Iterator[DecisionRegions]:
    """The regions on each segment, at most 256 at a time, so that memory does not grow with them."""
    provenance = Provenance.of(model, dtype=None if model.structure in QUICKLY_EXACT else precision)
    for shape, group in groupby(probes, key=attrgetter("input_shape")):
        check_size(model, shape)
        size = max(1, min(MOST_SEGMENTS_IN_BLOCK, MOST_NUMBERS_IN_BLOCK // math.prod(shape)))
        while block := list(islice(group, size)):
            show = _of_block(meter, done, len(block), total)
            done += len(block)
            segments = [p if type(p) is Segment else _as_segment(p) for p in block]
            regions = _on_block(model, segments, precision, provenance, reason, show)
            yield from map(_on_probe, regions, block)


def _on_probe(regions: DecisionSegment, probe: Probe) -> DecisionSegment:
    """The regions with the probe that was given, which may be a simplex."""
    return regions if regions.probe is probe else replace(regions, probe=probe)


def _on_block(
    model: Model,
    segments: list[Segment],
    precision: str,
    provenance: Provenance,
    reason: str,
    meter: Meter,
) -> list[DecisionSegment]:
    if model.structure == "trees":
        from inscape.partition.decision.exact.trees import tree_segments

        return tree_segments(model, segments, provenance=provenance, reason=reason, progress=meter)
    if model.structure in ON_SEGMENTS:
        from inscape.partition.decision.exact.estimators import estimator_segments

        return estimator_segments(model, segments, provenance=provenance, progress=meter)
    from inscape.partition.decision.exact.networks import exact_segments

    return exact_segments(
        model, segments, precision=precision, provenance=provenance, reason=reason, progress=meter
    )


def _of_block(meter: Meter, before: int, n: int, total: int) -> Meter:
    """A meter for a block of n of `total` segments, in thousandths of a segment."""
    return lambda done, of: meter(round(1000 * (before + n * done / of)), 1000 * total)


def _as_segment(probe: Probe) -> Segment:
    if probe.dim == 1:
        return as_segment(probe)
    raise PartitionError(
        f"exact regions are computed on segments and planes, not on a "
        f"{type(probe).__name__} of dimension {probe.dim}: use method='grid' or 'adaptive'"
    )
