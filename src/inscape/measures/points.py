"""The points at which a model is measured, and what is known of the model there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.errors import DataError, InscapeError, NotApplicableError, PartitionError
from inscape.models import Model
from inscape.models.base import check_size, gradients
from inscape.models.class_names import as_labels
from inscape.probes.source import PointSource, for_model

if TYPE_CHECKING:
    from torch import Tensor

    from inscape.models.graph import Graph


class TargetSource(PointSource):
    """Points with several numbers each to fit instead of a class: `targets`, (n, c)."""

    def __init__(self, x: Any, targets: npt.NDArray[Any]) -> None:
        super().__init__(x)
        if len(targets) != len(self):
            raise DataError(f"y has {len(targets)} rows for {len(self)} points")
        self.targets = targets


def as_source(x: Any, y: npt.ArrayLike | None = None, error: type[InscapeError] = DataError) -> PointSource:
    """Points from wherever the user keeps them, read once; classes (n, 1) are (n,)."""
    return x if isinstance(x, PointSource) else PointSource(x, None if y is None else as_column(y, error))


def as_targets(x: Any, y: npt.ArrayLike | None = None) -> PointSource:
    """The same where y may be targets (n, c)."""
    if isinstance(x, PointSource) or y is None:
        return as_source(x, y)
    numbers = as_column(y)
    return TargetSource(x, numbers) if numbers.ndim > 1 else PointSource(x, numbers)


def as_column(y: Any, error: type[InscapeError] = DataError) -> npt.NDArray[Any]:
    """The array y; its only column if it has shape (n, 1)."""
    numbers = as_labels(y, error)
    return numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers


def points_of(model: Model, x: Any) -> npt.NDArray[np.float64]:
    """All points in the model's shape, (n, *input_shape), in float64."""
    points = as_source(for_model(model, x)).everything()[0].astype(np.float64)
    check_size(model, points.shape[1:])
    return points.reshape(len(points), *(model.input_shape or points.shape[1:]))


def labelled_points(
    model: Model, x: Any, y: npt.ArrayLike | None, measure: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """All points and their classes; an error if these are not known."""
    source = as_source(for_model(model, x), y)
    if not source.has_labels:
        raise NotApplicableError(f"{measure} needs y, the true classes")
    classes = source.everything()[1]
    assert classes is not None
    return points_of(model, source), classes


def check_weights(model: Model) -> None:
    """Raise an error if a weight of a torch module is NaN or infinite, as after training that diverged."""
    module = getattr(model.undecided, "module", None)
    if not hasattr(module, "named_parameters"):
        return
    for name, weight in module.named_parameters():  # type: ignore[union-attr]
        if not bool(weight.detach().isfinite().all()):
            raise NotApplicableError(
                f"the weights of {model.name} are not finite: {name} has NaN or infinity"
            )


@contextmanager
def measuring(model: Model) -> Iterator[None]:
    """The time of one measure: the model is taken not to change, and derivatives can be computed."""
    with model.unchanged(), gradients():
        yield


@contextmanager
def graph_at(model: Model, x: Any, measure: str) -> Iterator[tuple["Graph", "Tensor"]]:
    """The piecewise-affine graph of a network and its points, while the model is taken not to change.

    It ends at the network's outputs, whatever rule makes labels of them.
    """
    import torch

    points = points_of(model, x)
    check_weights(model)
    with measuring(model):
        try:
            graph = model.network(points.shape[1:])
        except PartitionError as error:
            raise NotApplicableError(
                f"{measure} is defined for networks of affine and piecewise-linear layers; {error.reason}"
            ) from error
        yield graph, torch.from_numpy(np.ascontiguousarray(points)).reshape(-1, *graph.input_shape)
