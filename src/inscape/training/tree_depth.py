"""Trees of several depths from one fit: a tree that was grown to a depth, cut at a smaller one.

How a node is split depends on the points in it and on random draws of its own, not on what is below: a tree
grown to depth D and cut at d < D is one grown to d. Without ties, and where every feature is tried, the two
are equal node by node. Else they are draws of the same law, since the draws at other nodes are not the same;
and trees of several depths cut from one share theirs, so that they are not independent of each other.
"""

import copy
from typing import Any

import numpy as np

from inscape.arrays import Ints
from inscape.errors import ModelError

NO_CHILD = -1


def cut_at_depth(fitted: Any, depth: int) -> Any:
    """A copy of a fitted scikit-learn tree or forest whose nodes at `depth` are leaves.

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> x = np.arange(8.0)[:, None]
    >>> whole = DecisionTreeClassifier(max_depth=3).fit(x, [0, 1, 0, 1, 2, 2, 3, 3])
    >>> cut_at_depth(whole, 1).get_depth(), whole.get_depth()
    (1, 3)
    """
    if fitted.max_depth is not None and depth > fitted.max_depth:
        raise ModelError(f"a tree grown to depth {fitted.max_depth} cannot be cut at {depth}")
    cut = copy.copy(fitted)
    cut.max_depth = depth
    if hasattr(fitted, "estimators_"):
        cut.estimators_ = [cut_at_depth(tree, depth) for tree in fitted.estimators_]
    else:
        cut.tree_ = _cut(fitted.tree_, depth)
    return cut


def _cut(tree: Any, depth: int) -> Any:
    """The part of a tree down to `depth`. Every node of scikit-learn's holds the classes of its points."""
    build, sizes, state = tree.__reduce__()
    level = _levels(tree.children_left, tree.children_right)
    kept = level <= depth
    nodes, new = state["nodes"][kept], np.cumsum(kept) - 1
    leaf = (nodes["left_child"] < 0) | (level[kept] == depth)
    for side in ("left_child", "right_child"):
        nodes[side] = np.where(leaf, NO_CHILD, new[nodes[side]])
    nodes["feature"][leaf], nodes["threshold"][leaf] = -2, -2.0  # as scikit-learn marks its leaves
    found = build(*sizes)
    reached = {"max_depth": int(level[kept].max()), "node_count": int(kept.sum())}
    found.__setstate__(state | reached | {"nodes": nodes, "values": state["values"][kept]})
    return found


def _levels(left: Ints, right: Ints) -> Ints:
    """How deep each node is, (h,); a child stands after its parent."""
    level = np.zeros(len(left), dtype=np.int64)
    for node in np.flatnonzero(left >= 0):
        level[left[node]] = level[right[node]] = level[node] + 1
    return level
