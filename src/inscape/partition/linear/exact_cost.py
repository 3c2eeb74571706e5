"""What exact regions will cost, estimated from a few short lines across the probes.

Seconds are those of one idle core of a common computer, estimated from the sizes of the network and not
measured, so that decisions that rest on them can be repeated. They are right to a factor of three or so.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats
from inscape.budget import MEMORY, check_budget, timed
from inscape.models import Model
from inscape.models.graph import Graph, Node
from inscape.models.graph.piecewise import Bend
from inscape.parallel import single_products
from inscape.partition.linear.regions import KNOT_TOLERANCE
from inscape.partition.linear.segments.linear_segments import Knots, graph_on
from inscape.partition.linear.segments.walk import walk
from inscape.probes import Patch, Probe, Segment, Simplex
from inscape.probes.plane import Domain, domain_of
from inscape.probes.segment import as_segments

FIRST_STRETCH = 1e-3
"""The largest fraction of a line that is tried first; less where every unit may have a knot."""
STEEPEST_GROWTH = 8.0
"""How many times longer the next stretch may be."""
N_SEGMENTS = 3
"""Segments of which a stretch is tried."""
COMPARED_FROM_UNITS = 5000
"""Of a network with as many, two evaluations find nearly all knots of a stretch: the units that differ ..."""
COMPARED_KNOTS = 100
"""... between its ends, if there are this many, so that hardly any has changed twice."""
COMPARED_AT = (1 / 6, 1 / 2, 5 / 6)
"""Where on the segments: between points of data the middle has the most knots."""
CROSSINGS = math.pi / 4
"""Of random lines, on a square each side of which meets one of them on average."""

SECONDS_PER_VECTOR = 2e-6
"""Of one point, whatever the network: a breakpoint, or a face of a plane with its vertex."""
SECONDS_PER_PLANE = 5e-3
"""Of calls, whatever the network."""
SECONDS_PER_PRODUCT = 5e-11
SECONDS_PER_REUSED_PRODUCT = 1e-11
"""On planes, where a linear map of a new vertex follows from those around it."""
SECONDS_PER_UNIT = 3e-9
SECONDS_PER_DISTANT_UNIT = 15e-9
"""On planes of a network with more units than `UNITS_IN_CACHE`, whose vectors do not fit there."""
UNITS_IN_CACHE = 4096

QUICK_SECONDS = 1.0
"""Work that is not sampled, whatever the budget: what the lines of all units would take, were they straight.
Neither is what would then be far within the budget, since sampling takes time, too."""
NOT_MEASURED_ABOVE_BUDGETS = 100.0
"""Work that is estimated to take this many times longer than it may is not measured."""
TIMED_WORK = 0.05
"""Seconds that a smaller plane is estimated to take, on which the time of a region is measured ..."""
TIMED_REGIONS = 30
"""... and how many regions it has at least."""

LONG_EVALUATION = 0.3
"""Seconds after which two points are not evaluated again, only for the time that it takes."""


DECISIONS_TAKE_LONGER = 4.0
"""Than linear regions, at most: that many times on small networks, hardly on large ones."""

OnPlane = Callable[[Probe], int]
"""Finds regions on a plane, and says how many vertices they have."""


class CostSampling(NamedTuple):
    """How closely something is sampled before it is done."""

    n_crosses: int
    """Points of planes, at each of which two lines cross."""
    n_knots: int
    """Knots on a stretch of a line that is walked; 30 make a count reliable to some 20 %."""
    doubt: float
    """How many times longer than estimated the work may take."""


COARSE_SAMPLING = CostSampling(n_crosses=1, n_knots=6, doubt=16.0)
"""A hundredth of the work of a plane that takes a second: enough to see that it will not take a minute."""
CLOSER_SAMPLING = CostSampling(n_crosses=6, n_knots=10, doubt=4.0)
"""For what is not obviously quick."""
CAREFUL_SAMPLING = CostSampling(n_crosses=6, n_knots=30, doubt=4.0)
"""For an estimate that is reported, or on which a method is chosen."""


class Cost(NamedTuple):
    """What exact regions are estimated to take on each probe, on average.

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

    Around the middle of three evenly chosen ones a stretch is tried, longer each time, until it holds some 30
    knots or is the whole segment; knots per length are carried over to the rest. On stretches of a small
    network they are found exactly; of a large one as `COMPARED_FROM_UNITS` says, and at three places.
    """
    segments = as_segments([probes[i] for i in _evenly(len(probes), N_SEGMENTS)])
    graph = _graph(model, segments)
    centres = np.full(len(segments), 0.5)
    if graph.n_units >= COMPARED_FROM_UNITS:
        segments, centres = [segments[i % len(segments)] for i in range(N_SEGMENTS)], np.array(COMPARED_AT)
    n_pieces = 1 + float(_densities(graph, segments, centres, CAREFUL_SAMPLING.n_knots).mean())
    each = seconds_per_evaluation(graph)
    return Cost(n_pieces, (n_pieces + 1) * each, each)


def plane_cost(model: Model, probes: Sequence[Probe], sampling: CostSampling = CAREFUL_SAMPLING) -> Cost:
    """The cost of subdividing each of the probes.

    Points are spread over several of the probes, and two lines cross at each, parallel to the axes. A
    stretch of either is tried as in `segment_cost`. If kinks lie as random lines do, of which p and q meet
    the sides of a unit square, then there are 1 + p + q + pi / 4 p q regions on it.
    """
    domains = {i: domain_of(probes[i]) for i in _evenly(len(probes), sampling.n_crosses)}
    per_domain = -(-sampling.n_crosses // len(domains))
    crosses = [cross for domain in domains.values() for cross in _crosses(domain, per_domain)]
    shape = probes[0].input_shape
    lines = [
        Segment(*domain.plane.points(ends).reshape(2, *shape))
        for (domain, chords, _) in crosses
        for ends in chords
    ]
    graph = _graph(model, lines)
    centres = np.concatenate([points for _, _, points in crosses])
    densities = _densities(graph, lines, centres, sampling.n_knots)
    n_regions = np.mean(
        [
            _n_faces(domain, chords, densities[2 * k : 2 * k + 2])
            for k, (domain, chords, _) in enumerate(crosses)
        ]
    )
    seconds = SECONDS_PER_PLANE + float(n_regions) * _seconds_per_face(graph)
    return Cost(float(n_regions), seconds, seconds_per_evaluation(graph))


def check_planes(model: Model, probes: Sequence[Probe], budget: float, decide: OnPlane | None = None) -> None:
    """Raise an error if subdividing the probes is estimated to take more seconds than the budget.

    What is not obviously quick is estimated by `plane_cost`, coarsely and then more closely. What is
    then neither far within the budget nor far over it is measured: the seconds of a region on a small patch
    of the first plane, times the regions. All this takes a small fraction of the time that the planes do.

    Args:
        model: a network.
        probes: patches and triangles.
        budget: in seconds.
        decide: finds decision regions on a plane, if these are what is asked for.
    """
    if math.isinf(budget) or not probes:
        return
    from inscape.partition.linear.planes.subdivision import confirmed_on

    graph, n = confirmed_on(model, probes[0]), len(probes)
    longer = 1.0 if decide is None else DECISIONS_TAKE_LONGER
    if n * graph.n_units**2 * _seconds_per_face(graph) <= max(QUICK_SECONDS, budget / COARSE_SAMPLING.doubt):
        return
    for sampling in (COARSE_SAMPLING, CLOSER_SAMPLING):
        cost = plane_cost(model, probes, sampling)
        if sampling.doubt * longer * n * cost.seconds <= budget:
            return
    seconds = n * cost.seconds
    if seconds <= NOT_MEASURED_ABOVE_BUDGETS * budget:
        find = partial(_n_vertices, graph) if decide is None else decide
        seconds = n * cost.n_regions * seconds_per_vertex(find, probes[0], timed_side(graph, cost.n_regions))
    work = f"about {cost.n_regions:,.0f} linear regions on this plane"
    if n > 1:
        work = f"{n:,} planes of about {cost.n_regions:,.0f} linear regions each"
    check_budget(
        work, seconds, budget, "take a smaller patch (a smaller margin), or in Python fewer layers (n_layers)"
    )


def joint_seconds(models: Sequence[Model], joint: Graph, probe: Probe) -> float:
    """What a walk of networks side by side over a plane is estimated to take.

    Lines of the one cross lines of the other: together they have as many regions as a network with the lines
    of all. What is quick whatever its lines do is not sampled.
    """
    most = joint.n_units**2 * _seconds_per_face(joint)
    if most <= QUICK_SECONDS:
        return most
    lines = sum(math.sqrt(plane_cost(model, [probe], CLOSER_SAMPLING).n_regions) for model in models)
    return lines**2 * _seconds_per_face(joint)


def seconds_per_vertex(find: OnPlane, probe: Probe, side: float, *, once_above: float = math.inf) -> float:
    """The seconds of regions for each vertex, measured on a smaller plane around the middle of a plane.

    A large plane has as many vertices as regions, a small one more, on its border.

    Args:
        find: what is measured.
        probe: a patch or a triangle.
        side: of the smaller plane, as a fraction of the plane's.
        once_above: seconds after which it is not done again, only for the time that it takes.
    """
    small, n_vertices = _smaller(probe, side), 1

    def job() -> None:
        nonlocal n_vertices
        n_vertices = find(small)

    return timed(job, once_above=once_above) / n_vertices


def _n_vertices(graph: Graph, probe: Probe) -> int:
    """Subdivide a plane; how many vertices there are."""
    from inscape.partition.linear.planes.subdivision import subdivide

    domain = domain_of(probe)
    return len(subdivide(graph, domain.plane, domain.corners, memory=MEMORY).planar.xy)


def _smaller(probe: Probe, side: float) -> Probe:
    """A patch or triangle around the middle of another, with sides that are a fraction of those."""
    if isinstance(probe, Patch):
        (s0, s1), (t0, t1) = (
            ((low + high - side * (high - low)) / 2, (low + high + side * (high - low)) / 2)
            for low, high in probe.bounds
        )
        return Patch(probe.origin, probe.axes, ((s0, s1), (t0, t1)))
    middle = probe.generators.mean(axis=0)
    return Simplex(middle + side * (probe.generators - middle))


def timed_side(graph: Graph, n_regions: float) -> float:
    """The side of a smaller plane on which the time of a region is measured, as a fraction of the plane's."""
    n_timed = max(TIMED_REGIONS, TIMED_WORK / _seconds_per_face(graph))
    return min(1.0, math.sqrt(n_timed / max(1.0, n_regions)))


def measured_per_evaluation(model: Model, probe: Probe) -> float:
    """The seconds of an evaluation of a network in float64, measured at two points next to each other."""
    graph = model.graph(probe.input_shape)
    points = np.repeat(probe.generators[:1], 2, axis=0)
    ends = torch.from_numpy(points.reshape(2, *graph.input_shape)).double()
    with single_products():
        return timed(lambda: graph.evaluate(ends), once_above=LONG_EVALUATION) / 2


def seconds_per_evaluation(graph: Graph) -> float:
    """The time of one position of a walk along a segment, or of one evaluation of the network among many."""
    return SECONDS_PER_VECTOR + SECONDS_PER_UNIT * graph.n_units + SECONDS_PER_PRODUCT * graph.n_products


def _seconds_per_face(graph: Graph) -> float:
    """The time of one face of a plane, and its share of the vertices."""
    n_units, n_products = graph.n_units, graph.n_products
    if n_units <= UNITS_IN_CACHE:
        return SECONDS_PER_VECTOR + SECONDS_PER_UNIT * n_units + SECONDS_PER_REUSED_PRODUCT * n_products
    return SECONDS_PER_VECTOR + SECONDS_PER_DISTANT_UNIT * n_units + SECONDS_PER_PRODUCT * n_products


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
    """Regions of a polygon, from the knots of two chords (2, 2, 2), if it were alike everywhere."""
    lengths = np.abs(chords[:, 1] - chords[:, 0]).max(axis=1)
    x, y = domain.corners.T
    area = 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    p, q = densities / lengths * math.sqrt(area)
    return float(1 + p + q + CROSSINGS * p * q)


def _graph(model: Model, lines: Sequence[Segment]) -> Graph:
    """The model's graph; that of a large network is not compared with it, which would take longest."""
    graph = model.graph(lines[0].input_shape)
    return graph if graph.n_units >= COMPARED_FROM_UNITS else graph_on(model, lines)


def _densities(graph: Graph, lines: Sequence[Segment], centres: Floats, n_knots: int) -> Floats:
    """The knots that whole lines would have, were they as dense as around a point on each."""
    n_knots_on = _counted_by_walking
    if graph.n_units >= COMPARED_FROM_UNITS:
        n_knots_on, n_knots = _counted_by_comparing, COMPARED_KNOTS
    first = min(FIRST_STRETCH, 2.5 * n_knots / max(graph.n_units, 1))
    counts, fractions = np.zeros(len(lines)), np.full(len(lines), first)
    open_lines = np.arange(len(lines))
    while len(open_lines):
        stretches = [stretch(lines[i], centres[i], fractions[i]) for i in open_lines.tolist()]
        counts[open_lines] = n_knots_on(graph, stretches)
        open_lines = open_lines[(counts[open_lines] < n_knots) & (fractions[open_lines] < 1.0)]
        growth = np.clip(1.5 * n_knots / np.maximum(counts[open_lines], 1), 2.0, STEEPEST_GROWTH)
        fractions[open_lines] = np.minimum(1.0, growth * fractions[open_lines])
    return np.asarray(counts / fractions)


def _counted_by_walking(graph: Graph, stretches: Sequence[Segment]) -> list[int]:
    """The knots on each stretch."""
    knots = Knots()
    walk(graph, stretches, knots.take, memory=MEMORY, tolerance=KNOT_TOLERANCE)
    return [len(t) for t, _ in knots.by_segment(len(stretches))]


def _counted_by_comparing(graph: Graph, stretches: Sequence[Segment]) -> list[int]:
    """How many kinks lie between the states of all units at the two ends of each stretch."""
    return [n_changes(graph, stretch) for stretch in stretches]


def n_changes(graph: Graph, segment: Segment) -> int:
    """The kinks that units pass between the ends of a segment, which has at least as many knots."""
    n_passed = 0

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        nonlocal n_passed
        if node.bend is not None:
            n_passed += _n_passed(node.bend, inputs[0])
        return node.op(*inputs)

    ends = segment.points(np.array(segment.span)).reshape(2, *graph.input_shape)
    with single_products(), torch.no_grad():
        graph.cast(torch.float64).walk(torch.from_numpy(ends).double(), visit)
    return n_passed


def _n_passed(op: Bend, z: Tensor) -> int:
    """The kinks between the inputs of an operation at two points (2, ...).

    Where all entries of a window are equal, as those that a relu has made 0, another winner is no kink.
    """
    before, after = op.states(z).astype(np.int64)
    windows = op.windows(tuple(z.shape[1:]))
    if windows is None:
        return int(np.abs(after - before).sum())
    changed = np.flatnonzero(before != after)
    first, last = (windows.entries[changed, winner[changed]] for winner in (before, after))
    values = z.flatten(1).numpy()
    return int(((values[0, last] < values[0, first]) & (values[1, first] < values[1, last])).sum())


def stretch(line: Segment, centre: float, fraction: float) -> Segment:
    """The stretch of a line around a point on it, moved inside where it would stick out."""
    low, high = line.span
    first = min(max(centre - fraction / 2, 0.0), 1.0 - fraction)
    return Segment(
        line.start, line.end, span=(low + first * (high - low), low + (first + fraction) * (high - low))
    )
