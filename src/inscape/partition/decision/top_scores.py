"""The two highest scores along a segment, for its picture."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.models import Model
from inscape.probes import Probe, Segment


class TopScores(NamedTuple):
    """Parameters t (n,), the two highest scores there (n, 2), and whose they are (n, 2)."""

    t: npt.NDArray[np.float64]
    scores: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]


def top_two(scores: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The two highest scores of each row and their columns; a one-column score s reads as (-s/2, s/2).

    >>> values, columns = top_two(np.array([[0.1, 0.7, 0.2]]))
    >>> values.tolist(), columns.tolist()
    ([[0.7, 0.2]], [[1, 2]])
    """
    if scores.shape[1] == 1:
        scores = np.column_stack([-scores / 2, scores / 2])
    columns = np.argpartition(-scores, 1, axis=1)[:, :2]
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1)


def sample_top_scores(
    model: Model, probe: Probe, boundaries: npt.NDArray[np.float64], n: int = 400
) -> TopScores | None:
    """The two highest scores at n even steps and at the boundaries; None if the model has no scores."""
    segment = probe if isinstance(probe, Segment) else Segment(*probe.anchors)
    t = np.union1d(np.linspace(*segment.span, n), boundaries)
    scores = model.predict(segment.points(t), with_scores=True).scores
    return None if scores is None else TopScores(t, *top_two(scores))
