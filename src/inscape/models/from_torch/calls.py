"""How each ATen call of a torch module becomes affine and piecewise-linear nodes of the graph."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.recorder import Call, Translation, Value, snapshot
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotPiecewiseAffine
from inscape.models.graph.piecewise import Bend, Clip, Leaky, MaxOver, max_pool

# same arguments for any number of rows: pooling, padding and resampling of the axes after the channels
_SPATIAL = (
    "avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d "
    "upsample_nearest1d upsample_nearest2d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "upsample_linear1d upsample_bilinear2d pixel_shuffle pixel_unshuffle channel_shuffle im2col"
)
_RESHAPES = "view _unsafe_view reshape flatten unsqueeze squeeze _reshape_alias unflatten"
_IDENTITIES = "clone detach alias contiguous lift_fresh dropout native_dropout feature_dropout"


def _replayed(call: Call, part: int | None = None) -> Affine:
    """The call itself with the same arguments, applied to any number of rows."""
    function, rest, kwargs = call.function, tuple(call.args[1:]), dict(call.kwargs)

    def apply(x: Tensor) -> Tensor:
        out = function(x, *rest, **kwargs)
        result: Tensor = out if part is None else out[part]
        return result

    return affine.structural(call.name.lstrip("_"), apply)


def _spatial(call: Call) -> Value:
    return Value(call.emit(_replayed(call), call.unmerged(call.args[0])))


def _pad(call: Call) -> Value:
    widths, value = call.args[1], float(call.argument(2, "value", 0.0))
    if len(widths) >= 2 * call.args[0].ndim:
        raise NotPiecewiseAffine("padding of the batch axis")
    return Value(call.emit(affine.pad(widths, value=value), call.unmerged(call.args[0])))


def _along(position: int, *names: str) -> Translation:
    """An operation on given axes, none of which may be the batch axis."""

    def translate(call: Call) -> Value | list[Value | None]:
        x = call.args[0]
        given = next((v for n in names if (v := call.argument(position, n)) is not None), None)
        axes = given if isinstance(given, list | tuple) else [given]
        if given is None or not axes or any(int(a or 0) % x.ndim == 0 for a in axes):
            raise NotPiecewiseAffine(f"{call.name} over the batch axis")
        node = call.unmerged(x)
        if isinstance(call.out, Tensor):
            return Value(call.emit(_replayed(call), node))
        return [Value(call.emit(_replayed(call, i), node)) for i in range(len(call.out))]

    return translate


def _slice(call: Call) -> Value:
    axis = int(call.argument(1, "dim", 0)) % call.args[0].ndim
    if axis == 0:
        if call.out.shape == call.args[0].shape:
            value = call.value(call.args[0])
            assert value is not None
            return value
        raise NotPiecewiseAffine("a slice of the batch axis")
    return Value(call.emit(_replayed(call), call.unmerged(call.args[0])))


def _index(call: Call) -> Value:
    indices = call.args[1]
    if not indices or indices[0] is not None or any(call.value(i) for i in indices):
        raise NotPiecewiseAffine("indexing of the batch axis")
    return Value(call.emit(_replayed(call), call.unmerged(call.args[0])))


def _reshape(call: Call) -> Value:
    value = call.value(call.args[0])
    shape, n = tuple(call.out.shape), call.n_rows
    if value is None or not shape or shape[0] % n or (shape[0] == 0):
        raise NotPiecewiseAffine("a reshape that mixes the batch axis with others")
    merged = shape[0] != n
    row = (shape[0] // n, *shape[1:]) if merged else shape[1:]
    return Value(call.emit(affine.reshape(row), value.node), merged)


def _permute(call: Call) -> Value:
    x, n_axes = call.args[0], call.args[0].ndim
    order = list(range(n_axes))
    if call.name == "permute":
        order = [int(a) % n_axes for a in call.args[1]]
    else:
        a, b = (0, 1) if call.name == "t" else (int(v) % n_axes for v in call.args[1:3])
        order[a], order[b] = order[b], order[a]
    if order[0] != 0:
        raise NotPiecewiseAffine("a transpose of the batch axis")
    return Value(call.emit(affine.permute([a - 1 for a in order[1:]]), call.unmerged(x)))


def _expand(call: Call) -> Value:
    x = call.args[0]
    if call.out.ndim != x.ndim or call.out.shape[0] != x.shape[0]:
        raise NotPiecewiseAffine("an expansion of the batch axis")
    return Value(call.emit(affine.expand(call.out.shape[1:]), call.unmerged(x)))


def _repeat(call: Call) -> Value:
    x, times = call.args[:2]
    if len(times) != x.ndim or times[0] != 1:
        raise NotPiecewiseAffine("a repetition of the batch axis")
    return Value(call.emit(_replayed(call), call.unmerged(x)))


def _same(call: Call) -> Value | list[Value | None]:
    value = call.value(call.args[0])
    assert value is not None
    first = call.out if isinstance(call.out, Tensor) else call.out[0]
    if not first.dtype.is_floating_point:
        raise NotPiecewiseAffine(f"a conversion to {str(first.dtype).removeprefix('torch.')}")
    return value


def _join(call: Call) -> Value:
    tensors, axis = call.args[0], int(call.argument(1, "dim", 0))
    axis %= call.out.ndim
    if axis == 0:
        raise NotPiecewiseAffine(f"{call.name} along the batch axis")
    varying = [call.value(t) is not None for t in tensors]
    rows = [snapshot(t) for t, v in zip(tensors, varying, strict=True) if not v]
    if any(not torch.equal(r, r[:1].expand_as(r)) for r in rows):
        raise NotPiecewiseAffine(f"{call.name} with a constant that differs from row to row")
    function: Any = torch.cat if call.name == "cat" else torch.stack

    def apply(*parts: Tensor) -> Tensor:
        moving, fixed = iter(parts), iter(parts[sum(varying) :])
        n = len(parts[0])
        row = [next(moving) if v else (c := next(fixed)).expand(n, *c.shape[1:]) for v in varying]
        result: Tensor = function(row, axis)
        return result

    op = Affine("concat", apply, tuple(r[:1] for r in rows), n_offsets=len(rows))
    return Value(call.emit(op, *(call.unmerged(t) for t, v in zip(tensors, varying, strict=True) if v)))


def _add(call: Call) -> Value:
    """The sum a + alpha b, or for sub a - alpha b, where either may be a constant."""
    a, b = call.args[:2]
    alpha = float(call.argument(2, "alpha", 1.0)) * (1 if call.name == "add" else -1)
    if call.name == "rsub":
        a, b = b, a
    u, v = call.value(a), call.value(b)
    if u is not None and v is not None:
        check_alike(call, a, b)
        op = affine.subtract() if alpha == -1 else affine.add(alpha)
        return Value(call.emit(op, u.node, v.node), u.merged)
    if u is not None:
        return Value(call.emit(affine.shift(alpha * call.constant(b, call.out.ndim)), u.node), u.merged)
    assert v is not None
    node = v.node if alpha == 1 else call.emit(affine.scale(torch.tensor(alpha)), v.node)
    return Value(call.emit(affine.shift(call.constant(a, call.out.ndim)), node), v.merged)


def check_alike(call: Call, a: Tensor, b: Tensor) -> None:
    """Two recorded tensors may be combined if row i of one meets row i of the other."""
    u, v = call.value(a), call.value(b)
    if a.ndim != b.ndim or a.shape[0] != b.shape[0] or u is None or v is None or u.merged != v.merged:
        raise NotPiecewiseAffine(f"{call.name} across the batch axis")


def _multiply(call: Call) -> Value:
    a, b = call.args[:2]
    u, v = call.value(a), call.value(b)
    if u is not None and v is not None:
        raise NotPiecewiseAffine("a product of two values that depend on the input")
    value, factor = (u, b) if u is not None else (v, a)
    assert value is not None
    return Value(call.emit(affine.scale(call.constant(factor, call.out.ndim)), value.node), value.merged)


def _divide(call: Call) -> Value:
    value = call.value(call.args[0])
    if value is None or call.value(call.args[1]) is not None or call.kwargs.get("rounding_mode"):
        raise NotPiecewiseAffine("a division by a value that depends on the input")
    divisor = call.constant(call.args[1], call.out.ndim).double()
    return Value(call.emit(affine.scale(1 / divisor), value.node), value.merged)


def _negate(call: Call) -> Value:
    value = call.value(call.args[0])
    assert value is not None
    return Value(call.emit(affine.scale(torch.tensor(-1.0)), value.node), value.merged)


def _product(call: Call) -> Value:
    """Products x M (mm, mv) and c + x M (addmm) with a constant matrix, and linear itself."""
    bias: Tensor | None = None
    factor = 1.0
    if call.name == "addmm":
        shift, x, matrix = call.args[:3]
        if call.value(shift) is not None:
            raise NotPiecewiseAffine("addmm with a varying offset")
        bias = call.constant(shift, 2) * float(call.kwargs.get("beta", 1))
        factor = float(call.kwargs.get("alpha", 1))
    else:
        x, matrix = call.args[:2]
    value = call.value(x)
    if value is None or call.value(matrix) is not None:
        raise NotPiecewiseAffine("a matrix product of values that depend on the input")
    weight = snapshot(matrix)
    if call.name == "linear":
        bias = None if call.argument(2, "bias") is None else snapshot(call.argument(2, "bias"))
    elif call.name == "mv":
        node = call.emit(affine.linear(weight[None]), value.node)
        row = (call.out.shape[0] // call.n_rows,) if value.merged else ()
        return Value(call.emit(affine.reshape(row), node), value.merged)
    else:
        weight = weight.T
    return Value(call.emit(affine.linear((weight * factor).contiguous(), bias), value.node), value.merged)


def _convolution(call: Call) -> Value:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = call.args[:9]
    if call.value(weight) is not None or call.value(bias) is not None:
        raise NotPiecewiseAffine("a convolution whose kernel depends on the input")
    w, b = snapshot(weight), None if bias is None else snapshot(bias)
    shape: dict[str, Sequence[int]] = {"stride": stride, "padding": padding, "dilation": dilation}
    if transposed:
        op = affine.conv_transpose(w, b, **shape, output_padding=output_padding, groups=groups)
    else:
        op = affine.conv(w, b, **shape, groups=groups)
    return Value(call.emit(op, call.unmerged(x)))


def _batch_norm(call: Call) -> Value:
    x, weight, bias, mean, var = call.args[:5]
    if mean is None or var is None or (call.name != "_native_batch_norm_legit_no_training" and call.args[5]):
        raise NotPiecewiseAffine("a batch-norm with statistics of the batch")
    eps = call.args[-1] if call.name != "cudnn_batch_norm" else call.args[7]
    if any(call.value(t) is not None for t in (weight, bias, mean, var)):
        raise NotPiecewiseAffine("a batch-norm whose parameters depend on the input")
    factor = 1 / torch.sqrt(snapshot(var).double() + eps)
    if weight is not None:
        factor = factor * snapshot(weight).double()
    offset = -snapshot(mean).double() * factor
    if bias is not None:
        offset = offset + snapshot(bias).double()
    node = call.emit(affine.channel_affine(factor, offset), call.unmerged(x))
    return Value(node)


_AFFINE: dict[str, Translation] = {
    **dict.fromkeys(_SPATIAL.split(), _spatial),
    **dict.fromkeys(_RESHAPES.split(), _reshape),
    **dict.fromkeys([*_IDENTITIES.split(), "_to_copy"], _same),
    **dict.fromkeys(["permute", "transpose", "t"], _permute),
    **dict.fromkeys(["add", "sub", "rsub"], _add),
    **dict.fromkeys(["addmm", "mm", "mv", "linear"], _product),
    **dict.fromkeys(
        ["native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"], _batch_norm
    ),
    **dict.fromkeys(["mean", "sum", "flip", "roll"], _along(1, "dim", "dims")),
    **dict.fromkeys(["split", "split_with_sizes", "chunk"], _along(2, "dim")),
    **dict.fromkeys(["select", "unbind", "narrow", "index_select", "diagonal"], _along(1, "dim")),
    "constant_pad_nd": _pad,
    "slice": _slice,
    "index": _index,
    "expand": _expand,
    "repeat": _repeat,
    "cat": _join,
    "stack": _join,
    "mul": _multiply,
    "div": _divide,
    "neg": _negate,
    "convolution": _convolution,
    "_convolution": _convolution,
}


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


_PIECEWISE: dict[str, Translation] = {
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


def _softmax(call: Call) -> Value:
    """Foreign; over all of at least two scores of a point its name is one that may end a model."""
    name, out = call.name.lstrip("_"), call.out
    if int(call.args[1]) % max(out.ndim, 1) != out.ndim - 1:
        raise NotPiecewiseAffine(f"{name} over another axis than the last")
    if out.shape[-1] * call.n_rows != out.numel():
        raise NotPiecewiseAffine(f"{name} over a part of the scores")
    raise NotPiecewiseAffine(name if out.shape[-1] > 1 else f"{name} of one score, which is constant")


TRANSLATIONS: dict[str, Translation] = {
    **_AFFINE,
    **_PIECEWISE,
    **dict.fromkeys(["_softmax", "_log_softmax"], _softmax),
}
"""How each call becomes nodes, by its name without overload."""
