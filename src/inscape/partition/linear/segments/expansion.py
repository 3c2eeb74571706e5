"""A linear map right after a piecewise-linear node, at new rows without a product each.

Between two old rows the node's output bends, and the map follows from its values at both by the formula of
`bent_line`, in order. So a new row costs one column of the map (for a convolution, one patch of it) and a sum
of two vectors; products are needed at the old rows only.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.compiled import compiled
from inscape.models.graph.piecewise import Bend
from inscape.partition.linear.bent_line import pass_breakpoint, start_line
from inscape.partition.linear.fusion import Fusion
from inscape.partition.linear.segments.breakpoints import Crossings, Refinement

REANCHOR_AFTER = 1 / 32
"""How far from where it was last written out in full a map is continued along its slope."""


class Expansion:
    """The map's values on refined rows, from those on the old rows and the bends between.

    Ask for the rows chunk after chunk, in order: where the last one ended, the next one goes on.
    """

    def __init__(self, fusion: Fusion, y: Tensor, bends: Crossings, change: Any) -> None:
        self._shape = tuple(y.shape[1:])
        self._y = y.reshape(len(y), -1).contiguous()
        self._bends, self._change, self._fusion = bends, change, fusion
        n_out = self._y.shape[1]
        kind = self._y.numpy().dtype
        self._line = np.empty((2, n_out))  # base and slope: the map is base + s slope
        self._stored = np.empty((2, n_out), kind)  # its value at the anchor and its slope, as they are stored
        self._place = np.array([-1.0, 0.0, 0.0])  # the interval, the next crossing, the anchor

    def rows(self, chunk: Refinement) -> Tensor:
        """The values on the rows of one chunk."""
        out = torch.empty((len(chunk.rows), *self._shape), dtype=self._y.dtype)
        bends = self._bends
        common = (self._y.numpy(), bends.start, bends.s, bends.entry, self._change, self._fusion.columns)
        target = (chunk.parent, chunk.fraction, out.view(len(out), -1).numpy(), self._line, self._place)
        if self._fusion.geometry is None:
            _expand_matrix(*common, *target)
        else:
            _expand_convolution(*common, *target, self._stored, np.array(self._fusion.geometry))
        return out


def slope_changes(op: Bend, z: Any, bends: Crossings) -> Any:
    """By how much the slope d h / d s of the bending entry changes at each crossing, (m,)."""
    rise = np.abs(z[bends.interval + 1, bends.entry].astype(np.float64) - z[bends.interval, bends.entry])
    jumps = op.slope_jumps
    return np.where(bends.is_upper, jumps[-1], jumps[0]) * rise if jumps else np.zeros(len(rise))


@compiled
def _expand_matrix(y, start, s, entry, change, columns, parent, fraction, out, line, place):
    n_out = y.shape[1]
    base, slope = line[0], line[1]
    current, k = int(place[0]), int(place[1])
    for r in range(len(parent)):
        i, f = parent[r], fraction[r]
        if f == 0.0:
            out[r] = y[i]
            continue
        if i != current:
            current, k = i, start[i]
            start_line(y[i], y[i + 1], s, entry, change, start[i], start[i + 1], columns, base, slope)
        while k < start[i + 1] and s[k] <= f:
            pass_breakpoint(s[k], change[k], columns[entry[k]], base, slope)
            k += 1
        for v in range(n_out):
            out[r, v] = base[v] + f * slope[v]
    place[0], place[1] = current, k


@compiled
def _add_patch(base, slope, near, steep, weight, entry, at, change, anchor, geometry):
    """Add the convolution's answer to one entry that changes its slope by `change` at s = `at`.

    The map is base + s slope in float64; `near` and `steep` are its value at s = `anchor` and its slope as
    they are stored.
    """
    # 1. the entry's place, and the outputs of its group of channels
    _, height, width, n_out, ho, wo, sy, sx, py, px, dy, dx, groups = geometry
    place = entry % (height * width)
    channel, y, x = entry // (height * width), place // width, place % width
    per_group, outs = weight.shape[1], n_out // groups
    first = channel // per_group * outs
    inside = channel % per_group
    # 2. the outputs whose window holds that place
    for a in range(weight.shape[2]):
        at_y = y + py - a * dy
        if at_y < 0 or at_y % sy != 0 or at_y // sy >= ho:
            continue
        for b in range(weight.shape[3]):
            at_x = x + px - b * dx
            if at_x < 0 or at_x % sx != 0 or at_x // sx >= wo:
                continue
            # 3. their base and slope, as in `bent_line.pass_breakpoint`
            where = at_y // sy * wo + at_x // sx
            for o in range(first, first + outs):
                v = o * ho * wo + where
                bend = change * weight[o, inside, a, b]
                slope[v] += bend
                base[v] -= at * bend
                near[v] = base[v] + anchor * slope[v]
                steep[v] = slope[v]


@compiled
def _anchored(base, slope, near, steep, anchor):
    for v in range(len(base)):
        near[v] = base[v] + anchor * slope[v]
        steep[v] = slope[v]


@compiled
def _expand_convolution(
    y, start, s, entry, change, weight, parent, fraction, out, line, place, stored, geometry
):
    n_out = y.shape[1]
    base, slope, near, steep = line[0], line[1], stored[0], stored[1]
    current, k, anchor = int(place[0]), int(place[1]), place[2]
    for r in range(len(parent)):
        i, f = parent[r], fraction[r]
        if f == 0.0:
            out[r] = y[i]
            continue
        if i != current:
            # 1. begin an interval: its chord, and back from the slope of that to the slope at the start
            current, k, anchor = i, start[i], 0.0
            for v in range(n_out):
                base[v] = y[i, v]
                slope[v] = y[i + 1, v] - base[v]
            for j in range(start[i], start[i + 1]):
                _add_patch(
                    base, slope, near, steep, weight, entry[j], 0.0, -change[j] * (1.0 - s[j]), 0.0, geometry
                )
            _anchored(base, slope, near, steep, anchor)
        # 2. pass the breakpoints before the row
        while k < start[i + 1] and s[k] <= f:
            _add_patch(base, slope, near, steep, weight, entry[k], s[k], change[k], anchor, geometry)
            k += 1
        # 3. write the row, along the slope from an anchor that is near
        if f - anchor > REANCHOR_AFTER:
            anchor = f
            _anchored(base, slope, near, steep, anchor)
        step = y.dtype.type(f - anchor)
        for v in range(n_out):
            out[r, v] = near[v] + step * steep[v]
    place[0], place[1], place[2] = current, k, anchor
