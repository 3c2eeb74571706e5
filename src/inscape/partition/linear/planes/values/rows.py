"""Tensors at the vertices after a cut: every new vertex is a mean of at most four old ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled
from inscape.partition.linear.planes.layer.cut import Split


@compiled
def _sources(
    n_old, n_cut, n_new, edge_ends, edge_start, edge_s, edge_node, line_ends, line_start, line_s, vertex
):
    source, weight = np.zeros((n_new, 4), np.int64), np.zeros((n_new, 4))
    for e in range(len(edge_ends)):
        for k in range(edge_start[e + 1] - 1, edge_start[e] - 1, -1):
            i = edge_node[k] - n_old
            source[i, 0], source[i, 1] = edge_ends[e, 0], edge_ends[e, 1]
            weight[i, 0], weight[i, 1] = 1.0 - edge_s[k], edge_s[k]
    for line in range(len(line_ends)):
        for k in range(line_start[line], line_start[line + 1]):
            i = vertex[k] - n_old
            if vertex[k] < 0 or weight[i].any():
                continue
            for d in range(2):
                end = line_ends[line, d]
                share = line_s[k] if d == 1 else 1.0 - line_s[k]
                for j in range(2):
                    if end >= n_old:
                        source[i, 2 * d + j] = source[end - n_old, j]
                        weight[i, 2 * d + j] = share * weight[end - n_old, j]
                    else:
                        source[i, 2 * d + j] = end
                        weight[i, 2 * d + j] = share if j == 0 else 0.0
    return source, weight


@compiled
def _gather(z, n_old, source, weight, wanted, out):
    h = z.shape[1]
    for r in range(len(wanted)):
        v = wanted[r]
        if v < n_old:
            out[r] = z[v]
            continue
        s, w = source[v - n_old], weight[v - n_old]
        a, b, c, d = z[s[0]], z[s[1]], z[s[2]], z[s[3]]
        if w[2] == 0.0 and w[3] == 0.0:
            for u in range(h):
                out[r, u] = w[0] * a[u] + w[1] * b[u]
        else:
            for u in range(h):
                out[r, u] = (w[0] * a[u] + w[1] * b[u]) + (w[2] * c[u] + w[3] * d[u])


@dataclass(frozen=True, eq=False)
class Interpolation:
    """How tensors that are affine on the old faces are carried to the vertices after a cut.

    Attributes:
        n_old: the number of old vertices.
        source, weight: for each new vertex up to four old ones and their weights, (n, 4).
        zeros: pairs of a new vertex and a unit that is zero there, sorted by vertex.
    """

    n_old: int
    source: Ints
    weight: Floats
    zeros: Ints

    @classmethod
    def of(cls, split: Split) -> "Interpolation":
        """The interpolation that goes with a cut."""
        n_new = len(split.cells.xy) - split.n_old
        n_cut = int(split.edges.vertex.max(initial=split.n_old - 1)) + 1 - split.n_old
        e, c = split.edges, split.chords
        source, weight = _sources(
            split.n_old, n_cut, n_new, e.ends, e.start, e.s, e.vertex, c.ends, c.start, c.s, c.vertex
        )
        return cls(split.n_old, source, weight, split.zeros())

    def carry(self, z: Tensor, wanted: Ints) -> Tensor:
        """A tensor at some of the vertices, in that order."""
        values = flat(z)
        out = empty((len(wanted), *z.shape[1:]))
        _gather(values, self.n_old, self.source, self.weight, wanted, out.view(len(out), -1).numpy())
        return out

    def carry_input(self, z: Tensor, wanted: Ints, thresholds: Floats) -> Tensor:
        """The input of the layer that was cut, exactly on its threshold where a unit is zero."""
        out = self.carry(z, wanted)
        row = np.full(int(wanted.max(initial=-1)) + 1, -1)
        row[wanted] = np.arange(len(wanted))
        vertex, unit = self.zeros[:, 0], self.zeros[:, 1]
        there = vertex < len(row)
        there[there] = row[vertex[there]] >= 0
        h = max(1, z[0].numel())
        values = out.view(len(out), -1).numpy()
        values[row[vertex[there]], unit[there] % h] = thresholds[unit[there] // h]
        return out


def flat(z: Tensor) -> Any:
    """A batch as a contiguous array (rows, h)."""
    return z.reshape(len(z), -1).contiguous().numpy()


def empty(shape: tuple[int, ...]) -> Tensor:
    """A float64 tensor in memory from numpy, which asks for large pages: first use is four times cheaper."""
    return torch.from_numpy(np.empty(shape))
