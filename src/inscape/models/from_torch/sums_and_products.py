"""How ATen arithmetic becomes nodes: sums, products with weights, convolution, batch-norm, choices."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inscape.models.decision_rules import NeverTaken, inverse_of
from inscape.models.from_torch.moving import COMPARISONS, compared, on_slices
from inscape.models.from_torch.obstacles import called, unknown
from inscape.models.from_torch.recorder import Call, CallTranslation, Value, snapshot
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.gates import Both, Condition, Not, Operand, Positive
from inscape.models.graph.network import MixesPoints, NotPiecewiseAffine, NotSupportedYet, Unreadable


def together(call: Call, *tensors: Any) -> tuple[Value, list[Value | Tensor]]:
    """Tensors of one entry-by-entry operation: values aligned with its result, and constants as one point.

    The first is where the points of the result are.
    """
    n_axes = max(t.ndim for t in tensors if isinstance(t, Tensor))
    values = {
        i: call.aligned(v, t, n_axes) for i, t in enumerate(tensors) if (v := call.value(t)) is not None
    }
    first = next(iter(values.values()))
    if any(v.at(0) != first.at(0) for v in values.values()):
        raise NotSupportedYet(called(call.name), "of tensors with different batch axes")
    return first, [
        values[i] if i in values else call.constant(t, first, n_axes) for i, t in enumerate(tensors)
    ]


def _add(call: Call) -> Value:
    """The sum a + alpha b, or for sub a - alpha b, where either may be a constant."""
    alpha = float(call.argument(2, "alpha", 1.0)) * (1 if call.name == "add" else -1)
    x, y = call.args[:2] if call.name != "rsub" else (call.args[1], call.args[0])
    opposite = _opposite(call, x, y, alpha) or _complement(call, x, y, alpha)
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


def _complement(call: Call, a: Any, b: Any, alpha: float) -> Value | None:
    """The probability 1 - sigmoid(z), which is sigmoid(-z); None if the sum is not so."""
    value = call.value(b)
    if value is None or call.recorder.heads.get(value.node) != "sigmoid" or call.value(a) is not None:
        return None
    if alpha != -1 or bool((torch.as_tensor(a) != 1).any()):
        return None
    node = call.emit(affine.scale(torch.tensor(-1.0)), call.recorder.before_head(value.node))
    return value.at(call.emit_head("sigmoid", unknown("sigmoid"), node))


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
        raise NotPiecewiseAffine("a product", "of two values that depend on the input")
    value, condition = (b, conditions[a.node]) if a.node in conditions else (a, conditions[b.node])
    return _chosen(call, like, condition, value.node, torch.tensor(0.0))


def _chosen(call: Call, like: Value, condition: Condition, a: Operand, b: Operand) -> Value:
    try:
        node = call.recorder.gates.where(condition, a, b)
    except Unreadable as reason:
        name = "a product with a comparison" if call.name == "mul" else "where"
        raise type(reason)(name, f"({reason})") from reason
    assert isinstance(node, int)
    return like.at(node)


def _where(call: Call) -> Value:
    """A choice by a constant mask, which is affine, or by a comparison, if it is continuous."""
    if len(call.args) < 3:
        raise NotSupportedYet("where", "without values, whose result has no fixed size")
    like, (mask, a, b) = together(call, *call.args[:3])
    if isinstance(mask, Tensor):
        return _by_mask(call, like, mask.to(torch.float64), a, b)
    condition = call.recorder.conditions.get(mask.node)
    if condition is None:
        raise NotSupportedYet("where", "by a condition that is not a comparison")
    operands = [v.node if isinstance(v, Value) else v for v in (a, b)]
    return _chosen(call, like, condition, *operands)


def _by_mask(call: Call, like: Value, mask: Tensor, a: Value | Tensor, b: Value | Tensor) -> Value:
    """The sum mask * a + (1 - mask) * b, without what is infinite where it is not wanted."""
    nodes, fill = [], torch.zeros((), dtype=torch.float64)
    for side, keep in ((a, mask), (b, 1 - mask)):
        if isinstance(side, Value):
            nodes.append(call.emit(affine.scale(keep), side.node))
        else:
            fill = fill + torch.where(keep > 0, side.double(), 0.0)
    node = nodes[0] if len(nodes) == 1 else call.emit(affine.add(), *nodes)
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
    weight = call.constant_point(keep, value)
    call.fixed(fill, "number")
    return value.at(call.emit(affine.masked(weight, (1 - weight) * float(fill)), value.node))


def _compare(call: Call) -> Value:
    """A stand-in for h > c, of which the sign of h - c is known to those who ask."""
    like, (a, b) = together(call, *call.args[:2])
    sign = COMPARISONS[call.name]
    node = _difference(call, *_before_function(call, a, b), sign)
    return compared(call, like, Positive(node))


def _before_function(
    call: Call, a: Value | Tensor, b: Value | Tensor
) -> tuple[Value | Tensor, Value | Tensor]:
    """What is compared with a number: instead of tanh(z) with 1/2, for example, z with the inverse of it."""
    inverse = inverse_of(call.recorder.heads.get(a.node, "")) if isinstance(a, Value) else None
    if inverse is None or not isinstance(b, Tensor) or b.numel() > 1 or not isinstance(a, Value):
        return a, b
    try:
        number = inverse(float(b))
    except NeverTaken:
        raise unknown(call.name) from None
    return a.at(call.recorder.before_head(a.node)), torch.full_like(b, number, dtype=torch.float64)


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


def _combine(build: Callable[..., Condition]) -> CallTranslation:
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
        raise NotPiecewiseAffine("a division", "by a value that depends on the input")
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


SUMS: dict[str, CallTranslation] = {
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


def _product(call: Call) -> Value:
    return product(call, *call.args[:2])


def product(call: Call, a: Tensor, b: Tensor, *, factor: float = 1.0) -> Value:
    """The product of a matrix, or a stack of matrices, and another, one of which is constant."""
    u, v = call.value(a), call.value(b)
    if u is not None and v is not None:
        raise NotPiecewiseAffine("a matrix product", "of two values that depend on the input")
    value, fixed = (u, b) if u is not None else (v, a)
    assert value is not None
    summed = a.ndim - 1 if u is not None else b.ndim - 2
    if value.axis == summed:
        raise MixesPoints("a matrix product", "over the batch axis")
    matrix = snapshot(fixed) * factor if factor != 1 else snapshot(fixed)
    if a.ndim == 2:
        return _by_matrix(call, value, matrix.T if u is not None else matrix)
    if value.axis == 0:
        matrix = call.constant_point(matrix, value)
        op = Affine("matmul", torch.matmul, (matrix,))
        if u is None:
            op = Affine("matmul", lambda x, m: torch.matmul(m, x), (matrix,))
        return value.at(call.emit(op, value.node))
    # the points are the rows of a, or the columns of b: a stack of vectors, each times a matrix
    letters = "zk...i,kij->zk...j" if u is not None else "zki...,kji->zkj..."
    op = Affine("matmul", lambda x, m: torch.einsum(letters, x, m), (matrix,))
    return value.at(call.emit(op, value.node))


def _by_matrix(call: Call, value: Value, weight: Tensor) -> Value:
    """The map W x of vectors: the rows of a matrix (n, d), or the columns of a matrix (d, n)."""
    if value.axis == 0 or not value.is_merged:
        return value.at(call.emit(affine.linear(weight.contiguous()), value.node))
    op = Affine("matmul", lambda x, w: torch.einsum("zi...,ji->zj...", x, w), (weight,))
    return value.at(call.emit(op, value.node))


def _shifted_product(call: Call) -> Value:
    """The map beta c + alpha a b, where c may vary too."""
    shift, a, b = call.args[:3]
    beta, alpha = (float(call.kwargs.get(name, 1)) for name in ("beta", "alpha"))
    if all(call.value(t) is None for t in (a, b)):
        raise NotSupportedYet("a matrix product", "that is added to a value that depends on the input")
    result = product(call, a, b, factor=alpha)
    if call.value(shift) is None:
        return _biased(call, result, call.constant(shift, result, call.out.ndim) * beta)
    c = call.aligned(call.varying(shift), shift, call.out.ndim)
    if c.at(0) != result.at(0):
        raise NotSupportedYet("a matrix product", "with different batch axes")
    return result.at(call.emit(affine.add(beta), result.node, c.node))


def _biased(call: Call, value: Value, bias: Tensor) -> Value:
    """A product plus a constant: one linear map if the constant lies along its results."""
    before = call.recorder.nodes[value.node]
    weight = before.op.matrix
    if weight is not None and value.axis == 0 and bias.numel() == len(weight) == bias.shape[-1]:
        return value.at(call.emit(affine.linear(weight, bias.reshape(-1)), *before.inputs))
    return value.at(call.emit(affine.shift(bias), value.node))


def _linear(call: Call) -> Value:
    x, weight, bias = call.args[0], call.args[1], call.argument(2, "bias")
    call.fixed(weight, "weight")
    call.fixed(bias, "bias")
    value = call.varying(x)
    if value.axis == x.ndim - 1:
        raise MixesPoints("a matrix product", "over the batch axis")
    op = affine.linear(snapshot(weight), None if bias is None else snapshot(bias))
    return value.at(call.emit(op, value.node))


def _matrix_vector(call: Call) -> Value:
    """The product of a matrix (n, d) that varies and a vector."""
    x, vector = call.args[:2]
    value = call.varying(x)
    call.fixed(vector, "vector")
    if value.axis == 1:
        raise MixesPoints("a matrix product", "over the batch axis")
    node = call.emit(affine.linear(snapshot(vector)[None]), value.node)
    return value.at(call.emit(affine.reshape(value.inner), node))


def _convolution(call: Call) -> Value:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = call.args[:9]
    call.fixed(weight, "kernel")
    call.fixed(bias, "bias")
    w, b = snapshot(weight), None if bias is None else snapshot(bias)
    shape: dict[str, Sequence[int]] = {"stride": stride, "padding": padding, "dilation": dilation}
    if transposed:
        op = affine.conv_transpose(w, b, **shape, output_padding=output_padding, groups=groups)
    else:
        op = affine.conv(w, b, **shape, groups=groups)
    value = call.image(x)
    return value.at(call.emit(on_slices(op, value), value.node))


def _batch_norm(call: Call) -> Value:
    x, weight, bias, mean, var = call.args[:5]
    value = call.image(x)
    if mean is None or var is None or (call.name != "_native_batch_norm_legit_no_training" and call.args[5]):
        raise MixesPoints("a batch-norm", "with statistics of the batch")
    eps = call.args[-1] if call.name != "cudnn_batch_norm" else call.args[7]
    for tensor in (weight, bias, mean, var):
        call.fixed(tensor, "parameter")
    factor = 1 / torch.sqrt(snapshot(var).double() + eps)
    if weight is not None:
        factor = factor * snapshot(weight).double()
    offset = -snapshot(mean).double() * factor
    if bias is not None:
        offset = offset + snapshot(bias).double()
    return value.at(call.emit(on_slices(affine.channel_affine(factor, offset), value), value.node))


MATRICES: dict[str, CallTranslation] = {
    **dict.fromkeys(["mm", "bmm"], _product),
    **dict.fromkeys(["addmm", "baddbmm"], _shifted_product),
    "linear": _linear,
    "mv": _matrix_vector,
    **dict.fromkeys(["convolution", "_convolution"], _convolution),
    **dict.fromkeys(
        ["native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"], _batch_norm
    ),
}
"""How each call becomes nodes, by its name without overload."""
