"""All linear regions of a network that meet a box or a ball: a walk from region to region through facets.

On a facet of a region every unit keeps one side, or is on its kink all over it. So exactly one region lies
beyond each facet, and the regions that meet the inside of a convex body are connected through facets that do:
a walk that leaves no such facet uncrossed has found them all.

What high and low mean: many regions: the network has many affine maps in this box or ball; one: it is affine
there. When it does not hold: the number grows with the size of the body and the width of the network, so
compare it for one body and networks of one shape.
"""

import math
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats, Ints
from inscape.budget import BUDGET, MEMORY, as_budget, until_spent
from inscape.errors import NonGenericError, PartitionError, ProbeError
from inscape.models import wrap
from inscape.partition.linear.regions import SLOPE_TOLERANCE
from inscape.partition.linear.space.nearest_label import nearest_of_polytope, pattern_key
from inscape.partition.linear.space.polytope import LinearRegion, facets, graph_and_point, region_of
from inscape.pictures import DrawnByClass, Style
from inscape.probes import Patch
from inscape.probes.bodies import Ball, Body, Box
from inscape.probes.plane import domain_of, scene_of
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from inscape.models.graph import Graph
    from inscape.partition.linear.space.region_maps import Pattern, RegionMaps

POINTS_ABOVE = 4.0
"""The layer of a picture from which on data points are drawn, which are not cut at the border of a ball."""
TIE_WITHIN = 1e-9
"""Of the body's extent: a facet that has no point farther than this from all other hyperplanes is a tie."""
VOLUMES_ADD_UP_TO = 1e-9
"""Of the box's volume, how far the volumes of all regions together may be from it."""
N_STARTS = 20
"""Random points of the body that are tried as a start, which must be on no kink."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearBody(DrawnByClass):
    """The linear regions that meet the inside of a box or a ball.

    Attributes:
        body: the box or ball.
        regions: one for each activation pattern, each with a point of the body in it, its halfspaces, affine
            map and pattern; the halfspaces of the body are not among them.
        neighbours: pairs of regions that share a facet inside the body, (n_facets, 2).
        volumes: of the regions within the box, (n_regions,); None for a ball, or beyond five dimensions.
        status: "complete"; "ties: ..." if facets were too small to tell; "budget reached: ..." if there are
            more than `max_regions`.
        provenance: model, precision, version.
        class_names: the class name of each label, if the model has names: for data points in a picture.
    """

    body: Body
    regions: tuple[LinearRegion, ...]
    neighbours: Ints
    volumes: Floats | None
    status: Status
    provenance: Provenance
    class_names: tuple[str, ...] | None = None

    @property
    def n_regions(self) -> int:
        """The number of activation regions that were found; all that there are if `is_exact`."""
        return len(self.regions)

    @property
    def n_facets(self) -> int:
        """The number of facets inside the body, each between two regions."""
        return len(self.neighbours)

    @property
    def is_exact(self) -> bool:
        """Whether every facet inside the body leads to a region of the list, and none was in doubt."""
        return self.status.kind == "complete"

    @property
    def certificate(self) -> str:
        """Why no region is missing, in words; or that it is not known."""
        if not self.is_exact:
            return f"regions may be missing: {self.status}"
        facets = f"each of {self.n_facets:,} facets inside the body leads to a region of the list, both ways"
        if self.volumes is None or not isinstance(self.body, Box):
            return facets
        fraction = self.volumes.sum() / self.body.volume
        return f"{facets}; the volumes of the regions add up to {fraction:.12g} of the box"

    @cached_property
    def n_linear(self) -> int:
        """The number of regions after merging neighbours of equal affine map."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        maps = np.array([np.column_stack([r.weight, r.bias]).reshape(-1) for r in self.regions])
        i, j = self.neighbours.T
        largest = np.maximum(np.abs(maps[i]), np.abs(maps[j])).max(axis=1, initial=0.0)
        same = np.abs(maps[i] - maps[j]).max(axis=1, initial=0.0) <= SLOPE_TOLERANCE * largest
        graph = coo_array((np.ones(int(same.sum())), (i[same], j[same])), shape=(self.n_regions,) * 2)
        return int(connected_components(graph, directed=False, return_labels=False))

    @property
    def polygons(self) -> list[Floats]:
        """In two dimensions the corners of each region within the box (that around the ball), (k, 2) each."""
        if self.body.dim != 2:
            raise PartitionError(f"polygons are for 2 inputs, here are {self.body.dim}")
        polygons = []
        for region in self.regions:
            normals, offsets = within_box(self.body, region.normals, region.offsets)
            around = facets(normals, offsets, region.x.reshape(-1), _extent(self.body)).vertices
            assert around is not None
            x, y = (around - around.mean(axis=0)).T
            polygons.append(around[np.argsort(np.arctan2(y, x))])
        return polygons

    def __repr__(self) -> str:
        return f"<{self._title()} of {self.provenance.model} in {self.body!r}, {self.status}>"

    def _title(self) -> str:
        count = f"{self.n_regions:,} linear region{'' if self.n_regions == 1 else 's'}"
        return count if self.is_exact else f"at least {count}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        about = {"schema": SCHEMA, "kind": "linear regions of a body", "n_regions": self.n_regions}
        return about | {"is_exact": self.is_exact} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The regions that `to_dict` wrote."""
        what = "linear regions of a body"
        check_schema(data, "kind", what, what=what, error=PartitionError)
        regions: Self = restored_fields(cls, data, what=what, error=PartitionError)
        return regions

    def _draw(self, ax: Any, style: Style) -> Any:
        """The regions of two inputs."""
        import hashlib

        from inscape.drawing.planes.polygons import draw_faces

        polygons = self.polygons
        start = np.concatenate([[0], np.cumsum([len(p) for p in polygons])])
        corners = np.arange(start[-1])
        following = corners + 1
        following[start[1:] - 1] = start[:-1]
        outline = _outline(self.body)
        (s0, t0), (s1, t1) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
        patch = Patch([0.0, 0.0], np.eye(2), ((s0, s1), (t0, t1)))
        scene, classes = scene_of(patch, domain_of(patch), style, (), self.class_names)
        names = [b"".join(p.astype(np.uint16).tobytes() for p in r.pattern) for r in self.regions]
        hashes = [int.from_bytes(hashlib.blake2b(n, digest_size=8).digest(), "little") for n in names]
        ax = draw_faces(
            np.concatenate(polygons),
            corners,
            start,
            np.stack([corners, following], axis=1),
            values=np.array(hashes, np.uint64),
            kind="pattern",
            edges=True,
            scene=replace(scene, domain=outline),
            classes=classes,
            title=self._title(),
            ax=ax,
        )
        if isinstance(self.body, Ball):
            from matplotlib.patches import Circle

            x, y = self.body.centre.reshape(-1).tolist()
            circle = Circle((x, y), self.body.radius, transform=ax.transData)
            for drawn in ax.collections:
                if drawn.get_zorder() < POINTS_ABOVE:
                    drawn.set_clip_path(circle)
        return ax


def enumerate_regions(
    model: Any,
    body: Body,
    *,
    max_regions: int = 100_000,
    memory: int = MEMORY,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> LinearBody:
    """All linear regions of a network that meet the inside of a box or a ball, in the whole input space.

    Args:
        model: a piecewise-affine network, or what `inscape.wrap` made of one.
        body: an `inscape.Box` or `inscape.Ball` of the shape that the model takes.
        max_regions: regions to visit at most; then the count is a lower bound, and the status says so.
        memory: bytes that the gradients of one layer's units may take.
        progress: None for a bar after two seconds, False for none; a function gets (regions done, regions
            known so far).
        budget: seconds after which the walk ends as it does after `max_regions`, between two regions (the
            first, without which nothing is known, takes a convolution on photographs many seconds); None for
            no limit.

    The cost per region is one pass with d directions, for d inputs, and its facets: up to five dimensions by
    its vertices, above by a linear program for each unit that rays leave open. How many regions there are
    grows with the power d of the number of units: of one hidden layer with h units in general position
    sum_{i <= d} C(h, i), if the body holds all its vertices.

    >>> import torch
    >>> from inscape.probes import Box
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).double()
    >>> with torch.no_grad():
    ...     _ = net[0].weight.copy_(torch.eye(3)), net[0].bias.zero_()
    >>> regions = enumerate_regions(net, Box([-1, -1, -1], 1))
    >>> regions.n_regions, regions.n_facets, regions.volumes.round(12).tolist()
    (8, 12, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    if not isinstance(body, Body):
        raise ProbeError(
            f"expected a Box or a Ball, got {body!r}: linear_regions(model, probe) takes segments and planes"
        )
    max_regions = whole_number(max_regions, "max_regions", 1, PartitionError)
    wrapped, limit = wrap(model), as_budget(budget)
    with wrapped.unchanged(), meter(progress, "linear regions") as show:
        graph, centre = graph_and_point(wrapped, body.centre)
        if centre.shape != body.input_shape:
            raise ProbeError(
                f"the model takes points of shape {centre.shape}, the body has {body.input_shape}"
            )
        walk = _Enumeration(graph, body, memory)
        walk.run(max_regions, limit, show)
        provenance = Provenance.of(wrapped, dtype="float64")
    return LinearBody(
        body=body,
        regions=tuple(
            region_of(graph, maps, centre, centre + inside.reshape(centre.shape), provenance)
            for maps, inside in walk.regions
        ),
        neighbours=walk.neighbours,
        volumes=walk.volumes_of_all,
        status=walk.status,
        provenance=provenance,
        class_names=wrapped.classes,
    )


def within_box(body: Body, normals: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """The halfspaces of a region, and after them those of the box that the body is, or that is around it."""
    eye, centre, half = np.eye(body.dim), body.centre.reshape(-1), body.half_widths.reshape(-1)
    return np.vstack([normals, eye, -eye]), np.concatenate([offsets, half + centre, half - centre])


def _extent(body: Body) -> float:
    return float(body.half_widths.max())


def _outline(body: Body) -> Floats:
    """The border of a body in two dimensions, (k, 2)."""
    centre, half = body.centre.reshape(-1), body.half_widths.reshape(-1)
    if isinstance(body, Ball):
        angle = np.linspace(0, 2 * np.pi, 181)[:-1]
        return np.asarray(centre + body.radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return np.asarray(centre + half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]))


@dataclass(frozen=True, eq=False)
class _Entrance:
    """The way into a region that waits: its pattern, a point inside the facet crossed, and the normal."""

    pattern: "Pattern"
    point: Floats
    normal: Floats


class _Enumeration:
    """The walk over all regions; points are relative to the centre of the body."""

    def __init__(self, graph: "Graph", body: Body, memory: int) -> None:
        self.graph, self.body, self.memory = graph, body, memory
        self.extent = _extent(body)
        self.smallest = TIE_WITHIN * self.extent
        self.regions: list[tuple[RegionMaps, Floats]] = []
        self.status = COMPLETE
        self._volumes: list[float] = []
        self._numbers: dict[bytes, int] = {}
        self._index_of: dict[int, int] = {}  # of the regions that were visited, by number
        self._crossed: set[tuple[int, int]] = set()
        self._queue: deque[_Entrance] = deque()
        self._n_ties = 0

    def run(self, max_regions: int, seconds: float, show: Meter) -> None:
        """Visit regions until none waits, or the budget is reached."""
        is_spent = until_spent(seconds)
        self._visit(*self._start())
        while self._queue:
            if len(self.regions) >= max_regions:
                self.status = Status(
                    "budget", f"more than {max_regions:,} regions: give a larger max_regions"
                )
                return
            if is_spent():
                self.status = Status(
                    "budget", "the time is up, and more regions wait: give a smaller body, or budget=None"
                )
                return
            entrance = self._queue.popleft()
            maps = self._maps(entrance.pattern)
            inside = self._inside(maps, entrance)
            if inside is None:
                self._n_ties += 1
            else:
                self._visit(maps, inside)
            show(len(self.regions), len(self.regions) + len(self._queue))
        self.status = self._checked()

    @property
    def neighbours(self) -> Ints:
        """Pairs of regions with a common facet, the lower number first, (n, 2)."""
        indices = ((self._index_of.get(i), self._index_of.get(j)) for i, j in self._crossed)
        pairs = {(min(i, j), max(i, j)) for i, j in indices if i is not None and j is not None}
        return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)

    @property
    def volumes_of_all(self) -> Floats | None:
        """The volume of each region; None where they were not computed."""
        return np.array(self._volumes) if self._volumes else None

    def _start(self) -> "tuple[RegionMaps, Floats]":
        """A region, and a point of it that is on no kink."""
        rng = np.random.default_rng(0)
        for _ in range(N_STARTS):
            u = (self.body.sample(rng) - self.body.centre).reshape(-1)
            at = self._maps(None, self.body.centre + u.reshape(self.body.input_shape))
            if at.offsets.min(initial=math.inf) > self.smallest:
                maps = self._maps(at.pattern)
                self._numbers[pattern_key(maps.pattern)] = 0
                return maps, u
        raise NonGenericError(
            f"{N_STARTS} random points of the body are all on the kink of a unit, where several linear "
            "regions meet: move the body a little"
        )

    def _maps(self, pattern: "Pattern | None", x: Floats | None = None) -> "RegionMaps":
        from inscape.partition.linear.space.region_maps import region_maps

        return region_maps(self.graph, self.body.centre if x is None else x, pattern, self.memory)

    def _inside(self, maps: "RegionMaps", entrance: _Entrance) -> Floats | None:
        """A point inside a region, straight beyond a facet; None if the region is too thin to tell."""
        normals, offsets = self._constraints(maps)
        speed = normals @ entrance.normal
        ahead = speed > TIE_WITHIN
        far = float(((offsets - normals @ entrance.point)[ahead] / speed[ahead]).min())
        if far <= self.smallest:
            return None
        if isinstance(self.body, Ball):
            far = min(far, self.body.radius - float(np.linalg.norm(entrance.point)))
        return np.asarray(entrance.point + far / 2 * entrance.normal)

    def _constraints(self, maps: "RegionMaps") -> tuple[Floats, Floats]:
        eye, half = np.eye(self.body.dim), self.body.half_widths.reshape(-1)
        return np.vstack([maps.normals, eye, -eye]), np.concatenate([maps.offsets, half, half])

    def _visit(self, maps: "RegionMaps", inside: Floats) -> None:
        """Add a region to the list, and queue what lies beyond its facets."""
        number = self._numbers[pattern_key(maps.pattern)]
        sides = facets(*self._constraints(maps), inside, self.extent)
        if sides.vertices is not None and isinstance(self.body, Box):
            self._volumes.append(_volume(sides.vertices))
            inside = sides.vertices.mean(axis=0)
        self._index_of[number] = len(self.regions)
        self.regions.append((maps, inside))
        for constraint, point, slack in zip(
            sides.constraint.tolist(), sides.points, sides.slack.tolist(), strict=True
        ):
            same = np.flatnonzero(sides.group == constraint)
            if same[-1] >= len(maps.offsets):
                continue  # the border of the box
            in_body: tuple[Floats, float] | None = (point, slack)
            if slack > self.smallest and isinstance(self.body, Ball):
                in_body = self._in_ball(maps, constraint, point, slack)
            if in_body is None:
                continue
            if in_body[1] <= self.smallest:
                self._n_ties += 1
                continue
            self._cross(number, maps, same, in_body[0])

    def _cross(self, number: int, maps: "RegionMaps", constraints: Ints, point: Floats) -> None:
        """Note which region lies beyond a facet, and queue it if it is new."""
        from inscape.partition.linear.space.region_maps import pattern_beyond

        if len(constraints) == 1 and not maps.is_on_kink:
            pattern: Pattern = maps.across(int(constraints[0]))
        else:
            x = self.body.centre + point.reshape(self.body.input_shape)
            pattern = pattern_beyond(self.graph, maps, x, constraints)
        key = pattern_key(pattern)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._queue.append(_Entrance(pattern, point, maps.normals[constraints[0]]))
        self._crossed.add((number, self._numbers[key]))

    def _in_ball(
        self, maps: "RegionMaps", constraint: int, point: Floats, slack: float
    ) -> tuple[Floats, float] | None:
        """A point of a facet inside the ball and its slack; None if the facet does not meet the inside."""
        assert isinstance(self.body, Ball)
        radius, far = self.body.radius, float(np.linalg.norm(point))
        if far <= (1 - TIE_WITHIN) * radius:
            return point, slack
        if abs(maps.offsets[constraint]) >= radius:
            return None
        normals = np.vstack([maps.normals, -maps.normals[constraint]])
        bound, nearest = nearest_of_polytope(normals, np.append(maps.offsets, -maps.offsets[constraint]), 2.0)
        if bound >= radius:
            return None
        near = math.inf if nearest is None else float(np.linalg.norm(nearest))
        if nearest is None or near >= radius:
            return point, self.smallest  # it touches the ball, up to rounding
        fraction = (radius - near) / 2 / (far - near)
        return nearest + fraction * (point - nearest), fraction * slack

    def _checked(self) -> Status:
        """How the walk ended: whether every facet was crossed, from both sides, and volumes add up."""
        one_way = sum((j, i) not in self._crossed for i, j in self._crossed)
        if self._n_ties or one_way:
            n = self._n_ties + one_way
            facets = "facet, smaller" if n == 1 else "facets, each smaller"
            return Status(
                "ties",
                f"regions may be missing behind {n} {facets} than {TIE_WITHIN:g} of the body; shrink it",
            )
        if self._volumes and isinstance(self.body, Box):
            fraction = sum(self._volumes) / self.body.volume
            if abs(fraction - 1) > VOLUMES_ADD_UP_TO:
                return Status(
                    "non_generic",
                    f"regions are missing: their volumes add up to {fraction:.12g} of the box; shrink it",
                )
        return COMPLETE


def _volume(vertices: Floats) -> float:
    """The volume of a convex hull of points, (v, d)."""
    if vertices.shape[1] == 1:
        return float(np.ptp(vertices))
    from scipy.spatial import ConvexHull

    return float(ConvexHull(vertices).volume)
