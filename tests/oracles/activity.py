"""A second route to linear pieces: the activity of every unit at given points, from the definition."""

import numpy as np
import torch

from inscape.models.graph.piecewise import Bend, Clip, Windows

TIE = -1


def activities(graph, x):
    """One row of integers per point: which side of its thresholds, or which winner, every unit has there."""
    graph = graph.cast(torch.float64)
    values, found = {0: x}, []
    for i, node in enumerate(graph.nodes[1:], start=1):
        inputs = [values[j] for j in node.inputs]
        values[i] = node.op(*inputs)
        if isinstance(node.op, Windows):
            found.append(winners(node.op, inputs[0]))
        elif isinstance(node.op, Clip):
            found += [(inputs[0] > bound).flatten(1).long() for bound in (node.op.low, node.op.high)]
        elif isinstance(node.op, Bend):
            found.append((inputs[0] > 0).flatten(1).long())
    return torch.cat(found, dim=1)


def winners(op, x):
    table = op.table(tuple(x.shape[1:]))
    entries = x.flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
    top = entries.topk(2, dim=-1)
    return torch.where(top.values[..., 0] - top.values[..., 1] < 1e-13, TIE, top.indices[..., 0])


def check_pieces(graph, segment, knots, *, margin=1e-4, shortest=1e-8):
    """No activity changes inside a piece, one changes across every knot; very short pieces are passed over.

    A window whose two largest entries tie (several relus at zero) has no winner and counts for neither.
    """
    edges = np.concatenate([[segment.span[0]], knots, [segment.span[1]]])
    lengths = np.diff(edges)
    assert (lengths > 0).all()
    left, right = (
        activities(graph, torch.from_numpy(segment.points(t).reshape(-1, *graph.input_shape)))
        for t in (edges[:-1] + margin * lengths, edges[1:] - margin * lengths)
    )
    long = lengths > shortest
    tied = (left == TIE) | (right == TIE)
    inside = ((left != right) & ~tied).any(dim=1).numpy()
    across = (left[1:] != right[:-1]).any(dim=1).numpy()
    assert not inside[long].any()
    assert across[long[1:] & long[:-1]].all()
