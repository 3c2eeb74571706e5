"""How ATen calls that are not linear become nodes: activations, maxima, pooling, sorting.

Calls that may end a model without a change of labels (softmax, tanh, argmax) are marked as such.
"""

import math
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.moving import check_axes
from inscape.models.from_torch.obstacles import called, unknown
from inscape.models.from_torch.recorder import Call, CallTranslation, Value
from inscape.models.from_torch.sums_and_products import together
from inscape.models.graph import affine, sorting
from inscape.models.graph.network import IsRandom, Jumps, MixesPoints, NotPiecewiseAffine, NotSupportedYet
from inscape.models.graph.piecewise import AdaptiveMaxPool, Bend, Clip, Leaky, MaxOver, max_pool
from inscape.models.graph.trace import INCREASING


def _apply(call: Call, op: Bend) -> Value:
    value = call.varying(call.args[0])
    return value.at(call.emit(op, value.node))


def _negated(call: Call, node: int) -> int:
    return call.emit(affine.scale(torch.tensor(-1.0)), node)


# entry by entry


def _relu(call: Call) -> Value:
    return _apply(call, Leaky())


def _abs(call: Call) -> Value:
    return _apply(call, Leaky(-1.0, name="abs"))


def _leaky(call: Call) -> Value:
    return _apply(call, Leaky(float(call.argument(1, "negative_slope", 0.01)), name="leaky_relu"))


def _prelu(call: Call) -> Value:
    call.fixed(call.args[1], "slope")
    slope = call.constant(call.args[1], call.varying(call.args[0]), call.out.ndim)
    return _apply(call, Leaky(slope, name="prelu"))


def _rrelu(call: Call) -> Value:
    if call.argument(4, "training", False):
        raise IsRandom("rrelu", "in training mode")
    low, high = float(call.argument(2, "lower", 1 / 8)), float(call.argument(3, "upper", 1 / 3))
    return _apply(call, Leaky((low + high) / 2, name="rrelu"))


def _clip(call: Call) -> Value:
    defaults = (-1.0, 1.0) if call.name == "hardtanh" else (None, None)
    low, high = (call.argument(i, n, d) for i, n, d in zip((1, 2), _bounds(call), defaults, strict=True))
    if call.name == "clamp_max":
        low, high = None, call.argument(1, "max")
    if call.name == "relu6":
        low, high = 0.0, 6.0
    if any(isinstance(b, Tensor) and (b.numel() > 1 or call.value(b) is not None) for b in (low, high)):
        return _clip_by_tensors(call, low, high)
    numbers = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    return _apply(call, Clip(*numbers, name=call.name))


def _bounds(call: Call) -> tuple[str, str]:
    return ("min_val", "max_val") if call.name == "hardtanh" else ("min", "max")


def _clip_by_tensors(call: Call, low: Any, high: Any) -> Value:
    given = [(b, sign) for b, sign in ((low, 1.0), (high, -1.0)) if b is not None]
    like, (x, *bounds) = together(call, call.args[0], *(b for b, _ in given))
    assert isinstance(x, Value)
    node = x.node
    for bound, (_, sign) in zip(bounds, given, strict=True):
        node = _extreme_of(call, node, bound.node if isinstance(bound, Value) else bound, sign)
    return like.at(node)


def _extreme_of(call: Call, a: int, b: int | Tensor, sign: float) -> int:
    """The larger (sign 1) or smaller (sign -1) of two: b + sign relu(sign (a - b))."""
    if isinstance(b, int):
        pair = (a, b) if sign > 0 else (b, a)
        bent = call.emit(Leaky(name=call.name), call.emit(affine.subtract(), *pair))
        return call.emit(affine.add() if sign > 0 else affine.subtract(), b, bent)
    node = call.emit(affine.shift(-b), a)
    node = call.emit(Leaky(name=call.name), node if sign > 0 else _negated(call, node))
    return call.emit(affine.shift(b), node if sign > 0 else _negated(call, node))


def _extreme(call: Call) -> Value:
    """The maximum or minimum of two tensors."""
    sign = 1.0 if call.name in ("maximum", "max", "fmax") else -1.0
    like, (a, b) = together(call, *call.args[:2])
    first, second = (a, b) if isinstance(a, Value) else (b, a)
    assert isinstance(first, Value)
    other = second.node if isinstance(second, Value) else second
    return like.at(_extreme_of(call, first.node, other, sign))


def _hard_sigmoid(call: Call) -> Value:
    value = call.varying(call.args[0])
    node = call.emit(affine.scale(torch.tensor(1 / 6, dtype=torch.float64)), value.node)
    node = call.emit(affine.shift(torch.tensor(0.5)), node)
    return value.at(call.emit(Clip(0.0, 1.0, name="hardsigmoid"), node))


def _soft_shrink(call: Call) -> Value:
    value, width = call.varying(call.args[0]), float(call.argument(1, "lambd", 0.5))
    middle = call.emit(Clip(-width, width, name="softshrink"), value.node)
    return value.at(call.emit(affine.subtract(), value.node, middle))


def _threshold(call: Call) -> Value:
    threshold, below = (float(v) for v in call.args[1:3])
    if threshold != below:
        raise Jumps("threshold", "with another value below it")
    return _apply(call, Clip(low=threshold, name="threshold"))


def _hard_shrink(call: Call) -> Value:
    if float(call.argument(1, "lambd", 0.5)) != 0:
        raise unknown("hardshrink")
    return call.varying(call.args[0])


def _norm(call: Call) -> Value:
    """The sum or the largest of sizes, as the norms of order 1 and infinity are."""
    order, axes = call.argument(1, "ord", 2), call.argument(2, "dim")
    if order not in (1, math.inf):
        raise unknown(call.name)
    sizes = _abs(call)
    check_axes(call, sizes, axes or [])
    summed = tuple(sizes.point_axis(int(a) % call.args[0].ndim) for a in axes)
    keepdim = bool(call.argument(3, "keepdim", False))
    add = affine.structural("sum", lambda x: x.sum([a + 1 for a in summed], keepdim=keepdim))
    node = call.emit(add if order == 1 else MaxOver(summed, keepdim, name="norm"), sizes.node)
    dropped = 0 if keepdim else sum(int(a) % call.args[0].ndim < sizes.axis for a in axes)
    return Value(node, sizes.axis - dropped, sizes.before, sizes.after)


# maxima and order


def _max(call: Call) -> Value | list[Value | None]:
    """Either `torch.max(a, b)` or `x.max(dim)`, which also returns positions."""
    if isinstance(call.argument(1, "dim"), int):
        value, dim = call.varying(call.args[0]), call.argument(1, "dim")
        return [_amax(call), position(call, value, dim, is_largest=call.name == "max")]
    if len(call.args) < 2:
        raise MixesPoints(call.name, "over the batch axis")
    return _extreme(call)


def _amax(call: Call) -> Value:
    x, given = call.args[0], call.argument(1, "dim", ())
    value = call.varying(x)
    axes = [int(a) % x.ndim for a in (given if isinstance(given, list | tuple) else [given])]
    check_axes(call, value, axes)
    keepdim = bool(call.argument(2, "keepdim", False))
    lowest = call.name in ("amin", "min")
    node = _negated(call, value.node) if lowest else value.node
    op = MaxOver(tuple(value.point_axis(a) for a in axes), keepdim, name=call.name)
    node = call.emit(op, node)
    dropped = 0 if keepdim else sum(a < value.axis for a in axes)
    return Value(_negated(call, node) if lowest else node, value.axis - dropped, value.before, value.after)


def _sort(call: Call) -> list[Value | None]:
    """All entries along an axis in order, by comparators."""
    value, axis, m = _axis(call, call.argument(1, "dim", -1))
    node = sorting.sort(call.emit, value.node, axis, m)
    if call.argument(2, "descending", False):
        node = call.emit(affine.structural("flip", lambda b: b.flip(axis + 1)), node)
    return [value.at(node), value.at(call.emit_foreign(unknown("argsort"), value.node))]


def _axis(call: Call, dim: int) -> tuple[Value, int, int]:
    """The value that is put in order, the point's axis along which, and the size of that."""
    value, x = call.varying(call.args[0]), call.args[0]
    check_axes(call, value, [dim])
    return value, value.point_axis(dim % x.ndim), x.shape[dim]


def _top(call: Call) -> list[Value | None]:
    """The k largest entries, or the smallest, in order."""
    k, dim = int(call.args[1]), int(call.argument(2, "dim", -1))
    value, axis, m = _axis(call, dim)
    is_largest = bool(call.argument(3, "largest", True))
    if k == 1:
        node = _largest(call, value.node, axis, is_largest)
        return [value.at(node), position(call, value, dim, is_largest=is_largest)]
    ranks = range(m - k, m) if is_largest else range(k)
    node = sorting.sort(call.emit, value.node, axis, m, ranks)
    node = call.emit(affine.take(axis, torch.tensor(ranks[::-1] if is_largest else ranks)), node)
    return [value.at(node), value.at(call.emit_foreign(unknown("argsort"), value.node))]


def _largest(call: Call, node: int, axis: int, is_largest: bool) -> int:
    """The largest or smallest entry along an axis of a point, which stays."""
    node = call.emit(MaxOver((axis,), True, name=call.name), node if is_largest else _negated(call, node))
    return node if is_largest else _negated(call, node)


def _kth(call: Call) -> list[Value | None]:
    """The k-th smallest entry along an axis, or the median: of an even number, the lower one."""
    given = call.args[1:]
    k, dim = (None, given[0]) if call.name == "median" else (int(given[0]), call.argument(2, "dim", -1))
    value, axis, m = _axis(call, dim)
    rank = (m - 1) // 2 if k is None else k - 1
    node = sorting.sort(call.emit, value.node, axis, m, [rank])
    node = call.emit(affine.sliced(axis, rank, rank + 1), node)
    result = value.at(node)
    if not call.argument(2 if k is None else 3, "keepdim", False):
        dropped = value.axis - (dim % call.args[0].ndim < value.axis)
        result = Value(node, dropped, value.before, value.after)
        result = result.at(call.emit(affine.reshape(result.point_shape(call.out[0].shape)), node))
    return [result, result.at(call.emit_foreign(unknown("argsort"), value.node))]


# windows


def _max_pool(call: Call) -> Value:
    x, kernel = call.args[:2]
    n = len(kernel)
    if x.ndim != n + 2:
        raise NotSupportedYet(called(call.name), "without a batch axis")
    stride, padding, dilation = (
        list(call.argument(i, name, default) or default)
        for i, name, default in ((2, "stride", kernel), (3, "padding", [0]), (4, "dilation", [1]))
    )
    op = max_pool(kernel, stride, padding, dilation, ceil_mode=bool(call.argument(5, "ceil_mode", False)))
    value = call.image(x)
    return value.at(call.emit(op, value.node))


def _adaptive_max_pool(call: Call) -> Value:
    """Equal windows, if the output size divides the input size, and others."""
    x, size = call.args[:2]
    given, value = x.shape[-len(size) :], call.image(x)
    if any(a % b for a, b in zip(given, size, strict=True)):
        return value.at(call.emit(AdaptiveMaxPool(tuple(size)), value.node))
    kernel = [a // b for a, b in zip(given, size, strict=True)]
    return value.at(call.emit(max_pool(kernel), value.node))


BENDS: dict[str, CallTranslation] = {
    "relu": _relu,
    "abs": _abs,
    "leaky_relu": _leaky,
    "_prelu_kernel": _prelu,
    "prelu": _prelu,
    "rrelu_with_noise": _rrelu,
    **dict.fromkeys(["hardtanh", "clamp", "clamp_min", "clamp_max", "relu6", "clip"], _clip),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], _extreme),
    **dict.fromkeys(["max", "min"], _max),
    **dict.fromkeys(["amax", "amin"], _amax),
    "sort": _sort,
    "topk": _top,
    **dict.fromkeys(["kthvalue", "median"], _kth),
    **dict.fromkeys(
        ["max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool1d"], _max_pool
    ),
    **dict.fromkeys(
        ["adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"], _adaptive_max_pool
    ),
    "hardsigmoid": _hard_sigmoid,
    "softshrink": _soft_shrink,
    "hardshrink": _hard_shrink,
    "threshold": _threshold,
    "linalg_vector_norm": _norm,
}
"""How each call becomes nodes, by its name without overload."""


_SETTINGS = {
    ("elu", (1.0, 1.0, 1.0)): "elu",
    ("elu", (1.6732632423543772, 1.0507009873554805, 1.0)): "selu",
    ("softplus", (1.0, 20.0)): "softplus",
}
"""ATen's functions with further arguments -> those of the table of heads."""


def _softmax(call: Call) -> Value:
    """Foreign; over all of at least two scores of a point it may end a model."""
    name, out = called(call.name), call.out
    value = call.varying(call.args[0])
    if int(call.args[1]) % max(out.ndim, 1) != out.ndim - 1:
        raise NotPiecewiseAffine(name, "over another axis than the last")
    if out.shape[-1] * call.n_points != out.numel():
        raise NotPiecewiseAffine(name, "over a part of the scores")
    if out.shape[-1] == 1:
        raise NotPiecewiseAffine(name, "of one score, which is constant")
    return value.at(call.emit_head(name, unknown(call.name), value.node))


def _increasing(call: Call) -> Value:
    """A strictly increasing function of each entry."""
    name, rest = called(call.name), tuple(float(a) for a in call.args[1:])
    heads = [h for (n, full), h in _SETTINGS.items() if n == name and full[: len(rest)] == rest]
    value = call.varying(call.args[0])
    if rest and not heads:
        raise unknown(call.name)
    return value.at(call.emit_head(heads[0] if heads else name, unknown(call.name), value.node))


def _argmax(call: Call) -> Value:
    dim = call.argument(1, "dim")
    value = call.varying(call.args[0])
    if dim is None:
        raise unknown(call.name)
    return position(call, value, int(dim), is_largest=call.name == "argmax")


def position(call: Call, value: Value, dim: int, *, is_largest: bool) -> Value:
    """Where the largest or smallest score of each point is, which is its label if the model ends there."""
    name, x = "argmax" if is_largest else "argmin", call.args[0]
    is_label = x.ndim == 2 and value.at(0) == Value(0) and dim % 2 == 1 and x.shape[1] > 1
    if not is_label:
        return Value(call.emit_foreign(unknown(name), value.node))
    node = call.recorder.before_head(value.node)
    node = node if is_largest else call.emit(affine.scale(torch.tensor(-1.0)), node)
    return Value(call.emit_head("argmax", unknown(name), node))


def _logarithm(call: Call) -> Value:
    """Of probabilities: the logarithm of a softmax or sigmoid changes no label either."""
    value = call.varying(call.args[0])
    head = {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}.get(call.recorder.heads.get(value.node, ""))
    if head is None:
        raise unknown(call.name)
    return value.at(call.emit_head(head, unknown(call.name), call.recorder.before_head(value.node)))


ENDINGS: dict[str, CallTranslation] = {
    **dict.fromkeys(["_softmax", "_log_softmax"], _softmax),
    **dict.fromkeys([*INCREASING, "log_sigmoid_forward"], _increasing),
    **dict.fromkeys(["argmax", "argmin"], _argmax),
    "log": _logarithm,
}
"""How each call becomes nodes, by its name without overload."""
