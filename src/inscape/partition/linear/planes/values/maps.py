"""The affine map of a network on each face of a plane, by the chain rule."""

from typing import Any

import numpy as np
import torch

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph
from inscape.partition.linear.planes.rounding import Plane

_NUMBERS = 2**21
SLOPE_TOLERANCE = 1e-9


def affine_maps(graph: Graph, plane: Plane, points: Floats) -> tuple[Floats, Floats]:
    """Slopes (n, c, 2) and offsets (n, c) of the outputs in the coordinates, around points (n, 2)."""
    shape = (-1, *graph.input_shape)
    most = max(1, _NUMBERS // max(int(np.prod(s)) for s in graph.shapes))
    n_out = int(np.prod(graph.shapes[graph.output]))
    slopes, offsets = np.empty((len(points), n_out, 2)), np.empty((len(points), n_out))
    axes = [torch.tensor(a).reshape(1, *graph.input_shape) for a in plane.axes]
    for start in range(0, len(points), most):
        cut = slice(start, start + most)
        x = plane.points(points[cut]).reshape(shape)
        for d in (0, 1):
            value, slope = graph.derivative(x, axes[d].expand_as(x))
            slopes[cut, :, d] = slope.reshape(len(x), -1).numpy()
        offsets[cut] = value.reshape(len(x), -1).numpy()
        offsets[cut] -= np.einsum("ncd,nd->nc", slopes[cut], points[cut])
    return slopes, offsets


def merged(slopes: Floats, adjacency: Ints) -> int:
    """The number of regions after merging neighbours whose slopes (f, c, 2) agree to 1e-9."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    left, right = adjacency[(adjacency >= 0).all(axis=1)].T
    flat: Any = slopes.reshape(len(slopes), -1)
    size = np.abs(flat).max(axis=1, initial=0.0)
    gap = np.abs(flat[left] - flat[right]).max(axis=1, initial=0.0)
    same = gap <= SLOPE_TOLERANCE * np.maximum(size[left], size[right])
    n = len(slopes)
    links = coo_matrix((np.ones(int(same.sum())), (left[same], right[same])), shape=(n, n))
    return int(connected_components(links, directed=False)[0])
