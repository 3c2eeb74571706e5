"""How calls that replace some entries of a tensor by others become nodes.

A write into part of a tensor (`out[:, :2] = h`) is such a call once torch has rewritten a module without side
effects (`torch.func.functionalize`). Which entry comes from where is found by the call itself, on numbers in
place of the entries.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from inscape.models.from_torch.moving import kept
from inscape.models.from_torch.obstacles import called
from inscape.models.from_torch.recorder import Call, CallTranslation, Value, snapshot
from inscape.models.from_torch.sums_and_products import masked_fill
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import MixesPoints, NotSupportedYet, WritesEntries

Write = Callable[[Tensor, Tensor], Tensor]
"""A call as a function of the tensor that is written into and of what is written."""


def replaced(call: Call, base: Tensor, source: Tensor, run: Write) -> Value:
    """A call that takes each entry of its result from one of two tensors."""
    like = call.value(base) or Value(0, _axis_of_points(call, base, source, run))
    numbers, fixed, end = [], [], 0
    for tensor in (base, source):
        value = call.value(tensor)
        if value is None:
            numbers.append(torch.arange(tensor.numel()).double().reshape(tensor.shape) + end)
            fixed.append((end, snapshot(tensor).reshape(-1)))
            end += tensor.numel()
        else:
            shape = value.point_shape(tensor.shape)
            size = torch.Size(shape).numel()
            points = (torch.arange(size).double() + end).reshape(shape).expand(call.n_points, *shape)
            numbers.append(value.laid(points, tensor.ndim).contiguous())
            end += size
    index = like.batched(run(*numbers)).long()
    nodes = [v.node for v in (call.value(base), call.value(source)) if v is not None]
    return like.at(call.emit(_picking(call, index, fixed), *nodes))


def _picking(call: Call, index: Tensor, fixed: Sequence[tuple[int, Tensor]]) -> Affine:
    """The entries of flat points behind each other at `index` (n, *point), constants numbered too."""
    keep = torch.ones(index.shape, dtype=torch.float64)
    fill = torch.zeros(index.shape, dtype=torch.float64)
    n_ahead = 0  # constants in front, which are not in the points
    for start, values in fixed:
        inside = (index >= start) & (index < start + len(values))
        fill[inside] = values[index[inside] - start].double()
        keep[inside] = 0.0
        n_ahead += len(values) if start == 0 else 0
    positions = torch.where(keep > 0, index - n_ahead, 0)
    for array in (keep, positions, fill):
        if not torch.equal(array, array[:1].expand_as(array)):
            raise MixesPoints(called(call.name), "that differs from point to point")
    chosen = positions[0]

    def apply(*tensors: Tensor) -> Tensor:
        points, (k, f) = tensors[:-2], tensors[-2:]
        return torch.cat([r.reshape(len(r), -1) for r in points], dim=1)[:, chosen] * k + f

    return Affine("write", apply, (keep[0], fill[0]), n_offsets=1)


def _axis_of_points(call: Call, base: Tensor, source: Tensor, run: Write) -> int:
    """The axis of a constant along which the points of what is written into it lie."""
    value = call.varying(source)
    shape = value.point_shape(source.shape)
    points = torch.arange(1.0, call.n_points + 1).reshape(-1, *(1,) * len(shape)).expand(-1, *shape)
    marks = run(torch.zeros(base.shape), value.laid(points, source.ndim))
    where = marks.nonzero()
    fitting = [a for a in range(base.ndim) if torch.equal(where[:, a] + 1.0, marks[tuple(where.T)])]
    if len(fitting) != 1 or base.shape[fitting[0]] != call.n_points:
        raise NotSupportedYet(called(call.name))
    return fitting[0]


def _scatter(call: Call) -> Value:
    rest = kept(call.args[2:])
    return replaced(call, call.args[0], call.args[1], lambda b, s: call.function(b, s, *rest))


def _index_put(call: Call) -> Value:
    """The assignment h[h < 0] = number, or one to positions that are fixed."""
    x, indices, values = call.args[:3]
    if call.argument(3, "accumulate", False):
        raise WritesEntries("that adds to it")
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and call.value(mask) is not None and values.numel() == 1 and mask.shape == x.shape:
        return masked_fill(call, x, mask, values)
    if any(call.value(i) is not None for i in indices):
        raise WritesEntries("at positions that depend on the input")
    positions = kept(indices)
    return replaced(call, x, values, lambda b, s: call.function(b, positions, s.to(b.dtype)))


def _copy(call: Call) -> Value | list[Value | None]:
    """What is copied, in the shape of what it is copied into."""
    target, source = call.args[:2]
    value = call.value(source)
    if value is None:
        return [None]
    missing = target.ndim - source.ndim
    if missing < 0 or source.shape[value.axis] != target.shape[value.axis + missing]:
        raise WritesEntries()
    value = call.aligned(value, source, target.ndim)
    if source.shape == target.shape:
        return value
    return value.at(call.emit(affine.expand(value.point_shape(target.shape)), value.node))


def _forgotten(call: Call) -> list[Value | None]:
    """A constant, whatever was there before."""
    for argument in call.args[1:]:
        call.fixed(argument, "value")
    return [None]


REPLACEMENTS: dict[str, CallTranslation] = {
    **dict.fromkeys(["slice_scatter", "select_scatter", "diagonal_scatter"], _scatter),
    "index_put": _index_put,
    "copy": _copy,
    **dict.fromkeys(["fill", "zero"], _forgotten),
}
"""How each call becomes nodes, by its name without overload."""
