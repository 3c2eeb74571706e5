"""The graph of a model, compared with the model itself once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inscape.errors import ModelError, PartitionError
from inscape.models import Model
from inscape.probes import Segment

if TYPE_CHECKING:
    from inscape.models.graph import Graph


def graph_of(
    model: Model, input_shape: tuple[int, ...], points: Callable[[], npt.NDArray[np.float64]]
) -> "Graph":
    """The model's graph on points of a shape, compared with the model once, at a few `points` of a request.

    A model that branches on its input in a way that tracing does not see, or that is random, is caught here.
    """
    from inscape.models.base import check_size

    check_size(model, input_shape)
    check_precision(model)
    graph = model.graph(input_shape)
    if not graph.is_confirmed:
        _confirm(graph, model, points())
    return graph


def graph_on(model: Model, segments: Sequence[Segment]) -> "Graph":
    """The model's graph on the segments' points, compared with the model at a few of them once."""
    few = [segments[i] for i in sorted({0, len(segments) // 2, len(segments) - 1})]
    return graph_of(
        model,
        segments[0].input_shape,
        lambda: np.concatenate([s.points(np.linspace(*s.span, 3)) for s in few]),
    )


def check_precision(model: Model) -> None:
    """Raise an error for a network of so few bits that it is no longer piecewise affine."""
    if model.coarse_precision is not None:
        raise PartitionError(
            f"{model.name} cannot be counted exactly since its parameters are {model.coarse_precision}, "
            "whose rounding turns its linear pieces into steps",
            remedy="convert it to float32 (a torch module with .float()) to count the pieces that it stands "
            "for, or use method='adaptive' or 'grid'",
        )


def _confirm(graph: "Graph", model: Model, x: npt.NDArray[np.float64]) -> None:
    """Compare the graph with the model at points x, one by one."""
    from inscape.models.graph.trace import same_labels, same_outputs

    if graph.head == "order":
        agrees = same_labels(graph, x, np.concatenate([model.labels(p[None]) for p in x]))
    elif graph.head in ("argmax", "positive"):
        agrees = True  # it returns labels, of which a few tell little
    else:
        try:
            outputs = [model.outputs(p[None]) for p in x]
        except ModelError:  # a map of scores, or labels only: nothing to compare with
            outputs = []
        agrees = not outputs or same_outputs(graph, x, np.concatenate(outputs))
    if not agrees:
        raise PartitionError(
            f"{model.name} is not what was recorded of it: on these probes it computes other scores, so "
            "it branches on its input or is random; use method='grid' or 'adaptive'"
        )
    graph.is_confirmed = True
