"""A planar complex of a convex domain: vertices, edges and faces linked by half-edges; and chunks of one.

Each edge e is two half-edges, one for each direction. A face is a loop of half-edges, anticlockwise, so that
it lies to their left; across the edge, to the left of the twin, lies its neighbour or nothing.

              next(h)
         o <----------- o  target(h)
         |            ^ |
         |            | |           edge e = h >> 1 has ends[e] = (a, b)
         |   face   h | | twin(h)   half-edge 2 e      runs from a to b
         |            | |           half-edge 2 e + 1  runs from b to a
         v            | v
         o -----------> o  origin(h)

The loop of face f is loop[start[f]], ..., loop[start[f + 1] - 1]; after the last half-edge comes the first.
The first functions below serve compiled loops, into which they are inlined, and whole arrays in Python.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inscape.arrays import Bools, Floats, Int32s, Ints
from inscape.compiled import compiled, inlined, kernel
from inscape.errors import PartitionError

BORDER = -1
"""The layer of birth of the domain's own edges."""


@inlined
def half_edge(edge, direction):
    """The half-edge of an edge from its first end to its second if the direction is 0, back if it is 1."""
    return 2 * edge + direction


@inlined
def edge_of(h):
    """The edge of a half-edge."""
    return h >> 1


@inlined
def direction_of(h):
    """The direction of a half-edge along its edge, 0 or 1."""
    return h & 1


@inlined
def twin(h):
    """The half-edge of the same edge in the other direction."""
    return h ^ 1


@inlined
def origin(ends, h):
    """The vertex where a half-edge starts."""
    return ends[h >> 1, h & 1]


@inlined
def target(ends, h):
    """The vertex where a half-edge ends."""
    return ends[h >> 1, 1 - (h & 1)]


@inlined
def next_around(i, first, last):
    """The index after i in a loop at the indices first, ..., last - 1."""
    return i + 1 if i + 1 < last else first


@dataclass(frozen=True, eq=False)
class PlanarComplex:
    """Vertices, edges and faces.

    Attributes:
        xy: coordinates of the vertices, (v, 2).
        ends: the vertices of each edge, (e, 2), int32.
        born: the piecewise-linear node whose layer made each edge, `BORDER` for the domain's, (e,).
        start: where the loop of each face starts, (f + 1,).
        loop: half-edges of the loops, int32.
        shared: edges whose other face is in another chunk of the complex, (e,).
        fixed: the corners of the domain, which stay vertices whatever meets there, (v,).
    """

    xy: Floats
    ends: Int32s
    born: Int32s
    start: Ints
    loop: Int32s
    shared: Bools
    fixed: Bools

    @property
    def n_faces(self) -> int:
        """How many faces there are."""
        return len(self.start) - 1

    @property
    def corners(self) -> Any:
        """The origin of each half-edge of `loop`."""
        return origin(self.ends, self.loop)

    @property
    def first_corners(self) -> Any:
        """The first vertex of each face, (f,)."""
        return origin(self.ends, self.loop[self.start[:-1]])

    @property
    def loop_edges(self) -> Any:
        """The edge of each half-edge of `loop`."""
        return edge_of(self.loop)

    @property
    def loop_faces(self) -> Ints:
        """The face of each half-edge of `loop`."""
        return np.repeat(np.arange(self.n_faces), np.diff(self.start))

    def sides(self) -> Ints:
        """The faces to the left and to the right of each edge, -1 for none, (e, 2)."""
        left = np.full(2 * len(self.ends), -1, np.int64)
        _left_faces(self.start, self.loop, left)
        return left.reshape(-1, 2)

    def areas(self) -> Floats:
        """The area of each face, (f,)."""
        areas = np.empty(self.n_faces)
        _areas(self.start, self.loop, self.ends, self.xy, areas)
        return areas

    def total_area(self) -> float:
        """The sum of the areas of all faces, to which only the border contributes."""
        return float(_total_area(self.loop, self.ends, self.xy, np.zeros(len(self.ends), np.int8)))

    def centroids(self) -> Floats:
        """The mean of the corners of each face, (f, 2): a point inside."""
        n_corners = np.diff(self.start)[:, None]
        return np.asarray(np.add.reduceat(self.xy[self.corners], self.start[:-1], axis=0) / n_corners)


def polygon_complex(corners: Floats) -> PlanarComplex:
    """One face: a convex polygon with corners (k, 2), anticlockwise."""
    k = len(corners)
    around = np.arange(k, dtype=np.int32)
    return PlanarComplex(
        xy=np.asarray(corners, dtype=np.float64),
        ends=np.array([(i, (i + 1) % k) for i in range(k)], np.int32),
        born=np.full(k, BORDER, np.int32),
        start=np.array([0, k]),
        loop=half_edge(around, 0),
        shared=np.zeros(k, bool),
        fixed=np.ones(k, bool),
    )


@dataclass(frozen=True, eq=False)
class WrittenFaces:
    """The faces of a subdivision that was read from a file, without what the model does on them."""

    planar: PlanarComplex

    def __getattr__(self, name: str) -> Any:
        """An error that says what is missing."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise PartitionError(f"{name} was left out when this result was written", remedy="compute it again")

    @classmethod
    def of(cls, written: dict[str, Any], domain_corners: Floats) -> "WrittenFaces":
        """The faces that `written_faces` wrote, with the edges that it wrote.

        Earlier files have no edges: there is one for each pair of neighbouring corners.
        """
        xy = np.array(written["vertices"], dtype=np.float64).reshape(-1, 2)
        size = np.array([len(face) for face in written["faces"]])
        start = np.concatenate([[0], np.cumsum(size)])
        corner = np.concatenate([np.array(face, dtype=np.int64) for face in written["faces"]])
        after = np.roll(corner, -1)
        after[start[1:] - 1] = corner[start[:-1]]
        pairs, edge = np.unique(
            np.sort(np.stack([corner, after], axis=1), axis=1), axis=0, return_inverse=True
        )
        ends = np.array(written.get("edges", pairs), dtype=np.int64).reshape(-1, 2)
        edge = np.lexsort(np.sort(ends, axis=1).T[::-1])[edge.reshape(-1)]
        loop = half_edge(edge, (corner != ends[edge, 0]).astype(np.int64))
        fixed = np.zeros(len(xy), bool)
        fixed[[int(np.hypot(*(xy - c).T).argmin()) for c in domain_corners]] = True
        is_border = np.bincount(edge, minlength=len(ends)) == 1
        return cls(
            PlanarComplex(
                xy=xy,
                ends=ends.astype(np.int32),
                born=np.where(is_border, BORDER, 0).astype(np.int32),
                start=start,
                loop=loop.astype(np.int32),
                shared=np.zeros(len(ends), bool),
                fixed=fixed,
            )
        )


def written_faces(planar: PlanarComplex) -> dict[str, Any]:
    """Plain JSON: the vertices; by their numbers the corners of each face, anticlockwise; the edges."""
    faces = np.split(planar.corners, planar.start[1:-1])
    return {
        "vertices": planar.xy.tolist(),
        "faces": [face.tolist() for face in faces],
        "edges": planar.ends.tolist(),
    }


def outward(planar: PlanarComplex) -> PlanarComplex:
    """The same complex with every edge starting at its end nearer to (0, 0)."""
    far = np.hypot(*planar.xy.T)
    turned = far[planar.ends[:, 1]] < far[planar.ends[:, 0]]
    ends = np.where(turned[:, None], planar.ends[:, ::-1], planar.ends)
    return replace(planar, ends=ends, loop=planar.loop ^ turned[planar.loop_edges])


@kernel
def _areas(start, loop, ends, xy, areas):
    """Write the area of each face, from triangles at its first corner."""
    for f in range(len(areas)):
        first, last = start[f], start[f + 1]
        o, p = origin(ends, loop[first]), origin(ends, loop[first + 1])
        ax, ay = xy[p, 0] - xy[o, 0], xy[p, 1] - xy[o, 1]
        total = 0.0
        for i in range(first + 2, last):
            p = origin(ends, loop[i])
            bx, by = xy[p, 0] - xy[o, 0], xy[p, 1] - xy[o, 1]
            total += ax * by - ay * bx
            ax, ay = bx, by
        areas[f] = total / 2


@kernel
def _left_faces(start, loop, left):
    """Write the face to the left of each half-edge that is in a loop."""
    for f in range(len(start) - 1):
        for i in range(start[f], start[f + 1]):
            left[loop[i]] = f


@kernel
def _total_area(loop, ends, xy, net):
    """The sum of the areas of all faces, from triangles of their edges with the first vertex.

    An edge between two faces counts once in each direction, and cancels in `net` (e,), zero before.
    """
    for i in range(len(loop)):
        net[edge_of(loop[i])] += 1 - 2 * direction_of(loop[i])
    total, ox, oy = 0.0, xy[0, 0], xy[0, 1]
    for e in range(len(ends)):
        if net[e] != 0:
            a, b = ends[e, 0], ends[e, 1]
            cross = (xy[a, 0] - ox) * (xy[b, 1] - oy) - (xy[a, 1] - oy) * (xy[b, 0] - ox)
            total += net[e] * cross
    return total / 2


@compiled
def reorder_loops(start, loop, order):
    """Start and loop of the faces in another order."""
    new_start, new_loop = np.zeros(len(start), start.dtype), np.empty_like(loop)
    i = 0
    for k in range(len(order)):
        f = order[k]
        for j in range(start[f], start[f + 1]):
            new_loop[i] = loop[j]
            i += 1
        new_start[k + 1] = i
    return new_start, new_loop


@compiled
def _walk(points, xy, ends, start, loop, sides, near, rounding):
    """The face of each point, by a walk from face to face; -1 for a point outside by more than `near`.

    `rounding` bounds the error of coordinates.
    """
    face = np.empty(len(points), np.int64)
    f = 0
    for i in range(len(points)):
        for _ in range(4 * len(start)):
            # (1) the edge of the face to whose right the point lies furthest
            worst, through = 0.0, -1
            for k in range(start[f], start[f + 1]):
                a, b = origin(ends, loop[k]), target(ends, loop[k])
                dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                px, py = points[i, 0] - xy[a, 0], points[i, 1] - xy[a, 1]
                length = np.hypot(dx, dy)
                if length == 0.0:
                    continue
                side = (dx * py - dy * px) / length
                error = rounding * (1.0 + np.hypot(px, py) / length)  # the shorter an edge, the larger
                if side < min(worst, -error):
                    worst, through = side, loop[k]
            if through < 0:
                break
            # (2) across that edge, unless nothing is there
            neighbour = sides[edge_of(through), 1 - direction_of(through)]
            if neighbour < 0:
                through = -1 if worst > -near else through
                break
            f = neighbour
        face[i] = f if through < 0 else -1
    return face


def locate(planar: PlanarComplex, points: Floats) -> Ints:
    """The face of each point (n, 2), -1 outside."""
    order = np.lexsort(np.round(points / np.ptp(planar.xy, axis=0) * 64).T)
    reach = float(np.abs(planar.xy).max())
    near, rounding = 1e-12 * reach, 4 * float(np.finfo(np.float64).eps) * reach
    faces = np.empty(len(points), np.int64)
    faces[order] = _walk(
        points[order], planar.xy, planar.ends, planar.start, planar.loop, planar.sides(), near, rounding
    )
    return faces


def chunk_ranges(planar: PlanarComplex, most: int) -> list[tuple[int, int]]:
    """Ranges of faces with at most about `most` vertices each; faces near each other have near numbers."""
    corners = np.cumsum(np.diff(planar.start))
    n = max(1, int(np.ceil(len(planar.xy) / most)))
    inner = np.unique(np.searchsorted(corners, np.linspace(0, corners[-1], n + 1)[1:-1]) + 1)
    bounds = [0, *(int(b) for b in inner if b < planar.n_faces), planar.n_faces]
    return list(itertools.pairwise(bounds))


def chunk(planar: PlanarComplex, first: int, last: int) -> tuple[PlanarComplex, Ints]:
    """The faces first, ..., last - 1 as a complex of their own, and the vertices that it has."""
    loop = planar.loop[planar.start[first] : planar.start[last]]
    edges, number = np.unique(edge_of(loop), return_inverse=True)
    n_sides_inside = np.bincount(number, minlength=len(edges))
    n_sides = np.bincount(planar.loop_edges, minlength=len(planar.ends))[edges]
    vertices, ends = np.unique(planar.ends[edges], return_inverse=True)
    result = replace(
        planar,
        xy=planar.xy[vertices],
        ends=ends.reshape(-1, 2).astype(np.int32),
        born=planar.born[edges],
        start=planar.start[first : last + 1] - planar.start[first],
        loop=half_edge(number, direction_of(loop)).astype(np.int32),
        shared=planar.shared[edges] | (n_sides_inside < n_sides),
        fixed=planar.fixed[vertices],
    )
    return result, vertices.astype(np.int64)


def joined(chunks: list[PlanarComplex]) -> PlanarComplex:
    """Chunks as one complex: vertices and edges on shared edges are matched by their coordinates."""
    if len(chunks) == 1:
        return chunks[0]
    # (1) everything side by side, numbered consecutively
    n_v, n_e = (np.cumsum([0, *(len(getattr(c, name)) for c in chunks)]) for name in ("xy", "ends"))
    xy = np.concatenate([c.xy for c in chunks])
    ends = np.concatenate([c.ends + n for c, n in zip(chunks, n_v[:-1], strict=True)])
    shared = np.concatenate([c.shared for c in chunks])
    loop = np.concatenate([c.loop + 2 * n for c, n in zip(chunks, n_e[:-1], strict=True)])
    starts = np.cumsum([0, *(c.start[-1] for c in chunks)])
    # (2) the first vertex at each point stands for all there, the first edge between two vertices likewise
    touched = np.unique(ends[shared])
    _, first, same = np.unique(xy[touched], axis=0, return_index=True, return_inverse=True)
    vertex = np.arange(len(xy))
    vertex[touched] = touched[first][same.reshape(-1)]
    ends = vertex[ends]
    twofold = np.flatnonzero(shared)
    low, high = np.sort(ends[twofold], axis=1).T
    _, first, same = np.unique(low * len(xy) + high, return_index=True, return_inverse=True)
    edge = np.arange(len(ends))
    edge[twofold] = twofold[first][same]
    turned = ends[np.arange(len(ends)), 0] != ends[edge, 0]
    # (3) vertices and edges that stand for themselves get new numbers
    edges, vertices = (np.flatnonzero(a == np.arange(len(a))) for a in (edge, vertex))
    new_edge, new_vertex = np.zeros(len(ends), np.int64), np.zeros(len(xy), np.int64)
    new_edge[edges], new_vertex[vertices] = np.arange(len(edges)), np.arange(len(vertices))
    old, direction = edge_of(loop), direction_of(loop)
    return PlanarComplex(
        xy=xy[vertices],
        ends=new_vertex[ends[edges]].astype(np.int32),
        born=np.concatenate([c.born for c in chunks])[edges],
        start=np.concatenate([[0], *(c.start[1:] + n for c, n in zip(chunks, starts[:-1], strict=True))]),
        loop=half_edge(new_edge[edge[old]], direction ^ turned[old]).astype(np.int32),
        shared=np.zeros(len(edges), bool),
        fixed=np.concatenate([c.fixed for c in chunks])[vertices],
    )
