"""How ATen calls that move, select, copy or add up entries become nodes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.obstacles import called, unknown
from inscape.models.from_torch.recorder import Call, CallTranslation, Value, snapshot
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.gates import Condition, Positive
from inscape.models.graph.network import Jumps, MixesPoints, NotPiecewiseAffine, NotSupportedYet

# same arguments for any number of points: pooling, padding and resampling of the axes after the channels
_SPATIAL = (
    "avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d _upsample_bilinear2d_aa pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im"
)
COMPARISONS = {"gt": 1.0, "ge": 1.0, "lt": -1.0, "le": -1.0}
_RESHAPES = "view _unsafe_view reshape flatten unsqueeze squeeze _reshape_alias unflatten"
_IDENTITIES = "clone detach alias contiguous lift_fresh dropout native_dropout feature_dropout"


def kept(argument: Any) -> Any:
    """An argument with private copies of its tensors."""
    if isinstance(argument, list | tuple):
        return [kept(a) for a in argument]
    return snapshot(argument) if isinstance(argument, Tensor) else argument


def again(call: Call) -> Callable[[Tensor], Any]:
    """The call itself on another first argument, in whatever precision that has."""
    function, rest = call.function, kept(call.args[1:])
    kwargs = {name: kept(value) for name, value in call.kwargs.items() if name != "dtype"}
    return lambda x: function(x, *rest, **kwargs)


def on_slices(op: Affine, value: Value) -> Affine:
    """An operation on images (n, c, ...), for a batch (k, c, ...) if the value is so merged."""
    if not value.is_merged:
        return op

    def apart(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def apply(x: Tensor, *constants: Tensor) -> Tensor:
            each = function(x.flatten(0, 1), *constants)
            return each.reshape(len(x), -1, *each.shape[1:])

        return apply

    absolute = None if op.absolute is None else apart(op.absolute)
    return replace(op, function=apart(op.function), absolute=absolute, then=None, geometry=None)


def replayed(call: Call, value: Value, output: int | None = None, *, moves: bool = False) -> Value:
    """The call itself with the same arguments, which must treat points alike, for any number of points.

    A batch axis that is the first one is taken to stay so, unless the call `moves` it.
    """
    run, n_axes = again(call), call.args[0].ndim

    def chosen(x: Tensor) -> Tensor:
        result: Tensor = run(x) if output is None else run(x)[output]
        return result

    out = call.out if output is None else call.out[output]
    stays = value.axis == 0 and not moves
    moved = value if stays else replace(value, axis=_batch_axis(chosen, value, call.args[0], out))
    op = affine.structural(called(call.name), lambda x: moved.batched(chosen(value.laid(x, n_axes))))
    return moved.at(call.emit(op, value.node))


def _batch_axis(run: Callable[[Tensor], Tensor], value: Value, x: Tensor, out: Tensor) -> int:
    """Where the points are in a result: along the axis that grows with their number."""
    n_points = x.shape[value.axis] // (value.before * value.after)
    shape = value.point_shape(x.shape)
    more = run(value.laid(torch.zeros(n_points + 1, *shape, dtype=x.dtype), x.ndim))
    grown = [a for a, (m, n) in enumerate(zip(more.shape, out.shape, strict=True)) if m != n]
    if len(grown) != 1:
        raise NotSupportedYet("an operation", "that moves the batch axis out of sight")
    return grown[0]


def _spatial(call: Call) -> Value:
    value = call.image(call.args[0])
    op = affine.structural(called(call.name), again(call))
    return value.at(call.emit(on_slices(op, value), value.node))


def _pad(call: Call) -> Value:
    x, widths, fill = call.args[0], call.args[1], float(call.argument(2, "value", 0.0))
    value = call.varying(x)
    if len(widths) > 2 * (x.ndim - 1 - value.axis):
        raise MixesPoints("padding", "of the batch axis")
    return value.at(call.emit(affine.pad(widths, value=fill), value.node))


def _along(position: int, name: str = "dim", default: int | None = None) -> CallTranslation:
    """An operation on given axes, none of which may be the batch axis; without a default it is over all."""

    def translate(call: Call) -> Value | list[Value | None]:
        given = call.argument(position, name, default)
        value = call.varying(call.args[0])
        check_axes(call, value, given if isinstance(given, list | tuple) else [given])
        check_fixed(call)
        if isinstance(call.out, Tensor):
            return replayed(call, value)
        return [replayed(call, value, i) for i in range(len(call.out))]

    return translate


def check_axes(call: Call, value: Value, axes: Sequence[Any]) -> None:
    """Raise an error unless an operation is over axes that are not that of the batch; none means all."""
    n_axes = call.args[0].ndim
    if not axes or any(a is None or int(a) % n_axes == value.axis for a in axes):
        raise MixesPoints(called(call.name), "over the batch axis")


def check_fixed(call: Call) -> None:
    """Raise an error if anything but the first argument depends on the input."""
    for argument in [*call.args[1:], *call.kwargs.values()]:
        for tensor in argument if isinstance(argument, list | tuple) else [argument]:
            call.fixed(tensor, "other argument")


def _diagonal(call: Call) -> Value:
    value = call.varying(call.args[0])
    check_axes(call, value, [call.argument(2, "dim1", 0), call.argument(3, "dim2", 1)])
    return replayed(call, value)


def _slice(call: Call) -> Value:
    x, value = call.args[0], call.varying(call.args[0])
    if int(call.argument(1, "dim", 0)) % x.ndim == value.axis:
        if call.out.shape == x.shape:
            return value
        raise MixesPoints("a slice", "of the batch axis")
    return replayed(call, value)


def _index(call: Call) -> Value:
    x, indices = call.args[:2]
    value = call.varying(x)
    if any(call.value(i) is not None for i in indices):
        raise NotSupportedYet("indexing", "by values that depend on the input")
    if any(i is not None and i.dtype == torch.bool and i.ndim > 1 for i in indices):
        raise NotSupportedYet("indexing", "by a mask of several axes")
    if len(indices) > value.axis and indices[value.axis] is not None:
        raise MixesPoints("indexing", "of the batch axis")
    return replayed(call, value, moves=True)


def _gather(call: Call) -> Value:
    x, dim, index = call.args[0], int(call.argument(1, "dim", 0)) % call.args[0].ndim, call.args[2]
    value = call.varying(x)
    if call.value(index) is not None:
        raise NotSupportedYet("gather", "by values that depend on the input")
    check_axes(call, value, [dim])
    chosen = call.constant_point(index, value)
    axis = value.point_axis(dim)

    def apply(batch: Tensor) -> Tensor:
        return batch.gather(axis + 1, chosen.expand(len(batch), *chosen.shape))

    return value.at(call.emit(affine.structural("gather", apply), value.node))


def _triangle(call: Call) -> Value:
    value, x = call.varying(call.args[0]), call.args[0]
    if value.axis >= x.ndim - 2:
        raise MixesPoints(called(call.name), "of the batch axis")
    keep = call.function(torch.ones(x.shape[-2:]), *call.args[1:])
    return value.at(call.emit(affine.scale(keep), value.node))


def _reshape(call: Call) -> Value:
    x, shape = call.args[0], tuple(call.out.shape)
    value = call.varying(x)
    outer = math.prod(x.shape[: value.axis]) * value.before
    inner = math.prod(x.shape[value.axis + 1 :]) * value.after
    axes = _points_in(shape, outer, call.n_points, inner)
    if axes is None:
        raise MixesPoints("a reshape", "that mixes the batch axis with others")
    result = Value(value.node, *axes)
    condition = call.recorder.conditions.get(value.node)
    if isinstance(condition, Positive):
        node = call.emit(affine.reshape(result.point_shape(shape)), condition.node)
        return compared(call, result, Positive(node))
    return result.at(call.emit(affine.reshape(result.point_shape(shape)), value.node))


def compared(call: Call, like: Value, condition: Condition) -> Value:
    """A placeholder for a comparison, which jumps; those who ask know what is compared."""
    node = call.emit_foreign(unknown(call.name if call.name in COMPARISONS else "gt"), like.node)
    call.recorder.conditions[node] = condition
    return like.at(node)


def _points_in(shape: Sequence[int], outer: int, n: int, inner: int) -> tuple[int, int, int] | None:
    """The axis that holds the n points of outer x n x inner entries, and the sizes merged with it."""
    for axis, size in enumerate(shape):
        ahead, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        if outer % ahead or (behind and inner % behind) or not behind:
            continue
        before, after = outer // ahead, inner // behind
        if size == before * n * after:
            return axis, before, after
    return None


def _permute(call: Call) -> Value:
    x, n_axes = call.args[0], call.args[0].ndim
    value, order = call.varying(x), list(range(n_axes))
    if call.name == "permute":
        order = [int(a) % n_axes for a in call.args[1]]
    elif call.name == "t":
        order = order[::-1]
    else:
        a, b = (int(v) % n_axes for v in call.args[1:3])
        order[a], order[b] = order[b], order[a]
    result = replace(value, axis=order.index(value.axis))
    inner = [value.axis + i for i in range(len(value.inner))]
    axes = [i for a in order for i in (inner if a == value.axis else [value.point_axis(a)])]
    if axes == list(range(len(axes))):
        return result
    return result.at(call.emit(affine.permute(axes), value.node))


def _expand(call: Call) -> Value:
    x, shape = call.args[0], call.out.shape
    value, missing = call.varying(x), call.out.ndim - call.args[0].ndim
    if shape[missing + value.axis] != x.shape[value.axis]:
        raise MixesPoints("an expansion", "of the batch axis")
    value = call.aligned(value, x, len(shape))
    return value.at(call.emit(affine.expand(value.point_shape(shape)), value.node))


def _repeat(call: Call) -> Value:
    x, times = call.args[:2]
    value, missing = call.varying(x), len(times) - x.ndim
    if times[missing + value.axis] != 1:
        raise MixesPoints("a repetition", "of the batch axis")
    value = call.aligned(value, x, len(times))
    counts = value.point_shape(times)
    if value.is_merged:
        counts = (*times[: value.axis], *(1 for _ in value.inner), *times[value.axis + 1 :])
    return value.at(call.emit(affine.structural("repeat", lambda b: b.repeat(1, *counts)), value.node))


def _same(call: Call) -> Value | list[Value | None]:
    value = call.varying(call.args[0])
    first = call.out if isinstance(call.out, Tensor) else call.out[0]
    if call.name == "native_dropout" and call.argument(2, "train", False):
        raise unknown("bernoulli")
    condition = call.recorder.conditions.get(value.node)
    if condition is not None:  # (h > 0).float() is as good as h > 0
        return value
    into = f"to {str(first.dtype).removeprefix('torch.')}"
    if not first.dtype.is_floating_point:
        raise Jumps("a conversion", into)
    if torch.finfo(first.dtype).bits < min(32, torch.finfo(call.args[0].dtype).bits):
        raise NotPiecewiseAffine("a conversion", f"{into}, whose rounding makes steps")
    return value


def _join(call: Call) -> Value:
    tensors, n_axes = call.args[0], call.args[0][0].ndim
    is_stack = call.name == "stack"
    dim = int(call.argument(1, "dim", 0)) % (n_axes + is_stack)
    values = [call.value(t) for t in tensors]
    first = next(v for v in values if v is not None)
    if any(v is not None and v.at(0) != first.at(0) for v in values):
        raise NotSupportedYet(called(call.name), "of tensors with different batch axes")
    if dim == first.axis and not is_stack:
        raise MixesPoints("cat", "along the batch axis")
    joined = replace(first, axis=first.axis + (is_stack and dim <= first.axis))
    constants = [call.constant_point(t, first) for t, v in zip(tensors, values, strict=True) if v is None]
    axis = joined.point_axis(dim)
    op = _joining([v is not None for v in values], constants, axis, torch.stack if is_stack else torch.cat)
    return joined.at(call.emit(op, *(v.node for v in values if v is not None)))


def _joining(varying: Sequence[bool], constants: Sequence[Tensor], axis: int, function: Any) -> Affine:
    """Tensors that vary and constants, joined along an axis of a point."""

    def apply(*tensors: Tensor) -> Tensor:
        moving, fixed = iter(tensors), iter(tensors[sum(varying) :])
        n = len(tensors[0])
        joined = [next(moving) if v else (c := next(fixed)).expand(n, *c.shape[1:]) for v in varying]
        result: Tensor = function(joined, axis + 1)
        return result

    return Affine("concat", apply, tuple(c[None] for c in constants), n_offsets=len(constants))


MOVING: dict[str, CallTranslation] = {
    **dict.fromkeys(_SPATIAL.split(), _spatial),
    **dict.fromkeys(_RESHAPES.split(), _reshape),
    **dict.fromkeys([*_IDENTITIES.split(), "_to_copy"], _same),
    **dict.fromkeys(["permute", "transpose", "t"], _permute),
    **dict.fromkeys(["mean", "sum"], _along(1)),
    "flip": _along(1, "dims"),
    "roll": _along(2, "dims"),
    **dict.fromkeys(["split", "split_with_sizes", "chunk"], _along(2, default=0)),
    **dict.fromkeys(["select", "unbind", "narrow", "index_select", "cumsum"], _along(1, default=0)),
    "unfold": _along(1, "dimension"),
    "diagonal": _diagonal,
    "constant_pad_nd": _pad,
    "slice": _slice,
    "index": _index,
    "gather": _gather,
    **dict.fromkeys(["tril", "triu"], _triangle),
    "expand": _expand,
    "repeat": _repeat,
    "cat": _join,
    "stack": _join,
}
"""How each call becomes nodes, by its name without overload."""
