"""Which units change sign on a cross-polytope or in a ball around a point."""

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Ints
from inscape.measures.jacobian.forward import State, directions_at_once, evaluate, push
from inscape.measures.jacobian.units import Layer, unit_layers
from inscape.models.graph import Graph
from inscape.progress import Meter

NUMBERS_AT_ONCE = 2**24


def crossings(
    graph: Graph, points: Tensor, p: int, radius: float, rng: np.random.Generator, show: Meter
) -> tuple[tuple[str, ...], Ints]:
    """The names of the layers, and how many units of each change sign on a hull around each point, (n, L)."""
    graph = graph.cast(torch.float64)
    layers = unit_layers(graph)
    counts = np.zeros((len(points), len(layers)), dtype=np.int64)
    size = max(1, NUMBERS_AT_ONCE // (2 * p * sum(int(np.prod(s)) for s in graph.shapes)))
    for i in range(0, len(points), size):
        corners = _corners(points[i : i + size], p, radius, rng)
        counts[i : i + size] = _between_corners(graph, layers, corners, 2 * p)
        show(min(i + size, len(points)), len(points))
    return tuple(layer.name for layer in layers), counts


def _corners(points: Tensor, p: int, radius: float, rng: np.random.Generator) -> Tensor:
    """The 2 p corners around each of n points, (n 2 p, *shape)."""
    n, d = len(points), points[0].numel()
    frames = torch.linalg.qr(torch.from_numpy(rng.standard_normal((n, d, p))))[0].transpose(1, 2)
    steps = radius * torch.cat([frames, -frames], dim=1)
    return (points.reshape(n, 1, d) + steps).reshape(n * 2 * p, *points.shape[1:])


def _between_corners(graph: Graph, layers: tuple[Layer, ...], corners: Tensor, per_point: int) -> Ints:
    """How many thresholds of each layer lie between two corners of each point, (n, L)."""
    state = evaluate(graph, layers, corners, None)
    found = []
    for layer, u in zip(layers, state.pre, strict=True):
        by_point = u.reshape(-1, per_point, layer.size)
        low, high = by_point.amin(dim=1), by_point.amax(dim=1)
        kinks = torch.tensor(layer.kinks, dtype=u.dtype)[:, None, None]
        found.append(((low <= kinks) & (high > kinks)).sum(dim=(0, 2)))
    return torch.stack(found, dim=1).numpy() if found else np.zeros((len(corners) // per_point, 0), np.int64)


def in_ball(graph: Graph, points: Tensor, radius: float) -> Ints:
    """How many thresholds of the first layer are met by the open ball: |u - kink| < radius |grad u|."""
    graph = graph.cast(torch.float64)
    layers = unit_layers(graph)
    if not layers or not all(n.is_affine for n in graph.nodes[: layers[0].source]):
        return np.empty(0, dtype=np.int64)
    layer = layers[0]
    before = Graph(graph.nodes[: layer.source + 1], output=layer.source, input_shape=graph.input_shape)
    squares = torch.zeros(layer.size, dtype=torch.float64)
    d = points[0].numel()
    one = State([], {}, torch.zeros(1))

    def seen(node: int, tangents: Tensor) -> None:
        squares.add_(tangents[0].flatten(1).square().sum(dim=0))

    for part in torch.split(torch.eye(d, dtype=torch.float64), directions_at_once(before, 1, torch.float64)):
        push(before, one, part.reshape(-1, *graph.input_shape), {layer.source}, seen)
    u, reach = before.evaluate(points).flatten(1), radius * squares.sqrt()
    kinks = torch.tensor(layer.kinks, dtype=u.dtype)[:, None, None]
    return ((u - kinks).abs() < reach).sum(dim=(0, 2)).numpy()
