"""What all measures have in common: the points they are given, the result they return, its error."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Floats, Ints
from inscape.errors import DataError, InscapeError, MeasureError, NotApplicableError, PartitionError
from inscape.models import Model
from inscape.models.base import check_size, gradients
from inscape.models.class_names import as_labels
from inscape.pictures import Shown
from inscape.probes.source import PointSource, for_model
from inscape.provenance import Provenance
from inscape.serialising import Written
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from torch import Tensor

    from inscape.models.graph import Graph


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Measurement(Written, Shown):
    """A measured number.

    Attributes:
        value: the measure.
        std_error: its standard error; NaN if it has none or shows none.
        interval: the 95 % interval of the value; NaN likewise.
        n: over how many points it is a mean.
        method: how it was computed.
        status: "complete", or what to know before trusting the number.
        settings: the arguments that it depends on.
        provenance: model, precision, seed, version.

    >>> import inscape
    >>> measured = inscape.confidence(lambda x: x, [[0.2, 0.8], [0.9, 0.1]])
    >>> isinstance(measured, Measurement), round(measured.value, 2), measured.n
    (True, 0.85, 2)
    """

    _error: ClassVar = MeasureError

    measure: ClassVar[str]

    value: float
    std_error: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
    n: int
    method: str
    status: Status = COMPLETE
    settings: dict[str, Any]
    provenance: Provenance

    def _noun(self) -> str:
        """What is measured."""
        return self.measure.replace("_", " ")

    def __repr__(self) -> str:
        error = "" if math.isnan(self.std_error) else f" +- {self.std_error:.2g}"
        value = f"{self._noun()} = {self.value:.4g}{error}"
        return f"<{value} of {self.provenance.model}, {self.method}, {self.status.heading}>"


Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for 95 % intervals."""


def mean_with_error(values: Array) -> tuple[float, float, tuple[float, float]]:
    """The mean, its standard error, and its 95 % interval from Student's t; NaN errors for one value.

    >>> mean, error, (low, high) = mean_with_error(np.array([1, 2, 3]))
    >>> round(mean, 3), round(error, 3), round(low, 3), round(high, 3)
    (2.0, 0.577, -0.484, 4.484)
    """
    from scipy.special import stdtrit

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return mean, math.nan, (math.nan, math.nan)
    error = float(np.std(values, ddof=1) / math.sqrt(n))
    reach = float(stdtrit(n - 1, 0.975)) * error
    return mean, error, (mean - reach, mean + reach)


def crossed_mean(values: Floats) -> tuple[float, float, tuple[float, float]]:
    """The mean of a table (n, m) whose rows and columns are both random, its standard error and interval.

    For values mu + a_i + b_j + e_ij the variance of the mean is var(a) / n + var(b) / m + var(e) / (n m). The
    variances of row means, column means and residuals estimate it without bias. NaN errors for one row or
    one column, which show no spread of their kind.

    >>> mean, error, _ = crossed_mean(np.add.outer([0.0, 1.0, 2.0], [0.0, 10.0]))
    >>> mean, round(error**2, 3) == round(1 / 3 + 50 / 2, 3)
    (6.0, True)
    """
    from scipy.special import stdtrit

    n, m = values.shape
    mean = float(values.mean())
    if n < 2 or m < 2:
        return mean, math.nan, (math.nan, math.nan)
    rows, columns = values.mean(axis=1), values.mean(axis=0)
    residual = values - rows[:, None] - columns + mean
    e2 = float((residual**2).sum()) / ((n - 1) * (m - 1))
    between = float(rows.var(ddof=1)) / n + float(columns.var(ddof=1)) / m
    error = math.sqrt(max(between - e2 / (n * m), between / 2))
    reach = float(stdtrit(min(n, m) - 1, 0.975)) * error
    return mean, error, (mean - reach, mean + reach)


def wilson(n_right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a fraction by Wilson's score method, which stays within 0 and 1.

    >>> low, high = wilson(10, 10)
    >>> round(low, 3), round(high, 3)
    (0.722, 1.0)
    """
    centre = (n_right + Z**2 / 2) / (n + Z**2)
    reach = Z * math.sqrt(n_right * (n - n_right) / n + Z**2 / 4) / (n + Z**2)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def probability_less(a: Ints, b: Ints, *, shift: float = 0.0, shift_error: float = 0.0) -> float:
    """The probability that the mean of `a` is below that of `b`, from n paired samples.

    With differences d = b - a it is T(mean(d) / se(d)), T Student's distribution function with n - 1 degrees
    of freedom; but never more than 1 - 2^-(n+1), the posterior of n differences of one sign.

    Args:
        a: the first samples, (n,).
        b: the second ones, (n,).
        shift: what is known to be missing in the mean of `b`, less that in the mean of `a`.
        shift_error: its standard error, independent of that of the differences.

    >>> probability_less(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 4]))
    0.5
    """
    from scipy.special import stdtr

    d = (b - a) + shift
    error = math.hypot(float(np.std(d, ddof=1)) / math.sqrt(len(d)), shift_error)
    if error == 0:
        p = 0.5 if d[0] == 0 else float(d[0] > 0)
    else:
        p = float(stdtr(len(d) - 1, np.mean(d) / error))
    doubt = 0.5 ** (len(d) + 1)
    return min(max(p, doubt), 1 - doubt)


class TargetSource(PointSource):
    """Points with several numbers each to fit instead of a class: `targets`, (n, c)."""

    def __init__(self, x: Any, targets: Array) -> None:
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


def as_column(y: Any, error: type[InscapeError] = DataError) -> Array:
    """The array y; its only column if it has shape (n, 1)."""
    numbers = as_labels(y, error)
    return numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers


def points_of(model: Model, x: Any) -> Floats:
    """All points in the model's shape, (n, *input_shape), in float64."""
    points = as_source(for_model(model, x)).everything()[0].astype(np.float64)
    check_size(model, points.shape[1:])
    return points.reshape(len(points), *(model.input_shape or points.shape[1:]))


def labelled_points(model: Model, x: Any, y: npt.ArrayLike | None, measure: str) -> tuple[Floats, Array]:
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
