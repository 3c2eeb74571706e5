"""How ONNX operations that move, select or copy entries become nodes.

Where entries go that are picked by constant positions is found by the operation itself, as the reference
implementation of the standard has it, on numbers in place of the entries.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Array, Shape
from inscape.models.from_onnx.steps import (
    ComparisonMask,
    FileValue,
    NodeTranslation,
    Step,
    Varying,
    evaluated,
    integers,
    point_shape,
    tensor,
)
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import IsRandom, Jumps, NotPiecewiseAffine, NotSupportedYet


def full(step: Step, live: Varying, *axes: int) -> tuple[int, int, Shape]:
    """A node whose points have the given axes of a tensor, how many leading axes they lack, and their shape.

    The batch axis, of size one, is left out unless it is among the axes.
    """
    shape = point_shape(live.shape)
    missing = len(live.shape) - len(shape)
    if missing and 0 in axes:
        shape, missing = live.shape, 0
    return step.laid(live, shape), missing, shape


def _same(step: Step) -> FileValue:
    return step.live(behind_head=True)


def _dropout(step: Step) -> FileValue:
    training = step.constant(2)
    if training is not None and bool(training.item()):
        raise IsRandom("Dropout in training mode")
    return step.live(behind_head=True)


def _cast(step: Step) -> FileValue:
    from onnx import TensorProto

    target = int(step.attributes["to"])
    if isinstance(step.inputs[0], ComparisonMask):
        return step.inputs[0]
    live, name = step.live(behind_head=True), TensorProto.DataType.Name(target).lower()
    if target in (TensorProto.FLOAT16, TensorProto.BFLOAT16) and step.reader.dtype != torch.float16:
        raise NotPiecewiseAffine(f"Cast to {name}, whose rounding makes steps,")
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    if target not in floats and (live.head is None or live.head.name != "argmax"):
        raise Jumps(f"Cast to {name}")
    return live


def _shape(step: Step) -> FileValue:
    shape = step.live(behind_head=True).shape
    return np.array(shape[step.attributes.get("start", 0) : step.attributes.get("end")], np.int64)


def _size(step: Step) -> FileValue:
    return np.array(math.prod(step.live(behind_head=True).shape), np.int64)


def _reshape(step: Step) -> FileValue:
    live = step.live(behind_head=True)
    target = list(integers(step.required(1, "shape")))
    if not step.attributes.get("allowzero", 0):
        target = [live.shape[i] if n == 0 else n for i, n in enumerate(target)]
    size, batch = math.prod(live.shape), step.reader.batch
    if batch is not None and target[:1] == [batch] and (-1 in target or math.prod(target) != size):
        target[0] = 1  # the file's fixed batch, of which one point is read
    if -1 in target:
        rest = -math.prod(target)
        target = [size // rest if n == -1 and rest else n for n in target]
    return step.reshaped(live, target)


def _flatten(step: Step) -> FileValue:
    live = step.live(behind_head=True)
    axis = int(step.attributes.get("axis", 1))
    axis += len(live.shape) if axis < 0 else 0
    return step.reshaped(live, (math.prod(live.shape[:axis]), math.prod(live.shape[axis:])))


def _squeeze(step: Step) -> FileValue:
    live, given = step.live(behind_head=True), step.constant(1, "axes")
    rank = len(live.shape)
    if given is None:
        # a file that takes any number of points keeps their axis
        first = 1 if step.reader.batch is None else 0
        axes = [i for i, n in enumerate(live.shape) if n == 1 and i >= first]
    else:
        axes = [i % rank for i in integers(given)]
    return step.reshaped(live, [n for i, n in enumerate(live.shape) if i not in axes])


def _unsqueeze(step: Step) -> FileValue:
    live, given = step.live(behind_head=True), step.required(1, "axes")
    rank = len(live.shape) + given.size
    axes, sizes = {i % rank for i in integers(given)}, iter(live.shape)
    return step.reshaped(live, [1 if i in axes else next(sizes) for i in range(rank)])


def transposed(step: Step, live: Varying, order: Sequence[int]) -> Varying:
    """The axes of a tensor in another order; moving axes of size one is no operation."""
    shape = tuple(live.shape[a] for a in order)
    long = [a for a in order if live.shape[a] != 1]
    if long == sorted(long):
        return replace(live, shape=shape)
    node, missing, _ = full(step, live)
    moved = step.emit(affine.permute([a - missing for a in order if a >= missing]), node)
    return Varying(moved, shape)


def _transpose(step: Step) -> FileValue:
    live = step.live()
    return transposed(step, live, step.attributes.get("perm", range(len(live.shape))[::-1]))


def _along(live: Varying, axis: int, size: int) -> Shape:
    return (*live.shape[:axis], size, *live.shape[axis + 1 :])


def taken(step: Step, live: Varying, axis: int, indices: Array) -> Varying:
    """The entries at constant indices (m,) along an axis."""
    size = live.shape[axis]
    chosen = np.where(indices < 0, indices + size, indices).astype(np.int64)
    if ((chosen < 0) | (chosen >= size)).any():
        raise NotSupportedYet(f"{step.kind} beyond the end of an axis of size {size}")
    if np.array_equal(chosen, np.arange(size)):
        return live
    node, missing, _ = full(step, live, axis)
    strides = np.diff(chosen)
    if len(chosen) > 1 and (strides == strides[0]).all() and strides[0] > 0:
        op = affine.sliced(axis - missing, int(chosen[0]), int(chosen[-1]) + 1, int(strides[0]))
    else:
        op = affine.take(axis - missing, torch.from_numpy(chosen))
    return Varying(step.emit(op, node), _along(live, axis, len(chosen)))


def _gather(step: Step) -> FileValue:
    live, indices = step.live(), step.required(1)
    axis = step.axis(0, len(live.shape))
    entries = taken(step, live, axis, indices.reshape(-1))
    return step.reshaped(entries, (*live.shape[:axis], *indices.shape, *live.shape[axis + 1 :]))


def _slice(step: Step) -> FileValue:
    live = step.live()
    starts, ends = step.required(1, "starts"), step.required(2, "ends")
    axes, steps = step.constant(3, "axes"), step.constant(4)
    for i, (start, end) in enumerate(zip(integers(starts), integers(ends), strict=True)):
        axis = (i if axes is None else integers(axes)[i]) % len(live.shape)
        stride, size = 1 if steps is None else integers(steps)[i], live.shape[axis]
        # a file that counts down to the very first entry says so by an end below -size
        stop = None if stride < 0 and end < -size else end
        live = taken(step, live, axis, np.arange(size)[slice(start, stop, stride)])
    return live


def _split(step: Step) -> list[FileValue]:
    live, given = step.live(), step.constant(1, "split")
    axis = step.axis(0, len(live.shape))
    size, n = live.shape[axis], len(step.node.output)
    length = -(-size // n)
    sizes = [min(length, size - i * length) for i in range(n)] if given is None else integers(given)
    ends = np.cumsum(sizes)
    return [taken(step, live, axis, np.arange(e - s, e)) for s, e in zip(sizes, ends, strict=True)]


def _concat(step: Step) -> FileValue:
    operands = [p for i in range(len(step.inputs)) if (p := step.given(i)) is not None]
    return joined(step, operands, step.axis(1, len(operands[0].shape)))


def joined(step: Step, operands: Sequence[Varying | Array], axis: int) -> Varying:
    """Tensors joined along an axis; some of them may be constant."""
    shapes = [tuple(p.shape) for p in operands]
    missing = 1 if axis > 0 and all(s[0] == 1 for s in shapes) else 0
    varying = [isinstance(p, Varying) for p in operands]
    fixed = [
        tensor(p).reshape(1, *s[missing:])
        for p, s in zip(operands, shapes, strict=True)
        if not isinstance(p, Varying)
    ]

    def apply(*tensors: Tensor) -> Tensor:
        moving, constant = iter(tensors), iter(tensors[sum(varying) :])
        n = len(tensors[0])
        joined = [next(moving) if v else (c := next(constant)).expand(n, *c.shape[1:]) for v in varying]
        return torch.cat(joined, dim=axis - missing + 1)

    nodes = [step.laid(p, p.shape[missing:]) for p in operands if isinstance(p, Varying)]
    total = sum(s[axis] for s in shapes)
    return Varying(
        step.emit(Affine("concat", apply, tuple(fixed), n_offsets=len(fixed)), *nodes),
        (*shapes[0][:axis], total, *shapes[0][axis + 1 :]),
    )


def _pad(step: Step) -> FileValue:
    live, given = step.live(), step.required(1, "pads")
    value, axes = step.constant(2, "value"), step.constant(3)
    rank, mode = len(live.shape), step.attributes.get("mode", "constant")
    where = range(rank) if axes is None else [a % rank for a in integers(axes)]
    widths: dict[int, Any] = dict(zip(where, np.reshape(given, (2, -1)).T.tolist(), strict=True))
    moved = {a: w for a, w in widths.items() if any(w)}
    if mode != "constant":
        for axis, (before, after) in moved.items():
            numbers = np.arange(live.shape[axis])
            live = taken(step, live, axis, np.pad(numbers, (before, after), mode=mode))
        return live
    node, missing, _ = full(step, live, *moved)
    flat = [w for a in reversed(range(missing, rank)) for w in moved.get(a, (0, 0))]
    op = affine.pad(flat, value=0.0 if value is None else float(value.reshape(-1)[0]))
    shape = [n + sum(moved.get(i, (0, 0))) for i, n in enumerate(live.shape)]
    return Varying(step.emit(op, node), tuple(shape)) if moved else live


def expanded(step: Step, live: Varying, target: Shape) -> Varying:
    """A tensor broadcast together with `target`."""
    shape = np.broadcast_shapes(live.shape, target)
    if math.prod(shape) == math.prod(live.shape):
        return step.reshaped(live, shape)
    padded = (1,) * (len(shape) - len(live.shape)) + live.shape
    drop = 1 if len(shape) > 1 and shape[0] == 1 else 0
    node = step.laid(live, padded[drop:])
    return Varying(step.emit(affine.expand(shape[drop:]), node), shape)


def _expand(step: Step) -> FileValue:
    return expanded(step, step.live(), integers(step.required(1)))


def _tile(step: Step) -> FileValue:
    live = step.live()
    for axis, times in enumerate(integers(step.required(1))):
        if times != 1:
            live = taken(step, live, axis, np.tile(np.arange(live.shape[axis]), times))
    return live


def _picked(step: Step) -> FileValue:
    """An operation whose first input varies and whose result holds entries of it only."""
    live = step.live()
    rest = [step.constant(i) for i in range(1, len(step.inputs))]
    numbers = np.arange(math.prod(live.shape), dtype=np.float64).reshape(live.shape)
    (positions,) = evaluated(step.node, [numbers, *rest], step.reader.opsets)
    node = step.laid(live, (math.prod(live.shape),))
    chosen = torch.from_numpy(positions.reshape(-1).astype(np.int64))
    return Varying(step.emit(affine.take(0, chosen), node), positions.shape)


def _scattered(step: Step) -> FileValue:
    """A tensor with some entries replaced by those of another, either of which may be constant."""
    if step.attributes.get("reduction", "none") != "none":
        raise NotSupportedYet(f"{step.kind} with a reduction")
    data, positions, updates = step.given(0), step.required(1), step.given(2)
    assert data is not None
    assert updates is not None
    both = [data, updates]
    sizes = [math.prod(p.shape) for p in both]
    first = np.arange(sizes[0], dtype=np.float64).reshape(data.shape)
    second = sizes[0] + np.arange(sizes[1], dtype=np.float64).reshape(updates.shape)
    (sources,) = evaluated(step.node, [first, positions, second], step.reader.opsets)
    chosen = torch.from_numpy(sources.reshape(-1).astype(np.int64))
    varying = [isinstance(p, Varying) for p in both]
    fixed = [tensor(p).reshape(1, -1) for p in both if not isinstance(p, Varying)]

    def apply(*tensors: Tensor) -> Tensor:
        moving, constant = iter(tensors), iter(tensors[sum(varying) :])
        n = len(tensors[0])
        joined = [next(moving) if v else next(constant).expand(n, -1) for v in varying]
        return torch.cat(joined, dim=1)[:, chosen]

    nodes = [step.laid(p, (math.prod(p.shape),)) for p in both if isinstance(p, Varying)]
    op = Affine("scatter", apply, tuple(fixed), n_offsets=len(fixed))
    return Varying(step.emit(op, *nodes), sources.shape)


TRANSLATIONS: dict[str, NodeTranslation] = {
    "Identity": _same,
    "Dropout": _dropout,
    "Cast": _cast,
    "Shape": _shape,
    "Size": _size,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Gather": _gather,
    "Slice": _slice,
    "Split": _split,
    "Concat": _concat,
    "Pad": _pad,
    "Expand": _expand,
    "Tile": _tile,
    **dict.fromkeys(
        ["GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Compress"], _picked
    ),
    **dict.fromkeys(["ScatterElements", "ScatterND"], _scattered),
}
