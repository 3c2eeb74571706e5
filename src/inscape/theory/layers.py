"""Models and points as the papers write them: W_L relu(... relu(W_1 x + c_1) ...) + c_L, and its norms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.measures.measurement import graph_at
from inscape.models import wrap
from inscape.univariate import ShallowNet

_MOST_ENTRIES = 2**24
"""The most entries of a matrix that a convolution is written out as."""


@dataclass(frozen=True, eq=False)
class Layers:
    """The matrices and offsets of a ReLU network without branches.

    Attributes:
        weights: W_1, ..., W_L, each (out, in).
        offsets: c_1, ..., c_L, what is added; the papers write beta = -c.
    """

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]

    @property
    def n_hidden(self) -> int:
        """The number of hidden layers, L - 1."""
        return len(self.weights) - 1

    @property
    def n_inputs(self) -> int:
        """n_0."""
        return int(self.weights[0].shape[1])

    @property
    def widths(self) -> Floats:
        """n_1, ..., n_{L-1}, the units of the hidden layers."""
        return np.array([len(w) for w in self.weights[:-1]], dtype=np.float64)

    @cached_property
    def norms(self) -> Floats:
        """The operator norm of each matrix, (L,)."""
        return np.array([np.linalg.norm(w, 2) for w in self.weights])

    @cached_property
    def squares(self) -> Floats:
        """The squared Frobenius norm of each matrix, (L,)."""
        return np.array([float((w**2).sum()) for w in self.weights])

    @property
    def size(self) -> float:
        """The Euclidean norm of all parameters, offsets included."""
        return math.sqrt(float(self.squares.sum()) + sum(float((c**2).sum()) for c in self.offsets))

    def gradient_bound(self, corrected: bool = True) -> float:
        """C_grad over hidden layers: max_l prod_{j <= l} |W_j|, or the paper's max_l |W_l ... W_1|.

        Only the first bounds gradients: switching units off can raise the norm of a product.
        """
        if corrected:
            return float(np.cumprod(self.norms[:-1]).max())
        products = [reduce(lambda a, w: w @ a, self.weights[:j]) for j in range(1, len(self.weights))]
        return max(float(np.linalg.norm(p, 2)) for p in products)

    def rest_bound(self, corrected: bool = True) -> float:
        """The largest Lipschitz constant C_l of what follows a hidden layer: products of norms, or eq. 42."""
        if corrected:
            return float(np.cumprod(self.norms[:0:-1]).max())
        last = self.weights[:0:-1]
        products = [reduce(lambda a, w: a @ w, last[:j]) for j in range(1, len(last) + 1)]
        return max(float(np.linalg.norm(p, 2)) for p in products)


def as_module(model: Any) -> Any:
    """What `inscape.wrap` takes: a univariate net becomes a torch module."""
    return model.to_module() if isinstance(model, ShallowNet) else model


def as_shallow(net: Any) -> ShallowNet:
    """The univariate net that a torch module or a wrapped one is."""
    if isinstance(net, ShallowNet):
        return net
    return ShallowNet.from_module(getattr(net, "module", net))


def as_points(x: Any) -> Floats:
    """Points as rows in float64, (n, d)."""
    points = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, dtype=np.float64)
    if points.ndim == 0 or points.size == 0:
        raise TheoryError(f"x of shape {points.shape} holds no points: give an array (n, d)")
    points = points.reshape(len(points), -1)
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise TheoryError(f"x holds NaN or infinite values, the first at row {row}: remove those points")
    return points


def layers_of(model: Any, x: Any) -> Layers:
    """The matrices of a model at points x, of which only the shape matters.

    Flattening, batch-norm, average pooling and convolutions are written into the matrices. An error says why
    where a model is not such a network.

    >>> layers_of(ShallowNet([2.0], [1.0], [3.0]), [[0.0]]).weights
    (array([[2.]]), array([[3.]]))
    """
    import torch

    from inscape.models.graph.affine import Affine

    if isinstance(model, Layers):
        return model
    wrapped = wrap(as_module(model))
    with graph_at(wrapped, x, "this statement") as (graph, _):
        graph = graph.cast(torch.float64)
        maps: list[tuple[Floats, Floats]] = []
        stage: list[Affine] = []
        shape = graph.input_shape
        for i, node in enumerate(graph.nodes[1 : graph.output + 1]):
            op = node.op
            if node.inputs != (i,):
                raise NotApplicableError(
                    f"the statement is about layers in a row; {wrapped.name} has branches"
                )
            if node.affine is not None:
                stage.append(node.affine)
            elif op.is_relu:
                maps.append(_matrix(stage, shape, wrapped.name))
                stage, shape = [], graph.shapes[i + 1]
            else:
                raise NotApplicableError(
                    f"the statement is about relu networks; {wrapped.name} has {op.name}"
                )
        maps.append(_matrix(stage, shape, wrapped.name))
    if len(maps) < 2:
        raise NotApplicableError(f"{wrapped.name} has no hidden layer")
    return Layers(tuple(w for w, _ in maps), tuple(c for _, c in maps))


def _matrix(stage: Sequence[Any], shape: tuple[int, ...], name: str) -> tuple[Floats, Floats]:
    """A and b of affine operations in a row, from what they make of zero and of the unit vectors."""
    import torch

    size = math.prod(shape)
    zero = torch.zeros(1, *shape, dtype=torch.float64)
    with torch.no_grad():
        for op in stage:
            zero = op(zero)
        if max(size, zero.numel()) * size > _MOST_ENTRIES:
            raise NotApplicableError(f"a layer of {name} is too large to be written out as a matrix")
        rows = torch.eye(size, dtype=torch.float64).reshape(size, *shape)
        for op in stage:
            rows = op.linear_part(rows)
    return np.ascontiguousarray(rows.reshape(size, -1).numpy().T), zero.reshape(-1).numpy().copy()
