"""How ATen calls with weights become nodes: matrix products, convolution, batch-norm."""

from collections.abc import Sequence

import torch
from torch import Tensor

from inscape.models.from_torch.moving import on_parts
from inscape.models.from_torch.recorder import Call, Translation, Value, snapshot
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import MixesPoints, NotPiecewiseAffine, NotSupportedYet


def _product(call: Call) -> Value:
    return product(call, *call.args[:2])


def product(call: Call, a: Tensor, b: Tensor, *, factor: float = 1.0) -> Value:
    """The product of a matrix, or a stack of matrices, and another, one of which is constant."""
    u, v = call.value(a), call.value(b)
    if u is not None and v is not None:
        raise NotPiecewiseAffine("a matrix product of two values that depend on the input")
    value, fixed = (u, b) if u is not None else (v, a)
    assert value is not None
    summed = a.ndim - 1 if u is not None else b.ndim - 2
    if value.axis == summed:
        raise MixesPoints("a matrix product over the batch axis")
    matrix = snapshot(fixed) * factor if factor != 1 else snapshot(fixed)
    if a.ndim == 2:
        return _by_matrix(call, value, matrix.T if u is not None else matrix)
    if value.axis == 0:
        matrix = call.constant_rows(matrix, value)
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
        raise NotSupportedYet("a matrix product that is added to a value that depends on the input")
    found = product(call, a, b, factor=alpha)
    if call.value(shift) is None:
        return _biased(call, found, call.constant(shift, found, call.out.ndim) * beta)
    c = call.aligned(call.varying(shift), shift, call.out.ndim)
    if c.at(0) != found.at(0):
        raise NotSupportedYet("a matrix product with the batch axis at different places")
    return found.at(call.emit(affine.add(beta), found.node, c.node))


def _biased(call: Call, value: Value, bias: Tensor) -> Value:
    """A product plus a constant: one linear map if the constant lies along its results."""
    before = call.recorder.nodes[value.node]
    if before.op.name == "linear" and isinstance(before.op, Affine) and value.axis == 0:
        (weight,) = before.op.constants
        if bias.numel() == len(weight) and bias.shape[-1] == len(weight):
            return value.at(call.emit(affine.linear(weight, bias.reshape(-1)), *before.inputs))
    return value.at(call.emit(affine.shift(bias), value.node))


def _linear(call: Call) -> Value:
    x, weight, bias = call.args[0], call.args[1], call.argument(2, "bias")
    call.fixed(weight, "weight")
    call.fixed(bias, "bias")
    value = call.varying(x)
    if value.axis == x.ndim - 1:
        raise MixesPoints("a matrix product over the batch axis")
    op = affine.linear(snapshot(weight), None if bias is None else snapshot(bias))
    return value.at(call.emit(op, value.node))


def _matrix_vector(call: Call) -> Value:
    """The product of a matrix (n, d) that varies and a vector."""
    x, vector = call.args[:2]
    value = call.varying(x)
    call.fixed(vector, "vector")
    if value.axis == 1:
        raise MixesPoints("a matrix product over the batch axis")
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
    return value.at(call.emit(on_parts(op, value), value.node))


def _batch_norm(call: Call) -> Value:
    x, weight, bias, mean, var = call.args[:5]
    value = call.image(x)
    if mean is None or var is None or (call.name != "_native_batch_norm_legit_no_training" and call.args[5]):
        raise MixesPoints("a batch-norm with statistics of the batch")
    eps = call.args[-1] if call.name != "cudnn_batch_norm" else call.args[7]
    for tensor in (weight, bias, mean, var):
        call.fixed(tensor, "parameter")
    factor = 1 / torch.sqrt(snapshot(var).double() + eps)
    if weight is not None:
        factor = factor * snapshot(weight).double()
    offset = -snapshot(mean).double() * factor
    if bias is not None:
        offset = offset + snapshot(bias).double()
    return value.at(call.emit(on_parts(affine.channel_affine(factor, offset), value), value.node))


MATRICES: dict[str, Translation] = {
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
