"""Tree ensembles in ONNX files: the operators of ai.onnx.ml, from version 1 to 5, as flat arrays.

onnxruntime compares what it is given, float32 or float64, with thresholds of the file and adds weights in
float32 or float64. A classifier of two classes with weights for one of them says the second if the sum is
above 0, or above 1/2 if all weights are positive.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.models.from_onnx.steps import attributes, needed_nodes, stored
from inscape.models.trees import Rule, Scaling, TreeEnsemble, Unread, View, assemble
from inscape.models.trees.ensemble import Tree
from inscape.models.trees.readings import vote_in

KINDS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_LEFT = {"BRANCH_LEQ": (False, False), "BRANCH_LT": (True, False), "BRANCH_GTE": (True, True)}
_MODES = _LEFT | {"BRANCH_GT": (False, True)}
"""Mode -> whether the comparison is strict, and whether its false branch is the left one."""
_MODES_BY_NUMBER = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "MEMBER")
_AFTER_LABELS = ("Identity", "Cast", "Reshape", "Squeeze", "Flatten")
_AFTER_SCORES = (*_AFTER_LABELS, "Softmax", "ZipMap", "Normalizer", "ArgMax")
_STEPS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_NO_SUMS = ("MIN", "MAX", 2, 3)


class OnnxTrees(NamedTuple):
    """The trees of a file, and the class that each of their labels stands for, if the file names classes."""

    ensemble: TreeEnsemble
    """The trees."""
    classes: Any
    """The class of each label; None if the file names none."""


def tree_node(model: Any, output: str) -> Any:
    """The only node of trees that an output of a file depends on; None if there is none."""
    nodes = [n for n in needed_nodes(model.graph, output) if n.op_type in KINDS and n.domain == "ai.onnx.ml"]
    if len(nodes) > 1:
        raise Unread("its output comes from several ensembles of trees")
    return nodes[0] if nodes else None


def read_tree_node(model: Any, output: str, n_features: int, threshold: float | None) -> OnnxTrees:
    """The trees that an output of a file comes from.

    Args:
        model: the ModelProto, with a `tree_node` for the output.
        output: of labels, or of scores of which the largest wins, or a single one above `threshold`.
        n_features: how many numbers a point has.
        threshold: of a single score; None if the sums are wanted, not a label.

    Raises:
        Unread: if anything but scaling stands before the trees, or anything that changes labels behind them.
    """
    node = tree_node(model, output)
    double = _is_double(model)
    given = attributes(node)
    _check_behind(model, node, output)
    columns = _columns(given, node.op_type)
    kind = np.float64 if double else np.float32
    trees = _ensemble(given, columns) if node.op_type == "TreeEnsemble" else _trees(given, columns)
    start, rule, limit = _start(given, node.op_type, columns, threshold or 0.0)
    limit = 0.0 if threshold is None else limit
    divisor = float(len(trees)) if given.get("aggregate_function") in ("AVERAGE", 0) else 1.0
    vote = vote_in(kind, trees, (start - limit) * divisor, rule, divisor)
    view = View(scaling=_scaling(model, node.input[0], n_features, kind), single=not double)
    classes = given.get("classlabels_int64s") or given.get("classlabels_strings")
    return OnnxTrees(assemble(trees, vote, view, n_features=n_features), classes)


def _is_double(model: Any) -> bool:
    from onnx import TensorProto

    constants = {t.name for t in model.graph.initializer}
    [first] = [i for i in model.graph.input if i.name not in constants]
    return bool(first.type.tensor_type.elem_type == TensorProto.DOUBLE)


def _columns(given: dict[str, Any], kind: str) -> Ints:
    """The classes or targets that have weights, in order."""
    ids = {"TreeEnsembleClassifier": "class_ids", "TreeEnsemble": "leaf_targetids"}
    return np.unique(np.array(given[ids.get(kind, "target_ids")], dtype=np.int64))


def _start(given: dict[str, Any], kind: str, columns: Ints, threshold: float) -> tuple[Floats, Rule, float]:
    """Scores before the first tree, how they become a label, and what a single one is compared with."""
    if given.get("aggregate_function") in _NO_SUMS:
        raise Unread("its trees do not add up: their least or greatest value counts")
    base = _numbers(given, "base_values")
    if kind != "TreeEnsembleClassifier":
        n = int(given.get("n_targets", 1))
        start = np.zeros(n) if base is None else np.array(np.broadcast_to(base, n))
        return start, Rule.POSITIVE if n == 1 else Rule.ARGMAX, threshold if n == 1 else 0.0
    n = len(given.get("classlabels_int64s") or given.get("classlabels_strings") or [])
    if n == 2 and len(columns) == 1:
        weights = _numbers(given, "class_weights")
        assert weights is not None
        start = np.zeros(1) if base is None else base[-1:]
        return start, Rule.POSITIVE, 0.5 if (weights >= 0).all() else 0.0
    return (np.zeros(n) if base is None else np.array(np.broadcast_to(base, n))), Rule.ARGMAX, 0.0


def _numbers(given: dict[str, Any], name: str) -> Floats | None:
    """An attribute of numbers, which may be a tensor of float64."""
    attribute = given.get(f"{name}_as_tensor", given.get(name))
    return (
        None if attribute is None or not len(attribute) else np.asarray(attribute, dtype=np.float64).ravel()
    )


def _trees(given: dict[str, Any], columns: Ints) -> list[Tree]:
    """The trees of a classifier or regressor: nodes by tree and number, weights by tree and leaf."""
    kind = "class" if "class_ids" in given else "target"
    owner, number = (np.array(given[f"nodes_{k}"], dtype=np.int64) for k in ("treeids", "nodeids"))
    modes = [m.decode() if isinstance(m, bytes) else m for m in given["nodes_modes"]]
    threshold = _numbers(given, "nodes_values")
    weights = _numbers(given, f"{kind}_weights")
    assert threshold is not None
    assert weights is not None
    number_of = {(int(t), int(i)): k for k, (t, i) in enumerate(zip(owner, number, strict=True))}
    width = _width(given, columns)
    value = np.zeros((len(owner), width))
    leaves = zip(
        given[f"{kind}_treeids"], given[f"{kind}_nodeids"], given[f"{kind}_ids"], weights, strict=True
    )
    for tree, leaf, column, weight in leaves:
        value[number_of[tree, leaf], column if width > 1 else 0] += weight
    is_leaf = np.array([m == "LEAF" for m in modes])
    sides = [
        np.array(
            [
                -1 if m == "LEAF" else number_of[int(t), int(i)]
                for t, i, m in zip(owner, given[name], modes, strict=True)
            ]
        )
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    strict, swapped = _modes(["BRANCH_LEQ" if m == "LEAF" else m for m in modes])
    left, right = np.where(swapped, sides[1], sides[0]), np.where(swapped, sides[0], sides[1])
    feature = np.where(is_leaf, 0, np.array(given["nodes_featureids"], dtype=np.int64))
    trees = []
    for tree in dict.fromkeys(owner.tolist()):
        own = np.flatnonzero(owner == tree)
        children = set(left[own].tolist()) | set(right[own].tolist())
        [root] = [k for k in own.tolist() if k not in children]
        trees.append(_from(root, feature, threshold, left, right, value, strict))
    return trees


def _ensemble(given: dict[str, Any], columns: Ints) -> list[Tree]:
    """The trees of the operator of version 5: leaves are numbered apart from nodes."""
    splits, weights = (np.asarray(given[k], dtype=np.float64) for k in ("nodes_splits", "leaf_weights"))
    n, width = len(splits), _width(given, columns)
    value = np.zeros((n + len(weights), width))
    targets = np.array(given["leaf_targetids"], dtype=np.int64)
    value[n + np.arange(len(weights)), targets if width > 1 else 0] = weights
    sides = []
    for side in ("true", "false"):
        to = np.array(given[f"nodes_{side}nodeids"], dtype=np.int64)
        at_leaf = np.array(given[f"nodes_{side}leafs"], dtype=bool)
        sides.append(np.concatenate([np.where(at_leaf, n + to, to), np.full(len(weights), -1)]))
    modes = [_MODES_BY_NUMBER[int(m)] for m in np.ravel(given["nodes_modes"])]
    strict, swapped = _modes(modes + ["BRANCH_LEQ"] * len(weights))
    left, right = np.where(swapped, sides[1], sides[0]), np.where(swapped, sides[0], sides[1])
    feature = np.concatenate(
        [np.array(given["nodes_featureids"], dtype=np.int64), np.zeros(len(weights), int)]
    )
    threshold = np.concatenate([splits, np.zeros(len(weights))])
    return [_from(int(r), feature, threshold, left, right, value, strict) for r in given["tree_roots"]]


def _width(given: dict[str, Any], columns: Ints) -> int:
    """The number of scores: a classifier of two classes with weights for one has one."""
    labels = given.get("classlabels_int64s") or given.get("classlabels_strings")
    if labels is None:
        return int(given.get("n_targets", 1))
    return 1 if len(labels) == 2 and len(columns) == 1 else len(labels)


def _modes(modes: Sequence[str]) -> tuple[Bools, Bools]:
    """Whether each comparison is strict, and whether its false branch is the left one."""
    strange = sorted(set(modes) - set(_MODES))
    if strange:
        raise Unread(f"its trees compare by {', '.join(strange)}, which has no side along a line")
    both = np.array([_MODES[m] for m in modes], dtype=bool)
    return both[:, 0], both[:, 1]


def _from(
    root: int, feature: Ints, threshold: Floats, left: Ints, right: Ints, value: Floats, strict: Bools
) -> Tree:
    """The tree below a root, which comes first."""
    order, number_of = [root], {root: 0}
    for k in order:  # which grows
        for child in (int(left[k]), int(right[k])):
            if child >= 0 and child in number_of:
                raise Unread("its nodes form no tree")
            if child >= 0:
                number_of[child] = len(order)
                order.append(child)
    nodes = np.array(order)
    first, second = (
        np.array([number_of.get(int(side[k]), -1) for k in order], dtype=np.int64) for side in (left, right)
    )
    return Tree(feature[nodes], threshold[nodes], first, second, value[nodes], 0, strict[nodes])


def _scaling(model: Any, name: str, n_features: int, kind: Any) -> Scaling:
    """What happens to the input before the trees: scaling of single features, in the file's precision."""
    makers, constants = {o: n for n in model.graph.node for o in n.output}, stored(model.graph)
    steps: list[tuple[str, Floats]] = []
    while name in makers:
        node = makers[name]
        given = attributes(node)
        if node.op_type == "Scaler":
            offset, scale = (np.broadcast_to(given[k], n_features) for k in ("offset", "scale"))
            steps[:0] = [("-", np.array(offset, dtype=np.float64)), ("*", np.array(scale, dtype=np.float64))]
        elif node.op_type in _STEPS and node.input[1] in constants:
            amount = np.broadcast_to(constants[node.input[1]].ravel(), n_features)
            steps[:0] = [(_STEPS[node.op_type], np.array(amount, dtype=np.float64))]
        elif node.op_type not in ("Identity", "Cast"):
            raise Unread(f"{node.op_type} stands before its trees, which is not read there")
        name = node.input[0]
    scaling = Scaling(tuple(steps), kind if steps else np.float64)
    if not scaling.is_increasing:
        raise Unread("its features are scaled by numbers that are not positive")
    return scaling


def _check_behind(model: Any, node: Any, output: str) -> None:
    """Raise unless the nodes between trees and an output leave labels as they are."""
    constants = set(stored(model.graph))
    labels = {node.output[0]} if node.op_type == "TreeEnsembleClassifier" else set()
    scores = set(node.output) - labels
    for n in needed_nodes(model.graph, output):
        behind = [name for name in n.input if name in labels | scores]
        if not behind:
            continue
        is_positive = n.op_type == "Mul" and len(n.input) == 2 and _is_positive(model, n)
        is_class = n.op_type == "ArrayFeatureExtractor" and n.input[0] in constants
        allowed = _AFTER_LABELS if behind[0] in labels else _AFTER_SCORES
        if n.op_type not in allowed and not is_positive and not is_class:
            raise Unread(f"{n.op_type} stands behind its trees, which is not read there")
        (
            labels if n.op_type in ("ArgMax", "ArrayFeatureExtractor") or behind[0] in labels else scores
        ).update(n.output)


def _is_positive(model: Any, node: Any) -> bool:
    constants = stored(model.graph)
    return any(i in constants and (constants[i] > 0).all() and constants[i].size == 1 for i in node.input)
