"""Models of CatBoost as trees, from their own JSON.

CatBoost casts points to float32 and sends x <= border to the left. Its trees are oblivious, all nodes of a
level ask the same, or grow freely. Values are added in float64.
"""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.models.trees.ensemble import Rule, Tree
from inscape.models.trees.readings import Reading, Unread, vote_in

BINARY = ("Logloss", "CrossEntropy")
MULTICLASS = ("MultiClass", "MultiClassOneVsAll")


def read_model(model: Any) -> Reading:
    """The trees of a fitted classifier, regressor, or `CatBoost`.

    Raises:
        Unread: if it has features that are no numbers.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return read_json(json.loads(path.read_text(encoding="utf-8")))


def read_json(model: Any) -> Reading:
    """The trees of a model in the JSON of CatBoost."""
    features = model["features_info"]
    others = [name.replace("_", " ") for name, of in features.items() if name != "float_features" and of]
    if others:
        raise Unread(f"it has {' and '.join(others)}, which have no order along a line")
    loss = loss_of(model)
    no_classes = f"its loss {loss} is not one of {', '.join((*BINARY, *MULTICLASS))}"
    column = {f["feature_index"]: f["flat_feature_index"] for f in features["float_features"]}
    scale, bias = model["scale_and_bias"]
    if "oblivious_trees" in model:
        trees = [_oblivious(t, column, scale, _width(loss, model)) for t in model["oblivious_trees"]]
    else:
        trees = [_grown(t, column, scale) for t in model["trees"]]
    width = trees[0].value.shape[1] if trees else _width(loss, model)
    start = np.array(np.broadcast_to(np.asarray(bias, dtype=np.float64), width))
    rule = Rule.POSITIVE if width == 1 else Rule.ARGMAX
    vote = vote_in(np.float64, trees, start - _threshold(model), rule)
    without_classes = None if loss in (*BINARY, *MULTICLASS) else no_classes
    return Reading(trees, vote, single=True, without_classes=without_classes)


def loss_of(model: Any) -> str:
    """The name of the loss that a model was trained with."""
    params = model["model_info"].get("params", {})
    params = json.loads(params) if isinstance(params, str) else params
    return str(params.get("loss_function", {}).get("type", "none"))


def _width(loss: str, model: Any) -> int:
    """The number of scores."""
    if loss in BINARY:
        return 1
    trees = model.get("oblivious_trees") or []
    return len(trees[0]["leaf_values"]) // 2 ** len(trees[0].get("splits") or []) if trees else 1


def _threshold(model: Any) -> float:
    """What the one score of two classes is compared with."""
    probability = float(model["model_info"].get("binclass_probability_threshold", 0.5))
    return -math.log(1 / probability - 1)


def _oblivious(tree: Any, column: dict[int, int], scale: float, width: int) -> Tree:
    """A complete tree, level by level: bit i of the number of a leaf is the answer on level i."""
    splits = tree.get("splits") or []
    depth, n_inner = len(splits), 2 ** len(splits) - 1
    number = np.zeros(1, dtype=np.int64)
    for i in range(depth):
        number = (number[:, None] + np.array([0, 2**i])).ravel()
    level = np.concatenate([np.full(2**i, i) for i in range(depth)] or [np.zeros(0)]).astype(np.int64)
    pairs = [_split(s, column) for s in splits]
    feature, border = (np.array([p[k] for p in pairs])[level] if pairs else np.zeros(0) for k in (0, 1))
    left = np.concatenate([2 * np.arange(n_inner) + 1, np.full(len(number), -1)])
    value = scale * np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, width)[number]
    return Tree(
        np.concatenate([feature, np.zeros(len(number))]).astype(np.int64),
        np.concatenate([border, np.zeros(len(number))]),
        left,
        np.where(left < 0, -1, left + 1),
        np.concatenate([np.zeros((n_inner, width)), value]),
        0,
    )


def _grown(root: Any, column: dict[int, int], scale: float) -> Tree:
    """A tree that is no oblivious one, parents before their children."""
    nodes, left, feature, border = [root], [], [], []
    values: list[Floats | None] = []
    for node in nodes:  # which grows
        is_leaf = "split" not in node
        left.append(-1 if is_leaf else len(nodes))
        f, b = (0, 0.0) if is_leaf else _split(node["split"], column)
        feature.append(f)
        border.append(b)
        values.append(scale * np.atleast_1d(np.asarray(node["value"], dtype=float)) if is_leaf else None)
        if not is_leaf:
            nodes += [node["left"], node["right"]]
    zeros = np.zeros(max(len(v) for v in values if v is not None))
    starts = np.array(left, dtype=np.int64)
    return Tree(
        np.array(feature, dtype=np.int64),
        np.array(border, dtype=np.float64),
        starts,
        np.where(starts < 0, -1, starts + 1),
        np.stack([zeros if v is None else v for v in values]),
        0,
    )


def _split(split: Any, column: dict[int, int]) -> tuple[int, float]:
    """The feature that a split compares, and its border."""
    kind = split.get("split_type", "FloatFeature")
    if kind != "FloatFeature":
        raise Unread(f"it has splits of the kind {kind}, which have no order along a line")
    return column[split["float_feature_index"]], float(np.float32(split["border"]))
