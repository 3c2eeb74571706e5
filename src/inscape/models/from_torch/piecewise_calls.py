"""How piecewise-linear ATen operations become nodes."""

import math
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.affine_calls import check_alike
from inscape.models.from_torch.recorder import Call, Translation, Value
from inscape.models.graph import affine
from inscape.models.graph.network import NotPiecewiseAffine
from inscape.models.graph.piecewise import Bend, Clip, Leaky, MaxOver, max_pool


def _apply(call: Call, op: Bend) -> Value:
    value = call.value(call.args[0])
    if value is None:
        raise NotPiecewiseAffine(call.name)
    return Value(call.emit(op, value.node), value.merged)


def _relu(call: Call) -> Value:
    return _apply(call, Leaky())


def _abs(call: Call) -> Value:
    return _apply(call, Leaky(-1.0, name="abs"))


def _leaky(call: Call) -> Value:
    return _apply(call, Leaky(float(call.argument(1, "negative_slope", 0.01)), name="leaky_relu"))


def _prelu(call: Call) -> Value:
    slope = call.args[1]
    if call.value(slope) is not None:
        raise NotPiecewiseAffine("a prelu whose slope depends on the input")
    return _apply(call, Leaky(call.constant(slope, call.out.ndim), name="prelu"))


def _rrelu(call: Call) -> Value:
    if call.argument(4, "training", False):
        raise NotPiecewiseAffine("rrelu in training mode")
    low, high = float(call.argument(2, "lower", 1 / 8)), float(call.argument(3, "upper", 1 / 3))
    return _apply(call, Leaky((low + high) / 2, name="rrelu"))


def _clip(call: Call) -> Value:
    defaults = (-1.0, 1.0) if call.name == "hardtanh" else (None, None)
    low, high = (call.argument(i, n, d) for i, n, d in zip((1, 2), _bounds(call), defaults, strict=True))
    if call.name == "clamp_max":
        low, high = None, call.argument(1, "max")
    if call.name == "relu6":
        low, high = 0.0, 6.0
    if any(isinstance(b, Tensor) and b.numel() > 1 for b in (low, high)):
        return _clip_by_tensors(call, low, high)
    if call.value(low) is not None or call.value(high) is not None:
        raise NotPiecewiseAffine("a clamp whose bounds depend on the input")
    numbers = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    return _apply(call, Clip(*numbers, name=call.name))


def _bounds(call: Call) -> tuple[str, str]:
    return ("min_val", "max_val") if call.name == "hardtanh" else ("min", "max")


def _clip_by_tensors(call: Call, low: Any, high: Any) -> Value:
    value = call.value(call.args[0])
    if value is None or call.value(low) is not None or call.value(high) is not None:
        raise NotPiecewiseAffine("a clamp whose bounds depend on the input")
    node = value.node
    if low is not None:
        node = _larger(call, node, call.constant(low, call.out.ndim), 1.0)
    if high is not None:
        node = _larger(call, node, call.constant(high, call.out.ndim), -1.0)
    return Value(node, value.merged)


def _larger(call: Call, node: int, bound: Tensor, sign: float) -> int:
    """The larger (sign 1) or smaller (sign -1) of a node and a constant c: c + sign relu(sign (x - c))."""
    node = call.emit(affine.shift(-bound), node)
    if sign < 0:
        node = call.emit(affine.scale(torch.tensor(-1.0)), node)
    node = call.emit(Leaky(name=call.name), node)
    if sign < 0:
        node = call.emit(affine.scale(torch.tensor(-1.0)), node)
    return call.emit(affine.shift(bound), node)


def _extreme(call: Call) -> Value:
    """Maximum b + relu(a - b) or minimum b - relu(b - a) of two tensors."""
    a, b = call.args[:2]
    sign = 1.0 if call.name in ("maximum", "max", "fmax") else -1.0
    u, v = call.value(a), call.value(b)
    if u is None or v is None:
        value, constant = (u, b) if u is not None else (v, a)
        assert value is not None
        return Value(_larger(call, value.node, call.constant(constant, call.out.ndim), sign), value.merged)
    check_alike(call, a, b)
    pair = (u.node, v.node) if sign > 0 else (v.node, u.node)
    bent = call.emit(Leaky(name=call.name), call.emit(affine.subtract(), *pair))
    return Value(call.emit(affine.add() if sign > 0 else affine.subtract(), v.node, bent), u.merged)


def _max(call: Call) -> Value | list[Value | None]:
    """Either `torch.max(a, b)` or `x.max(dim)`, which also returns positions."""
    if isinstance(call.argument(1, "dim"), int):
        return _amax(call)
    if len(call.args) < 2:
        raise NotPiecewiseAffine("max over the batch axis")
    return _extreme(call)


def _amax(call: Call) -> Value:
    x = call.args[0]
    given = call.argument(1, "dim", ())
    axes = [int(a) % x.ndim for a in (given if isinstance(given, list | tuple) else [given])]
    if not axes or 0 in axes:
        raise NotPiecewiseAffine("max over the batch axis")
    node, keepdim = call.unmerged(x), bool(call.argument(2, "keepdim", False))
    sign = torch.tensor(-1.0)
    lowest = call.name in ("amin", "min")
    if lowest:
        node = call.emit(affine.scale(sign), node)
    node = call.emit(MaxOver(tuple(a - 1 for a in axes), keepdim, name=call.name), node)
    return Value(call.emit(affine.scale(sign), node) if lowest else node)


def _min(call: Call) -> Value | list[Value | None]:
    if isinstance(call.argument(1, "dim"), int):
        return _amax(call)
    if len(call.args) < 2:
        raise NotPiecewiseAffine("min over the batch axis")
    return _extreme(call)


def _max_pool(call: Call) -> Value:
    x, kernel = call.args[:2]
    n = len(kernel)
    if x.ndim != n + 2:
        raise NotPiecewiseAffine("max_pool without a batch axis")
    stride, padding, dilation = (
        list(call.argument(i, name, default) or default)
        for i, name, default in ((2, "stride", kernel), (3, "padding", [0]), (4, "dilation", [1]))
    )
    op = max_pool(kernel, stride, padding, dilation, ceil_mode=bool(call.argument(5, "ceil_mode", False)))
    return Value(call.emit(op, call.unmerged(x)))


def _adaptive_max_pool(call: Call) -> Value:
    """Equal windows only: the output size divides the input size."""
    x, size = call.args[:2]
    given = x.shape[-len(size) :]
    if any(a % b for a, b in zip(given, size, strict=True)):
        raise NotPiecewiseAffine("adaptive max-pooling with windows of unequal size")
    kernel = [a // b for a, b in zip(given, size, strict=True)]
    return Value(call.emit(max_pool(kernel), call.unmerged(x)))


def _hard_sigmoid(call: Call) -> Value:
    value = call.value(call.args[0])
    assert value is not None
    node = call.emit(affine.scale(torch.tensor(1 / 6, dtype=torch.float64)), value.node)
    node = call.emit(affine.shift(torch.tensor(0.5)), node)
    return Value(call.emit(Clip(0.0, 1.0, name="hardsigmoid"), node), value.merged)


def _soft_shrink(call: Call) -> Value:
    value, width = call.value(call.args[0]), float(call.argument(1, "lambd", 0.5))
    assert value is not None
    middle = call.emit(Clip(-width, width, name="softshrink"), value.node)
    return Value(call.emit(affine.subtract(), value.node, middle), value.merged)


def _threshold(call: Call) -> Value:
    threshold, below = (float(v) for v in call.args[1:3])
    if threshold != below:
        raise NotPiecewiseAffine("a threshold that jumps")
    return _apply(call, Clip(low=threshold, name="threshold"))


TRANSLATIONS: dict[str, Translation] = {
    "relu": _relu,
    "abs": _abs,
    "leaky_relu": _leaky,
    "_prelu_kernel": _prelu,
    "prelu": _prelu,
    "rrelu_with_noise": _rrelu,
    **dict.fromkeys(["hardtanh", "clamp", "clamp_min", "clamp_max", "relu6", "clip"], _clip),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], _extreme),
    "max": _max,
    "min": _min,
    **dict.fromkeys(["amax", "amin"], _amax),
    **dict.fromkeys(
        ["max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool1d"], _max_pool
    ),
    **dict.fromkeys(
        ["adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"], _adaptive_max_pool
    ),
    "hardsigmoid": _hard_sigmoid,
    "softshrink": _soft_shrink,
    "threshold": _threshold,
}
