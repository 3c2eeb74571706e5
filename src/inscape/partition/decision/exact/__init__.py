"""Exact decision regions: of networks on segments and planes, of tree ensembles on segments."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from inscape.errors import PartitionError
from inscape.models import Model
from inscape.models.base import check_size
from inscape.partition.decision.regions import DecisionRegions, SegmentRegions
from inscape.probes import Probe, Segment, Simplex
from inscape.progress import Meter
from inscape.provenance import Provenance

_BLOCK = 256
_NUMBERS = 2**21


def exact_regions(
    model: Model, probes: Sequence[Probe], *, precision: str, meter: Meter
) -> Iterator[DecisionRegions]:
    """The exact decision regions of a piecewise-affine network or a tree ensemble on each probe, in order."""
    done = 0
    for dim, group in groupby(probes, key=lambda p: p.dim):
        if dim == 2 and model.structure != "trees":
            found: Iterator[DecisionRegions] = _on_planes(model, group, precision, meter, done, len(probes))
        else:
            found = _on_segments(model, group, precision, meter, done, len(probes))
        for regions in found:
            yield regions
            done += 1


def _on_planes(
    model: Model, probes: Iterator[Probe], precision: str, meter: Meter, done: int, total: int
) -> Iterator[DecisionRegions]:
    """The regions on each patch or triangle."""
    if precision != "float64":
        raise PartitionError(f"precision={precision!r} is for segments: planes are cut in float64")
    from inscape.partition.decision.exact.planes import exact_plane

    for i, probe in enumerate(probes):
        with model.unchanged():
            yield exact_plane(model, probe, meter=_part(meter, done + i, 1, total))


def _on_segments(
    model: Model, probes: Iterator[Probe], precision: str, meter: Meter, done: int, total: int
) -> Iterator[DecisionRegions]:
    """The regions on each segment, at most 256 at a time, so that memory does not grow with them."""
    provenance = Provenance.of(model, dtype=None if model.structure == "trees" else precision)
    for shape, group in groupby(probes, key=lambda p: p.input_shape):
        check_size(model, shape)
        size = max(1, min(_BLOCK, _NUMBERS // math.prod(shape)))
        while block := list(islice(group, size)):
            show = _part(meter, done, len(block), total)
            done += len(block)
            segments = [as_segment(p) for p in block]
            for probe, r in zip(block, _found(model, segments, precision, show), strict=True):
                yield SegmentRegions(
                    probe=probe,
                    labels=r.labels,
                    boundaries=r.boundaries,
                    span=as_segment(probe).span,
                    method="exact",
                    is_exact=precision == "float64" or model.structure == "trees",
                    status=r.status,
                    n_evaluations=r.n_evaluations,
                    resolution=None,
                    connectivity=None,
                    class_names=model.classes,
                    provenance=provenance,
                    model=model,
                )


def _found(model: Model, segments: list[Segment], precision: str, meter: Meter) -> list[Any]:
    if model.structure == "trees":
        from inscape.partition.decision.exact.trees import tree_segments

        return [*tree_segments(model, segments, progress=meter)]
    from inscape.partition.decision.exact.segments import exact_segments

    return [*exact_segments(model, segments, precision=precision, progress=meter)]


def _part(meter: Meter, before: int, n: int, total: int) -> Meter:
    """A meter for a block of n of `total` segments, in thousandths of a segment."""
    return lambda done, of: meter(round(1000 * (before + n * done / of)), 1000 * total)


def as_segment(probe: Probe) -> Segment:
    """A one-dimensional probe as a segment; an error for others says what to use instead."""
    if isinstance(probe, Segment):
        return probe
    if isinstance(probe, Simplex) and probe.dim == 1:
        return Segment(*probe.vertices)
    raise PartitionError(
        f"exact regions are computed on segments, and of networks on planes; not on a "
        f"{type(probe).__name__} of dimension {probe.dim}: use method='grid' or 'adaptive'"
    )
