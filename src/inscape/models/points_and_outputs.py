"""Points that go into a model and numbers that come out of it: what they must be, which labels these mean."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inscape.arguments import as_array
from inscape.arrays import Array, Ints, Shape
from inscape.errors import InscapeError, ModelError, NonFiniteScoresError, warn

if TYPE_CHECKING:
    from inscape.models.base import Model


def as_points(x: npt.ArrayLike) -> Array:
    """A float array (n, ...) of n >= 1 finite points."""
    points = as_array(x, "points", ModelError)
    try:
        if points.dtype.kind != "f":
            points = points.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"points must be an array of numbers: {error}") from error
    if points.ndim < 2 or points.size == 0:
        raise ModelError(f"points must be an array (n, ...) that is not empty, got shape {points.shape}")
    check_finite(points, "points")
    return points


def check_finite(x: Array, what: str, error: type[InscapeError] = ModelError) -> None:
    """Raise `error` if a row of `x` holds NaN or infinity, saying how many rows and which is the first."""
    if np.isfinite(x).all():
        return
    rows = bad_rows(x)
    raise error(
        f"{len(rows)} of {len(x)} {what} hold NaN or infinite values, the first at row {rows[0]}: "
        "remove or impute them first"
    )


def bad_rows(x: Array) -> list[int]:
    """The rows of `x` that hold NaN or infinity."""
    return [int(i) for i in np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))]


LAYOUTS: dict[str, tuple[int, ...]] = {"HWC": (2, 0, 1), "CHW": (1, 2, 0)}
"""The order of the data's axes -> which of them the model takes first, second and third."""


def transposed(shape: Shape, axes: Sequence[int]) -> Shape:
    """The sizes of the axes in another order.

    >>> transposed((32, 30, 3), LAYOUTS["HWC"]), transposed((3, 32, 30), LAYOUTS["CHW"])
    ((3, 32, 30), (32, 30, 3))
    """
    return tuple(shape[a] for a in axes)


def check_size(model: "Model", shape: Shape) -> None:
    """Raise an error unless points of `shape` are in the model's shape after a reshape.

    The same axes in another order are refused: a reshape would shuffle the values between them.
    """
    expected = model.input_shape
    if expected is None or shape == expected:
        return
    if math.prod(shape) != math.prod(expected):
        hint = model.size_hint(shape)
        raise ModelError(f"{model.name} expects points of shape {expected}, got {shape}{hint}")
    given, wanted = ([n for n in s if n > 1] for s in (shape, expected))
    if given != wanted and sorted(given) == sorted(wanted):
        fitting = [
            k for k, axes in LAYOUTS.items() if len(shape) == 3 and transposed(shape, axes) == expected
        ]
        if model.layout is not None:
            cure = (
                f"with layout={model.layout!r} an input_shape is that of the data; leave layout out if the "
                "data have the order that the model takes"
            )
        else:
            cure = layout_advice(fitting[0]) if fitting else "transpose the data first"
        raise ModelError(
            f"{model.name} takes points of shape {expected}, got {shape}, the same axes in another order, "
            f"which a reshape would scramble: {cure}"
        )


def layout_advice(layout: str) -> str:
    """What to do with data of another layout than the model's."""
    return (
        f'wrap it with layout="{layout}" (--layout {layout}), which transposes the data; an input_shape is '
        "then that of the data"
    )


def check_outputs(outputs: Array, name: str) -> None:
    """Raise an error unless outputs are finite numbers (n, k)."""
    if outputs.ndim != 2 or outputs.shape[1] == 0:
        raise ModelError(
            f"{name} returned scores of shape {outputs.shape}: expected (n, c); output=... chooses among "
            f"them, such as output={picking(outputs.ndim)}"
        )
    if not np.isfinite(outputs).all():
        rows = bad_rows(outputs)
        raise NonFiniteScoresError(
            f"{name} returned NaN or infinite scores for {len(rows)} of the {len(outputs)} points of a "
            f"batch, first at row {rows[0]}",
            rows,
        )


def picking(n_axes: int, *, is_label: bool = False) -> str:
    """A function that picks scores (n, c), or labels (n,), from an array of more axes, for a message.

    >>> picking(4), picking(2, is_label=True)
    ('lambda y: y[:, :, 0, 0]', 'lambda y: y[:, 0]')
    """
    return f"lambda y: y[:{', 0' * (n_axes - 1) if is_label else ', :' + ', 0' * (n_axes - 2)}]"


def squeezed(outputs: Array) -> Array:
    """Outputs (n,), (n, k), (n, k, 1, 1) as (n, k); those with more than one long axis are left as they are.

    >>> [squeezed(np.zeros(shape)).shape for shape in [(4, 7, 1, 1), (4,), (4, 2, 3)]]
    [(4, 7), (4, 1), (4, 2, 3)]
    """
    point_shape = outputs.shape[1:]
    if outputs.ndim == 0 or sum(n > 1 for n in point_shape) > 1:
        return outputs
    return outputs.reshape(len(outputs), math.prod(point_shape))


def labels_of(scores: Array, name: str) -> Ints:
    """The winning column of each row; `score > 0` for one column.

    >>> labels_of(np.array([[0.2, 0.7], [0.9, 0.1]]), "net").tolist()
    [1, 0]
    >>> labels_of(np.array([[-3.0], [2.0]]), "net").tolist()
    [0, 1]
    """
    check_outputs(scores, name)
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))


def between_0_and_1(values: Array) -> bool:
    """Whether no value is outside of [0, 1]."""
    return bool(((values >= 0) & (values <= 1)).all())


ONE_SIDED = {"exp": "above", "softplus": "above", "log_sigmoid": "below"}
"""Functions that end a model -> on which side of 0 all their values are."""


def warn_of_one_label(name: str, ending: str) -> None:
    """Say that a score never changes its sign, so that all points have one label."""
    side = ONE_SIDED[ending]
    warn(
        f"{name} ends in {ending}, whose values are all {side} 0, with which one score is compared: every "
        f"point has the label {int(side == 'above')}; say threshold=... (--threshold) with a number that is "
        "reached, or levels=[...] for a regression"
    )


def warn_of_probabilities(name: str) -> None:
    """Say that outputs were taken for probabilities."""
    warn(
        f"{name} returns values between 0 and 1 wherever it was tried: they are taken for probabilities and "
        "compared with 1/2; say threshold=0.5 (--threshold 0.5), or threshold=0 if they are scores"
    )
