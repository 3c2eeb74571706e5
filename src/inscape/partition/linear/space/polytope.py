"""The linear region of a point in the whole input space: a polytope, and the network's affine map on it.

What high and low mean: a large region (`volume`, or the distance to its nearest facet): the network is affine
far around the point; a small one: units change close to it. When it does not hold: a neighbouring region may
have the same affine map, and a change of slope need not change the label.

A facet is a face of one dimension less than the polytope: at some point of its hyperplane all other
constraints are slack. Up to `HULL_DIMENSIONS` the vertices are enumerated (Qhull: the dual of a convex hull),
and the mean of those on a hyperplane is such a point; above, rays find most facets, and a linear program
(HiGHS) for each other constraint finds the point at which the least slack is largest. Either way the slack is
computed afterwards, from the constraints themselves, and decides.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Bools, Floats, Ints
from inscape.budget import MEMORY
from inscape.errors import NonGenericError, PartitionError, ProbeError
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.probes.probe import as_point
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from inscape.models.graph import Graph
    from inscape.partition.linear.space.region_maps import RegionMaps


SAME_HYPERPLANE = 1e-9
"""Unit normals that differ by less, and offsets relative to the largest, are of one hyperplane."""
N_RAYS_PER_CONSTRAINT = 4
"""Rays in random directions, besides one along each normal, that find facets without a linear program."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearRegion(Drawn):
    """The points around x on which every unit keeps its state: {y : normals y <= offsets}, y flattened.

    There the network is the one affine map y -> weight y + bias. Every constraint is a unit that would change
    its state beyond it; units whose pre-activation is constant on the region have none.

    Attributes:
        x: the point, (*input_shape).
        normals: outer normals of unit length, (m, d).
        offsets: (m,).
        layer: which piecewise-linear layer, from 0, the unit of each constraint is in, (m,).
        unit: its number in the layer, (m,); for max-pooling that of the window.
        weight: the slope of each output, (c, d).
        bias: (c,).
        pattern: for each layer the state of every unit: how many of its kinks its input is above (of a relu
            0 or 1), or which entry of its window wins.
        layers: the names of the layers.
        status: "complete".
        provenance: model, precision, version.
    """

    x: Floats
    normals: Floats
    offsets: Floats
    layer: Ints
    unit: Ints
    weight: Floats
    bias: Floats
    pattern: tuple[Ints, ...]
    layers: tuple[str, ...]
    status: Status
    provenance: Provenance

    @cached_property
    def distances(self) -> Floats:
        """The Euclidean distance of x to the hyperplane of each constraint, (m,)."""
        return np.asarray(self.offsets - self.normals @ self.x.reshape(-1))

    @property
    def distance(self) -> float:
        """The distance of x to the border of the region; infinite if it has none.

        The nearest hyperplane is a facet: the foot of x on it satisfies all other constraints.
        """
        return float(self.distances.min(initial=math.inf))

    @cached_property
    def is_facet(self) -> Bools:
        """Whether each constraint is a facet of the polytope, (m,); of several on one hyperplane the first.

        Rays from x find most facets: the first constraint that a ray meets is one. Each other constraint
        takes a linear program: whether the region would be larger without it.
        """
        scale = max(float(self.distances.max(initial=0.0)), 1e-300)
        a, b = self.normals, self.distances / scale
        first = _first_of_equal(np.column_stack([a, b]))
        facets = np.zeros(len(b), dtype=bool)
        facets[first] = rays_to_constraints(a[first], b[first])[1]
        candidates = np.flatnonzero(first)
        for i in candidates[~facets[candidates]]:
            others = candidates[candidates != i]
            facets[i] = _is_needed(a[i], b[i], a[others], b[others])
        return facets

    @property
    def n_facets(self) -> int:
        """The number of facets."""
        return int(self.is_facet.sum())

    @cached_property
    def _largest_ball(self) -> tuple[float, Floats | None]:
        from scipy.optimize import linprog

        m, d = self.normals.shape
        system = np.column_stack([self.normals, np.ones(m)])
        solution = linprog(
            np.append(np.zeros(d), -1.0), system, self.distances, bounds=[(None, None)] * d + [(0.0, None)]
        )
        if solution.status == 3 or not m:  # unbounded
            return math.inf, None
        if not solution.success:
            raise PartitionError(f"the linear program of the largest ball failed: {solution.message}")
        return float(solution.x[-1]), self.x + solution.x[:-1].reshape(self.x.shape)

    @property
    def inradius(self) -> float:
        """The radius of the largest ball in the region; infinite if it holds arbitrarily large ones."""
        return self._largest_ball[0]

    @property
    def centre(self) -> Floats | None:
        """The centre of such a ball (a Chebyshev centre), (*input_shape); None if there is no largest one."""
        return self._largest_ball[1]

    def contains(self, points: npt.ArrayLike) -> Bools:
        """Whether each of n points is in the region, its border included, (n,)."""
        y = as_point(points, "points").reshape(-1, self.x.size)
        return np.asarray((y @ self.normals.T <= self.offsets).all(axis=1))

    def __repr__(self) -> str:
        return (
            f"<linear region of {self.provenance.model}: {len(self.offsets):,} halfspaces in "
            f"{self.x.size:,} dimensions, {self.distance:.3g} to its border, {self.status}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "kind": "linear region"} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The region that `to_dict` wrote."""
        check_schema(data, "kind", "linear region", what="linear region", error=PartitionError)
        region: Self = restored_fields(cls, data, what="linear region", error=PartitionError)
        return region

    def _draw(self, ax: Any) -> Any:
        """The distances to the hyperplanes of each layer."""
        from inscape.drawing.measures import draw_distances

        of_layers = [self.distances[self.layer == k] for k in range(len(self.layers))]
        title = f"{len(self.offsets):,} units around a point"
        return draw_distances(of_layers, self.layers, title=title, ax=ax)


def linear_region(
    model: Any, x: npt.ArrayLike, *, memory: int = MEMORY, progress: bool | Meter | None = None
) -> LinearRegion:
    """The linear region of a point: halfspaces, the affine map on them, facets, and how far its border is.

    Args:
        model: a piecewise-affine network, or what `inscape.wrap` made of one.
        x: one point, in the shape that the model takes.
        memory: bytes that the gradients of one layer's units may take.
        progress: None for a bar after two seconds, False for none; a function gets (layers done, in all).

    Raises:
        NonGenericError: x is on the kink of a unit up to rounding, where several regions meet.

    The cost is one pass with d directions, for d inputs; facets cost linear programs and are computed when
    they are first read. Halfspaces are exact up to the rounding of float64.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    >>> with torch.no_grad():
    ...     _ = net[0].weight.copy_(torch.eye(2)), net[0].bias.zero_()
    ...     _ = net[2].weight.fill_(1.0), net[2].bias.zero_()
    >>> region = linear_region(net, [3.0, 1.0])
    >>> region.distance, region.n_facets, region.weight.tolist()
    (1.0, 2, [[1.0, 1.0]])
    """
    from inscape.partition.linear.space.region_maps import region_maps

    wrapped = wrap(model)
    with wrapped.unchanged(), meter(progress, "layers") as show:
        graph, point = graph_and_point(wrapped, x)
        maps = region_maps(graph, point, memory=memory, show=show)
        _check_generic(graph, point, maps)
        provenance = Provenance.of(wrapped, dtype="float64")
    return region_of(graph, maps, point, point, provenance)


def region_of(
    graph: "Graph", maps: "RegionMaps", anchor: Floats, x: Floats, provenance: Provenance
) -> LinearRegion:
    """The region of maps around an anchor, of which x is a point."""
    nodes, flat = list(maps.pattern), anchor.reshape(-1)
    return LinearRegion(
        x=x,
        normals=maps.normals,
        offsets=maps.offsets + maps.normals @ flat,
        layer=np.searchsorted(nodes, maps.node),
        unit=maps.unit,
        weight=maps.jacobian,
        bias=maps.scores - maps.jacobian @ flat,
        pattern=tuple(maps.pattern[node] for node in nodes),
        layers=tuple(graph.nodes[node].path or f"{graph.nodes[node].op.name} {node}" for node in nodes),
        status=COMPLETE,
        provenance=provenance,
    )


def graph_and_point(model: Model, x: npt.ArrayLike) -> "tuple[Graph, Floats]":
    """The model's graph, compared with the model at x, and x as one point of the shape that it takes."""
    from inscape.models.graph.trace import graph_of

    point = as_point(x, "x")
    shape = model.known_shape()
    if shape is not None and point.size == math.prod(shape):
        point = point.reshape(shape)
    elif model.input_shape is not None or (shape is not None and point.ndim != len(shape)):
        # of a guess only the number of axes counts: images of another size may do, rows of a table do not
        raise ProbeError(f"x has shape {point.shape}: give one point of shape {shape}, such as x[0]")
    return graph_of(model, point.shape, lambda: point[None].copy()), point


def _check_generic(graph: "Graph", x: Floats, maps: "RegionMaps") -> None:
    """Raise an error if x is on the kink of a unit up to rounding."""
    import torch

    from inscape.partition.linear.rounding import evaluated

    graph, start = graph.cast(torch.float64), torch.from_numpy(x[None].copy())
    for node in np.unique(maps.node).tolist():
        (source,) = graph.nodes[node].inputs
        bounds = evaluated(graph, start, source).bounds.reshape(-1).numpy()
        of_node = np.flatnonzero(maps.node == node)
        is_window = len(graph.nodes[node].op.kinks) == 0
        error = 2 * bounds.max() if is_window else bounds[maps.unit[of_node]]
        near = of_node[maps.offsets[of_node] * maps.lengths[of_node] <= error]
        if len(near):
            raise NonGenericError(
                f"x is on the kink of unit {int(maps.unit[near[0]])} of {graph.nodes[node].path or node}, "
                "where several linear regions meet: move it a little"
            )


def _first_of_equal(normals: Floats) -> Bools:
    """Whether each constraint is the first of those that are equal up to rounding."""
    scale = SAME_HYPERPLANE * max(1.0, float(np.abs(normals[:, -1]).max(initial=0.0)))
    _, first = np.unique(np.round(normals / scale), axis=0, return_index=True)
    is_first = np.zeros(len(normals), dtype=bool)
    is_first[first] = True
    return is_first


def rays_to_constraints(normals: Floats, offsets: Floats) -> tuple[Floats, Bools]:
    """For each constraint a point at which a ray from the origin meets it clearly before any other.

    Returns:
        points, (m, d), and whether they are known, (m,).
    """
    m, d = normals.shape
    points, met = np.zeros((m, d)), np.zeros(m, dtype=bool)
    if m == 0:
        return points, met
    others = np.random.default_rng(0).standard_normal((N_RAYS_PER_CONSTRAINT * m, d))
    for rays in (normals, others / np.linalg.norm(others, axis=1, keepdims=True)):
        speed = rays @ normals.T
        with np.errstate(divide="ignore"):
            time = np.where(speed > 1e-12, offsets / np.maximum(speed, 1e-300), np.inf)
        order = np.sort(time, axis=1)[:, :2] if m > 1 else np.column_stack([time, np.full(len(time), np.inf)])
        is_clear = np.isfinite(order[:, 0]) & (order[:, 1] > order[:, 0] * (1 + 1e-6))
        constraint = time[is_clear].argmin(axis=1)
        met[constraint] = True
        points[constraint] = rays[is_clear] * order[is_clear, :1]
    return points, met


def _is_needed(normal: Floats, offset: float, normals: Floats, offsets: Floats) -> bool:
    """Whether a polytope would be larger without one of its constraints."""
    from scipy.optimize import linprog

    solution = linprog(
        -normal,
        np.vstack([normals, normal]),
        np.append(offsets, offset + 1.0),
        bounds=[(None, None)] * len(normal),
    )
    if not solution.success:
        raise PartitionError(f"the linear program of a facet failed: {solution.message}")
    return bool(-solution.fun > offset + 1e-9 * max(1.0, abs(offset)))


HULL_DIMENSIONS = 5
"""Vertices are enumerated up to this dimension; above, a polytope may have too many of them."""
ONE_FACET_WITHIN = 1e-12
"""Unit normals that differ by no more, and offsets relative to the extent, are one facet up to rounding."""


@dataclass(frozen=True, eq=False)
class Facets:
    """The facets of a polytope normals u <= offsets, the normals of unit length.

    Attributes:
        constraint: the constraint of each facet, (f,); of constraints on one hyperplane the first.
        points: a point inside each facet, (f, d).
        slack: how far that point is from the next other hyperplane, (f,).
        group: for each constraint the first constraint that is on the same hyperplane, (m,).
        vertices: of the polytope, (v, d); None if they were not enumerated.
    """

    constraint: Ints
    points: Floats
    slack: Floats
    group: Ints
    vertices: Floats | None


def facets(normals: Floats, offsets: Floats, inside: Floats, extent: float) -> Facets:
    """The facets of a bounded polytope with a point inside it; `extent` says how large it may be.

    >>> square = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8]])
    >>> sides = facets(square, np.array([1.0, 1.0, 1.0, 1.0, 9.0]), np.zeros(2), 2.0)
    >>> sides.constraint.tolist(), sides.slack.round(9).tolist(), len(sides.vertices)
    ([0, 1, 2, 3], [1.0, 1.0, 1.0, 1.0], 4)
    """
    group = _groups(normals, offsets / extent)
    first = np.flatnonzero(group == np.arange(len(group)))
    a, b = normals[first], (offsets[first] - normals[first] @ inside) / extent
    vertices = None
    if a.shape[1] == 1:
        points, known, vertices = _of_interval(a, b)
    elif a.shape[1] <= HULL_DIMENSIONS:
        points, known, vertices = _by_vertices(a, b)
    else:
        points, known = _by_programs(a, b)
    slack = _slack(a, b, points, known)
    return Facets(
        constraint=first[known],
        points=inside + extent * points[known],
        slack=extent * slack[known],
        group=group,
        vertices=None if vertices is None else inside + extent * vertices,
    )


def _groups(normals: Floats, offsets: Floats) -> Ints:
    """For each constraint the first one with the same hyperplane and the same side of it."""
    group = np.arange(len(normals))
    near = np.abs(normals @ normals.T) > 1 - ONE_FACET_WITHIN
    for i, j in np.argwhere(np.triu(near, 1)).tolist():
        same = (
            np.abs(normals[i] - normals[j]).max() <= ONE_FACET_WITHIN
            and abs(offsets[i] - offsets[j]) <= ONE_FACET_WITHIN
        )
        if same and group[j] == j:
            group[j] = group[i]
    return group


def _of_interval(a: Floats, b: Floats) -> tuple[Floats, Bools, Floats]:
    """The two ends of an interval."""
    ends = (b / a[:, 0])[:, None]
    above = a[:, 0] > 0
    high, low = np.where(above, ends[:, 0], np.inf).argmin(), np.where(above, -np.inf, ends[:, 0]).argmax()
    known = np.zeros(len(b), dtype=bool)
    known[[high, low]] = True
    return ends, known, ends[[low, high]]


def _by_vertices(a: Floats, b: Floats) -> tuple[Floats, Bools, Floats]:
    """For each constraint the mean of the vertices on it, whether there are any, and all vertices."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    scale = float(b.min())  # the distance of the nearest hyperplane
    try:
        hull = HalfspaceIntersection(np.column_stack([a, -b / scale]), np.zeros(a.shape[1]))
    except (QhullError, ValueError) as error:
        raise PartitionError(
            f"the vertices of a linear region could not be found: {str(error).splitlines()[0]}"
        ) from error
    sums, n = np.zeros_like(a), np.zeros(len(a))
    vertices = scale * hull.intersections
    for vertex, constraints in zip(vertices, hull.dual_facets, strict=True):
        sums[constraints] += vertex
        n[constraints] += 1
    return sums / np.maximum(n, 1)[:, None], n > 0, vertices


def _by_programs(a: Floats, b: Floats) -> tuple[Floats, Bools]:
    """For each constraint the point on it with the largest least slack of the others, and if there is one."""
    from scipy.optimize import linprog

    points, known = rays_to_constraints(a, b)
    for i in np.flatnonzero(~known):
        others = np.arange(len(b)) != i
        table = np.column_stack([a[others], np.ones(int(others.sum()))])
        d = a.shape[1]
        solution = linprog(
            np.append(np.zeros(d), -1.0),
            table,
            b[others],
            np.append(a[i], 0.0)[None],
            b[[i]],
            bounds=[(None, None)] * d + [(0.0, 1.0)],
        )
        if solution.status not in (0, 2):
            raise PartitionError(f"the linear program of a facet failed: {solution.message}")
        if solution.status == 0:
            points[i], known[i] = solution.x[:-1], True
    return points, known


def _slack(a: Floats, b: Floats, points: Floats, known: Bools) -> Floats:
    """How far each point, moved onto the hyperplane of its constraint in place, is from all others, (m,)."""
    points += (b - (a * points).sum(axis=1))[:, None] * a
    slack = b - points @ a.T
    np.fill_diagonal(slack, np.inf)
    return np.where(known, slack.min(axis=1, initial=np.inf), 0.0)
