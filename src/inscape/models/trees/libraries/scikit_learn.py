"""Fitted trees of scikit-learn as flat arrays.

Sums and ties follow scikit-learn 1.4 to 1.9. A forest adds its trees' class fractions in the order of
`estimators_`, divides by their number and takes the first greatest; gradient boosting adds
learning_rate * value to the starting score of each class; histogram gradient boosting adds the values as
they are. A score of exactly zero is class 1 of a binary gradient boosting but class 0 of a binary
histogram gradient boosting. Where a forest predicts with n_jobs > 1 the order of its own sum is left to
chance, and scores that are equal up to rounding may go either way from call to call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from inscape.models.trees.ensemble import Rule, Tree, Vote
from inscape.models.trees.readings import Reading, Unread


def _tree(fitted: Any, value: Any, column: int) -> Tree:
    t = fitted.tree_
    own = t.value.reshape(len(t.value), -1)  # (nodes, outputs, classes)
    return Tree(t.feature, t.threshold, t.children_left, t.children_right, value(own), column)


NUMBERS = "it predicts numbers, not classes"


def _single_tree(estimator: Any) -> Reading:
    return _votes([estimator], _without_classes(estimator))


def _forest(estimator: Any) -> Reading:
    return _votes(estimator.estimators_, _without_classes(estimator))


def _votes(members: list[Any], without_classes: str | None) -> Reading:
    """Trees whose fractions of classes, or numbers, are averaged."""
    trees = [_tree(member, np.asarray, 0) for member in members]
    start = np.zeros(trees[0].value.shape[1])
    rule = Rule.ARGMAX if len(start) > 1 or without_classes is None else Rule.POSITIVE
    vote = Vote(start, float(len(members)), rule, are_fractions=True)
    return Reading(trees, vote, single=True, without_classes=without_classes)


def _boosting(estimator: Any) -> Reading:
    if not _starts_constant(estimator):
        raise Unread(
            f"{type(estimator).__name__} starts from init={type(estimator.init_).__name__}, which is not a "
            "constant"
        )
    rate = estimator.learning_rate
    rounds = estimator.estimators_
    trees = [_tree(member, lambda v: rate * v, k) for members in rounds for k, member in enumerate(members)]
    start = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32))[0]
    rule = Rule.NON_NEGATIVE if len(start) == 1 else Rule.ARGMAX
    vote = Vote(np.array(start, dtype=np.float64), 1.0, rule)
    return Reading(trees, vote, single=True, without_classes=_without_classes(estimator))


def _without_classes(estimator: Any) -> str | None:
    return None if hasattr(estimator, "classes_") else NUMBERS


def _starts_constant(estimator: Any) -> bool:
    init = estimator.init_
    constant = ("prior", "most_frequent", "constant", "uniform")
    is_dummy = type(init).__name__ == "DummyClassifier" and init.strategy in constant
    return isinstance(init, str) or is_dummy or type(init).__name__ == "DummyRegressor"


def _histogram_boosting(estimator: Any) -> Reading:
    if np.any(np.asarray(getattr(estimator, "is_categorical_", None), dtype=bool)):
        raise Unread(f"{type(estimator).__name__} has categorical features, which have no order along a line")
    trees = [
        _histogram_tree(predictor.nodes, k)
        for predictors in estimator._predictors
        for k, predictor in enumerate(predictors)
    ]
    start = np.array(estimator._baseline_prediction, dtype=np.float64).ravel()
    rule = Rule.POSITIVE if len(start) == 1 else Rule.ARGMAX
    vote = Vote(start, 1.0, rule)
    return Reading(trees, vote, single=False, without_classes=_without_classes(estimator))


def _histogram_tree(nodes: Any, column: int) -> Tree:
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    value = np.array(nodes["value"], dtype=np.float64)[:, None]
    return Tree(
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        left,
        right,
        value,
        column,
    )


READERS: dict[str, Callable[[Any], Reading]] = {
    "DecisionTreeClassifier": _single_tree,
    "ExtraTreeClassifier": _single_tree,
    "RandomForestClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "GradientBoostingClassifier": _boosting,
    "HistGradientBoostingClassifier": _histogram_boosting,
    "DecisionTreeRegressor": _single_tree,
    "ExtraTreeRegressor": _single_tree,
    "RandomForestRegressor": _forest,
    "ExtraTreesRegressor": _forest,
    "GradientBoostingRegressor": _boosting,
    "HistGradientBoostingRegressor": _histogram_boosting,
}
"""How each class is read."""
