"""Exact decision regions of a piecewise-affine network on segments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.errors import PartitionError
from inscape.memory import MEMORY
from inscape.models import Model
from inscape.models.graph import Graph
from inscape.partition.decision.exact.label_changes import SHORT, label_changes, leads
from inscape.partition.decision.regions import DecisionSegment
from inscape.partition.linear.confirmed import graph_on
from inscape.partition.linear.regions import KNOT_TOLERANCE, check_arguments
from inscape.partition.linear.rounding import SLACK, SUSPICIOUS, evaluated_at
from inscape.partition.linear.segments.breakpoints import Rows
from inscape.partition.linear.segments.walk import CHUNK, walk
from inscape.probes import Segment
from inscape.probes.segment import as_segments
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

TIES = Status(
    "ties",
    "the largest scores are equal along a whole stretch, where the smaller label counts",
    text="ties on an interval",
)

DOUBT_FROM_LENGTH = 1e-4
"""In float32, scores nearer than rounding over a longer fraction of the span are no mere crossing."""

EQUAL_UP_TO_UNITS = 2.0**6
"""Scores nearer than this many units of rounding, against the leading score, are equal wherever they are."""


def exact_segments(
    model: Model,
    segments: Sequence[Segment],
    *,
    memory: int = MEMORY,
    precision: str = "float64",
    provenance: Provenance | None = None,
    progress: bool | Meter | None = None,
) -> list[DecisionSegment]:
    """The decision regions of a piecewise-affine model on each segment: where the largest score changes.

    On a linear piece every score is a straight line, so that the label changes are the corners of the upper
    envelope of c lines. A one-output net has the label `score > 0`: the envelope of 0 and the score. A final
    softmax, log-softmax or sigmoid is left out, since it changes no label (for one output behind a sigmoid,
    that is the threshold 1/2).

    Args:
        model: a wrapped model of structure "piecewise-affine".
        segments: of one shape.
        memory: bytes that the tensors may take.
        precision: "float64", or "float32" for speed.
        provenance: of the results; None asks the model.
        progress: None for a bar after two seconds, False for none; a function gets
            (thousandths of segments done, in all).
    """
    segments = as_segments(list(segments))
    check_arguments(memory, KNOT_TOLERANCE, precision)
    graph = graph_on(model, segments)
    if len(shape := graph.shapes[graph.output]) > 1:
        raise PartitionError(
            f"{model.name} returns scores of shape (n, {', '.join(map(str, shape))}): expected (n, c)"
        )
    provenance = provenance or Provenance.of(model, dtype=precision)
    with meter(progress, "segments") as show:
        labels = graph_labels(graph, segments, memory=memory, precision=precision, show=show)
    regions = [
        DecisionSegment(
            probe=segment,
            span=segment.span,
            method="exact",
            is_exact=precision == "float64",
            resolution=None,
            connectivity=None,
            class_names=model.classes,
            provenance=provenance,
            model=model,
            **own,
        )
        for segment, own in zip(segments, labels.results(), strict=True)
    ]
    if unsure := labels.unsure():
        again = [segments[k] for k in unsure]
        for k, sure in zip(
            unsure, exact_segments(model, again, memory=memory, provenance=provenance), strict=True
        ):
            regions[k] = replace(sure, is_exact=False)
    return regions


def graph_labels(
    graph: Graph,
    segments: Sequence[Segment],
    *,
    memory: int = MEMORY,
    precision: str = "float64",
    show: Meter = lambda done, total: None,
) -> "Labels":
    """The labels of a graph along each segment."""
    labels = Labels(graph, segments)
    walk(
        graph,
        segments,
        labels.take,
        memory=memory,
        tolerance=KNOT_TOLERANCE,
        dtype=getattr(torch, precision),
        done=lambda n: show(round(1000 * n), 1000 * len(segments)),
    )
    return labels


def as_lines(scores: Any) -> Any:
    """Scores (n, c) whose largest column is the label: a single score competes with 0."""
    return np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores


def _error_of_leads(values: Any, bounds: Any) -> Floats:
    """How far a difference of two scores that may be the largest can be from the truth, for each row (n,)."""
    contends = values + bounds >= (values - bounds).max(axis=1, keepdims=True)
    return np.asarray(2 * np.where(contends, bounds, 0.0).max(axis=1))


class Labels:
    """A sink that follows the label along the segments."""

    def __init__(self, graph: Graph, segments: Sequence[Segment]) -> None:
        self._graph, self._segments = graph, segments
        self._lengths = np.array([s.span[1] - s.span[0] for s in segments])
        self._tied = np.zeros(len(segments))
        self._n_pieces = np.zeros(len(segments), np.int64)
        self._changes: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
        self._unsure = np.zeros(len(segments), bool)
        self._label, self._owner = -1, -1

    def take(self, rows: Rows, scores: Tensor, scale: float) -> None:
        """Add the rows of one chunk, on which scores can be as large as `scale`."""
        values = as_lines(scores.double().numpy())
        errors = self._repair(rows, values, scores.dtype, scale)
        floor = EQUAL_UP_TO_UNITS * float(np.finfo(np.float64).eps)
        of, at, new, tied, self._label, self._owner = label_changes(
            rows.t, rows.segment, values, errors, floor, self._lengths, self._label, self._owner
        )
        self._tied += tied
        self._changes.append((of, at, new))
        inside = rows.segment[1:] == rows.segment[:-1]
        self._n_pieces += np.bincount(rows.segment[1:][inside], minlength=len(self._n_pieces))

    def _repair(self, rows: Rows, values: Any, dtype: torch.dtype, scale: float) -> Floats:
        """Evaluate anew, in place, the scores of rows where rounding may decide which is the largest.

        Returns:
            how far a difference of contending scores may be from the truth at these rows, 0 elsewhere, (n,).
        """
        errors = np.zeros(len(values))
        near = SUSPICIOUS * scale
        if dtype == torch.float32:
            size = max(float(np.abs(values).max()), scale / SLACK)
            near = EQUAL_UP_TO_UNITS * float(np.finfo(np.float32).eps) * size
        doubt = np.flatnonzero(leads(values) <= near)
        most = max(1, CHUNK // 8 // max(int(np.prod(s)) for s in self._graph.shapes))
        for first in range(0, len(doubt), most):
            chosen = doubt[first : first + most]
            found = evaluated_at(self._graph, self._segments, rows, chosen, self._graph.output)
            values[chosen] = as_lines(found.values.flatten(1).numpy())
            errors[chosen] = _error_of_leads(values[chosen], as_lines(found.bounds.flatten(1).numpy()))
        if dtype == torch.float32:
            self._doubt(rows, doubt, leads(values) <= errors)
        return errors

    def _doubt(self, rows: Rows, doubt: Ints, is_tied: npt.NDArray[np.bool_]) -> None:
        """Take note of segments with rows that tie up to rounding, or a long interval in doubt.

        In float32 the ends of such an interval are not known well enough for the bounds of float64.
        """
        self._unsure[rows.segment[is_tied]] = True
        after = doubt[1:][np.diff(doubt) == 1]
        owner = rows.segment[after]
        is_long = rows.t[after] - rows.t[after - 1] > DOUBT_FROM_LENGTH * self._lengths[owner]
        self._unsure[owner[is_long & (owner == rows.segment[after - 1])]] = True

    def unsure(self) -> list[int]:
        """The segments that float32 cannot decide."""
        return [int(k) for k in np.flatnonzero(self._unsure)]

    def results(self) -> list[dict[str, Any]]:
        """What is known of the regions of each segment; its first change is its start."""
        of, at, new = (np.concatenate([c[k] for c in self._changes]) for k in range(3))
        bounds = np.searchsorted(of, np.arange(len(self._lengths) + 1))
        return [
            {
                "boundaries": at[a + 1 : b].astype(np.float64),
                "labels": new[a:b].astype(np.int64),
                "status": TIES if tied > SHORT else COMPLETE,
                "n_pieces": int(n),
                "n_evaluations": int(n) + 1,
            }
            for a, b, tied, n in zip(bounds[:-1], bounds[1:], self._tied, self._n_pieces, strict=True)
        ]
