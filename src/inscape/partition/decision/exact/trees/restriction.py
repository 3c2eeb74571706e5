# mypy: disallow-untyped-decorators=False
"""The trees of an ensemble restricted to a plane: each split a line, and bounds of what lies below it.

On x(s, t) = o + s u + t v the split x_f <= c is the half-plane u_f s + v_f t <= c - o_f. A node keeps its
place in the restricted tree if its line crosses the polygon that reaches it; otherwise one child takes it.
"""

from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats
from inscape.compiled import compiled, copy, inlined
from inscape.models.trees import TreeEnsemble
from inscape.partition.decision.exact.trees.line_walk import FEWEST_STEPS
from inscape.probes.plane import Plane

EPS = np.finfo(np.float64).eps
ROUNDINGS = 8.0
"""The rounding of a line's offset and of a vertex, in units in the last place of what they come from."""


class RestrictedTrees(NamedTuple):
    """n nodes of k trees, of which 0, ..., k - 1 are the roots; siblings are neighbours."""

    line: Any
    """a, b, c, error, rounding: a s + b t <= c goes left, where (a, b) has length 1, (n, 5). The error is how
    far the line may lie from where the split was meant to be: the spacing of the numbers that the trees can
    tell apart, and `rounding`, that of the arithmetic in float64."""
    child: Any
    """The left child, or -1 at a leaf, (n,)."""
    row: Any
    """The row of leaf values at a leaf, or -1, (n,)."""
    tree: Any
    """The tree of each node, (n,)."""
    low: Any
    """The least that the leaves below a node add to each score column of its tree, (n, w)."""
    high: Any
    """The most, (n, w)."""
    swing: Any
    """How much they differ, over all columns, (n,)."""


def restricted(
    ensemble: TreeEnsemble, plane: Plane, corners: Floats, *, narrow: bool
) -> tuple[RestrictedTrees, int]:
    """The trees on a convex polygon, and how many splits would have cut off less than they can tell apart.

    With `narrow`, lines are known up to rounding, as `predict` has them.
    """
    blur = ensemble.blur_between(lambda: plane.points(corners))
    blur = blur - ensemble.blur if narrow else blur
    origin, axes = plane.origin, plane.axes
    if ensemble.oblique is not None:
        origin, axes = ensemble.coordinates(origin[None])[0], axes @ ensemble.oblique.matrix.T
    line, child, row, tree, n_narrow = restrict(
        ensemble.n_trees,
        ensemble.depth,
        (ensemble.feature, ensemble.child, ensemble.last_left, blur),
        (origin.copy(), axes[0].copy(), axes[1].copy()),  # numba would compile again for what is read-only
        np.array(corners, order="C"),
    )
    low, high = bounds(child, row, ensemble.value)
    trees = RestrictedTrees(line, child, row, tree, low, high, (high - low).sum(axis=1))
    return trees, n_narrow


@inlined
def line_of(f: int, last_left: float, blur: float, plane: Any, size: Any, line: Any) -> bool:
    """Write the line of a split of feature f; False if the feature is constant on the plane.

    `size` is the greatest coordinate, and the extent of the domain. Where the domain has fewer than
    `FEWEST_STEPS` of the numbers that the trees can tell apart, their steps are what the model computes, and
    no error.
    """
    origin, along_s, along_t = plane
    reach, extent = size
    norm = np.hypot(along_s[f], along_t[f])
    line[0] = 0.0
    if norm == 0.0:
        return False
    scale = abs(origin[f]) + abs(last_left) + reach * (abs(along_s[f]) + abs(along_t[f]))
    line[0], line[1], line[2] = along_s[f] / norm, along_t[f] / norm, (last_left - origin[f]) / norm
    line[4] = ROUNDINGS * EPS * (scale / norm + reach)
    line[3] = line[4] + (blur / norm if blur / norm * FEWEST_STEPS <= extent else 0.0)
    return True


@inlined
def clip(x: Any, y: Any, n: int, line: Any, side: float, new_x: Any, new_y: Any) -> int:
    """Write what is left of a convex polygon where side * (a x + b y - c) >= 0; the number of its corners.

    A corner on the line, up to rounding, belongs to both sides.
    """
    m, near = 0, line[4]
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        here = side * (line[0] * x[i] + line[1] * y[i] - line[2])
        there = side * (line[0] * x[j] + line[1] * y[j] - line[2])
        if here >= -near:
            new_x[m], new_y[m] = x[i], y[i]
            m += 1
        if (here > near and there < -near) or (here < -near and there > near):
            fraction = here / (here - there)
            new_x[m], new_y[m] = x[i] + fraction * (x[j] - x[i]), y[i] + fraction * (y[j] - y[i])
            m += 1
    return m


@compiled
def descend(at: int, x: Any, y: Any, trees: Any, plane: Any, size: Any, line: Any) -> Any:
    """The first node at or below `at` whose line crosses the polygon (x, y), or the leaf that takes it all.

    Also how many lines on the way would have cut off less than the trees can tell apart.
    """
    feature, child, last_left, blur = trees
    n_narrow = 0
    while feature[at] >= 0:
        if not line_of(feature[at], last_left[at], blur[at], plane, size, line):
            at = child[at] + (plane[0][feature[at]] > last_left[at])
            continue
        lowest, highest = np.inf, -np.inf
        for i in range(len(x)):
            d = line[0] * x[i] + line[1] * y[i] - line[2]
            lowest, highest = min(lowest, d), max(highest, d)
        if highest > line[3] and lowest < -line[3]:
            break
        n_narrow += min(highest, -lowest) > 4 * line[4]
        at = child[at] + (highest + lowest > 0.0)
    return at, n_narrow


@compiled
def restrict(n_trees: int, depth: int, trees: Any, plane: Any, corners: Any) -> Any:
    """Line, child, row and tree of each node of the restricted trees, and what `descend` counts.

    Args:
        n_trees: the roots are the nodes 0, ..., n_trees - 1.
        depth: no tree has more nodes from root to leaf.
        trees: feature, child, last_left, blur of each node.
        plane: origin and both axes, (d,) each.
        corners: of the convex domain, anticlockwise.
    """
    # (1) memory for all nodes, and for the polygons that wait: one on each level, growing by a corner on each
    feature, child, _, _ = trees
    total, most = len(feature), len(corners) + depth + 1
    line, row = np.empty((total, 5)), np.full(total, -1, np.int32)
    children, tree = np.full(total, -1, np.int32), np.empty(total, np.int32)
    node, slot = np.empty(depth + 2, np.int64), np.empty(depth + 2, np.int64)
    count = np.empty(depth + 2, np.int64)
    x, y, own = np.empty((depth + 2, most)), np.empty((depth + 2, most)), np.empty((2, most))
    extent = max(np.ptp(corners[:, 0]), np.ptp(corners[:, 1]))
    size = (max(corners.max(), -corners.min()), extent)
    n, n_narrow = n_trees, 0
    for k in range(n_trees):
        # (2) every tree begins with the domain
        node[0], slot[0], count[0], top = k, k, len(corners), 1
        copy(corners[:, 0], x[0])
        copy(corners[:, 1], y[0])
        while top > 0:
            # (3) skip the splits that leave the polygon whole
            top -= 1
            m, me = count[top], slot[top]
            copy(x[top, :m], own[0])
            copy(y[top, :m], own[1])
            at, skipped = descend(node[top], own[0, :m], own[1, :m], trees, plane, size, line[me])
            tree[me], n_narrow = k, n_narrow + skipped
            if feature[at] < 0:
                row[me] = child[at]
                continue
            # (4) the next one cuts it: both sides wait
            children[me] = n
            for side in range(2):
                node[top], slot[top] = child[at] + side, n + side
                count[top] = clip(own[0], own[1], m, line[me], 2.0 * side - 1.0, x[top], y[top])
                top += 1
            n += 2
    return line[:n], children[:n], row[:n], tree[:n], n_narrow


@compiled
def bounds(child: Any, row: Any, value: Any) -> Any:
    """(low, high) of each node, (n, w) each; a node above two leaves of one value becomes a leaf."""
    n, w = len(child), value.shape[1]
    low, high = np.empty((n, w)), np.empty((n, w))
    for i in range(n - 1, -1, -1):  # children come after their parents
        left = child[i]
        if left >= 0 and row[left] >= 0 and row[left] == row[left + 1]:
            child[i], row[i] = -1, row[left]
        for j in range(w):
            if row[i] >= 0:
                low[i, j] = high[i, j] = value[row[i], j]
            else:
                low[i, j] = min(low[left, j], low[left + 1, j])
                high[i, j] = max(high[left, j], high[left + 1, j])
    return low, high
