"""How ONNX arithmetic, normalisation, reductions, comparisons and the choices made by them become nodes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Array, Shape
from inscape.models.decision_rules import NeverTaken, inverse_of
from inscape.models.from_onnx.shapes import full
from inscape.models.from_onnx.steps import (
    ComparisonMask,
    FileValue,
    NodeTranslation,
    Step,
    Varying,
    integers,
    path_of,
    point_shape,
    tensor,
    unknown,
)
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.gates import Both, Condition, Not, Positive, mapped
from inscape.models.graph.network import Foreign, MixesPoints, NotPiecewiseAffine, NotSupportedYet, Unreadable
from inscape.models.graph.piecewise import Bend, Leaky

# elementwise arithmetic


def broadcast(a: Shape, b: Shape) -> tuple[Shape, Shape, Shape]:
    """The shapes of a point of two tensors that meet entry by entry, and the shape of the result.

    Both have as many axes as the result's: sizes of one are put in front.
    """
    shape = np.broadcast_shapes(a, b)
    drop = 1 if len(shape) > 1 and shape[0] == 1 else 0
    points = [((1,) * (len(shape) - len(s)) + s)[drop:] for s in (a, b)]
    return points[0], points[1], shape


def shifted(step: Step, live: Varying, offset: Array) -> Varying:
    """A tensor plus a constant."""
    varying, fixed, shape = broadcast(live.shape, offset.shape)
    node, constant = step.laid(live, varying), tensor(offset).reshape(fixed)
    biased = _with_bias(step, node, constant)
    if biased is not None:
        return Varying(biased, shape)
    channels = _per_channel(step, node, constant)
    if channels is not None:
        op = affine.channel_affine(torch.ones_like(channels), channels, len(step.reader.shape(node)))
        return Varying(step.emit(op, node), shape)
    return Varying(step.emit(affine.shift(constant), node), shape)


def scaled(step: Step, live: Varying, factor: Array) -> Varying:
    """A tensor times a constant."""
    varying, fixed, shape = broadcast(live.shape, factor.shape)
    node, constant = step.laid(live, varying), tensor(factor).reshape(fixed)
    channels = _per_channel(step, node, constant)
    if channels is not None:
        op = affine.channel_affine(channels, torch.zeros_like(channels), len(step.reader.shape(node)))
        return Varying(step.emit(op, node), shape)
    return Varying(step.emit(affine.scale(constant), node), shape)


def _with_bias(step: Step, node: int, constant: Tensor) -> int | None:
    """A node W x + c instead of the node W x, if the constant lies along the axis of its results."""
    before = step.reader.nodes[node]
    weight = before.op.matrix
    if weight is None or len(before.op.constants) > 1:
        return None
    if constant.numel() != len(weight) or constant.shape[-1] != len(weight) or constant.dtype != weight.dtype:
        return None
    return step.emit(affine.linear(weight, constant.reshape(-1)), *before.inputs)


def _per_channel(step: Step, node: int, constant: Tensor) -> Tensor | None:
    """The constant as (channels,) if the node is a map whose channels can absorb it; see `folding.folded`."""
    op, sizes = step.reader.nodes[node].op, step.reader.shape(node)
    if op.then is None or not sizes or (op.matrix is not None and len(sizes) > 1):
        return None
    if constant.numel() not in (1, sizes[0]) or constant.shape[0] not in (1, sizes[0]):
        return None
    if constant.numel() > 1 and constant.shape[0] == 1:
        return None
    return constant.reshape(-1).double().expand(sizes[0]).contiguous()


def combined(step: Step, op: Affine, a: Varying, b: Varying) -> Varying:
    """An affine operation on two tensors, entry by entry."""
    of_a, of_b, shape = broadcast(a.shape, b.shape)
    return Varying(step.emit(op, step.laid(a, of_a), step.laid(b, of_b)), shape)


def negated(step: Step, live: Varying) -> Varying:
    """A tensor times -1."""
    return scaled(step, live, np.array(-1.0))


def applied(step: Step, op: Bend, live: Varying) -> Varying:
    """An elementwise function that needs no particular shape."""
    return Varying(step.emit(op, live.node), live.shape)


def added(step: Step, a: Varying | Array, b: Varying | Array) -> Varying:
    """The sum of two tensors, at least one of which varies."""
    if isinstance(a, Varying) and isinstance(b, Varying):
        return combined(step, affine.add(), a, b)
    live, offset = (a, b) if isinstance(a, Varying) else (b, a)
    assert isinstance(live, Varying)
    assert not isinstance(offset, Varying)
    return shifted(step, live, offset)


def folded_over(step: Step, function: Callable[[Step, Varying | Array, Varying | Array], Varying]) -> Varying:
    """A function of two tensors applied along all inputs of a node."""
    operands = [p for i in range(len(step.inputs)) if (p := step.given(i)) is not None]
    operands.sort(key=lambda p: not isinstance(p, Varying))  # so that the first one varies
    result = operands[0]
    for operand in operands[1:]:
        result = function(step, result, operand)
    assert isinstance(result, Varying)
    return result


def _sum(step: Step) -> FileValue:
    return folded_over(step, added)


def _mean(step: Step) -> FileValue:
    return scaled(step, folded_over(step, added), np.array(1 / len(step.inputs)))


def _subtract(step: Step) -> FileValue:
    a, b = step.given(0), step.given(1)
    if isinstance(a, Varying) and isinstance(b, Varying):
        return combined(step, affine.subtract(), a, b)
    if isinstance(a, Varying):
        return shifted(step, a, -step.required(1))
    return shifted(step, negated(step, step.live(1)), step.required(0))


def _multiply(step: Step) -> FileValue:
    masks = [v for v in step.inputs if isinstance(v, ComparisonMask)]
    if masks:
        return _gated(step, masks)
    a, b = step.given(0), step.given(1)
    if isinstance(a, Varying) and isinstance(b, Varying):
        raise NotPiecewiseAffine("Mul of two values that depend on the input")
    varying = 0 if isinstance(a, Varying) else 1
    return scaled(step, step.live(varying), step.required(1 - varying))


def _gated(step: Step, masks: list[ComparisonMask]) -> Varying | ComparisonMask:
    """The product of a value and a comparison, or of two comparisons."""
    if len(masks) == 2:
        both = Both(masks[0].condition, masks[1].condition)
        return ComparisonMask(both, np.broadcast_shapes(masks[0].shape, masks[1].shape), masks[0].origin)
    side = step.given(1 if isinstance(step.inputs[0], ComparisonMask) else 0)
    assert side is not None
    return chosen(step, masks[0], side, np.zeros(()))


def chosen(step: Step, mask: ComparisonMask, a: Varying | Array, b: Varying | Array) -> Varying:
    """The first of two where a comparison holds, else the second, if the two meet in between."""
    shape = np.broadcast_shapes(mask.shape, a.shape, b.shape)
    drop = 1 if len(shape) > 1 and shape[0] == 1 else 0

    def padded(of: Shape) -> Shape:
        return ((1,) * (len(shape) - len(of)) + tuple(of))[drop:]

    condition = mapped(
        mask.condition, lambda node: step.reader.laid(node, padded(mask.shape), path_of(step.node))
    )
    sides = [
        step.laid(s, padded(s.shape)) if isinstance(s, Varying) else tensor(s).reshape(padded(s.shape))
        for s in (a, b)
    ]
    try:
        node = step.reader.gates.where(condition, *sides)
    except Unreadable as reason:
        raise type(reason)(step.kind, f"({reason})") from reason
    if not isinstance(node, int) or step.reader.shape(node) != shape[drop:]:
        raise NotSupportedYet(f"{step.kind} that widens a comparison")
    return Varying(node, shape)


def _power(step: Step) -> FileValue:
    """The power one, which is no operation."""
    if (step.required(1) != 1).any():
        raise unknown("Pow")
    return step.live()


def _divide(step: Step) -> FileValue:
    if isinstance(step.given(1), Varying):
        raise NotPiecewiseAffine("Div by a value that depends on the input")
    return scaled(step, step.live(), 1 / step.required(1).astype(np.float64))


def _negate(step: Step) -> FileValue:
    return negated(step, step.live())


# normalisation and reductions


def _batch_norm(step: Step) -> FileValue:
    live = step.live()
    gamma, beta, mean, var = (tensor(step.required(i)).double() for i in range(1, 5))
    n_read = sum(bool(name) for name in step.node.output)
    if step.attributes.get("training_mode", 0) or (n_read > 1 and step.opset >= 14):
        raise MixesPoints("BatchNormalization with statistics of the batch")
    if len(live.shape) < 2 or live.shape[0] != 1:
        raise NotSupportedYet(f"BatchNormalization of a tensor of shape {live.shape}")
    factor = gamma / torch.sqrt(var + float(step.attributes.get("epsilon", 1e-5)))
    node = step.laid(live)
    before = step.reader.nodes[node].affine
    if before is not None and before.matrix is not None and len(live.shape) > 2:
        # its channels are another axis than those of a linear map, which must not absorb it
        node = step.emit(affine.reshape(point_shape(live.shape)), node)
    return Varying(step.emit(affine.channel_affine(factor, beta - mean * factor), node), live.shape)


def reduced_axes(step: Step, live: Varying) -> list[int]:
    """The axes that a reduction is over, from an attribute or an input; all of them if none is given."""
    given, rank = step.constant(1, "axes"), len(live.shape)
    none = given is None or given.size == 0
    if none and step.attributes.get("noop_with_empty_axes", 0):
        return []
    axes = list(range(rank)) if none or given is None else sorted(a % rank for a in integers(given))
    if axes[:1] == [0] and live.shape[0] == 1 and step.reader.batch is None:
        raise MixesPoints(f"{step.kind} over the batch axis")
    return axes


def reduced(step: Step, live: Varying, axes: list[int], make: Callable[[Shape], Affine | Bend]) -> Varying:
    """A reduction over axes, by the operation that `make` gives for axes of a point."""
    keep = bool(step.attributes.get("keepdims", 1))
    shape = tuple((1 if keep else None) if a in axes else n for a, n in enumerate(live.shape))
    kept = tuple(n for n in shape if n is not None)
    long = [a for a in axes if live.shape[a] != 1]
    if not long:
        return step.reshaped(live, kept)
    node, missing, _ = full(step, live, *long)
    return Varying(step.emit(make(tuple(a - missing for a in long)), node), kept)


def _reduce_mean(step: Step) -> FileValue:
    live = step.live()
    return reduced(step, live, reduced_axes(step, live), affine.mean)


def _reduce_sum(step: Step) -> FileValue:
    live = step.live()
    return reduced(step, live, reduced_axes(step, live), affine.total)


def _reduce_l1(step: Step) -> FileValue:
    live = applied(step, Leaky(-1.0, name="abs"), step.live())
    return reduced(step, live, reduced_axes(step, live), affine.total)


def _global_average(step: Step) -> FileValue:
    live = step.live()
    return reduced(step, live, list(range(2, len(live.shape))), affine.mean)


_SIGNS = {"Greater": 1.0, "GreaterOrEqual": 1.0, "Less": -1.0, "LessOrEqual": -1.0}


def _compare(step: Step) -> FileValue:
    """What is compared, for a choice to ask."""
    a, b = _before_function(step) or (step.given(0), step.given(1))
    if _SIGNS[step.kind] < 0:
        a, b = b, a
    if isinstance(a, Varying) and isinstance(b, Varying):
        difference = combined(step, affine.subtract(), a, b)
    elif isinstance(a, Varying):
        assert isinstance(b, np.ndarray)
        difference = _beside(step, a, -b) if b.any() else a
    else:
        assert isinstance(b, Varying)
        assert isinstance(a, np.ndarray)
        difference = _beside(step, negated(step, b), a) if a.any() else negated(step, b)
    return _compared(step, Positive(step.laid(difference)), difference.shape)


def _beside(step: Step, live: Varying, offset: Array) -> Varying:
    """A tensor plus a constant as a node behind it, so that it can be told that both are the same value."""
    varying, fixed, shape = broadcast(live.shape, offset.shape)
    return Varying(step.emit(affine.shift(tensor(offset).reshape(fixed)), step.laid(live, varying)), shape)


def _before_function(step: Step) -> tuple[Varying, Array] | None:
    """Instead of sigmoid(z) and 1/2, for example, z and 0; None if there is nothing of the kind."""
    live, number = step.inputs[:2]
    if not isinstance(live, Varying) or live.head is None or not isinstance(number, np.ndarray):
        return None
    inverse = inverse_of(live.head.name)
    if inverse is None or number.size > 1:
        return None
    try:
        return replace(live, head=None), np.array(inverse(float(number.item())))
    except NeverTaken:
        return None


def _compared(step: Step, condition: Condition, shape: Shape) -> ComparisonMask:
    return ComparisonMask(condition, shape, Foreign(step.kind, path_of(step.node), type(unknown(step.kind))))


def _masks(step: Step) -> list[ComparisonMask]:
    masks = [v for v in step.inputs if isinstance(v, ComparisonMask)]
    if len(masks) < len(step.inputs) or len({m.shape for m in masks}) > 1:
        raise NotSupportedYet(f"{step.kind} of anything but two comparisons of one shape")
    return masks


def _not(step: Step) -> FileValue:
    (mask,) = _masks(step)
    return _compared(step, Not(mask.condition), mask.shape)


def _and(step: Step) -> FileValue:
    a, b = _masks(step)
    return _compared(step, Both(a.condition, b.condition), a.shape)


def _or(step: Step) -> FileValue:
    a, b = _masks(step)
    return _compared(step, Not(Both(Not(a.condition), Not(b.condition))), a.shape)


def _where(step: Step) -> FileValue:
    mask = step.inputs[0]
    if isinstance(mask, ComparisonMask):
        return chosen(step, mask, _side(step, 1), _side(step, 2))
    keep = step.required(0).astype(np.float64)
    total: Varying | None = None
    for position, weight in ((1, keep), (2, 1 - keep)):
        side = _side(step, position)
        if isinstance(side, Varying):
            kept = scaled(step, side, weight)
            total = kept if total is None else combined(step, affine.add(), total, kept)
    fill = sum((np.where(p > 0, s, 0.0) for p, s in _constants(step, keep)), np.zeros(()))
    assert total is not None
    return shifted(step, total, fill) if np.any(fill) or fill.ndim > len(total.shape) else total


def _constants(step: Step, keep: Array) -> list[tuple[Array, Array]]:
    sides = ((keep, _side(step, 1)), (1 - keep, _side(step, 2)))
    return [(p, s.astype(np.float64)) for p, s in sides if not isinstance(s, Varying)]


def _side(step: Step, position: int) -> Varying | Array:
    side = step.given(position)
    assert side is not None
    return side


def _cumulated(step: Step) -> FileValue:
    live = step.live()
    axis = int(step.required(1).item()) % len(live.shape)
    if live.shape[axis] == 1:
        return scaled(step, live, np.array(0.0)) if step.attributes.get("exclusive", 0) else live
    node, missing, _ = full(step, live, axis)
    exclusive, reverse = (bool(step.attributes.get(name, 0)) for name in ("exclusive", "reverse"))
    op = affine.cumulated(axis - missing, exclusive=exclusive, reverse=reverse)
    return Varying(step.emit(op, node), live.shape)


def _triangle(step: Step) -> FileValue:
    live, k = step.live(), step.constant(1)
    ones: Array = np.ones(live.shape[-2:])
    offset = 0 if k is None else int(k.item())
    keep = np.triu(ones, offset) if step.attributes.get("upper", 1) else np.tril(ones, offset)
    return scaled(step, live, keep)


TRANSLATIONS: dict[str, NodeTranslation] = {
    "Add": _sum,
    "Sum": _sum,
    "Mean": _mean,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "Neg": _negate,
    "BatchNormalization": _batch_norm,
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "ReduceL1": _reduce_l1,
    "Pow": _power,
    "GlobalAveragePool": _global_average,
    **dict.fromkeys(_SIGNS, _compare),
    "Not": _not,
    "And": _and,
    "Or": _or,
    "Where": _where,
    "CumSum": _cumulated,
    "Trilu": _triangle,
}
