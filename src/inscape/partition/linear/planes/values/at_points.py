"""What a network does at points of a plane, by a forward pass: the states of units, the affine maps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows, window_table
from inscape.probes.plane import Plane

_NUMBERS_AT_ONCE = 2**21
"""How many numbers the largest tensor of a forward pass may have."""

SLOPE_TOLERANCE = 1e-9
"""Slopes that differ by less, relative to the larger, are equal."""


def states_at(graph: Graph, node: int, x: Tensor) -> Any:
    """The state of every unit of a node at points x (n, d), as in `Subdivision.states`, (n, units)."""
    (j,) = graph.nodes[node].inputs
    op = graph.nodes[node].op
    assert isinstance(op, Bend)
    states = []
    for own in _blocks(graph, len(x)):
        z = graph.evaluate(x[own].reshape(-1, *graph.input_shape), until=j)
        values = z.reshape(len(z), -1).numpy()
        if isinstance(op, Windows):
            table = window_table(op, tuple(z.shape[1:]))
            entries = np.where(table >= 0, values[:, table], -np.inf)
            states.append(entries.argmax(axis=2).astype(np.uint8 if table.shape[1] < 256 else np.uint16))
        else:
            states.append(sum((values > t for t in op.kinks), np.zeros(values.shape, np.uint8)))
    return np.concatenate(states)


def affine_maps(graph: Graph, plane: Plane, points: Floats) -> tuple[Floats, Floats]:
    """Slopes (n, c, 2) and offsets (n, c) of the outputs in the coordinates, around points (n, 2)."""
    n_out = int(np.prod(graph.shapes[graph.output]))
    slopes, offsets = np.empty((len(points), n_out, 2)), np.empty((len(points), n_out))
    axes = [torch.tensor(a).reshape(1, *graph.input_shape) for a in plane.axes]
    for own in _blocks(graph, len(points)):
        x = torch.from_numpy(plane.points(points[own])).reshape(-1, *graph.input_shape)
        for d in (0, 1):
            value, slope = graph.derivative(x, axes[d].expand_as(x))
            slopes[own, :, d] = slope.reshape(len(x), -1).numpy()
        offsets[own] = value.reshape(len(x), -1).numpy()
        offsets[own] -= np.einsum("ncd,nd->nc", slopes[own], points[own])
    return slopes, offsets


def n_merged(slopes: Floats, adjacency: Ints) -> int:
    """The number of regions after merging neighbours whose slopes (f, c, 2) are equal."""
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


def _blocks(graph: Graph, n: int) -> Iterator[slice]:
    """Ranges of n points of which the tensors are not too large."""
    most = max(1, _NUMBERS_AT_ONCE // max(int(np.prod(s)) for s in graph.shapes))
    return (slice(first, first + most) for first in range(0, n, most))
