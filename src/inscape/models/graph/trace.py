"""What a front end found in a model: its graph, compared with the model, or the operations in the way."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Array, Floats
from inscape.errors import ModelError, PartitionError
from inscape.models.base import Model, check_size
from inscape.models.graph.network import Foreign, Graph, Node, refuse

_SELU = 1.0507009873554805, 1.6732632423543772
INCREASING: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "exp": torch.exp,
    "log_sigmoid": F.logsigmoid,
    "elu": F.elu,
    "selu": F.selu,
    "atan": torch.atan,
    "asinh": torch.asinh,
    "sinh": torch.sinh,
    "erf": torch.erf,
    "expm1": torch.expm1,
}
"""Strictly increasing functions: applied to every score, they change no label."""
INVERSES: dict[str, Callable[[float], float]] = {
    "sigmoid": lambda y: math.log(y) - math.log1p(-y),
    "tanh": math.atanh,
    "softplus": lambda y: y + math.log(-math.expm1(-y)),
    "exp": math.log,
    "log_sigmoid": lambda y: y - math.log(-math.expm1(y)),
    "elu": lambda y: y if y > 0 else math.log1p(y),
    "selu": lambda y: y / _SELU[0] if y > 0 else math.log1p(y / (_SELU[0] * _SELU[1])),
    "atan": lambda y: math.tan(y) if abs(y) < math.pi / 2 else math.nan,
    "asinh": math.sinh,
    "sinh": math.asinh,
    "erf": lambda y: float(torch.erfinv(torch.tensor(y, dtype=torch.float64))),
    "expm1": math.log1p,
}
"""Their inverses, for thresholds that go before them: an error or NaN outside of their values."""
PROBABILITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "sigmoid": torch.sigmoid,
}
"""What makes probabilities, or their logarithms, of scores."""
HEADS: dict[str, Callable[[Tensor], Tensor]] = {**INCREASING, **PROBABILITIES}
"""What may end a model without changing a label."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What was found: the graph, or the foreign operations that prevent it.

    `ending` tells what the output comes out of, also if other operations are foreign: the name of a head, or
    "weights" for a linear map, convolution or batch-norm; None if that is not known.
    """

    graph: Graph | None
    foreign: tuple[Foreign, ...] = ()
    ending: str | None = None

    def require(self, name: str) -> Graph:
        """The graph, or an error that says why there is none."""
        if self.graph is None:
            raise refuse(name, self.foreign)
        return self.graph


def same_outputs(graph: Graph, x: Floats, outputs: Array, dtype: npt.DTypeLike) -> bool:
    """Whether the graph gives a model's outputs (n, k) at points (n, ...), up to rounding on the way.

    `dtype` is the precision of the model, which may hand its outputs out in a finer one.
    """
    coarsest = min(np.dtype(dtype), outputs.dtype, key=lambda d: d.itemsize)
    expected = torch.from_numpy(np.ascontiguousarray(outputs, dtype=coarsest))
    out, largest = _returned(graph, torch.from_numpy(x.reshape(-1, *graph.input_shape)))
    out = out.reshape(len(x), -1)
    return out.shape == expected.shape and (agree(out, expected) or _is_rounding(out, expected, largest))


def is_residue(graph: Graph, x: Tensor, outputs: Tensor) -> bool:
    """Whether a model's outputs differ from the graph's by no more than rounding on the way."""
    out, largest = _returned(graph, x)
    return out.numel() == outputs.numel() and _is_rounding(out.reshape(outputs.shape), outputs, largest)


def _returned(graph: Graph, x: Tensor) -> tuple[Tensor, float]:
    """What a model returns by its graph in double precision, head included, and the largest number before."""
    out, largest = _followed(graph, x, graph.returned)
    return (out if graph.head is None else HEADS[graph.head](out)), largest


def _followed(graph: Graph, x: Tensor, until: int) -> tuple[Tensor, float]:
    """The value of a node in double precision, and the largest number on the way."""
    largest = 0.0

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        nonlocal largest
        value = node.op(*inputs)
        largest = max(largest, float(value.abs().max()))
        return value

    with torch.no_grad():
        return graph.cast(torch.float64).walk(x.double(), visit, until=until), largest


def _is_rounding(out: Tensor, expected: Tensor, largest: float) -> bool:
    error = float((out - expected.detach().cpu().double()).abs().max())
    return error <= 1024 * torch.finfo(expected.dtype).eps * largest


def same_labels(graph: Graph, x: Floats, labels: Array, dtype: npt.DTypeLike) -> bool:
    """Whether the graph decides as a model's labels (n,) say at points (n, ...), up to ties.

    Ties are scores that rounding in `dtype`, the precision of the model, may put in another order.
    """
    points = torch.from_numpy(x.reshape(-1, *graph.input_shape))
    scores, largest = _followed(graph, points, graph.output)
    scores = scores.reshape(len(x), -1)
    if scores.shape[1] == 1:  # one score, whose sign decides
        scores = torch.cat([-scores, scores], dim=1)
    if labels.min() < 0 or labels.max() >= scores.shape[1]:
        return False
    given = scores.gather(1, torch.from_numpy(labels)[:, None])[:, 0]
    return bool((scores.amax(dim=1) - given <= 1024 * np.finfo(dtype).eps * largest).all())


def scores_and_infinite_node(graph: Graph, x: Tensor) -> tuple[Tensor, Foreign | None]:
    """The scores on a batch in double precision, and the first operation whose result is not finite.

    Such are made by NaN weights, or a pad with minus infinity.
    """
    infinite: list[Foreign] = []

    def visit(i: int, node: Node, inputs: list[Tensor]) -> Tensor:
        value = node.op(*inputs)
        if not bool(torch.isfinite(value).all()):
            infinite.append(Foreign(f"numbers that are not finite, made by {node.op.name},", node.path))
        return value

    with torch.no_grad():
        scores = graph.cast(torch.float64).walk(x.double(), visit)
    return scores, infinite[0] if infinite else None


def agree(scores: Tensor, out: Tensor) -> bool:
    """Whether two results are equal up to the rounding of the model's own precision, that of `out`."""
    if scores.numel() != out.numel():
        return False
    expected = out.detach().cpu().double()
    scale = expected.abs().max().clamp(min=1e-30)
    error = (scores.reshape(expected.shape) - expected).abs().max()
    return bool(error <= math.sqrt(torch.finfo(out.dtype).eps) * scale)


def graph_of(model: Model, input_shape: tuple[int, ...], points: Callable[[], Floats]) -> Graph:
    """The model's graph on points of a shape, compared with the model once, at a few `points` of a request.

    A model that branches on its input in a way that tracing does not see, or that is random, is caught here.
    """
    check_size(model, input_shape)
    check_precision(model)
    graph = model.graph(input_shape)
    if not graph.is_confirmed:
        with model.session():
            _confirm(graph, model, points())
    return graph


def check_precision(model: Model) -> None:
    """Raise an error for a network of so few bits that it is no longer piecewise affine."""
    if model.coarse_precision is not None:
        raise PartitionError(
            f"{model.name} cannot be counted exactly since its parameters are {model.coarse_precision}, "
            "whose rounding turns its linear pieces into steps",
            remedy="convert it to float32 (a torch module with .float()) to count the pieces that it stands "
            "for, or use method='adaptive' or 'grid'",
        )


def _confirm(graph: Graph, model: Model, x: Floats) -> None:
    """Compare the graph with the model at points x, one by one."""
    if graph.head in ("order", "argmax", "positive"):
        agrees = same_labels(graph, x, np.concatenate([model.labels(p[None]) for p in x]), model.dtype)
    else:
        try:
            outputs = [model.outputs(p[None]) for p in x]
        except ModelError:  # a map of scores, or labels only: nothing to compare with
            outputs = []
        agrees = not outputs or same_outputs(graph, x, np.concatenate(outputs), model.dtype)
    if not agrees:
        raise PartitionError(
            f"{model.name} is not what was recorded of it: on these probes it computes other scores, so "
            "it branches on its input, is random, or rounds what it compares to one number; use "
            "method='grid' or 'adaptive'"
        )
    graph.is_confirmed = True


def check_head(model: Model, graph: Graph, points: Callable[[], Floats]) -> None:
    """Raise an error if the head rounds the two leading outputs to one number at a point where scores differ.

    As tanh does in float32 beyond 9: the first of such outputs wins, so that labels are not those of scores.
    """
    if graph.head not in INCREASING or graph.shapes[graph.output] != graph.shapes[graph.returned]:
        return
    x = torch.from_numpy(points().reshape(-1, *graph.input_shape))
    raw, scores = (graph.evaluate(x, until=i).flatten(1) for i in (graph.returned, graph.output))
    if scores.shape[1] < 2:
        return
    top, columns = scores.topk(2, dim=1)
    precision = torch.float64 if model.dtype == np.float64 else torch.float32
    out = HEADS[graph.head](raw.to(precision)).gather(1, columns)
    apart = top[:, 0] - top[:, 1] > 1e-3 * top.abs().amax(dim=1)
    if bool(((out[:, 0] == out[:, 1]) & apart).any()):
        raise PartitionError(
            f"{model.name} ends in {graph.head}, which rounds its two largest outputs to one number on some "
            "of the probes, so that its labels are not those of the scores before it",
            remedy="choose these scores by output=... to count them, or use method='adaptive' or 'grid'",
        )
