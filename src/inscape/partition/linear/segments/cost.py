"""What an exact walk will cost, from a few short stretches of it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inscape.models import Model
from inscape.partition.linear.regions import KNOT_TOLERANCE, MEMORY, as_segments, graph_on
from inscape.partition.linear.segments.pieces import Knots
from inscape.partition.linear.segments.walk import walk
from inscape.probes import Segment

_FIRST = 1e-3
"""The part of a segment that is walked first."""

_ENOUGH = 30
"""Pieces that make a count reliable to some 20 %."""


@dataclass(frozen=True)
class CostEstimate:
    """The predicted cost of exact pieces on some segments.

    Attributes:
        n_evaluations: points at which the whole network will be evaluated: pieces plus one per segment. It
            depends on the model and the segments only, so a decision by it can be repeated.
        seconds: the time that takes here.
        n_probed: pieces that the estimate was drawn from.
    """

    n_evaluations: float
    seconds: float
    n_probed: int


def estimate_cost(model: Model, segments: Sequence[Segment], *, n_probes: int = 3) -> CostEstimate:
    """The predicted number of evaluations and seconds of an exact walk along `segments`.

    Around the middle of `n_probes` evenly chosen segments a stretch is walked exactly, eight times longer at
    each try, until it holds some 30 pieces or is the whole segment; pieces and seconds per length are carried
    over to the rest. The work is that of about 100 evaluations of the network.
    """
    segments = as_segments(list(segments))
    graph = graph_on(model, [*segments])
    chosen = np.unique(np.linspace(0, len(segments) - 1, min(n_probes, len(segments))).round().astype(int))
    density, seconds, n_probed = 0.0, 0.0, 0
    for k in chosen.tolist():
        part = _FIRST
        while True:
            knots = Knots()
            started = time.perf_counter()
            walk(graph, [_middle(segments[k], part)], knots.take, memory=MEMORY, tolerance=KNOT_TOLERANCE)
            elapsed = time.perf_counter() - started
            n = len(knots.by_segment(1)[0][0]) + 1
            if n >= _ENOUGH or part == 1.0:
                break
            part = min(1.0, 8 * part)
        density, seconds, n_probed = density + n / part, seconds + elapsed / part, n_probed + n
    scale = len(segments) / len(chosen)
    return CostEstimate(density * scale + len(segments), seconds * scale, n_probed)


def _middle(segment: Segment, part: float) -> Segment:
    """The middle part of a segment."""
    low, high = segment.span
    centre, half = (low + high) / 2, part * (high - low) / 2
    return (
        segment if part == 1.0 else Segment(segment.start, segment.end, span=(centre - half, centre + half))
    )
