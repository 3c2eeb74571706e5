"""The states of a layer's units at given points, by a forward pass."""

from typing import Any

import numpy as np
from torch import Tensor

from inscape.models.graph import Graph
from inscape.models.graph.piecewise import Bend, Windows
from inscape.partition.linear.bending import thresholds, window_table

_NUMBERS = 2**22


def states_at(graph: Graph, node: int, x: Tensor) -> Any:
    """The state of every unit of a node at points x (n, d), as in `Subdivision.states`, (n, units)."""
    (j,) = graph.nodes[node].inputs
    op = graph.nodes[node].op
    assert isinstance(op, Bend)
    most = max(1, _NUMBERS // max(int(np.prod(s)) for s in graph.shapes))
    parts = []
    for start in range(0, len(x), most):
        z = graph.evaluate(x[start : start + most].reshape(-1, *graph.input_shape), until=j)
        values = z.reshape(len(z), -1).numpy()
        if isinstance(op, Windows):
            table = window_table(op, tuple(z.shape[1:]))
            entries = np.where(table >= 0, values[:, table], -np.inf)
            parts.append(entries.argmax(axis=2).astype(np.uint8 if table.shape[1] < 256 else np.uint16))
        else:
            parts.append(sum((values > t).astype(np.uint8) for t in thresholds(op)))
    return np.concatenate(parts)
