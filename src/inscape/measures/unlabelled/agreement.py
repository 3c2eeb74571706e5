"""How often a model labels points as other models do.

What high and low mean: models that agree with others trained alike tend to be right, since models that are
wrong are wrong in different ways; no label is needed. When it does not hold: models that share a mistake
agree on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import MeasureError
from inscape.measures.points import measuring, points_of
from inscape.measures.result import Measurement, mean_with_error
from inscape.models import wrap
from inscape.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Agreement(Measurement):
    """The share of points on which a model predicts as others do.

    Attributes:
        shares: the share with each of the others, (m,).
    """

    measure: ClassVar[str] = "agreement"

    shares: Floats


def agreement(model: Any, x: Any, *, others: Sequence[Any]) -> Agreement:
    """The mean over other models of the share of points that they and this one label alike.

    With others that differ in the seed of training alone that share is, often, near their test accuracy
    (Jiang et al. 2022, arXiv 2106.13799).

    Args:
        model: anything that `inscape.wrap` takes.
        x: the points.
        others: such models, at least one.

    >>> halves = lambda x: (x[:, 0] > 0).astype(int)
    >>> agreement(halves, [[-1.0], [1.0], [2.0], [3.0]], others=[lambda x: (x[:, 0] > 1.5).astype(int)]).value
    0.75
    """
    if not isinstance(others, Sequence) or isinstance(others, str) or not others:
        raise MeasureError(f"others={others!r} names no models: give a list of at least one")
    wrapped = wrap(model)
    points = points_of(wrapped, x)
    with measuring(wrapped):
        mine = wrapped.labels(points)
        shares = np.array([(_labels(other, points) == mine).mean() for other in others])
        value, error, interval = mean_with_error(shares)
        return Agreement(
            value=value,
            std_error=error,
            interval=interval,
            n=len(points),
            method="labels",
            settings={"others": len(others)},
            provenance=Provenance.of(wrapped),
            shares=shares,
        )


def _labels(model: Any, points: Floats) -> npt.NDArray[np.int64]:
    return wrap(model).labels(points)
