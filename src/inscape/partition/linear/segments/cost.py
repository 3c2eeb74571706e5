"""What an exact walk will cost, from a few short stretches of it."""

from collections.abc import Sequence

import numpy as np

from inscape.memory import MEMORY
from inscape.models import Model
from inscape.partition.linear.confirmed import graph_on
from inscape.partition.linear.regions import KNOT_TOLERANCE
from inscape.partition.linear.segments.pieces import Knots
from inscape.partition.linear.segments.walk import walk
from inscape.probes import Segment
from inscape.probes.segment import as_segments

FIRST_STRETCH = 1e-3
"""The fraction of a segment that is walked first."""

RELIABLE_FROM_PIECES = 30
"""Pieces that make a count reliable to some 20 %."""


def estimate_evaluations(model: Model, segments: Sequence[Segment], *, n_probes: int = 3) -> float:
    """The predicted number of evaluations of an exact walk along `segments`: pieces plus one per segment.

    Around the middle of `n_probes` evenly chosen segments a stretch is walked exactly, eight times longer at
    each try, until it holds some 30 pieces or is the whole segment; pieces per length are carried over to the
    rest. The work is that of about 100 evaluations of the network. The estimate depends on the model and the
    segments only, so a decision by it can be repeated.
    """
    segments = as_segments(list(segments))
    graph = graph_on(model, segments)
    chosen = np.unique(np.linspace(0, len(segments) - 1, min(n_probes, len(segments))).round().astype(int))
    density = 0.0
    for k in chosen.tolist():
        fraction = FIRST_STRETCH
        while True:
            knots = Knots()
            stretch = _middle(segments[k], fraction)
            walk(graph, [stretch], knots.take, memory=MEMORY, tolerance=KNOT_TOLERANCE)
            n_pieces = len(knots.by_segment(1)[0][0]) + 1
            if n_pieces >= RELIABLE_FROM_PIECES or fraction == 1.0:
                break
            fraction = min(1.0, 8 * fraction)
        density += n_pieces / fraction
    return density * len(segments) / len(chosen) + len(segments)


def _middle(segment: Segment, fraction: float) -> Segment:
    """The middle of a segment, this fraction of it."""
    if fraction == 1.0:
        return segment
    low, high = segment.span
    centre, half = (low + high) / 2, fraction * (high - low) / 2
    return Segment(segment.start, segment.end, span=(centre - half, centre + half))
