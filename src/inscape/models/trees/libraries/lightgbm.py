"""Boosters of LightGBM as trees, from their own JSON.

LightGBM compares float64 numbers and sends x <= threshold to the left; its JSON prints 17 digits, so nothing
is lost. Numbers up to 1e-35 in size it takes for zero. Leaf values are added in float64, in the order of the
trees; `predict` then compares probabilities, which may be equal where sums are not quite: there the model is
asked.
"""

import math
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.models.trees.ensemble import Rule, Tree
from inscape.models.trees.readings import Reading, Unread, vote_in

EPS = float(np.finfo(np.float64).eps)
ZERO = float(np.float32(1e-35))
"""Numbers up to this size are taken for zero."""
OBJECTIVES = ("binary", "cross_entropy", "multiclass", "multiclassova")


def read_estimator(estimator: Any) -> Reading:
    """The trees of a fitted classifier or regressor, up to its best iteration."""
    if callable(estimator.objective):
        raise Unread("its objective is a function, of which nothing is known")
    return read_booster(estimator.booster_)


def read_booster(booster: Any) -> Reading:
    """The trees of a `Booster` that `predict` takes: up to its best iteration.

    Raises:
        Unread: if it has categorical splits or linear leaves.
    """
    best = booster.best_iteration
    model = booster.dump_model(num_iteration=best if best and best > 0 else -1)
    objective, *settings = str(model.get("objective", "none")).split()
    others = f"its objective {objective} is not one of {', '.join(OBJECTIVES)}"
    n_columns = int(model["num_tree_per_iteration"])
    trees = [_tree(t["tree_structure"], i % n_columns) for i, t in enumerate(model["tree_info"])]
    divisor = max(1.0, len(trees) / n_columns) if model["average_output"] else 1.0
    rule = Rule.POSITIVE if n_columns == 1 else Rule.ARGMAX
    vote = vote_in(np.float64, trees, np.zeros(n_columns), rule, divisor)
    if objective == "multiclassova":
        vote = vote._replace(doubt=_doubt_of_sigmoids(trees, n_columns, settings))
    return Reading(trees, vote, single=False, without_classes=None if objective in OBJECTIVES else others)


def _doubt_of_sigmoids(trees: list[Tree], n_columns: int, settings: list[str]) -> float:
    """Sigmoids of scores up to a size are told apart if these differ by some units of e ** size."""
    steepness = next((float(s.partition(":")[2]) for s in settings if s.startswith("sigmoid:")), 1.0)
    largest = np.zeros(n_columns)
    for tree in trees:
        largest[tree.column] += np.abs(tree.value).max()
    size = steepness * float(largest.max())
    return 64 * len(trees) * EPS * math.exp(size) / steepness if size < 600 else math.inf


def _tree(root: Any, column: int) -> Tree:
    """The nodes of a tree, parents before their children."""
    nodes, left, right = [root], [], []
    for node in nodes:  # which grows
        is_leaf = "left_child" not in node
        left.append(-1 if is_leaf else len(nodes))
        right.append(-1 if is_leaf else len(nodes) + 1)
        if not is_leaf:
            _check(node)
            nodes += [node["left_child"], node["right_child"]]
        elif "leaf_coeff" in node:
            raise Unread("its leaves are linear (linear_tree=True), not constant")
    return Tree(
        np.array([n.get("split_feature", 0) for n in nodes], dtype=np.int64),
        _around_zero(np.array([n.get("threshold", 0.0) for n in nodes], dtype=np.float64)),
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        np.array([n.get("leaf_value", 0.0) for n in nodes], dtype=np.float64)[:, None],
        column,
        resolution=2 * ZERO,
    )


def _around_zero(threshold: Floats) -> Floats:
    """Thresholds with which numbers of up to `ZERO` go where zero goes."""
    below = np.nextafter(-ZERO, -np.inf)
    return np.where(np.abs(threshold) <= ZERO, np.where(threshold < 0, below, ZERO), threshold)


def _check(node: Any) -> None:
    if node["decision_type"] != "<=":
        raise Unread("it has categorical splits, which have no order along a line")
    if node["missing_type"] == "Zero":
        raise Unread("it takes zeros for missing (zero_as_missing=True), which have no side of a split")
