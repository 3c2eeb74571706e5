# mypy: disallow-untyped-decorators=False
"""Compiled loops of `tree_segment`: walk down all trees along one line, then vote from piece to piece.

Importing this module imports numba; `tree_segment` does so when the first segment is asked for.
"""

from typing import Any

import numpy as np
from numba import njit

ARGMAX, POSITIVE, NON_NEGATIVE = 0, 1, 2  # the values of `inscape.models.trees.Rule`
SAME = 4 * np.finfo(np.float64).eps  # crossings this close, relative to t, are one


@njit(cache=True, error_model="numpy")
def walk(line: Any, span: Any, trees: Any, front: Any, found: Any) -> Any:
    """The leaves that the line x(t) = line[:, 0] + t line[:, 1] meets, t in `span`.

    All trees are walked at once, level by level. The front holds (node, tree, origin, t0, t1): the
    interval from t0 to t1 on which the line is at that node, and the node `origin` whose crossing is t0. A
    node is crossed at t = (cut - x_f) / d_f; if that lies inside (t0, t1) both children take their part,
    otherwise one child takes all. A line along which x_f is constant crosses at infinity.

    The loop has no branch that the processor would often guess wrong: the far child is always written
    and counts only if there was a crossing. So several nodes are in flight at once.

    Returns:
        n, n_nodes: leaf i < n of `found` starts at t[i] in tree[i], adds row leaf[i], begins at the
        crossing of origin[i]; n_nodes nodes were visited.
    """
    feature, child, cut, n_trees = trees
    node, tree, origin, t0, t1 = front
    found_t, found_tree, found_leaf, found_origin = found
    for k in range(n_trees):
        node[0, k], tree[0, k], origin[0, k], t0[0, k], t1[0, k] = k, k, -1, span[0], span[1]
    n, n_nodes, m, here = 0, 0, n_trees, 0
    while m > 0:
        n_nodes += m
        new, there = 0, 1 - here
        for i in range(m):
            at, k, o, low, high = node[here, i], tree[here, i], origin[here, i], t0[here, i], t1[here, i]
            f, c = feature[at], child[at]
            if f < 0:
                found_t[n], found_tree[n], found_leaf[n], found_origin[n] = low, k, c, o
                n += 1
                continue
            gap, d = cut[at] - line[f, 0], line[f, 1]
            t = gap / d if d != 0.0 else (np.inf if gap >= 0.0 else -np.inf)
            right = int(d < 0.0)  # the child on the near side of the crossing
            crossed = (t > low) & (t < high)
            node[there, new], tree[there, new], origin[there, new] = c + (right if t > low else 1 - right), k, o
            t0[there, new], t1[there, new] = low, t if crossed else high
            node[there, new + 1], tree[there, new + 1], origin[there, new + 1] = c + 1 - right, k, at
            t0[there, new + 1], t1[there, new + 1] = t, high
            new += 1 + crossed
        m, here = new, there
    return n, n_nodes


@njit(cache=True)
def add_in_order(leaf: Any, value: Any, column: Any, start: Any, sums: Any) -> None:
    """Put start + the values of the trees' present leaves into `sums`, in the order of the trees."""
    sums[:] = start
    for k in range(len(leaf)):
        for j in range(value.shape[1]):
            sums[column[k] + j] += value[leaf[k], j]


@njit(cache=True)
def winner(scores: Any, rule: int) -> Any:
    """The label of `scores`, and by how much it wins (0: a tie that the rule breaks)."""
    if rule != ARGMAX:
        return int(scores[0] > 0 or (rule == NON_NEGATIVE and scores[0] == 0)), abs(scores[0])
    best, first, second = 0, scores[0], -np.inf
    for j in range(1, len(scores)):
        score = scores[j]
        second = max(second, min(first, score))
        best = j if score > first else best
        first = max(first, score)
    return best, first - second


@njit(cache=True)
def advance(i: int, n: int, order: Any, found: Any, leaf: Any, value: Any, column: Any, sums: Any) -> Any:
    """Pass all crossings at the time of the i-th in `order`: (the next i, whether a leaf value changed)."""
    times, tree, row, _ = found
    t, changed = times[order[i]], False
    while i < n and times[order[i]] - t <= SAME * abs(t):
        e = order[i]
        k, old, new = tree[e], leaf[tree[e]], row[e]
        if new != old:
            for j in range(value.shape[1]):
                sums[column[k] + j] += value[new, j] - value[old, j]
            leaf[k], changed = new, True
        i += 1
    return i, changed


@njit(cache=True)
def widest_blur(crossings: Any, origin: Any, feature: Any, blur: Any, line: Any) -> float:
    """The greatest uncertainty in t of some crossings: the spacing of numbers at the split over |d_f|."""
    widest = 0.0
    for e in crossings:
        widest = max(widest, blur[origin[e]] / abs(line[feature[origin[e]], 1]))
    return widest


@njit(cache=True)
def decide(line: Any, span: Any, trees: Any, votes: Any, slack: float, scratch: Any, result: Any) -> Any:
    """Regions of one line, in `result` = (boundaries, labels); returns counts, see below.

    The pieces are the intervals between neighbouring crossings in any tree. From one to the next only the
    trees that change leaf are added and subtracted. Where the winner leads by no more than `slack` per
    term, rounding could matter: there the sum is taken again, in the order of the trees, and divided.

    Returns:
        n_regions, n_pieces, n_nodes, n_tied (pieces), n_narrow (regions no wider than the blur of a
        crossing that bounds them).
    """
    front, found, leaf, sums = scratch
    value, column, start, divisor, rule, blur = votes
    boundaries, labels = result
    n, n_nodes = walk(line, span, trees, front, found)
    times, tree, row, origin = found
    order = np.argsort(times[:n])
    n_trees = trees[3]
    for e in order[:n_trees]:  # the first leaf of every tree starts where the span does
        leaf[tree[e]] = row[e]
    add_in_order(leaf, value, column, start, sums)
    labels[0], margin = winner(sums / divisor, rule)
    n_regions, n_pieces, n_tied, n_narrow = 1, 1, int(margin == 0), 0
    i, since, since_blur = n_trees, span[0], 0.0
    while i < n:
        first, t = i, times[order[i]]
        i, changed = advance(i, n, order, found, leaf, value, column, sums)
        if not changed:
            continue
        label, margin = winner(sums, rule)
        if slack > 0 and margin <= slack * n:
            add_in_order(leaf, value, column, start, sums)
            label, margin = winner(sums / divisor, rule)
        n_pieces += 1
        n_tied += margin == 0
        if label != labels[n_regions - 1]:
            t_blur = widest_blur(order[first:i], origin, trees[0], blur, line)
            n_narrow += t - since <= max(since_blur, t_blur)
            boundaries[n_regions - 1], labels[n_regions] = t, label
            n_regions, since, since_blur = n_regions + 1, t, t_blur
    n_narrow += n_regions > 1 and span[1] - since <= since_blur
    return n_regions, n_pieces, n_nodes, n_tied, n_narrow
