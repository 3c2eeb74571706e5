"""How ONNX matrix products become nodes; an RNN with relu, unrolled over time, is a chain of them."""

import math
import string
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Array
from inscape.models.from_onnx.arithmetic import added, applied, scaled, shifted
from inscape.models.from_onnx.shapes import joined, taken, transposed
from inscape.models.from_onnx.steps import FileValue, NodeTranslation, Step, Varying, tensor
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotPiecewiseAffine, NotSupportedYet
from inscape.models.graph.piecewise import Leaky


def product(
    step: Step, a: Varying | Array | None, b: Varying | Array | None, *, factor: float = 1.0
) -> Varying:
    """A matrix product with a constant on either side, as numpy.matmul has it."""
    if isinstance(a, Varying) and isinstance(b, Varying):
        raise NotPiecewiseAffine(f"{step.kind} of two values that depend on the input")
    if isinstance(a, Varying):
        assert isinstance(b, np.ndarray)
        return _times(step, a, b if factor == 1 else b * b.dtype.type(factor))
    assert isinstance(a, np.ndarray)
    assert isinstance(b, Varying)
    if len(b.shape) == 1:  # a vector on the right is a column
        result = product(step, a, replace(b, shape=(*b.shape, 1)), factor=factor)
        return step.reshaped(result, result.shape[:-1])
    return _times_from_left(step, a if factor == 1 else a * a.dtype.type(factor), b)


def _times(step: Step, live: Varying, matrix: Array) -> Varying:
    """The product x M; a matrix of more than two axes is a stack of matrices."""
    if matrix.ndim == 1:
        result = _times(step, live, matrix[:, None])
        return step.reshaped(result, result.shape[:-1])
    if matrix.ndim == 2 or math.prod(matrix.shape[:-2]) == 1:
        weight = tensor(matrix.reshape(matrix.shape[-2:])).T.contiguous()
        shape = (1,) * (matrix.ndim - len(live.shape)) + live.shape
        return Varying(step.emit(affine.linear(weight), step.laid(live)), (*shape[:-1], weight.shape[0]))
    if len(live.shape) == 1:
        result = _times(step, replace(live, shape=(1, *live.shape)), matrix)
        return step.reshaped(result, (*result.shape[:-2], result.shape[-1]))
    rank = max(len(live.shape), matrix.ndim)
    shape = (1,) * (rank - len(live.shape)) + live.shape
    node = step.emit(Affine("matmul", torch.matmul, (tensor(matrix),)), step.laid(live, shape))
    return Varying(node, step.reader.shape(node))


def _times_from_left(step: Step, matrix: Array, live: Varying) -> Varying:
    """The product M x along the last axis but one; a matrix of one axis is a row."""
    if matrix.ndim == 1:
        result = _times_from_left(step, matrix[None], live)
        return step.reshaped(result, (*result.shape[:-2], result.shape[-1]))
    if matrix.ndim == 2 and live.shape[-1] == 1:  # columns: the usual product, on one axis less
        column = replace(live, shape=live.shape[:-1])
        node = step.emit(affine.linear(tensor(matrix)), step.laid(column))
        return Varying(node, (*live.shape[:-2], matrix.shape[0], 1))
    rank = max(len(live.shape), matrix.ndim)
    shape = (1,) * (rank - len(live.shape)) + live.shape
    op = Affine("matmul", lambda x, m: torch.matmul(m, x), (tensor(matrix),))
    node = step.emit(op, step.laid(live, shape))
    return Varying(node, step.reader.shape(node))


def _matmul(step: Step) -> FileValue:
    return product(step, step.given(0), step.given(1))


def _gemm(step: Step) -> FileValue:
    """The map alpha A' B' + beta C, where A' and B' may be transposed."""
    alpha, beta = (float(step.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    factors: list[Varying | Array | None] = [step.given(0), step.given(1)]
    for i, name in enumerate(("transA", "transB")):
        value = factors[i]
        if step.attributes.get(name, 0) and value is not None:
            factors[i] = transposed(step, value, (1, 0)) if isinstance(value, Varying) else value.T
    result = product(step, *factors, factor=alpha)
    offset = step.given(2)
    if offset is None or beta == 0:
        return result
    if isinstance(offset, Varying):
        return added(step, result, offset if beta == 1 else scaled(step, offset, np.array(beta)))
    return shifted(step, result, offset * offset.dtype.type(beta))


def _einsum(step: Step) -> FileValue:
    """A sum over products of one tensor that varies and constants."""
    operands = [step.given(i) for i in range(len(step.inputs))]
    varying = [i for i, p in enumerate(operands) if isinstance(p, Varying)]
    if len(varying) > 1:
        raise NotPiecewiseAffine("Einsum of two values that depend on the input")
    live = operands[varying[0]]
    assert isinstance(live, Varying)
    fixed = [tensor(p) for p in operands if isinstance(p, np.ndarray)]
    equation = _with_points(step.attributes["equation"], varying[0])

    def apply(x: Tensor, *constants: Tensor) -> Tensor:
        rest = iter(constants)
        return torch.einsum(equation, *(x if i == varying[0] else next(rest) for i in range(len(operands))))

    node = step.emit(Affine("einsum", apply, tuple(fixed)), step.laid(live, live.shape))
    return Varying(node, step.reader.shape(node))


def _with_points(equation: str, varying: int) -> str:
    """The equation with one more letter, for the points, in front of a factor and of the result.

    >>> _with_points("ni,ij->nj", 0), _with_points("ij,nj", 1)
    ('ani,ij->anj', 'ij,anj->ain')
    """
    left, _, right = equation.replace(" ", "").partition("->")
    if "->" not in equation:
        right = "".join(sorted(c for c in set(left) - set(",.") if left.count(c) == 1))
        right = "..." * ("..." in left) + right
    letter = next(c for c in string.ascii_letters if c not in left)
    factors = [f"{letter}{f}" if i == varying else f for i, f in enumerate(left.split(","))]
    return f"{','.join(factors)}->{letter}{right}"


_TIMES_OF = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}


def _rnn(step: Step) -> list[FileValue]:
    """The states h_t = relu(W x_t + R h_(t-1) + b) in one direction or both: all, and the last."""
    kinds = step.attributes.get("activations", [b"Tanh"])
    for kind in {k.decode() if isinstance(k, bytes) else str(k) for k in kinds} - {"Relu"}:
        raise NotPiecewiseAffine(f"RNN with {kind}")
    if step.attributes.get("clip") is not None or step.constant(4) is not None:
        raise NotSupportedYet("RNN with clip or sequence_lens")
    points_first = bool(step.attributes.get("layout", 0))
    live = step.live()
    time, batch = (1, 0) if points_first else (0, 1)
    if live.shape[batch] != 1:
        raise NotSupportedYet(f"RNN of a tensor of shape {live.shape}")
    weights = [step.required(i) for i in (1, 2)]
    bias, start = step.constant(3), step.constant(5)
    signs = _TIMES_OF[step.attributes.get("direction", "forward")]
    runs = []
    for d, sign in enumerate(signs):
        w, r = (m[d] for m in weights)
        offset = np.zeros(2 * len(r), w.dtype) if bias is None else bias[d]
        first = None if start is None else (start[0, d] if points_first else start[d, 0])
        inputs = [_at(step, live, time, t) for t in range(live.shape[time])][::sign]
        runs.append(_states(step, inputs, w, r, offset, first)[::sign])
    last = [run[-1 if sign > 0 else 0] for run, sign in zip(runs, signs, strict=True)]
    return _arranged(step, runs, last, points_first=points_first)


def _at(step: Step, live: Varying, time: int, t: int) -> Varying:
    """The input (1, size) at one time."""
    return step.reshaped(taken(step, live, time, np.array([t])), (1, live.shape[-1]))


def _states(
    step: Step, inputs: Sequence[Varying], w: Array, r: Array, bias: Array, start: Array | None
) -> list[Varying]:
    """The state (1, hidden) after each of the inputs."""
    h = len(r)
    states: list[Varying] = []
    for x in inputs:
        z = shifted(step, product(step, x, w.T), bias[:h] + bias[h:])
        if states:
            z = added(step, z, product(step, states[-1], r.T))
        elif start is not None:
            z = shifted(step, z, start @ r.T)
        states.append(applied(step, Leaky(), z))
    return states


def _arranged(
    step: Step, runs: Sequence[Sequence[Varying]], last: Sequence[Varying], *, points_first: bool
) -> list[FileValue]:
    """All states and the last ones of each direction, in the layout of the file."""
    n, dirs, h = len(runs[0]), len(runs), last[0].shape[-1]
    every = joined(step, [run[t] for t in range(n) for run in runs], 1)
    final = joined(step, last, 1)
    if points_first:
        return [step.reshaped(every, (1, n, dirs, h)), step.reshaped(final, (1, dirs, h))]
    return [step.reshaped(every, (n, dirs, 1, h)), step.reshaped(final, (dirs, 1, h))]


TRANSLATIONS: dict[str, NodeTranslation] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "RNN": _rnn,
}
