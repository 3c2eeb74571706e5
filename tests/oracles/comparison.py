"""What inscape says of a case, judged by rational arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

import inscape
from inscape.models import wrap
from inscape.partition.linear.regions import KNOT_TOLERANCE, SLOPE_TOLERANCE
from inscape.partition.linear.rounding import evaluated_at
from inscape.partition.linear.segments.breakpoints import Positions
from tests.oracles.rational import (
    decision_on,
    exact_pieces,
    knots_of,
    layers_of,
    lead_at,
    linear_pieces,
)


@dataclass(frozen=True)
class Verdict:
    """How decision regions and linear pieces of one case compare with the truth.

    Attributes:
        decision: "right" and the status "complete"; "tied": right, and the status says that there are ties;
            "flagged": the labels differ, but the status says that they are not certain; "refused"; or
            "wrong": the labels differ, and the status is "complete".
        is_decidable: whether the scores tie nowhere.
        linear: "right"; "close": the counts differ where the truth has knots or slopes nearer than the
            tolerances; "refused"; or "wrong".
        offsets: for each boundary of a right decision the true difference of its two scores there, in units
            of the rounding bound.
    """

    decision: str
    is_decidable: bool
    linear: str
    offsets: tuple[float, ...] = ()


def judged(case):
    """The verdict on one case of `families`."""
    layers = layers_of(case.net)
    pieces = exact_pieces(layers, case.start, case.end)
    truth = decision_on(pieces)
    segment, model = inscape.Segment(case.start, case.end), wrap(case.net)
    try:
        found = inscape.decision_regions(model, segment, method="exact")
        linear = inscape.linear_regions(model, segment)
    except inscape.InscapeError:
        return Verdict("refused", not truth.is_tied, "refused")
    is_right, is_complete = found.labels.tolist() == truth.labels, found.status == "complete"
    verdict = ("right" if is_complete else "tied") if is_right else ("wrong" if is_complete else "flagged")
    offsets = _offsets(case, layers, model, segment, found) if verdict == "right" else ()
    return Verdict(verdict, not truth.is_tied, _judged_linear(pieces, linear), offsets)


def _judged_linear(pieces, linear):
    n_linear = {linear_pieces(pieces), linear_pieces(pieces, Fraction(SLOPE_TOLERANCE))}
    if linear.n_regions == len(pieces) and linear.n_linear in n_linear:
        return "right"
    gaps = [b - a for a, b in pairwise([0, *knots_of(pieces), 1])]
    return "close" if min(gaps) <= 2 * KNOT_TOLERANCE else "wrong"


def _offsets(case, layers, model, segment, found):
    """The true lead of one label over the next at each boundary, in units of the bound for its rounding."""
    t = found.boundaries
    if not len(t):
        return ()
    graph = model.graph(segment.input_shape)
    positions = Positions(t, np.zeros(len(t), np.int64))
    bounds = (
        evaluated_at(graph, [segment], positions, np.arange(len(t)), graph.output).bounds.flatten(1).numpy()
    )
    bounds = np.concatenate([np.zeros_like(bounds), bounds], axis=1) if bounds.shape[1] == 1 else bounds
    sides = zip(t.tolist(), found.labels[:-1].tolist(), found.labels[1:].tolist(), bounds, strict=True)
    return tuple(
        float(abs(lead_at(layers, case.start, case.end, at, a, b)) / Fraction(float(bound[a] + bound[b])))
        for at, a, b, bound in sides
    )
