"""What exact regions will cost, foreseen from a few short lines across the probes.

Seconds are those of one quiet core of a common computer, reckoned from the sizes of the network and never
measured on the day: what is decided by them can be repeated. They are right to a factor of three or so.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.budget import MEMORY, check_budget, timed
from inscape.models import Model
from inscape.models.graph import Graph
from inscape.models.graph.trace import graph_of
from inscape.partition.linear.regions import KNOT_TOLERANCE
from inscape.partition.linear.segments.linear_segments import Knots, graph_on
from inscape.partition.linear.segments.walk import walk
from inscape.probes import Probe, Segment
from inscape.probes.plane import Domain, domain_of
from inscape.probes.segment import as_segments

FIRST_STRETCH = 1e-3
"""The fraction of a line that is walked first."""
RELIABLE_FROM_KNOTS = 30
"""Knots that make a count reliable to some 20 %."""
N_SEGMENTS = 3
"""Segments on which a stretch is walked."""
N_CROSSES = 6
"""Points of planes, at each of which two lines cross."""
CROSSINGS = math.pi / 4
"""Of lines drawn at random, on a square of which each side meets one of them on average."""

SECONDS_PER_VECTOR = 2e-6
"""Of a tensor, whatever the network: a breakpoint, or a face of a plane with its vertex."""
SECONDS_PER_PLANE = 5e-3
"""Of calls, whatever the network."""
SECONDS_PER_PRODUCT = 5e-11
SECONDS_PER_REUSED_PRODUCT = 1e-11
"""On planes, where a linear map of a new vertex follows from those around it."""
SECONDS_PER_UNIT = 3e-9
SECONDS_PER_DISTANT_UNIT = 15e-9
"""On planes of a network with more units than `UNITS_IN_CACHE`, whose rows do not fit there."""
UNITS_IN_CACHE = 4096

QUICK_SECONDS = 1.0
"""Work that is not worth foreseeing: lines of all units of a network would make no more regions than that."""
RECKONING_MAY_ERR_BY = 4.0
"""How many times longer than reckoned the work may take."""
NOT_MEASURED_ABOVE_BUDGETS = 100.0
"""Work that is reckoned to take this many times longer than it may is not measured."""
TIMED_REGIONS = 1000
"""Of a smaller plane, on which the time of a region is measured."""


class Cost(NamedTuple):
    """What exact regions are foreseen to take on each probe, on average.

    Attributes:
        n_regions: linear regions.
        seconds: of work.
        per_evaluation: the seconds of one evaluation of the network, among many.
    """

    n_regions: float
    seconds: float
    per_evaluation: float


def segment_cost(model: Model, probes: Sequence[Probe]) -> Cost:
    """The cost of walking along each of the probes.

    Around the middle of three evenly chosen ones a stretch is walked exactly, eight times longer at each
    try, until it holds some 30 knots or is the whole segment; knots per length are carried over to the rest.
    """
    segments = as_segments([probes[i] for i in _evenly(len(probes), N_SEGMENTS)])
    graph = graph_on(model, segments)
    n_pieces = 1 + float(_densities(graph, segments, np.full(len(segments), 0.5)).mean())
    each = seconds_per_evaluation(graph)
    return Cost(n_pieces, (n_pieces + 1) * each, each)


def plane_cost(model: Model, probes: Sequence[Probe]) -> Cost:
    """The cost of subdividing each of the probes.

    Six points are spread over up to six of the probes, and two lines cross at each, parallel to the axes. A
    stretch of either is walked as in `segment_cost`. If kinks lie as lines drawn at random do, of which p
    and q meet the sides of a unit square, then there are 1 + p + q + pi / 4 p q regions on it.
    """
    domains = {i: domain_of(probes[i]) for i in _evenly(len(probes), N_CROSSES)}
    each = -(-N_CROSSES // len(domains))
    crosses = [cross for domain in domains.values() for cross in _crosses(domain, each)]
    shape = probes[0].input_shape
    lines = [
        Segment(*domain.plane.points(ends).reshape(2, *shape))
        for (domain, chords, _) in crosses
        for ends in chords
    ]
    graph = graph_on(model, lines)
    densities = _densities(graph, lines, np.concatenate([centres for _, _, centres in crosses]))
    n_regions = np.mean(
        [
            _n_faces(domain, chords, densities[2 * k : 2 * k + 2])
            for k, (domain, chords, _) in enumerate(crosses)
        ]
    )
    seconds = SECONDS_PER_PLANE + float(n_regions) * _seconds_per_face(graph)
    return Cost(float(n_regions), seconds, seconds_per_evaluation(graph))


def check_planes(model: Model, probes: Sequence[Probe], budget: float) -> None:
    """Raise an error if subdividing the probes is foreseen to take more seconds than the budget.

    What is not obviously quick is reckoned by `plane_cost`. What is then neither far within the budget nor
    far over it is measured: the seconds of a region on a small patch of the first plane, times the regions.
    """
    if math.isinf(budget) or not probes:
        return
    domain, shape = domain_of(probes[0]), probes[0].input_shape
    graph = graph_of(model, shape, lambda: domain.plane.points(domain.corners).reshape(-1, *shape))
    if len(probes) * _sizes_of(graph)[0] ** 2 * _seconds_per_face(graph) <= QUICK_SECONDS:
        return
    cost = plane_cost(model, probes)
    if RECKONING_MAY_ERR_BY * len(probes) * cost.seconds <= budget:
        return
    seconds = len(probes) * cost.seconds
    if seconds <= NOT_MEASURED_ABOVE_BUDGETS * budget:
        seconds = len(probes) * cost.n_regions * seconds_per_region(graph, domain, cost.n_regions)
    each = f"{len(probes):,} planes of about {cost.n_regions:,.0f} linear regions each"
    work = each if len(probes) > 1 else f"about {cost.n_regions:,.0f} linear regions on this plane"
    check_budget(work, seconds, budget, "take a smaller patch (a smaller margin), or fewer layers (n_layers)")


def seconds_per_region(graph: Graph, domain: Domain, n_regions: float) -> float:
    """The seconds of a region, measured around the middle of a plane, given how many it has."""
    from inscape.partition.linear.planes.subdivision import subdivide

    middle = domain.corners.mean(axis=0)
    fraction = min(1.0, math.sqrt(TIMED_REGIONS / max(1.0, n_regions)))
    corners = middle + fraction * (domain.corners - middle)
    n_faces = 1

    def job() -> None:
        nonlocal n_faces
        n_faces = subdivide(graph, domain.plane, corners, memory=MEMORY).planar.n_faces

    return timed(job) / n_faces


def seconds_per_evaluation(graph: Graph) -> float:
    """The time of one position of a walk along a segment, or of one evaluation of the network among many."""
    n_units, n_products = _sizes_of(graph)
    return SECONDS_PER_VECTOR + SECONDS_PER_UNIT * n_units + SECONDS_PER_PRODUCT * n_products


def _seconds_per_face(graph: Graph) -> float:
    """The time of one face of a plane, and its share of the vertices."""
    n_units, n_products = _sizes_of(graph)
    if n_units <= UNITS_IN_CACHE:
        return SECONDS_PER_VECTOR + SECONDS_PER_UNIT * n_units + SECONDS_PER_REUSED_PRODUCT * n_products
    return SECONDS_PER_VECTOR + SECONDS_PER_DISTANT_UNIT * n_units + SECONDS_PER_PRODUCT * n_products


def _sizes_of(graph: Graph) -> tuple[int, int]:
    """How many units a network has, and how many products of two numbers it takes to evaluate it."""
    n_units = sum(math.prod(graph.shapes[i]) for i, node in enumerate(graph.nodes) if not node.is_affine)
    return n_units, sum(_n_products(graph, i) for i in range(1, len(graph.nodes)))


def _n_products(graph: Graph, i: int) -> int:
    """The products of a node: each entry of one that is not affine is touched once."""
    node, size = graph.nodes[i], math.prod(graph.shapes[i])
    if node.affine is None:
        return size
    return node.affine.n_products(size, math.prod(graph.shapes[node.inputs[0]]))


def _evenly(n: int, most: int) -> list[int]:
    """At most `most` of the numbers 0 .. n - 1, evenly chosen."""
    chosen: list[int] = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int)).tolist()
    return chosen


def _crosses(domain: Domain, n: int) -> list[tuple[Domain, Floats, Floats]]:
    """For each of n points of a polygon two chords through it, (2, 2, 2), and where on them it is, (2,)."""
    low, high = domain.corners.min(axis=0), domain.corners.max(axis=0)
    crosses: list[tuple[Domain, Floats, Floats]] = []
    k = 0
    while len(crosses) < n:  # a Kronecker sequence of the plastic number, even in a square
        k += 1
        point = low + (high - low) * (np.array([0.7548776662466927, 0.5698402909980532]) * k % 1.0)
        chords = [_chord(domain.corners, point, axis) for axis in (0, 1)]
        if all(chord is not None for chord in chords):
            ends = np.array(chords)
            centres = [(point[a] - ends[a, 0, a]) / (ends[a, 1, a] - ends[a, 0, a]) for a in (0, 1)]
            crosses.append((domain, ends, np.array(centres)))
    return crosses


def _chord(corners: Floats, point: Floats, axis: int) -> Floats | None:
    """The ends of a convex polygon's chord through a point, along an axis, (2, 2); None if that is outside.

    >>> _chord(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), np.array([0.5, 0.5]), 0).tolist()
    [[0.0, 0.5], [1.5, 0.5]]
    """
    above = corners[:, 1 - axis] - point[1 - axis]
    after, next_above = np.roll(corners, -1, axis=0), np.roll(above, -1)
    crossed = (above < 0) != (next_above < 0)
    if not crossed.any():
        return None
    fraction = above[crossed] / (above[crossed] - next_above[crossed])
    at = corners[crossed, axis] + fraction * (after[crossed, axis] - corners[crossed, axis])
    if not at.min() < point[axis] < at.max():
        return None
    ends = np.repeat(point[None], 2, axis=0)
    ends[:, axis] = at.min(), at.max()
    return ends


def _n_faces(domain: Domain, chords: Floats, densities: Floats) -> float:
    """Regions of a polygon, from the knots of two chords (2, 2, 2) if it were alike all over."""
    lengths = np.abs(chords[:, 1] - chords[:, 0]).max(axis=1)
    x, y = domain.corners.T
    area = 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    p, q = densities / lengths * math.sqrt(area)
    return float(1 + p + q + CROSSINGS * p * q)


def _densities(graph: Graph, lines: Sequence[Segment], centres: npt.ArrayLike) -> Floats:
    """The knots that whole lines would have, were they as dense as around a point on each."""
    middle = np.asarray(centres, dtype=np.float64)
    counts, fractions = np.zeros(len(lines)), np.zeros(len(lines))
    open_lines, fraction = np.arange(len(lines)), FIRST_STRETCH
    while len(open_lines):
        stretches = [_stretch(lines[i], middle[i], fraction) for i in open_lines.tolist()]
        knots = Knots()
        walk(graph, stretches, knots.take, memory=MEMORY, tolerance=KNOT_TOLERANCE)
        counts[open_lines] = [len(t) for t, _ in knots.by_segment(len(stretches))]
        fractions[open_lines] = fraction
        open_lines = open_lines[(counts[open_lines] < RELIABLE_FROM_KNOTS) & (fraction < 1.0)]
        fraction = min(1.0, 8 * fraction)
    return np.asarray(counts / fractions)


def _stretch(line: Segment, centre: float, fraction: float) -> Segment:
    """The stretch of a line around a point on it, moved inside where it would stick out."""
    low, high = line.span
    first = min(max(centre - fraction / 2, 0.0), 1.0 - fraction)
    return Segment(
        line.start, line.end, span=(low + first * (high - low), low + (first + fraction) * (high - low))
    )
