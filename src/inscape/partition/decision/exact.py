"""Exact decision regions on segments, of networks and of tree ensembles."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from inscape.errors import PartitionError
from inscape.models import Model
from inscape.models.base import check_size
from inscape.partition.decision.regions import DecisionRegions, SegmentRegions
from inscape.probes import Probe, Segment, Simplex
from inscape.progress import Meter
from inscape.provenance import Provenance


def exact_regions(
    model: Model, probes: Sequence[Probe], *, precision: str, meter: Meter
) -> list[DecisionRegions]:
    """The exact decision regions of a piecewise-affine network or a tree ensemble on each segment."""
    provenance = Provenance.of(model, dtype=None if model.structure == "trees" else precision)
    results: list[DecisionRegions] = []
    for shape, group in groupby(probes, key=lambda p: p.input_shape):
        check_size(model, shape)
        alike = list(group)
        segments = [as_segment(p) for p in alike]
        found: list[Any]
        if model.structure == "trees":
            from inscape.partition.decision.tree_segment import tree_segments

            found = tree_segments(model, segments, progress=meter)
        else:
            from inscape.partition.decision.exact_segment import exact_segments

            found = exact_segments(model, segments, precision=precision, progress=meter)
        results += [
            SegmentRegions(
                probe=probe,
                labels=r.labels,
                boundaries=r.boundaries,
                span=segment.span,
                method="exact",
                is_exact=True,
                status=r.status,
                n_evaluations=r.n_evaluations,
                resolution=None,
                connectivity=None,
                class_names=model.classes,
                provenance=provenance,
            )
            for probe, segment, r in zip(alike, segments, found, strict=True)
        ]
    return results


def as_segment(probe: Probe) -> Segment:
    """A one-dimensional probe as a segment; an error for others says what to use instead."""
    if isinstance(probe, Segment):
        return probe
    if isinstance(probe, Simplex) and probe.dim == 1:
        return Segment(*probe.vertices)
    raise PartitionError(
        f"exact regions are computed on segments, not on a {type(probe).__name__} of dimension {probe.dim}: "
        "use method='grid'"
    )
