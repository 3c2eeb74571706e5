"""A second route to the regions of a plane: what every unit does at points, from the definition."""

import numpy as np
import torch
from activity import TIE, activities

from inscape import wrap


def inputs(probe, q, coordinates):
    """Points of the input space at coordinates of the result."""
    plane = q.domain.plane
    return torch.from_numpy(plane.origin + coordinates @ plane.axes).reshape(-1, *probe.input_shape)


def check_faces(model, probe, q, *, smallest=1e-9):
    """At the faces' centroids the network does what was stored, and no two faces have the same activity.

    Faces narrower than `smallest` of the domain are too small to evaluate a network in.
    """
    graph = wrap(model).graph(probe.input_shape)
    seen = activities(graph, inputs(probe, q, q.centroids)).numpy()
    stored = as_activities(graph, q)
    tied = seen == TIE
    wide = widths(q) > smallest * np.ptp(q.vertices, axis=0).max()
    assert wide.mean() > 0.9
    wrong = (seen != stored) & ~tied & ~vanishing(graph, inputs(probe, q, q.centroids))
    assert not wrong[wide].any()
    assert len(np.unique(q.patterns, axis=0)) == q.n_regions


def vanishing(graph, x):
    """Which units are on their threshold at points, up to rounding: their side is not known there."""
    from inscape.models.graph.piecewise import Bend, Clip, Windows

    graph = graph.cast(torch.float64)
    values, found = {0: x}, []
    for i, node in enumerate(graph.nodes[1:], start=1):
        z = [values[j] for j in node.inputs]
        values[i] = node.op(*z)
        if isinstance(node.op, Windows):
            found.append(torch.zeros(len(x), len(node.op.table(tuple(z[0].shape[1:]))), dtype=bool))
        elif isinstance(node.op, Bend):
            bounds = (node.op.low, node.op.high) if isinstance(node.op, Clip) else (0.0,)
            found += [((z[0] - b).abs() <= 1e-12 * z[0].abs().max()).flatten(1) for b in bounds]
    return torch.cat(found, dim=1).numpy()


def as_activities(graph, q):
    """The stored patterns in the form of `activities`: a clip gives two columns per unit."""
    from inscape.models.graph.piecewise import Clip

    columns = []
    for k, node in enumerate(q.subdivision.layers, start=1):
        states = q.layer_patterns(k).astype(int)
        op = graph.nodes[node].op
        if isinstance(op, Clip):
            finite = np.isfinite([op.low, op.high])
            order = np.cumsum(finite)
            for is_finite, least in zip(finite, order, strict=True):
                below = least == 1 and not finite[0]
                columns.append(states >= least if is_finite else np.full_like(states, not below) > 0)
        else:
            columns.append(states)
    return np.concatenate(columns, axis=1).astype(int)


def widths(q):
    """About how wide each face is: its area over its longest side."""
    longest = [np.linalg.norm(p - np.roll(p, 1, axis=0), axis=1).max() for p in q.polygons]
    areas = q.areas / q.domain.area_unit
    return areas / np.array(longest)


def check_structure(q):
    """Euler's formula, the areas, convexity, and that every inner edge has a face on both sides."""
    assert q.n_vertices - q.n_edges + q.n_regions == 1
    corners = q.domain.corners
    after = np.roll(corners, -1, axis=0)
    domain = (corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]).sum() / 2
    assert abs(q.areas.sum() / q.domain.area_unit / domain - 1) < 1e-10
    assert (q.areas >= 0).all()
    border = (q.adjacency < 0).any(axis=1)
    assert ((q.edge_layers == 0) == border).all()
    middle = q.vertices[q.edges[border]].mean(axis=1)
    sides = after - corners
    way = middle[:, None] - corners
    distance = (sides[:, 0] * way[..., 1] - sides[:, 1] * way[..., 0]) / np.linalg.norm(sides, axis=1)
    assert (np.abs(distance).min(axis=1) < 1e-9 * np.abs(corners).max()).all()
    assert set(np.unique(q.edges)) == set(range(q.n_vertices))
