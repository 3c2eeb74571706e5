"""How affine ATen operations become nodes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.recorder import Call, Translation, Value, snapshot
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotPiecewiseAffine

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


TRANSLATIONS: dict[str, Translation] = {
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
