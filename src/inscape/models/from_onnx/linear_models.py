"""How the linear models of ai.onnx.ml, and what converters write around them, become nodes."""

import math
from dataclasses import replace

import numpy as np
import torch

from inscape.models.from_onnx import arithmetic, shapes
from inscape.models.from_onnx.activations import position
from inscape.models.from_onnx.steps import (
    FileValue,
    Head,
    NodeTranslation,
    Step,
    Varying,
    path_of,
    tensor,
    unknown,
)
from inscape.models.graph import affine
from inscape.models.graph.network import Foreign, NotSupportedYet
from inscape.models.graph.trace import INCREASING

_HEADS = {"NONE": None, "SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}
_POSITIVE = ("softmax", "sigmoid", "exp")


def _scaler(step: Step) -> FileValue:
    """(x - offset) * scale, each one number or one per feature."""
    offset, scale = (np.array(step.attributes[k], dtype=np.float32) for k in ("offset", "scale"))
    return arithmetic.scaled(step, arithmetic.shifted(step, step.live(), -offset), scale)


def _linear(step: Step, n_rows: int, intercepts: str) -> Varying:
    """The products with rows of coefficients, plus intercepts."""
    live = step.live()
    weight = np.array(step.attributes["coefficients"], dtype=np.float32).reshape(n_rows, -1)
    bias = np.array(step.attributes.get(intercepts, np.zeros(n_rows)), dtype=np.float32)
    source = step.laid(live, (math.prod(live.shape),))
    return Varying(step.emit(affine.linear(tensor(weight), tensor(bias)), source), (1, n_rows))


def _behind(step: Step, live: Varying) -> Varying:
    """Scores behind what the operation does to them at last."""
    name = str(step.attributes.get("post_transform", "NONE"))
    if name not in _HEADS:
        raise NotSupportedYet(f"{step.kind} with post_transform {name}")
    head = _HEADS[name]
    if head is None:
        return live
    return replace(live, head=Head(head, Foreign(f"{step.kind} with {name}", path_of(step.node))))


def _classifier(step: Step) -> FileValue | list[FileValue]:
    """Labels and scores; a single row of coefficients is that of the second of two classes."""
    given = step.attributes
    n_rows = len(given["intercepts"]) if given.get("intercepts") else 0
    n_features = math.prod(step.live().shape)
    n_rows = n_rows or len(given["coefficients"]) // n_features
    scores = _linear(step, n_rows, "intercepts")
    if n_rows == 1:
        both = affine.linear(tensor(np.array([[-1.0], [1.0]], dtype=np.float32)))
        scores = Varying(step.emit(both, step.laid(scores, (1,))), (1, 2))
    return [position(step, scores, 1, is_largest=True, keep=False), _behind(step, scores)]


def _regressor(step: Step) -> FileValue:
    return _behind(step, _linear(step, int(step.attributes.get("targets", 1)), "intercepts"))


def _normalizer(step: Step) -> FileValue:
    """Positive scores divided by their sum or largest keep their order."""
    live, norm = step.live(behind_head=True), str(step.attributes.get("norm", "MAX"))
    if live.head is None or live.head.name not in _POSITIVE:
        raise unknown("Normalizer")
    if live.head.name == "softmax" and norm == "L1":
        return live
    return replace(live, head=replace(live.head, name="order"))


def _extracted(step: Step) -> FileValue:
    """Columns of scores; or the class at the position of the largest, if classes are numbered in order."""
    values, positions = step.inputs[0], step.inputs[1]
    if isinstance(values, Varying) and isinstance(positions, np.ndarray):
        live = step.live()
        columns = torch.from_numpy(positions.ravel().astype(np.int64))
        source = step.laid(live, (math.prod(live.shape),))
        return Varying(step.emit(affine.take(0, columns), source), (1, len(columns)))
    if isinstance(positions, Varying) and positions.head is not None and positions.head.name == "argmax":
        return positions
    raise NotSupportedYet(f"{step.kind} of anything but columns or a label")


def _same(step: Step) -> FileValue:
    return step.live(behind_head=True)


def _subtract(step: Step) -> FileValue | list[FileValue]:
    """1 - sigmoid(s) = sigmoid(-s); else a difference."""
    one, live = step.inputs[0], step.inputs[1]
    is_one = isinstance(one, np.ndarray) and one.size == 1 and float(one.ravel()[0]) == 1.0
    if is_one and isinstance(live, Varying) and live.head is not None and live.head.name == "sigmoid":
        return replace(arithmetic.negated(step, replace(live, head=None)), head=live.head)
    return arithmetic.TRANSLATIONS["Sub"](step)


def _concat(step: Step) -> FileValue | list[FileValue]:
    """Scores side by side, all behind a sigmoid or none."""
    lives = [v for v in step.inputs if isinstance(v, Varying)]
    heads = [v.head for v in lives]
    if len(lives) == len(step.inputs) and all(h is not None and h.name == "sigmoid" for h in heads):
        bare = [replace(v, head=None) for v in lives]
        joined = shapes.joined(step, bare, step.axis(1, len(bare[0].shape)))
        return replace(joined, head=heads[0])
    return shapes.TRANSLATIONS["Concat"](step)


def _moved(step: Step) -> FileValue | list[FileValue]:
    """Entries that are moved behind a function of each entry, as if before it.

    One entry of a softmax of two scores is the sigmoid of their difference.
    """
    move, live = shapes.TRANSLATIONS[step.kind], step.inputs[0]
    if not isinstance(live, Varying) or live.head is None:
        return move(step)
    bare, head = replace(live, head=None), live.head
    if head.name == "softmax" and math.prod(live.shape) == 2 and step.kind != "Transpose":
        turned = tensor(np.array([[1.0, -1.0], [-1.0, 1.0]], dtype=np.float32))
        bare = Varying(step.emit(affine.linear(turned), step.laid(bare, (2,))), live.shape)
        head = replace(head, name="sigmoid")
    if head.name not in INCREASING:
        return move(step)
    moved = move(replace(step, inputs=[bare, *step.inputs[1:]]))
    if isinstance(moved, list):
        return [replace(m, head=head) if isinstance(m, Varying) else m for m in moved]
    return replace(moved, head=head) if isinstance(moved, Varying) else moved


TRANSLATIONS: dict[str, NodeTranslation] = {
    **dict.fromkeys(["Slice", "Gather", "Split", "Transpose"], _moved),
    "Scaler": _scaler,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "ArrayFeatureExtractor": _extracted,
    "ZipMap": _same,
    "Sub": _subtract,
    "Concat": _concat,
}
