"""How ONNX operations that are not linear become nodes.

Those that may end a file without a change of labels (softmax, increasing functions, argmax) are set aside.
"""

import math
from dataclasses import replace

import numpy as np
import torch

from inscape.arrays import Array
from inscape.models.from_onnx.arithmetic import (
    applied,
    broadcast,
    combined,
    folded_over,
    negated,
    reduced,
    reduced_axes,
    scaled,
    shifted,
)
from inscape.models.from_onnx.shapes import full
from inscape.models.from_onnx.steps import (
    FileValue,
    Head,
    NodeTranslation,
    Opaque,
    Step,
    Varying,
    path_of,
    tensor,
    unknown,
)
from inscape.models.graph import affine, sorting
from inscape.models.graph.network import Foreign, Jumps, NotPiecewiseAffine, NotSupportedYet
from inscape.models.graph.piecewise import Clip, Leaky, MaxOver

NO_BOUND = float(np.finfo(np.float32).max)
"""What old files have where there is no bound."""


def _relu(step: Step) -> FileValue:
    return applied(step, Leaky(), step.live())


def _abs(step: Step) -> FileValue:
    return applied(step, Leaky(-1.0, name="abs"), step.live())


def _leaky(step: Step) -> FileValue:
    slope = float(step.attributes.get("alpha", 0.01))
    return applied(step, Leaky(slope, name="leaky_relu"), step.live())


def _prelu(step: Step) -> FileValue:
    live, slope = step.live(), step.required(1)
    if slope.size == 1:
        return applied(step, Leaky(float(slope.item()), name="prelu"), live)
    varying, fixed, shape = broadcast(live.shape, slope.shape)
    node = step.laid(live, varying)
    return Varying(step.emit(Leaky(tensor(slope).reshape(fixed), name="prelu"), node), shape)


def _clip(step: Step) -> FileValue:
    low, high = step.constant(1, "min"), step.constant(2, "max")
    a = -math.inf if low is None or low.item() <= -NO_BOUND else float(low.item())
    b = math.inf if high is None or high.item() >= NO_BOUND else float(high.item())
    return applied(step, Clip(a, b), step.live())


def _hard_sigmoid(step: Step) -> FileValue:
    alpha, beta = float(step.attributes.get("alpha", 0.2)), float(step.attributes.get("beta", 0.5))
    live = shifted(step, scaled(step, step.live(), np.array(alpha)), np.array(beta))
    return applied(step, Clip(0.0, 1.0, name="hardsigmoid"), live)


def _larger(step: Step, a: Varying | Array, b: Varying | Array) -> Varying:
    """The maximum b + relu(a - b) of two tensors, of which the first varies."""
    assert isinstance(a, Varying)
    if isinstance(b, Varying):
        bent = applied(step, Leaky(name="max"), combined(step, affine.subtract(), a, b))
        return combined(step, affine.add(), b, bent)
    if b.size == 1:
        return applied(step, Clip(low=float(b.item()), name="max"), _of_rank(step, a, b.ndim))
    return shifted(step, applied(step, Leaky(name="max"), shifted(step, a, -b)), b)


def _smaller(step: Step, a: Varying | Array, b: Varying | Array) -> Varying:
    """The minimum b - relu(b - a) of two tensors, of which the first varies."""
    assert isinstance(a, Varying)
    if isinstance(b, Varying):
        bent = applied(step, Leaky(name="min"), combined(step, affine.subtract(), b, a))
        return combined(step, affine.subtract(), b, bent)
    if b.size == 1:
        return applied(step, Clip(high=float(b.item()), name="min"), _of_rank(step, a, b.ndim))
    bent = applied(step, Leaky(name="min"), shifted(step, negated(step, a), b))
    return shifted(step, negated(step, bent), b)


def _of_rank(step: Step, live: Varying, rank: int) -> Varying:
    """A tensor with axes of size one in front, as if broadcast against one of `rank` axes."""
    return step.reshaped(live, (1,) * (rank - len(live.shape)) + live.shape)


def _max(step: Step) -> FileValue:
    return folded_over(step, _larger)


def _min(step: Step) -> FileValue:
    return folded_over(step, _smaller)


def _reduce_max(step: Step) -> FileValue:
    live = step.live()
    return reduced(step, live, reduced_axes(step, live), lambda axes: MaxOver(axes))


def _reduce_min(step: Step) -> FileValue:
    live = step.live()
    axes = reduced_axes(step, live)
    return negated(step, reduced(step, negated(step, live), axes, lambda a: MaxOver(a, name="min")))


def _thresholded(step: Step) -> FileValue:
    if float(step.attributes.get("alpha", 1.0)) != 0:
        raise Jumps("ThresholdedRelu")
    return _relu(step)


def _shrink(step: Step) -> FileValue:
    """Soft shrinkage; with another bias than its threshold it jumps."""
    width, bias = float(step.attributes.get("lambd", 0.5)), float(step.attributes.get("bias", 0.0))
    if width != bias:
        raise Jumps("Shrink with another bias than lambd")
    live = step.live()
    middle = applied(step, Clip(-width, width, name="softshrink"), live)
    return combined(step, affine.subtract(), live, middle)


def _top(step: Step) -> list[FileValue]:
    """The k largest or smallest entries along an axis in order, and where they are."""
    live, k = step.live(behind_head=True), int(step.required(1, "k").item())
    axis, is_largest = step.axis(-1, len(live.shape)), bool(step.attributes.get("largest", 1))
    positions = position(step, live, axis, is_largest=is_largest, keep=True) if k == 1 else Opaque()
    if live.head is not None:
        return [Opaque(), positions]
    shape = (*live.shape[:axis], k, *live.shape[axis + 1 :])
    if live.shape[axis] == 1:
        return [live, positions]
    node, missing, _ = full(step, live, axis)
    inner = axis - missing
    if k == 1:
        node = node if is_largest else step.emit(affine.scale(tensor(np.array(-1.0))), node)
        node = step.emit(MaxOver((inner,), True), node)
        node = node if is_largest else step.emit(affine.scale(tensor(np.array(-1.0))), node)
        return [Varying(node, shape), positions]
    m = live.shape[axis]
    wanted = range(m - k, m) if is_largest else range(k)
    node = sorting.sort(step.emit, node, inner, m, wanted)
    ordered = torch.tensor(wanted[::-1] if is_largest else wanted)
    return [Varying(step.emit(affine.take(inner, ordered), node), shape), positions]


def _global_max(step: Step) -> FileValue:
    live = step.live()
    return reduced(step, live, list(range(2, len(live.shape))), lambda axes: MaxOver(axes))


HEADS = {
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


def _set_aside(step: Step) -> FileValue:
    """The scores themselves, marked: whatever but the output reads them makes the operation foreign."""
    live, name = step.live(), HEADS[step.kind]
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


def _logarithm(step: Step) -> FileValue:
    """Of probabilities: the logarithm of a softmax or sigmoid changes no label either."""
    live = step.live(behind_head=True)
    name = (
        None
        if live.head is None
        else {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}.get(live.head.name)
    )
    if name is None:
        raise NotPiecewiseAffine("Log")
    return replace(live, head=Head(name, Foreign("Log", path_of(step.node))))


def _extreme(step: Step) -> FileValue:
    live = step.live(behind_head=True)
    axis, keep = step.axis(0, len(live.shape)), bool(step.attributes.get("keepdims", 1))
    if step.attributes.get("select_last_index", 0):
        raise NotSupportedYet(f"{step.kind} of the last among equal scores")
    return position(step, live, axis, is_largest=step.kind == "ArgMax", keep=keep)


def position(step: Step, live: Varying, axis: int, *, is_largest: bool, keep: bool) -> Varying:
    """Where the largest or smallest score of a point is, which is its label if the file ends there."""
    _check_all(step, live, live.shape[axis : axis + 1])
    if math.prod(live.shape) == 1:
        raise NotPiecewiseAffine(f"{step.kind} of one score, which is constant")
    node = live.node if is_largest else negated(step, replace(live, head=None)).node
    origin = Foreign(step.kind, path_of(step.node), type(unknown("ArgMax")))
    return Varying(node, (1,) * (len(live.shape) if keep else len(live.shape) - 1), Head("argmax", origin))


def _check_all(step: Step, live: Varying, group: tuple[int, ...]) -> None:
    if math.prod(group) != math.prod(live.shape):
        raise NotPiecewiseAffine(f"{step.kind} over a part of the scores")


TRANSLATIONS: dict[str, NodeTranslation] = {
    "Relu": _relu,
    "Abs": _abs,
    "LeakyRelu": _leaky,
    "PRelu": _prelu,
    "Clip": _clip,
    "HardSigmoid": _hard_sigmoid,
    "Max": _max,
    "Min": _min,
    "ReduceMax": _reduce_max,
    "ReduceMin": _reduce_min,
    "GlobalMaxPool": _global_max,
    "ThresholdedRelu": _thresholded,
    "Shrink": _shrink,
    "TopK": _top,
    **dict.fromkeys(HEADS, _set_aside),
    "Log": _logarithm,
    **dict.fromkeys(["ArgMax", "ArgMin"], _extreme),
}
