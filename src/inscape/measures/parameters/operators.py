"""Operator norms and path sums of a network's affine operations.

Apart from `norms`, since this imports torch and importing the measures must not.
"""

import math

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats
from inscape.errors import NotApplicableError
from inscape.models.graph import Graph, Node
from inscape.models.graph.affine import Affine
from inscape.progress import Meter


def operator_norms(graph: Graph, show: Meter) -> list[tuple[str, float]]:
    """The name and the largest singular value of every operation with weights."""
    graph = graph.cast(torch.float64)
    weighted = [
        (node, node.affine) for node in graph.nodes if node.affine is not None and node.affine.weights
    ]
    norms = []
    for node, op in weighted:
        norms.append((node.path or op.name, _operator_norm(op, graph.shapes[node.inputs[0]])))
        show(len(norms), len(weighted))
    return norms


def sum_over_paths(graph: Graph, p: int) -> float:
    """The sum over all paths from an input to an output of the product of |w|^p along it."""
    graph = graph.cast(torch.float64)

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        if node.affine is not None:
            return _powered(node.affine, inputs, p)
        return inputs[0] if node.op.is_elementwise else node.op(inputs[0])

    with torch.no_grad():
        ones = torch.ones(1, *graph.input_shape, dtype=torch.float64)
        return float(graph.walk(ones, visit).sum())


def _powered(op: Affine, inputs: list[Tensor], p: int) -> Tensor:
    """The operation with every coefficient replaced by its absolute value to the power p."""
    linear = op.linear_part
    if p == 1:
        return linear.magnitude(*inputs)
    if linear.weights and not op.averages:
        return Affine(op.name, linear.function, tuple(c**2 for c in linear.constants))(*inputs)
    out = linear.magnitude(*inputs)
    if op.averages:
        size = inputs[0].numel() / out.numel()
        _check_partition(linear, inputs[0], size)
        return out / size
    if not op.only_adds:
        _check_selection(linear, inputs)
    return out


def _check_partition(op: Affine, like: Tensor, size: float) -> None:
    """Raise an error unless the operation averages windows of one size that do not overlap."""
    origin = torch.zeros_like(like).requires_grad_()
    with torch.enable_grad():
        (back,) = torch.autograd.grad(op(origin).sum(), origin)
    if not torch.allclose(back, torch.full_like(back, 1 / size)):
        raise NotApplicableError(f"the path norm with p=2 is not known for {op.name} of this shape: use p=1")


def _check_selection(op: Affine, inputs: list[Tensor]) -> None:
    """Raise an error unless every coefficient is 0 or 1, one per output: then squares commute with it."""
    rng = torch.Generator().manual_seed(0)
    v = [torch.rand(t.shape, generator=rng, dtype=t.dtype) for t in inputs]
    if not torch.allclose(op(*v) ** 2, op(*(t**2 for t in v))):
        raise NotApplicableError(f"the path norm with p=2 is not known for {op.name}: use p=1")


def _operator_norm(op: Affine, shape: tuple[int, ...]) -> float:
    if op.matrix is not None:
        return float(torch.linalg.matrix_norm(op.matrix, 2))
    if op.diagonal is not None:
        return float(op.diagonal.abs().max())
    return _largest_singular_value(op.linear_part, shape)


def _largest_singular_value(op: Affine, shape: tuple[int, ...]) -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = math.prod(shape)

    def normal(v: Floats) -> Floats:
        x = torch.from_numpy(v.reshape(1, *shape).copy()).requires_grad_()
        with torch.enable_grad():
            y = op(x)
            (back,) = torch.autograd.grad(y, x, y.detach())
        return back.numpy().ravel()

    start = np.random.default_rng(0).standard_normal(size)
    if size < 3:
        matrix = np.stack([normal(e) for e in np.eye(size)])
        return float(np.sqrt(np.linalg.eigvalsh(matrix)[-1]))
    operator = LinearOperator((size, size), matvec=normal, dtype=np.float64)
    return float(np.sqrt(eigsh(operator, k=1, tol=1e-10, v0=start, return_eigenvectors=False)[0]))
