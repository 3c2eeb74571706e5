"""Boosters of XGBoost as trees, from their own JSON.

XGBoost casts points to float32 and sends x < threshold to the left. The JSON holds float32 thresholds and
leaf values in full, the weights that dart gives to trees, and which trees belong to which iteration. Leaf
values are added in float32, in an order that depends on the version: where that could matter, the model is
asked.
"""

import json
import math
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.models.trees.ensemble import Rule, Tree
from inscape.models.trees.readings import Reading, Unread, vote_in

LOGISTIC = ("binary:logistic", "reg:logistic")
"""Objectives whose base score is a probability."""
POSITIVE = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
"""Objectives whose base score, like what they predict, is the exponential of a sum."""
BINARY = (*LOGISTIC, "binary:logitraw", "binary:hinge")
MULTICLASS = ("multi:softmax", "multi:softprob")


def read_estimator(estimator: Any) -> Reading:
    """The trees of a fitted classifier or regressor, up to its best iteration.

    Raises:
        Unread: if it is not made of trees, or treats a number as missing.
    """
    missing = estimator.missing
    if missing is not None and not np.isnan(missing):
        raise Unread(f"it takes the number {missing:g} for missing, which then has no side of a split")
    learner = learner_of(estimator.get_booster())
    best = learner["attributes"].get("best_iteration")
    # predict compares a raw score, like a probability, with 1/2
    threshold = 0.5 if learner["objective"]["name"] == "binary:logitraw" else 0.0
    return read_learner(learner, None if best is None else int(best) + 1, threshold)


def read_booster(booster: Any) -> Reading:
    """The trees of a `Booster`, all of them, as its `predict` takes them."""
    return read_learner(learner_of(booster), None, 0.0)


def learner_of(booster: Any) -> Any:
    """What the JSON of a booster says of what it learned."""
    return json.loads(booster.save_raw(raw_format="json"))["learner"]


def read_learner(learner: Any, n_iterations: int | None, threshold: float) -> Reading:
    """The trees of the first iterations (None: all), for a decision at a threshold of the raw score."""
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise Unread(f"its booster is {booster['name']}, not made of trees")
    others = f"its objective {objective} is not one of {', '.join((*BINARY, *MULTICLASS))}"
    weights = booster.get("weight_drop")
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    ends = model["iteration_indptr"]
    n = ends[min(n_iterations or len(ends) - 1, len(ends) - 1)]
    weights = [1.0] * n if weights is None else weights[:n]
    trees = [
        _tree(tree, column, weight)
        for tree, column, weight in zip(model["trees"][:n], model["tree_info"], weights, strict=False)
    ]
    start = _start(learner, objective)
    rule = Rule.POSITIVE if len(start) == 1 else Rule.ARGMAX
    vote = vote_in(np.float32, trees, start - threshold, rule)
    without_classes = None if objective in (*BINARY, *MULTICLASS) else others
    return Reading(trees, vote, single=True, without_classes=without_classes)


def _start(learner: Any, objective: str) -> Floats:
    """The score of each class before the first tree."""
    parameters = learner["learner_model_param"]
    base = np.atleast_1d(np.array(json.loads(parameters["base_score"]), dtype=np.float64))
    if objective in LOGISTIC:
        return np.array([-math.log(1 / p - 1) for p in base])
    if objective in POSITIVE:
        base = np.log(base)
    n = max(1, int(parameters["num_class"]), int(parameters.get("num_target", 1)))
    return np.array(np.broadcast_to(base, n), dtype=np.float64)


def _tree(tree: Any, column: int, weight: float) -> Tree:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise Unread("its leaves hold vectors (multi_strategy='multi_output_tree'), which are not read")
    if any(tree["split_type"]):
        raise Unread("it has categorical splits, which have no order along a line")
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    return Tree(
        np.array(tree["split_indices"], dtype=np.int64),
        condition,
        left,
        np.array(tree["right_children"], dtype=np.int64),
        np.where(left < 0, weight * condition, 0.0)[:, None],
        int(column),
        strict=True,
    )
