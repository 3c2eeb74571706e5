"""A domain that holds the input 0, near which a network with small biases has kinks in many directions.

There every line passes near one point, and what happens around it is as small as the biases. The domain is
cut into triangles around that point, a fan, so that positions near it are known to relative accuracy; edges
of the triangles along which nothing changes are taken away in the end.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from inscape.arrays import Bools, Floats, Ints
from inscape.models.graph import Graph
from inscape.partition.linear.planes.complex.half_edges import (
    BORDER,
    PlanarComplex,
    direction_of,
    edge_of,
    half_edge,
)
from inscape.partition.linear.rounding import evaluated
from inscape.probes.plane import Plane

_NEARLY_ZERO = 1e-6
"""A unit nearly vanishes if it is this small, relative to its size at the corners."""

_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def centre_of(graph: Graph, plane: Plane, corners: Floats) -> Floats | None:
    """The coordinates of the input 0, if it lies in the domain and the first layer nearly vanishes there."""
    centre = _zero_of(plane, corners)
    if centre is None or not _holds(corners, centre):
        return None
    first, least = _at_zero(graph)
    points = plane.origin + corners @ plane.axes
    if least > _NEARLY_ZERO * max(1.0, float(np.abs(points).max())):
        return None
    x = torch.from_numpy(np.concatenate([np.zeros((1, len(plane.origin))), points]))
    z = graph.evaluate(x.reshape(-1, *graph.input_shape), until=first).reshape(len(x), -1).numpy()
    vanish = np.abs(z[0]) <= _NEARLY_ZERO * np.abs(z[1:]).max(axis=0)
    return centre if vanish.sum() > 1 else None


_KNOWN: WeakKeyDictionary[Graph, tuple[int, float]] = WeakKeyDictionary()


def _at_zero(graph: Graph) -> tuple[int, float]:
    """The node before the first piecewise-linear one, and its second smallest entry at the input 0.

    Each entry is divided by a bound for its size at points with coordinates up to 1.
    """
    if graph not in _KNOWN:
        layer = next((i for i in range(1, graph.output + 1) if not graph.nodes[i].is_affine), None)
        first = 0 if layer is None else graph.nodes[layer].inputs[0]
        x = torch.zeros((1, *graph.input_shape), dtype=torch.float64)
        with torch.no_grad():
            double = graph.cast(torch.float64)
            size = evaluated(double, x, first, torch.ones_like(x)).sizes.numpy().reshape(-1)
        z = np.abs(graph.evaluate(x, until=first).numpy().reshape(-1))
        relative = np.sort(np.divide(z, size, out=np.zeros_like(z), where=size > 0))
        _KNOWN[graph] = first, float(relative[1]) if layer is not None and len(relative) > 1 else np.inf
    return _KNOWN[graph]


def _zero_of(plane: Plane, corners: Floats) -> Floats | None:
    """The coordinates of the input 0, if it lies in the plane up to rounding."""
    if not plane.origin.any():
        return np.zeros(2)
    gram = plane.axes @ plane.axes.T
    centre = np.asarray(np.linalg.solve(gram, -plane.axes @ plane.origin), np.float64)
    extent = np.abs(plane.axes).max(axis=1) @ np.abs(corners - centre).max(axis=0)
    scale = max(extent, float(np.abs(plane.origin).max()))
    return centre if np.abs(plane.origin + centre @ plane.axes).max() <= _ROUNDING * scale else None


def _holds(corners: Floats, point: Floats) -> bool:
    """Whether a point lies in a convex polygon."""
    x, y = point.tolist()
    ways = [(a - x, b - y) for a, b in corners.tolist()]
    return all(a * d - b * c >= 0 for (a, b), (c, d) in zip(ways, ways[1:] + ways[:1], strict=True))


def fan(corners: Floats) -> PlanarComplex:
    """A convex polygon (k, 2) around or beside (0, 0), cut into triangles there."""
    middles = (corners + _following(corners)) / 2
    ring = np.stack([corners, middles], axis=1).reshape(-1, 2)
    n = len(ring)
    after = _following(ring)
    area = ring[:, 0] * after[:, 1] - ring[:, 1] * after[:, 0]
    kept = np.flatnonzero(area > _ROUNDING * area.sum())
    k = np.arange(n)
    spokes = np.stack([np.zeros(n, np.int64), k + 1], axis=1)  # edge i: centre to ring point i
    rim = np.stack([k + 1, (k + 1) % n + 1], axis=1)  # edge n + i: ring point i to the next
    around = half_edge(k, 0), half_edge(n + k, 0), half_edge((k + 1) % n, 1)
    at_corner = bool((np.abs(corners).max(axis=1) == 0).any())
    fixed = np.concatenate([[at_corner], np.arange(n) % 2 == 0])
    xy, ends = np.concatenate([np.zeros((1, 2)), ring]), np.concatenate([spokes, rim])
    return _used(xy, ends, np.stack(around, axis=1)[kept], fixed)


def _following(corners: Floats) -> Floats:
    """The corner after each corner of a polygon, (k, 2)."""
    return np.concatenate([corners[1:], corners[:1]])


def _used(xy: Floats, ends: Ints, loops: Any, fixed: Bools) -> PlanarComplex:
    """The triangles `loops` with the edges and vertices that they have."""
    edges, number = np.unique(edge_of(loops), return_inverse=True)
    vertices, place = np.unique(ends[edges], return_inverse=True)
    loop = half_edge(number.reshape(-1), direction_of(loops.reshape(-1)))
    return PlanarComplex(
        xy=xy[vertices],
        ends=place.reshape(-1, 2).astype(np.int32),
        born=np.full(len(edges), BORDER, np.int32),
        start=np.arange(0, loops.size + 1, 3),
        loop=loop.astype(np.int32),
        shared=np.zeros(len(edges), bool),
        fixed=fixed[vertices],
    )
