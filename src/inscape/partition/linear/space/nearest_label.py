"""How far the decision boundary is from a point: a walk over linear regions, the nearest first.

As in GeoCert (Jordan, Lewis & Dimakis 2019, arXiv 1903.08778), the polytopes around x are visited in the
order of their distance from x. The segment from x to the nearest point of another label crosses facets one
after the other, each at least as near as that point; so whatever waits in the queue bounds the distance from
below, however early the walk is stopped. An upper bound is a point at which the label really changes, found
exactly along segments. Where the two meet, the distance is known.

Distances from x to a polytope are certified by duality: for weights w >= 0 of the constraints a u <= b,
|u| >= -(w b) / |w a|*, with the dual norm |.|*, holds for every u in it, whatever made w. The queue holds
cheap bounds first, the distance to a facet's hyperplane, and better ones when their turn comes.

What high and low mean: far: the input can move that much in any direction and keeps its label; near: a small
change is enough for another. When it does not hold: distances are in units of the input, so scale inputs
alike; and a model that is wrong can be far from its boundary.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Floats
from inscape.budget import BUDGET, MEMORY, as_budget, until_spent
from inscape.errors import PartitionError
from inscape.models import Model, wrap
from inscape.models.outputs import labels_of
from inscape.partition.linear.space.polytope import graph_and_point
from inscape.pictures import Drawn
from inscape.probes import Segment
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from inscape.models.graph import Graph
    from inscape.partition.linear.space.region_maps import Pattern, RegionMaps

NORMS = (1.0, 2.0, math.inf)
BOUNDS_MEET_WITHIN = 1e-9
"""Bounds that differ by less, relative to the upper one, have met."""
SEARCHED_BEYOND_MAP = 64.0
"""How many times farther than the map of a region says a label change is searched for along a segment."""
N_RIVALS = 5
"""Labels, the nearest ones by the map of a region, towards which an upper bound is searched for."""
N_DESCENTS = 20
"""Rounds at most in which the first upper bound is improved by the map around the point that gave it."""
BUDGET_REACHED = Status(
    "budget", "the distance is between `lower` and `upper`: give a larger max_regions to know it"
)
SPENT = Status(
    "budget",
    "the time is up, and the distance is between `lower` and `upper`: give a larger budget, or budget=None, "
    "to know it",
)
TOUCHING = Status(
    "non_generic",
    "two scores touch at the distance `lower`, but the label was not seen to change there; the nearest "
    "change that was seen is at `upper`",
)
EMPTY_FROM_RATIO = 1e12
"""A polytope is empty if a lower bound of its distance is this many times that of a violated hyperplane."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BoundaryDistance(Drawn):
    """The distance of a point to the nearest point of another label, between two bounds.

    Attributes:
        x: the point, (*input_shape).
        lower: no point nearer than this has another label, up to the rounding of float64.
        upper: how far `point` is; infinite if no other label was found.
        point: where the label changes, (*input_shape); NaN if that was not found.
        is_exact: whether both bounds agree to nine digits.
        norm: 1, 2 or infinity.
        label: the label of x.
        other_label: that beyond `point`, -1 if that was not found.
        n_regions: how many linear regions were visited.
        status: "complete", or "budget reached: ..." if the bounds have not met.
        provenance: model, precision, version.
    """

    x: Floats
    lower: float
    upper: float
    point: Floats
    is_exact: bool
    norm: float
    label: int
    other_label: int
    n_regions: int
    status: Status
    provenance: Provenance

    def __repr__(self) -> str:
        known = f"{self.upper:.6g}" if self.is_exact else f"between {self.lower:.4g} and {self.upper:.4g}"
        return f"<boundary distance of {self.provenance.model}: {known}, norm {self.norm:g}, {self.status}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, infinity as a text; `from_dict` reads it back."""
        numbers = {name: getattr(self, name) for name in ("lower", "upper", "norm")}
        texts = {name: "inf" for name, number in numbers.items() if math.isinf(number)}
        return {"schema": SCHEMA, "kind": "boundary distance"} | plain_fields(self) | texts

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        check_schema(data, "kind", "boundary distance", what="boundary distance", error=PartitionError)
        result: Self = restored_fields(cls, data, what="boundary distance", error=PartitionError)
        return result

    def _draw(self, ax: Any) -> Any:
        """The two bounds."""
        from inscape.drawing.measures import draw_bracket

        title = f"distance to the decision boundary, norm {self.norm:g}"
        return draw_bracket(self.lower, self.upper, title=title, ax=ax)


def boundary_distance(
    model: Any,
    x: npt.ArrayLike,
    *,
    norm: float = 2,
    max_regions: int = 1000,
    memory: int = MEMORY,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> BoundaryDistance:
    """How far the nearest point of another label is from x: two bounds, which meet where the walk ends.

    Args:
        model: a piecewise-affine network, or what `inscape.wrap` made of one.
        x: one point, in the shape that the model takes. All of the input space counts, also beyond the
            range of the data.
        norm: 2, 1 or `float("inf")`.
        max_regions: linear regions to visit at most; then the bounds are as good as they are.
        memory: bytes that the gradients of one layer's units may take.
        progress: None for a bar after two seconds, False for none; a function gets (regions done, in all).
        budget: seconds after which the walk ends as it does after `max_regions`, between two regions (the
            first, without which nothing is known, takes a convolution on photographs many seconds); None for
            no limit.

    The cost per region is one pass with d directions, for d inputs, and one small least-distance problem per
    facet that comes up (norms 1 and infinity: a linear program). Small networks are exact; of large ones the
    lower bound of the first regions is the distance at which surely nothing changes.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1).double()
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.tensor([[3.0, 4.0]])), net.bias.fill_(-5.0)
    >>> d = boundary_distance(net, [0.0, 0.0])
    >>> d.is_exact, round(d.upper, 12), d.point.round(12).tolist()
    (True, 1.0, [0.6, 0.8])
    """
    size = float(norm) if isinstance(norm, int | float) else math.nan
    if size not in NORMS:
        raise PartitionError(f"norm={norm!r} is not known: give 1, 2 or float('inf')")
    max_regions = whole_number(max_regions, "max_regions", 1, PartitionError)
    wrapped, limit = wrap(model), as_budget(budget)
    with wrapped.unchanged(), meter(progress, "linear regions") as show:
        graph, point = graph_and_point(wrapped, x)
        walk = _Search(wrapped, graph, point, size, memory)
        walk.run(max_regions, limit, show)
        provenance = Provenance.of(wrapped, dtype="float64")
    return BoundaryDistance(
        x=point,
        lower=min(walk.lower, walk.upper),
        upper=walk.upper,
        point=walk.point,
        is_exact=walk.has_met,
        norm=size,
        label=walk.label,
        other_label=walk.other_label,
        n_regions=walk.n_regions,
        status=walk.status,
        provenance=provenance,
    )


@dataclass(order=True)
class _Waiting:
    """What may be nearer than the upper bound: a facet to cross, or a boundary between labels to reach.

    Attributes:
        bound: how far it is at least.
        number: tells those of equal bound apart.
        region: the linear region that it belongs to.
        constraint: the facet, by its number in the region; -1 for a boundary.
        rival: the label beyond the boundary; -1 for a facet.
        is_sharp: whether the bound is the distance to what it really is, not only to its hyperplane.
        u: its nearest point, once that is known.
    """

    bound: float
    number: int
    region: "RegionMaps" = field(compare=False)
    constraint: int = field(compare=False)
    rival: int = field(compare=False, default=-1)
    is_sharp: bool = field(compare=False, default=False)
    u: Floats | None = field(compare=False, default=None)


class _Search:
    """The walk over linear regions from the nearest outwards."""

    def __init__(self, model: Model, graph: "Graph", x: Floats, norm: float, memory: int) -> None:
        self.model, self.graph, self.x, self.norm, self.memory = model, graph, x, norm, memory
        self.upper, self.lower, self.n_regions = math.inf, 0.0, 0
        self.label, self.other_label = -1, -1
        self.status = COMPLETE
        self.point = np.full(x.shape, math.nan)
        self._reached = math.inf  # the least bound of boundaries that were tried
        self._queue: list[_Waiting] = []
        self._numbers = itertools.count()
        self._seen: set[bytes] = set()

    def run(self, max_regions: int, seconds: float, show: Meter) -> None:
        """Visit regions until the bounds meet or the budget is reached."""
        is_spent = until_spent(seconds)
        show(0, max_regions)
        region = self._maps(None)
        self.label = int(labels_of(region.scores[None], self.model.name)[0])
        self._descend(region, is_spent)
        self._visit(region, 0.0)
        show(self.n_regions, max_regions)
        while self._queue and self._queue[0].bound < min(self.upper, self._reached):
            self.lower = self._queue[0].bound
            if is_spent():
                self.status = SPENT
                return
            item = heapq.heappop(self._queue)
            if not item.is_sharp:
                self._sharpen(item)
            elif item.rival >= 0:
                self._reached = min(self._reached, item.bound)
                if item.u is not None:
                    self._try(item.u, item.rival)
            elif pattern_key(item.region.across(item.constraint)) in self._seen:
                continue
            elif self.n_regions >= max_regions:
                self.status = BUDGET_REACHED
                return
            else:
                region = self._maps(item.region.across(item.constraint))
                if not region.is_empty:
                    self._visit(region, item.bound)
                show(self.n_regions, max_regions)
        waiting = self._queue[0].bound if self._queue else math.inf
        self.lower = min(waiting, self._reached)
        if not self.has_met:
            self.status = TOUCHING

    @property
    def has_met(self) -> bool:
        """Whether the two bounds agree; both are infinite where there is one label only."""
        if math.isinf(self.upper):
            return math.isinf(self.lower)
        return self.upper - self.lower <= BOUNDS_MEET_WITHIN * self.upper

    def _maps(self, pattern: "Pattern | None", x: Floats | None = None) -> "RegionMaps":
        """The region of a pattern, or of a point, by default that of x."""
        from inscape.partition.linear.space.region_maps import region_maps

        return region_maps(self.graph, self.x if x is None else x, pattern, self.memory)

    def _visit(self, region: "RegionMaps", bound: float) -> None:
        """Queue the boundaries of the region and its facets, as far as they may be nearer than `upper`."""
        self._seen.add(pattern_key(region.pattern))
        self.n_regions += 1
        for rival, normal, offset in self._rivals(region):
            length = self._dual(normal)
            if length > 0 or offset >= 0:
                apart = max(bound, -offset / length if offset < 0 else 0.0)
                self._wait(_Waiting(apart, next(self._numbers), region, -1, rival))
        apart = np.maximum(np.abs(region.offsets) / self._dual(region.normals), bound)
        for constraint in np.flatnonzero(apart < self.upper).tolist():
            self._wait(_Waiting(float(apart[constraint]), next(self._numbers), region, constraint))

    def _wait(self, item: _Waiting) -> None:
        if item.bound < self.upper:
            heapq.heappush(self._queue, item)

    def _sharpen(self, item: _Waiting) -> None:
        """Queue it again with the distance to what it really is, not only to its hyperplane."""
        region = item.region
        if item.rival >= 0:
            _, normal, offset = next(r for r in self._rivals(region) if r[0] == item.rival)
        else:
            if pattern_key(region.across(item.constraint)) in self._seen:
                return
            normal, offset = -region.normals[item.constraint], -float(region.offsets[item.constraint])
        apart = np.abs(region.offsets) / self._dual(region.normals)
        near = (region.offsets < 0) | (apart <= self.upper)  # others do not cut off what is nearer
        normals, offsets = np.vstack([region.normals[near], normal]), np.append(region.offsets[near], offset)
        bound, u = nearest_of_polytope(normals, offsets, self.norm)
        bound = max(item.bound, bound)
        self._wait(_Waiting(bound, next(self._numbers), region, item.constraint, item.rival, True, u))

    def _rivals(self, region: "RegionMaps") -> "Iterator[tuple[int, Floats, float]]":
        """For each other label the halfspace normal u <= offset in which it wins against that of x."""
        scores, jacobian = region.scores, region.jacobian
        if len(scores) == 1:
            side = 1.0 if self.label == 1 else -1.0
            yield 1 - self.label, side * jacobian[0], -side * float(scores[0])
            return
        for rival in range(len(scores)):
            if rival != self.label:
                difference = jacobian[self.label] - jacobian[rival]
                yield rival, difference, float(scores[rival] - scores[self.label])

    def _dual(self, normal: Floats) -> Any:
        """The dual norm of a normal: how much its constraint changes at most per distance."""
        order = {1.0: math.inf, 2.0: 2, math.inf: 1}[self.norm]
        return np.linalg.norm(normal, ord=order, axis=-1)

    # upper bounds

    def _descend(self, region: "RegionMaps", is_spent: Callable[[], bool]) -> None:
        """A first upper bound, by steepest descent in the region of x, then in those of points it gives."""
        for _ in range(N_DESCENTS):
            before, steps = self.upper, []
            for rival, normal, offset in self._rivals(region):
                if offset < 0 and self._dual(normal) > 0:
                    steps.append((rival, _steepest(normal, self.norm) * -offset))
            for rival, u in sorted(steps, key=lambda step: self._length(step[1]))[:N_RIVALS]:
                if is_spent() and not math.isinf(self.upper):
                    return
                self._try(u, rival, SEARCHED_BEYOND_MAP if math.isinf(before) else 2.0)
            if is_spent() or not self.upper < (1 - 1e-3) * before:
                return
            inside = self.x + (1 - 1e-6) * (self.point - self.x)
            region = self._maps(self._maps(None, inside).pattern)

    def _try(self, u: Floats, rival: int, farthest: float = 1.0 + 1e-6) -> None:
        """Take the first change of the label along a segment, exactly, if nearer than the upper bound."""
        from inscape.partition.decision.exact.networks import exact_segments

        step = u.reshape(self.x.shape)
        length = self._length(u)
        if length == 0.0:  # x itself is on the boundary
            self.upper, self.point, self.other_label = 0.0, self.x.copy(), rival
            return
        farthest = min(farthest, max(1.0 + 1e-6, 2 * self.upper / length))
        segment = Segment(self.x, self.x + step, span=(0.0, farthest))
        (regions,) = exact_segments(self.model, [segment], progress=False)
        if len(regions.boundaries) and regions.boundaries[0] * length < self.upper:
            self.upper = float(regions.boundaries[0]) * length
            self.point = self.x + float(regions.boundaries[0]) * step
            self.other_label = int(regions.labels[1])

    def _length(self, u: Floats) -> float:
        return float(np.linalg.norm(u.reshape(-1), ord=self.norm))


def pattern_key(pattern: "Pattern") -> bytes:
    """A pattern as a key."""
    return b"".join(states.astype(np.uint16).tobytes() for states in pattern.values())


def _steepest(normal: Floats, norm: float) -> Floats:
    """The shortest u with normal u = -1."""
    if norm == 2.0:
        return np.asarray(-normal / (normal @ normal))
    if norm == math.inf:
        return np.asarray(-np.sign(normal) / np.abs(normal).sum())
    u = np.zeros_like(normal)
    largest = int(np.abs(normal).argmax())
    u[largest] = -1 / normal[largest]
    return u


def nearest_of_polytope(normals: Floats, offsets: Floats, norm: float) -> tuple[float, Floats | None]:
    """A certified lower bound of |u| over normals u <= offsets, and the nearest u; None if there is no u.

    >>> bound, u = nearest_of_polytope(np.array([[-1.0, 0.0], [0.0, -1.0]]), np.array([-3.0, -4.0]), 2.0)
    >>> round(bound, 9), u.round(9).tolist()
    (5.0, [3.0, 4.0])
    """
    violated = float(-offsets.min(initial=0.0))
    if violated <= 0:
        return 0.0, np.zeros(normals.shape[1])
    scaled = offsets / violated
    weights, u = (_by_least_squares if norm == 2.0 else _by_linear_program)(normals, scaled, norm)
    order = {1.0: math.inf, 2.0: 2, math.inf: 1}[norm]
    gain = -float(weights @ scaled)
    length = float(np.linalg.norm(weights @ normals, ord=order))
    bound = 0.0 if gain <= 0 else gain / max(length, gain / (2 * EMPTY_FROM_RATIO))
    if bound > EMPTY_FROM_RATIO:
        return math.inf, None
    return violated * bound, None if u is None else violated * u


def _by_least_squares(normals: Floats, offsets: Floats, norm: float) -> tuple[Floats, Floats | None]:
    """Weights and the nearest point in the Euclidean norm: Lawson & Hanson 1974, problem LDP."""
    from scipy.optimize import nnls

    system = np.vstack([-normals.T, -offsets])
    target = np.append(np.zeros(normals.shape[1]), 1.0)
    try:
        weights, _ = nnls(system, target, maxiter=max(300, 30 * len(normals)))
    except RuntimeError:  # it did not end: no weights, no bound
        return np.zeros(len(normals)), None
    residual = system @ weights - target
    return weights, None if residual[-1] >= 0 else -residual[:-1] / residual[-1]


def _by_linear_program(normals: Floats, offsets: Floats, norm: float) -> tuple[Floats, Floats | None]:
    """Weights and the nearest point in the norms 1 and infinity, u = p - q with p, q >= 0."""
    from scipy.optimize import linprog

    m, d = normals.shape
    if norm == 1.0:
        solution = linprog(np.ones(2 * d), np.hstack([normals, -normals]), offsets, bounds=(0, None))
        u = None if solution.x is None else solution.x[:d] - solution.x[d:]
    else:
        size = np.hstack([np.vstack([np.eye(d), -np.eye(d)]), -np.ones((2 * d, 1))])
        table = np.vstack([np.hstack([normals, np.zeros((m, 1))]), size])
        solution = linprog(
            np.append(np.zeros(d), 1.0), table, np.append(offsets, np.zeros(2 * d)), bounds=(None, None)
        )
        u = None if solution.x is None else solution.x[:d]
    if solution.status == 2:  # infeasible, for which the other route has weights too
        return _by_least_squares(normals, offsets, 2.0)[0], None
    if not solution.success:
        raise PartitionError(f"the linear program of a distance failed: {solution.message}")
    return -solution.ineqlin.marginals[:m], u
