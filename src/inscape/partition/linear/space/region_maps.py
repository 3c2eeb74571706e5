"""The affine maps of all units on one linear region, by its activation pattern and not by a point of it.

On the region of a pattern every unit is an affine function of the input, z(x + u) = z(x) + J u, also where x
itself lies outside of it: the pattern says which line of each bend is taken. One walk through the graph
carries z(x) and the rows of J, as a batch of 1 + d points. Each unit adds the halfspaces on which it keeps
its state; so the region is a polytope A u <= b, whose constraints are scaled to unit length.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Array, Bools, Floats, Ints
from inscape.budget import MEMORY, in_bytes
from inscape.errors import PartitionError
from inscape.models.graph import Graph, Node
from inscape.models.graph.piecewise import Bend
from inscape.progress import Meter

CONSTANT_BELOW = 1e-13
"""A unit whose gradient is this small, relative to the largest of its layer, is constant on the region."""
MISSED_BY_ROUNDING = 1e-9
"""A constant unit may miss its state by this much, relative to the largest unit of its layer."""

Pattern = Mapping[int, Ints]
"""Piecewise-linear node -> the state of each unit: how many kinks it is above, or which entry wins."""


class Halfspaces(NamedTuple):
    """The states that the units of one node keep: constraints a u <= b, and what a unit becomes beyond each.

    Attributes:
        normals: a, (m, d).
        offsets: b, (m,).
        unit: (m,).
        beyond: the state of the unit on the other side, (m,).
    """

    normals: Floats
    offsets: Floats
    unit: Ints
    beyond: Ints


@dataclass(frozen=True, eq=False)
class RegionMaps:
    """A linear region around an anchor x, in u = y - x.

    Attributes:
        pattern: which region it is.
        normals: of the constraints, of unit length, (m, d).
        offsets: the region is normals u <= offsets, (m,).
        lengths: of the normals before they were scaled, (m,): how much each unit changes per distance.
        node: the node of the unit of each constraint, (m,).
        unit: its number in the node, (m,).
        beyond: its state on the other side, (m,).
        scores: the outputs at x by the region's own affine map, (c,).
        jacobian: (c, d).
        is_empty: whether a unit that is constant here has another state than the pattern says.
        is_on_kink: whether a unit that is constant here is on its kink, so that its state is a convention.
    """

    pattern: Pattern
    normals: Floats
    offsets: Floats
    lengths: Floats
    node: Ints
    unit: Ints
    beyond: Ints
    scores: Floats
    jacobian: Floats
    is_empty: bool
    is_on_kink: bool

    def across(self, i: int) -> dict[int, Ints]:
        """The pattern on the other side of constraint i."""
        node = int(self.node[i])
        states = self.pattern[node].copy()
        states[self.unit[i]] = self.beyond[i]
        return {**self.pattern, node: states}


def region_maps(
    graph: Graph,
    x: Floats,
    pattern: Pattern | None = None,
    memory: int = MEMORY,
    show: Meter = lambda done, total: None,
) -> RegionMaps:
    """The region of a pattern; by default of that at x, where a unit on its kink counts as below it.

    Args:
        graph: the network.
        x: the anchor, (*input_shape).
        pattern: the state of every unit, or None.
        memory: bytes that the largest tensor may take.
        show: is told how many operations are done.
    """
    d = math.prod(graph.input_shape)
    needed = 8 * (1 + d) * max(math.prod(shape) for shape in graph.shapes)
    if needed > memory:
        raise PartitionError(
            f"the gradients of all units of a layer take {in_bytes(needed)}, over memory={in_bytes(memory)}",
            remedy="give a larger memory, or use segments and planes instead",
        )
    states: dict[int, Ints] = {}
    constraints: dict[int, Halfspaces] = {}

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        show(i, len(graph.nodes))
        if node.bend is None:
            return _affinely(node, inputs)
        chosen, constraints[i], value = _in_state(
            node.bend, inputs[0], None if pattern is None else pattern[i]
        )
        states[i] = chosen
        return value.reshape(1 + d, *graph.shapes[i])

    point = torch.tensor(x, dtype=torch.float64).reshape(1, *graph.input_shape)
    start = torch.cat([point, torch.eye(d, dtype=torch.float64).reshape(d, *graph.input_shape)])
    with torch.no_grad():
        out = graph.cast(torch.float64).walk(start, visit).reshape(1 + d, -1).numpy()
    return _region(states, constraints, out[0], out[1:].T)


def _affinely(node: Node, inputs: list[Tensor]) -> Tensor:
    """The value of an affine node at a point, the first of them, and its derivatives along the others."""
    at_x, directions = [v[:1] for v in inputs], [v[1:] for v in inputs]
    return torch.cat([node.op(*at_x), node.op.jvp(at_x, directions)])


def pattern_beyond(graph: Graph, maps: RegionMaps, point: Floats, constraints: Ints) -> dict[int, Ints]:
    """The pattern of the region beyond a facet on which the hyperplanes of several units coincide.

    Units that are on their kink all over the facet, those of the constraints and those that are constant on
    their kink, get their state, layer by layer, from their derivative in the region beyond; all others keep
    theirs, which they also have on the facet. A unit whose derivative is 0 counts as below its kink, and of
    tied entries of a window the first wins.

    Args:
        graph: the network.
        maps: the region.
        point: a point inside the facet, (*input_shape).
        constraints: the constraints of the facet's hyperplane.
    """
    states: dict[int, Ints] = {}
    largest = np.abs(np.stack([point.reshape(-1), maps.normals[constraints[0]]])).max(axis=1)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if node.bend is None:
            return _affinely(node, inputs)
        z = inputs[0]
        at, slope = z.reshape(2, -1).numpy()
        np.maximum(largest, np.abs([at, slope]).max(axis=1), out=largest)  # of all layers up to here
        facet = _OnFacet(at, slope, MISSED_BY_ROUNDING * largest[0], CONSTANT_BELOW * largest[1])
        of_node = np.flatnonzero(maps.node == i)
        tied = of_node[np.isin(of_node, constraints)]
        windows = node.bend.windows(tuple(z.shape[1:]))
        if windows is not None:
            states[i] = _winners_beyond(windows.entries, facet, maps, of_node, tied, maps.pattern[i])
        else:
            states[i] = _sides_beyond(node.bend, facet, maps, of_node, tied, maps.pattern[i])
        return _in_state(node.bend, z, states[i])[2].reshape(2, *graph.shapes[i])

    normal = maps.normals[constraints[0]]
    start = torch.from_numpy(np.stack([point.reshape(-1), normal])).reshape(2, *graph.input_shape)
    with torch.no_grad():
        graph.cast(torch.float64).walk(start, visit)
    return states


class _OnFacet(NamedTuple):
    """The values of a node's inputs at a point of a facet, their derivatives beyond, and what counts as 0."""

    at: Floats
    """The values at the point."""
    slope: Floats
    """Their derivatives along the normal, out of the region."""
    small: float
    """A difference of values up to this counts as none."""
    flat: float
    """So does a difference of derivatives up to this."""


def _sides_beyond(
    op: Bend, facet: _OnFacet, maps: RegionMaps, of_node: Ints, tied: Ints, before: Ints
) -> Ints:
    """The states of a node's units beyond a facet, from values and derivatives at a point of it.

    `of_node` are the constraints of the node's units, `tied` those of them that coincide with the facet.
    """
    after = before.copy()
    if not op.kinks:
        return after
    distance = np.abs(facet.at[:, None] - np.array(op.kinks))
    on_kink = distance.min(axis=1) <= facet.small
    on_kink[maps.unit[of_node]] = False  # their kinks are elsewhere, except for those that tie
    on_kink[maps.unit[tied]] = True
    after[on_kink] = (distance.argmin(axis=1) + (facet.slope > facet.flat))[on_kink]
    return after


def _winners_beyond(
    table: Ints, facet: _OnFacet, maps: RegionMaps, of_node: Ints, tied: Ints, before: Ints
) -> Ints:
    """The same for windows: of the entries that tie on the facet the one wins that rises most."""
    windows = np.arange(len(table))
    value = np.where(table >= 0, facet.at[table], -np.inf)
    may_win = (table >= 0) & (value[windows, before][:, None] - value <= facet.small)
    may_win[maps.unit[of_node], maps.beyond[of_node]] = False  # they lose there, except for those that tie
    may_win[maps.unit[tied], maps.beyond[tied]] = True
    may_win[windows, before] = True
    rise = np.where(may_win, facet.slope[table], -np.inf)
    first = (rise >= rise.max(axis=1, keepdims=True) - facet.flat).argmax(axis=1)
    return np.asarray(first, before.dtype)


def _in_state(op: Bend, z: Tensor, states: Ints | None) -> tuple[Ints, Halfspaces, Tensor]:
    """The states of a node's units, the halfspaces on which they keep them, and the node's value there."""
    flat = z.reshape(len(z), -1)
    if states is None:
        states = op.states(z[:1])[0].astype(np.int64)
    windows = op.windows(tuple(z.shape[1:]))
    if windows is not None:
        return _winners(windows.entries, flat, states)
    at_x, gradients = flat[0].numpy(), flat[1:].T.contiguous().numpy()  # rows are picked
    # (1) a unit stays above the kink below it, and below the kink above it
    normals, offsets, unit, beyond = [], [], [], []
    for k, kink in enumerate(op.kinks):
        for side, state, other in ((-1.0, k + 1, k), (1.0, k, k + 1)):
            is_in_state = states == state
            normals.append(side * gradients[is_in_state])
            offsets.append(side * (kink - at_x[is_in_state]))
            unit.append(np.flatnonzero(is_in_state))
            beyond.append(np.full(int(is_in_state.sum()), other))
    kept = Halfspaces(*(np.concatenate(p) for p in (normals, offsets, unit, beyond))) if op.kinks else NONE
    # (2) the line of each state
    shape = z.shape[1:]
    slopes = torch.stack(
        [torch.as_tensor(s, dtype=torch.float64).expand(shape).reshape(-1) for s, _ in op.lines]
    )
    shifts = torch.tensor([b for _, b in op.lines], dtype=torch.float64)
    index = torch.from_numpy(states)
    value = flat * slopes.gather(0, index[None])
    value[0] += shifts[index]
    return states, kept, value


NONE = Halfspaces(np.empty((0, 0)), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


def _winners(table: Ints, flat: Tensor, states: Ints) -> tuple[Ints, Halfspaces, Tensor]:
    """The same for windows, whose state is the index of the winner in its row of the table."""
    at_x, gradients = flat[0].numpy(), flat[1:].T.contiguous().numpy()  # rows are picked
    winner = table[np.arange(len(table)), states]
    window, rival = np.nonzero((table >= 0) & (np.arange(table.shape[1]) != states[:, None]))
    other, best = table[window, rival], winner[window]
    kept = Halfspaces(gradients[other] - gradients[best], at_x[best] - at_x[other], window, rival)
    return states, kept, flat[:, torch.from_numpy(winner)]


def _region(
    states: Pattern, constraints: Mapping[int, Halfspaces], scores: Floats, jacobian: Floats
) -> RegionMaps:
    """All constraints in one polytope, those of constant units left out."""
    kept: list[tuple[Array, ...]] = []
    is_empty, is_on_kink = False, False
    largest = max(
        (float(np.abs(half.offsets).max(initial=0.0)) for half in constraints.values()), default=0.0
    )
    for node, half in constraints.items():
        if not len(half.unit):
            continue
        lengths = np.linalg.norm(half.normals, axis=1)
        varies: Bools = lengths > CONSTANT_BELOW * max(float(lengths.max()), 1e-300)
        constant = half.offsets[~varies]
        most_missed = MISSED_BY_ROUNDING * max(float(np.abs(half.offsets).max()), 1e-300)
        is_empty |= bool((constant < -most_missed).any())
        is_on_kink |= bool((np.abs(constant) <= MISSED_BY_ROUNDING * largest).any())
        normals, offsets, length = half.normals[varies], half.offsets[varies], lengths[varies]
        of_node = np.full(len(length), node)
        unit_and_beyond = half.unit[varies], half.beyond[varies]
        kept.append((normals / length[:, None], offsets / length, length, of_node, *unit_and_beyond))
    none = np.empty(0, np.int64)
    kept = kept or [(np.empty((0, jacobian.shape[1])), np.empty(0), np.empty(0), none, none, none)]
    normals, offsets, length, of_node, unit, beyond = (np.concatenate(p) for p in zip(*kept, strict=True))
    return RegionMaps(
        pattern=states,
        normals=normals,
        offsets=offsets,
        lengths=length,
        node=of_node,
        unit=unit,
        beyond=beyond,
        scores=scores.copy(),
        jacobian=jacobian.copy(),
        is_empty=is_empty,
        is_on_kink=is_on_kink,
    )
