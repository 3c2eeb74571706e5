"""Sorting along an axis as piecewise-linear nodes: a network of comparators.

A comparator replaces two entries a, b by their minimum a - relu(a - b) and their maximum b + relu(a - b).
Batcher's odd-even merge sort (Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M) sorts m entries
by some m (log m)^2 / 4 of them, in log m (log m + 1) / 2 stages of comparators that do not meet. Which way
each comparator goes tells the order of the entries and follows from it, so that activation regions are those
of equal order.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotSupportedYet
from inscape.models.graph.piecewise import Leaky

MOST_ENTRIES = 256
"""Longer axes would take more comparators than most networks have units."""

Comparators = list[tuple[int, int]]


def stages(m: int) -> list[Comparators]:
    """Comparators (i, j) with i < j, in stages of disjoint pairs, that sort m entries upwards.

    >>> stages(3)
    [[(0, 1)], [(0, 2)], [(1, 2)]]
    """
    stages = []
    p = 1
    while p < m:
        k = p
        while k >= 1:
            pairs = [
                (i, i + k)
                for start in range(k % p, m - k, 2 * k)
                for i in range(start, min(start + k, m - k))
                if i // (2 * p) == (i + k) // (2 * p)
            ]
            if pairs:
                stages.append(pairs)
            k //= 2
        p *= 2
    return stages


def needed_stages(m: int, wanted: Sequence[int]) -> list[Comparators]:
    """The comparators on which the entries at `wanted` positions of the sorted order depend."""
    positions, kept = set(wanted), []
    for stage in reversed(stages(m)):
        pairs = [pair for pair in stage if positions.intersection(pair)]
        positions.update(i for pair in pairs for i in pair)
        kept.append(pairs)
    return [pairs for pairs in reversed(kept) if pairs]


def sort(emit: Callable[..., int], node: int, axis: int, m: int, wanted: Sequence[int] | None = None) -> int:
    """A node whose m entries along an axis of a point are in rising order, at least at `wanted` positions.

    Args:
        emit: appends an operation on nodes and returns the number of its node.
        node: what is sorted.
        axis: the axis of a point.
        m: its size.
        wanted: the positions that matter, by default all.
    """
    if m > MOST_ENTRIES:
        raise NotSupportedYet("a sort", f"of {m} entries, of more than {MOST_ENTRIES}")
    for pairs in needed_stages(m, range(m) if wanted is None else wanted):
        low, high = (torch.tensor(side) for side in zip(*pairs, strict=True))
        excess = emit(Leaky(name="sort"), emit(_difference(axis, low, high), node))
        node = emit(_exchange(axis, low, high), node, excess)
    return node


def _difference(axis: int, low: Tensor, high: Tensor) -> Affine:
    """The map x -> x[low] - x[high] along an axis of a point."""

    def apply(x: Tensor, sign: float = -1.0) -> Tensor:
        return x.index_select(axis + 1, low) + sign * x.index_select(axis + 1, high)

    return Affine("compare", apply, absolute=lambda x: apply(x, 1.0))


def _exchange(axis: int, low: Tensor, high: Tensor) -> Affine:
    """The map (x, r) -> x with r taken from its entries at `low` and added to those at `high`."""

    def apply(x: Tensor, r: Tensor, sign: float = -1.0) -> Tensor:
        return x.index_add(axis + 1, low, sign * r).index_add_(axis + 1, high, r)

    return Affine("exchange", apply, absolute=lambda x, r: apply(x, r, 1.0))
