"""How ATen arithmetic becomes nodes: sums, products with constants, choices."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inscape.models.from_torch.known_names import called, unknown
from inscape.models.from_torch.moving import COMPARISONS, compared
from inscape.models.from_torch.recorder import Call, Translation, Value
from inscape.models.graph import affine
from inscape.models.graph.gates import Both, Condition, Not, Operand, Positive
from inscape.models.graph.network import NotPiecewiseAffine, NotSupportedYet, Unreadable


def together(call: Call, *tensors: Any) -> tuple[Value, list[Value | Tensor]]:
    """Tensors of one entry-by-entry operation: values aligned with its result, and constants as rows.

    The first is where the points of the result are.
    """
    n_axes = max(t.ndim for t in tensors if isinstance(t, Tensor))
    values = {
        i: call.aligned(v, t, n_axes) for i, t in enumerate(tensors) if (v := call.value(t)) is not None
    }
    first = next(iter(values.values()))
    if any(v.at(0) != first.at(0) for v in values.values()):
        raise NotSupportedYet(f"{called(call.name)} of tensors with the batch axis at different places")
    return first, [
        values[i] if i in values else call.constant(t, first, n_axes) for i, t in enumerate(tensors)
    ]


def _add(call: Call) -> Value:
    """The sum a + alpha b, or for sub a - alpha b, where either may be a constant."""
    alpha = float(call.argument(2, "alpha", 1.0)) * (1 if call.name == "add" else -1)
    x, y = call.args[:2] if call.name != "rsub" else (call.args[1], call.args[0])
    opposite = _opposite(call, x, y, alpha)
    return _total(call, x, y, alpha) if opposite is None else opposite


def _opposite(call: Call, a: Any, b: Any, alpha: float) -> Value | None:
    """The condition 1 - (h > 0), which is h <= 0; None if the sum is not so."""
    value = call.value(b)
    condition = None if value is None else call.recorder.conditions.get(value.node)
    if condition is None or value is None or alpha != -1 or call.value(a) is not None:
        return None
    if bool((torch.as_tensor(a) != 1).any()):
        return None
    return compared(call, value, Not(condition))


def _total(call: Call, x: Any, y: Any, alpha: float) -> Value:
    like, (a, b) = together(call, x, y)
    if isinstance(a, Value) and isinstance(b, Value):
        return like.at(call.emit(affine.subtract() if alpha == -1 else affine.add(alpha), a.node, b.node))
    if isinstance(a, Value):
        assert isinstance(b, Tensor)
        return like.at(call.emit(affine.shift(alpha * b), a.node))
    assert isinstance(b, Value)
    node = b.node if alpha == 1 else call.emit(affine.scale(torch.tensor(alpha)), b.node)
    return like.at(call.emit(affine.shift(a), node))


def _multiply(call: Call) -> Value:
    like, (a, b) = together(call, *call.args[:2])
    if isinstance(a, Value) and isinstance(b, Value):
        return _gated(call, like, a, b)
    value, factor = (a, b) if isinstance(a, Value) else (b, a)
    assert isinstance(value, Value)
    assert isinstance(factor, Tensor)
    if value.node in call.recorder.conditions:
        return _chosen(call, like, call.recorder.conditions[value.node], factor, torch.tensor(0.0))
    return like.at(call.emit(affine.scale(factor), value.node))


def _gated(call: Call, like: Value, a: Value, b: Value) -> Value:
    """The product of a value and a condition, or of two conditions."""
    conditions = call.recorder.conditions
    if a.node in conditions and b.node in conditions:
        return compared(call, like, Both(conditions[a.node], conditions[b.node]))
    if a.node not in conditions and b.node not in conditions:
        raise NotPiecewiseAffine("a product of two values that depend on the input")
    value, condition = (b, conditions[a.node]) if a.node in conditions else (a, conditions[b.node])
    return _chosen(call, like, condition, value.node, torch.tensor(0.0))


def _chosen(call: Call, like: Value, condition: Condition, a: Operand, b: Operand) -> Value:
    try:
        node = call.recorder.gates.where(condition, a, b)
    except Unreadable as reason:
        name = "a product with a comparison" if call.name == "mul" else "where"
        raise type(reason)(f"{name} ({reason})") from reason
    assert isinstance(node, int)
    return like.at(node)


def _where(call: Call) -> Value:
    """A choice by a constant mask, which is affine, or by a comparison, if it is continuous."""
    if len(call.args) < 3:
        raise NotSupportedYet("where without values, whose result has no fixed size")
    like, (mask, a, b) = together(call, *call.args[:3])
    if isinstance(mask, Tensor):
        return _by_mask(call, like, mask.to(torch.float64), a, b)
    condition = call.recorder.conditions.get(mask.node)
    if condition is None:
        raise NotSupportedYet("where by a condition that is not a comparison")
    operands = [v.node if isinstance(v, Value) else v for v in (a, b)]
    return _chosen(call, like, condition, *operands)


def _by_mask(call: Call, like: Value, mask: Tensor, a: Value | Tensor, b: Value | Tensor) -> Value:
    """The sum mask * a + (1 - mask) * b, without what is infinite where it is not wanted."""
    parts, fill = [], torch.zeros((), dtype=torch.float64)
    for side, keep in ((a, mask), (b, 1 - mask)):
        if isinstance(side, Value):
            parts.append(call.emit(affine.scale(keep), side.node))
        else:
            fill = fill + torch.where(keep > 0, side.double(), 0.0)
    node = parts[0] if len(parts) == 1 else call.emit(affine.add(), *parts)
    return like.at(call.emit(affine.shift(fill), node) if bool(fill.any()) else node)


def masked_fill(call: Call, x: Tensor, mask: Tensor, fill: Any) -> Value:
    """A tensor with a number wherever a mask is true."""
    return _where(replace(call, args=(mask, fill, x), kwargs={}))


def _masked_fill(call: Call) -> Value:
    return masked_fill(call, *call.args[:3])


def _index_fill(call: Call) -> Value:
    x, dim, index, fill = call.args[:4]
    value = call.varying(x)
    call.fixed(index, "index")
    keep = torch.ones(x.shape).index_fill(dim, index.cpu(), 0.0)
    row = call.constant_rows(keep, value)
    call.fixed(fill, "number")
    return value.at(call.emit(affine.masked(row, (1 - row) * float(fill)), value.node))


def _compare(call: Call) -> Value:
    """A place holder for h > c, of which the sign of h - c is known to those who ask."""
    like, (a, b) = together(call, *call.args[:2])
    sign = COMPARISONS[call.name]
    node = _difference(call, a, b, sign)
    return compared(call, like, Positive(node))


def _difference(call: Call, a: Value | Tensor, b: Value | Tensor, sign: float) -> int:
    """The node sign * (a - b)."""
    first, second = (a, b) if sign > 0 else (b, a)
    if isinstance(first, Value) and isinstance(second, Value):
        return call.emit(affine.subtract(), first.node, second.node)
    if isinstance(first, Value):
        assert isinstance(second, Tensor)
        return first.node if not second.any() else call.emit(affine.shift(-second), first.node)
    assert isinstance(second, Value)
    node = call.emit(affine.scale(torch.tensor(-1.0)), second.node)
    return node if not first.any() else call.emit(affine.shift(first), node)


def _combine(build: Callable[..., Condition]) -> Translation:
    def translate(call: Call) -> Value:
        values = [call.varying(t) for t in call.args if isinstance(t, Tensor)]
        conditions = [call.recorder.conditions.get(v.node) for v in values]
        known = [c for c in conditions if c is not None]
        if len(known) < len(values) or len({v.at(0) for v in values}) > 1:
            raise unknown(call.name)
        return compared(call, values[0], build(*known))

    return translate


def _either(a: Condition, b: Condition) -> Condition:
    return Not(Both(Not(a), Not(b)))


def _divide(call: Call) -> Value:
    like, (a, b) = together(call, *call.args[:2])
    if isinstance(b, Value):
        raise NotPiecewiseAffine("a division by a value that depends on the input")
    assert isinstance(a, Value)
    if call.kwargs.get("rounding_mode"):
        raise unknown("floor_divide")
    return like.at(call.emit(affine.scale(1 / b.double()), a.node))


def _negate(call: Call) -> Value:
    value = call.varying(call.args[0])
    return value.at(call.emit(affine.scale(torch.tensor(-1.0)), value.node))


def _power(call: Call) -> Value:
    """The power one, which is no operation."""
    value, exponent = call.varying(call.args[0]), call.args[1]
    if isinstance(exponent, Tensor) or exponent != 1:
        raise unknown("pow")
    return value


SUMS: dict[str, Translation] = {
    **dict.fromkeys(["add", "sub", "rsub"], _add),
    **dict.fromkeys(COMPARISONS, _compare),
    **dict.fromkeys(["logical_not", "bitwise_not"], _combine(Not)),
    **dict.fromkeys(["logical_and", "bitwise_and"], _combine(Both)),
    **dict.fromkeys(["logical_or", "bitwise_or"], _combine(_either)),
    "mul": _multiply,
    "div": _divide,
    "neg": _negate,
    "pow": _power,
    "where": _where,
    "masked_fill": _masked_fill,
    "index_fill": _index_fill,
}
"""How each call becomes nodes, by its name without overload."""
