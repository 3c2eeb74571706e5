"""Bridges between pieces of one label that a band thinner than the finest cells has fallen into.

Where scores are steps or there are only labels, nothing can be interpolated: a thin band shows up in as many
pieces as samples happen to lie in it. Regions of trees, forests and nearest neighbours are made of convex
pieces, so that two samples of one band often see each other along a straight line. The model is asked on
that line, as densely as the finest cells: it is a bridge if every answer is the label of its ends.
"""

from typing import NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints

FEW_SAMPLES = 12
"""A piece with fewer samples than this may be a part of a band."""
MOST_STEPS = 24
"""How many finest cells a bridge may span."""
BRIDGES_EACH = 3
"""From each such piece the model is asked on the shortest bridges to so many others."""


class Bridges(NamedTuple):
    """Pairs of samples of one label and of different pieces, (m, 2), and the points between, (m,)."""

    ends: Ints
    n_points: Ints


def possible_bridges(x: Floats, labels: Ints, roots: Ints, finest: float) -> Bridges:
    """The bridges on one probe, the shortest first.

    Args:
        x: the samples, (n, d).
        labels: their labels, (n,).
        roots: the piece of each, named by one of its samples, (n,).
        finest: the size of the finest cells.

    >>> possible_bridges(np.array([[0.0], [0.1], [0.2]]), np.array([0, 1, 0]), np.arange(3), 0.05)
    Bridges(ends=array([[0, 2]]), n_points=array([3]))
    """
    sizes = np.bincount(roots, minlength=len(x))
    found: dict[tuple[int, int], tuple[float, int, int]] = {}
    for root in np.flatnonzero((sizes > 0) & (sizes < FEW_SAMPLES)):
        own = np.flatnonzero(roots == root)
        others = np.flatnonzero((labels == labels[root]) & (roots != root))
        if not len(others):
            continue
        distance = np.linalg.norm(x[own][:, None] - x[others][None], axis=2)
        nearest = distance.argmin(axis=0)
        length = distance[nearest, np.arange(len(others))]
        order = np.argsort(length, kind="stable")
        _, first = np.unique(roots[others[order]], return_index=True)  # one bridge to each other piece
        for k in order[np.sort(first)[:BRIDGES_EACH]]:
            if length[k] <= MOST_STEPS * finest:
                pair = tuple(sorted((int(root), int(roots[others[k]]))))
                bridge = float(length[k]), int(own[nearest[k]]), int(others[k])
                found[pair[0], pair[1]] = min(found.get((pair[0], pair[1]), bridge), bridge)
    shortest = sorted(found.values())
    ends = np.array([sorted((i, j)) for _, i, j in shortest], dtype=np.int64).reshape(-1, 2)
    steps = np.ceil(np.array([length for length, _, _ in shortest]) / finest * (1 - 1e-9))
    return Bridges(ends, np.maximum(1, steps - 1).astype(np.int64))


def points_on(x: Floats, bridges: Bridges) -> tuple[Floats, Ints]:
    """The points strictly between the ends of all bridges, evenly spaced, (m, d), and the bridge of each."""
    owner = np.repeat(np.arange(len(bridges.ends)), bridges.n_points)
    place = np.arange(len(owner)) - np.repeat(
        np.cumsum(bridges.n_points) - bridges.n_points, bridges.n_points
    )
    part = ((place + 1) / (bridges.n_points[owner] + 1))[:, None]
    start, end = x[bridges.ends[owner, 0]], x[bridges.ends[owner, 1]]
    return start + part * (end - start), owner


def joined_by(roots: Ints, ends: Ints) -> Ints:
    """The pieces after those at both ends of each bridge are made one, each named by its first sample."""
    roots = roots.copy()
    for i, j in ends:
        low, high = sorted((roots[i], roots[j]))
        roots[roots == high] = low
    return roots
