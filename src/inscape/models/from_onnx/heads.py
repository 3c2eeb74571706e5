"""What may end an ONNX file without a change of labels: softmax, increasing functions, argmax and argmin."""

import math
from dataclasses import replace

import numpy as np

from inscape.models.from_onnx.arithmetic import negated
from inscape.models.from_onnx.steps import Head, Live, Step, Translation, Value, path_of, unknown
from inscape.models.graph.network import Foreign, NotPiecewiseAffine, NotSupportedYet

NAMES = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Softplus": "softplus",
    "Exp": "exp",
    "Elu": "elu",
    "Selu": "selu",
    "Atan": "atan",
    "Asinh": "asinh",
    "Sinh": "sinh",
    "Erf": "erf",
}
_SETTINGS = {"Elu": {"alpha": 1.0}, "Selu": {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}}
"""Attributes with which a function is the one in the table of heads, their defaults."""


def _set_aside(step: Step) -> Value:
    """The scores themselves, marked: whatever but the output reads them makes the operation foreign."""
    live, name = step.live(), NAMES[step.kind]
    if step.kind in ("Softmax", "LogSoftmax"):
        rank = len(live.shape)
        # before version 13 all axes from `axis` on were taken together
        axis = step.axis(-1 if step.opset >= 13 else 1, rank)
        _check_all(step, live, live.shape[axis : axis + 1] if step.opset >= 13 else live.shape[axis:])
        if math.prod(live.shape) == 1:
            raise NotPiecewiseAffine(f"{step.kind} of one score, which is constant")
    settings = _SETTINGS.get(step.kind, {})
    if any(not np.isclose(step.attributes.get(k, v), v, rtol=1e-6) for k, v in settings.items()):
        raise unknown(step.kind)
    return replace(live, head=Head(name, Foreign(step.kind, path_of(step.node))))


def _extreme(step: Step) -> Value:
    live = step.live(behind_head=True)
    axis, keep = step.axis(0, len(live.shape)), bool(step.attributes.get("keepdims", 1))
    if step.attributes.get("select_last_index", 0):
        raise NotSupportedYet(f"{step.kind} of the last among equal scores")
    return position(step, live, axis, is_largest=step.kind == "ArgMax", keep=keep)


def position(step: Step, live: Live, axis: int, *, is_largest: bool, keep: bool) -> Live:
    """Where the largest or smallest score of a point is, which is its label if the file ends there."""
    _check_all(step, live, live.shape[axis : axis + 1])
    if math.prod(live.shape) == 1:
        raise NotPiecewiseAffine(f"{step.kind} of one score, which is constant")
    node = live.node if is_largest else negated(step, replace(live, head=None)).node
    origin = Foreign(step.kind, path_of(step.node), unknown("ArgMax").verdict)
    return Live(node, (1,) * (len(live.shape) if keep else len(live.shape) - 1), Head("argmax", origin))


def _check_all(step: Step, live: Live, group: tuple[int, ...]) -> None:
    if math.prod(group) != math.prod(live.shape):
        raise NotPiecewiseAffine(f"{step.kind} over a part of the scores")


TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(NAMES, _set_aside),
    **dict.fromkeys(["ArgMax", "ArgMin"], _extreme),
}
