"""Softmax, log-softmax, sigmoid and argmax at the end of an ONNX file: they change no label."""

import math
from dataclasses import replace

from inscape.models.from_onnx.steps import Head, Live, Step, Translation, Value, path_of
from inscape.models.graph.network import Foreign, NotPiecewiseAffine

NAMES = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}


def _set_aside(step: Step) -> Value:
    """The scores themselves, marked: whatever but the output reads them makes the operation foreign."""
    live = step.live()
    if step.kind != "Sigmoid":
        rank = len(live.shape)
        # before version 13 all axes from `axis` on were taken together
        axis = step.axis(-1 if step.opset >= 13 else 1, rank)
        _check_all(step, live, live.shape[axis : axis + 1] if step.opset >= 13 else live.shape[axis:])
        if math.prod(live.shape) == 1:
            raise NotPiecewiseAffine(f"{step.kind} of one score, which is constant")
    return replace(live, head=Head(NAMES[step.kind], Foreign(step.kind, path_of(step.node))))


def _argmax(step: Step) -> Value:
    live = step.live(behind_head=True)
    axis = step.axis(0, len(live.shape))
    _check_all(step, live, live.shape[axis : axis + 1])
    if math.prod(live.shape) == 1 or step.attributes.get("select_last_index", 0):
        raise NotPiecewiseAffine("ArgMax of one score, or of the last among equal ones")
    shape = (1,) * (len(live.shape) if step.attributes.get("keepdims", 1) else len(live.shape) - 1)
    return Live(live.node, shape, Head("argmax", Foreign(step.kind, path_of(step.node))))


def _check_all(step: Step, live: Live, group: tuple[int, ...]) -> None:
    if math.prod(group) != math.prod(live.shape):
        raise NotPiecewiseAffine(f"{step.kind} over a part of the scores")


TRANSLATIONS: dict[str, Translation] = {**dict.fromkeys(NAMES, _set_aside), "ArgMax": _argmax}
