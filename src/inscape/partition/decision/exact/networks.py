"""Exact decision regions of a piecewise-affine network on segments and planes.

On a linear piece of a segment and on a face of a plane every score is affine: labels change where the upper
envelope of the scores has its corners and edges.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Bools, Floats, Ints
from inscape.budget import MEMORY
from inscape.compiled import inlined, kernel
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.models.graph import Graph
from inscape.models.graph.trace import check_head
from inscape.parallel import Job, Tell
from inscape.partition.decision.regions import DecisionPlane, DecisionRegions, DecisionSegment, maker
from inscape.partition.linear.envelope import walk_envelope
from inscape.partition.linear.regions import KNOT_TOLERANCE
from inscape.partition.linear.rounding import RECHECKED_BELOW, SLACK, evaluated_at
from inscape.partition.linear.segments.breakpoints import Positions
from inscape.partition.linear.segments.linear_segments import graph_on
from inscape.partition.linear.segments.walk import BYTES_IN_CHUNK, walk
from inscape.probes import Probe, Segment
from inscape.probes.segment import as_segments
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

TIES = Status(
    "ties",
    "the largest scores are equal along a whole stretch, where the smaller label counts",
    text="ties on an interval",
)
_ON_A_FACE = "the largest scores are equal (ties) on a whole face, where the smaller label counts"
TIES_ON_A_FACE = Status("ties", _ON_A_FACE, text=f"{COMPLETE}; {_ON_A_FACE}")

TIE_ABOVE_FRACTION = 1e-9
"""A tie on a shorter fraction of the span is rounding at a crossing, not a tie on an interval."""

DOUBT_FROM_LENGTH = 1e-4
"""In float32, scores nearer than rounding over a longer fraction of the span are no mere crossing."""

HEAD_CHECKED_ON_SEGMENTS = 64
"""On at most this many segments a tanh, sigmoid or the like at the end is checked to keep scores distinct."""

EQUAL_UP_TO_UNITS = 2.0**6
"""Scores nearer than this many units of rounding, relative to the leading score, are equal."""


def exact_segments(
    model: Model,
    segments: Sequence[Segment],
    *,
    memory: int = MEMORY,
    precision: str = "float64",
    provenance: Provenance | None = None,
    reason: str = "",
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
        reason: why this method was taken.
        progress: None for a bar after two seconds, False for none; a function gets
            (thousandths of segments done, in all).
    """
    segments = as_segments(list(segments))
    graph = graph_on(model, segments)
    if len(shape := graph.shapes[graph.output]) > 1:
        raise PartitionError(
            f"{model.name} returns scores of shape (n, {', '.join(map(str, shape))}): expected (n, c)"
        )
    evenly = np.unique(np.linspace(0, len(segments) - 1, HEAD_CHECKED_ON_SEGMENTS).astype(int))
    sample = [segments[i] for i in evenly]
    check_head(
        model,
        graph,
        lambda: np.concatenate([s.points(np.linspace(s.span[0], s.span[1], 33)) for s in sample]),
    )
    provenance, classes = provenance or Provenance.of(model, dtype=precision), model.classes
    with meter(progress, "segments") as show:
        labels = graph_labels(graph, segments, memory=memory, precision=precision, show=show)
    made = maker(
        DecisionSegment,
        method="exact",
        is_exact=precision == "float64",
        resolution=None,
        connectivity=None,
        class_names=classes,
        provenance=provenance,
        reason=reason,
        model=model,
    )
    regions = [
        made({"probe": segment, "span": segment.span, **fields})
        for segment, fields in zip(segments, labels.results(), strict=True)
    ]
    if unsure := labels.unsure():
        again = [segments[k] for k in unsure]
        for k, sure in zip(
            unsure,
            exact_segments(model, again, memory=memory, provenance=provenance, reason=reason),
            strict=True,
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
    """How far a difference of two scores that may be the largest can be from its true value, (n,)."""
    contends = values + bounds >= (values - bounds).max(axis=1, keepdims=True)
    return np.asarray(2 * np.where(contends, bounds, 0.0).max(axis=1))


class Labels:
    """A sink that follows the label along the segments."""

    def __init__(self, graph: Graph, segments: Sequence[Segment]) -> None:
        self._graph, self._segments = graph, segments
        self._lengths = np.array([s.span[1] - s.span[0] for s in segments])
        self._tied = np.zeros(len(segments))
        self._n_pieces = np.zeros(len(segments), np.int64)
        self._changes: list[tuple[Ints, Floats, Ints]] = []
        self._unsure = np.zeros(len(segments), bool)
        self._label, self._owner = -1, -1
        self._most = max(1, BYTES_IN_CHUNK // 8 // max(math.prod(s) for s in graph.shapes))

    def take(self, positions: Positions, scores: Tensor, scale: float) -> None:
        """Add the positions of one chunk, on which scores can be as large as `scale`."""
        values = as_lines(scores.double().numpy())
        errors = self._repair(positions, values, scores.dtype, scale)
        floor = EQUAL_UP_TO_UNITS * float(np.finfo(np.float64).eps)
        of, at, new, tied, self._label, self._owner = label_changes(
            positions.t, positions.segment, values, errors, floor, self._lengths, self._label, self._owner
        )
        self._tied += tied
        self._changes.append((of, at, new))
        inside = positions.segment[1:] == positions.segment[:-1]
        self._n_pieces += np.bincount(positions.segment[1:][inside], minlength=len(self._n_pieces))

    def _repair(self, positions: Positions, values: Any, dtype: torch.dtype, scale: float) -> Floats:
        """Evaluate again, in place, the scores of positions where rounding may decide which is the largest.

        Returns:
            how far a difference of contending scores may be from its true value there, 0 elsewhere, (n,).
        """
        errors = np.zeros(len(values))
        near = RECHECKED_BELOW * scale
        if dtype == torch.float32:
            size = max(float(np.abs(values).max()), scale / SLACK)
            near = EQUAL_UP_TO_UNITS * float(np.finfo(np.float32).eps) * size
        doubt = np.flatnonzero(leads(values) <= near)
        for first in range(0, len(doubt), self._most):
            chosen = doubt[first : first + self._most]
            again = evaluated_at(self._graph, self._segments, positions, chosen, self._graph.output)
            values[chosen] = as_lines(again.values.flatten(1).numpy())
            errors[chosen] = _error_of_leads(values[chosen], as_lines(again.bounds.flatten(1).numpy()))
        if dtype == torch.float32:
            self._doubt(positions, doubt, leads(values) <= errors)
        return errors

    def _doubt(self, positions: Positions, doubt: Ints, is_tied: Bools) -> None:
        """Note segments with positions that tie up to rounding, or a long interval in doubt.

        In float32 the ends of such an interval are not accurate enough for the bounds of float64.
        """
        self._unsure[positions.segment[is_tied]] = True
        after = doubt[1:][np.diff(doubt) == 1]
        owner = positions.segment[after]
        is_long = positions.t[after] - positions.t[after - 1] > DOUBT_FROM_LENGTH * self._lengths[owner]
        self._unsure[owner[is_long & (owner == positions.segment[after - 1])]] = True

    def unsure(self) -> list[int]:
        """The segments that float32 cannot decide."""
        return [int(k) for k in np.flatnonzero(self._unsure)]

    def results(self) -> list[dict[str, Any]]:
        """Fields of `DecisionSegment` for each segment; its first change is its start."""
        of, at, new = (np.concatenate([c[k] for c in self._changes]) for k in range(3))
        bounds = np.searchsorted(of, np.arange(len(self._lengths) + 1))
        return [
            {
                "boundaries": at[a + 1 : b].astype(np.float64),
                "labels": new[a:b].astype(np.int64),
                "status": TIES if tied > TIE_ABOVE_FRACTION else COMPLETE,
                "n_pieces": int(n),
                "n_evaluations": int(n) + 1,
            }
            for a, b, tied, n in zip(bounds[:-1], bounds[1:], self._tied, self._n_pieces, strict=True)
        ]


@inlined
def _margin(scores):
    """The first largest entry and its lead over the rest."""
    best, second, where = -np.inf, -np.inf, 0
    for j in range(len(scores)):
        if scores[j] > best:
            best, second, where = scores[j], best, j
        elif scores[j] > second:
            second = scores[j]
    return where, best - second


def leads(scores: Floats) -> Floats:
    """The lead of the largest score over the next at each of n points, of (n, c), (n,)."""
    lead = np.empty(len(scores))
    _write_leads(scores, lead)
    return lead


@kernel
def _write_leads(scores, lead):
    """Write the lead at each point."""
    for i in range(len(scores)):
        lead[i] = _margin(scores[i])[1]


@inlined
def _fraction_in_doubt(first, last, lead, start, stop, error):
    """The longest stretch from `start` to `stop` on which a line comes within `error` of the leading one."""
    longest = 0.0
    for j in range(len(first)):
        if j == lead:
            continue
        ahead, rise = first[lead] - first[j], (last[lead] - last[j]) - (first[lead] - first[j])
        low, high = start, stop
        if ahead + start * rise > error and ahead + stop * rise > error:
            continue
        if ahead + start * rise > error:
            low = (error - ahead) / rise
        elif ahead + stop * rise > error:
            high = (error - ahead) / rise
        longest = max(longest, high - low)
    return longest


def label_changes(
    t: Floats,
    segment: Ints,
    scores: Floats,
    errors: Floats,
    floor: float,
    lengths: Floats,
    label: int,
    owner: int,
) -> tuple[Ints, Floats, Ints, Floats, int, int]:
    """Where the label changes along a chunk of positions.

    Between neighbouring positions the scores are linear. One label that leads clearly at both ends leads
    between; otherwise the upper envelope of the lines is walked. Lines that coincide within their errors
    count as one, the first of them; on an interval up to `TIE_ABOVE_FRACTION` the label in force stays if it
    is among them.

    Args:
        t: parameters of the positions, (n,).
        segment: (n,).
        scores: (n, c).
        errors: for positions where rounding may decide the label, how far a difference of leading scores may
            be from its true value, (n,); 0 for the others.
        floor: the least error, as a fraction of the leading scores: a score far below them, such as that of a
            class that is masked out, does not matter.
        lengths: the length of each segment's span.
        label: the label in force before the first position.
        owner: the segment that it belongs to, -1 for none.

    Returns:
        segment (m,), t (m,), label (m,) of every change, the start of a segment counting as one; the
        fraction of each segment's span on which two labels tie; the label in force at the end and its
        segment.
    """
    n, c = scores.shape
    capacity = 64 + n + c
    at, owners = np.empty(capacity), np.empty((2, capacity), np.int64)
    tied, changes, leading = np.zeros(len(lengths)), np.empty(c), np.empty(c, np.int64)
    cursor = np.array([0, 0, label, owner])
    while not _find(t, segment, scores, errors, floor, lengths, cursor, at, owners, tied, changes, leading):
        at = np.concatenate([at, np.empty_like(at)])
        owners = np.concatenate([owners, np.empty_like(owners)], axis=1)
    m = cursor[1]
    return owners[0, :m], at[:m], owners[1, :m], tied, int(cursor[2]), int(cursor[3])


@kernel
def _find(t, segment, scores, errors, floor, lengths, cursor, at, owners, tied, changes, leading):
    """Write the changes from a position on.

    `cursor` holds that position, how many changes there are so far, the label in force and its segment.
    False if there may be no memory for those of the next interval, and `cursor` says where to go on.
    """
    m, label, owner = cursor[1], cursor[2], cursor[3]
    for i in range(cursor[0], len(scores) - 1):
        if segment[i] != segment[i + 1]:
            continue
        if m + scores.shape[1] > len(at):
            cursor[0], cursor[1], cursor[2], cursor[3] = i, m, label, owner
            return False
        # (1) a new segment has no label in force
        if segment[i] != owner:
            owner, label = segment[i], -1
        # (2) nothing happens where the label in force leads clearly at both ends
        first, last = scores[i], scores[i + 1]
        a, lead_a = _margin(first)
        b, lead_b = _margin(last)
        error = max(floor * max(abs(first[a]), abs(last[b])), errors[i], errors[i + 1])
        if a == b and a == label and lead_a > error and lead_b > error:
            continue
        # (3) else the upper envelope says which score leads, and where others come within the error of it
        fraction = (t[i + 1] - t[i]) / lengths[owner]
        n_changes = walk_envelope(first, last, error, changes, leading)
        for k in range(n_changes + 1):
            start = 0.0 if k == 0 else changes[k - 1]
            stop = 1.0 if k == n_changes else changes[k]
            tied[owner] += fraction * _fraction_in_doubt(first, last, leading[k], start, stop, error)
        # (4) keep the changes; on a very short interval the label in force stays if it is as good
        for k in range(n_changes + 1):
            lead = leading[k]
            if fraction <= TIE_ABOVE_FRACTION and label >= 0:
                close = abs(first[label] - first[lead]) <= error and abs(last[label] - last[lead]) <= error
                lead = label if close else lead
            if lead != label:
                at[m] = t[i] if k == 0 else t[i] + changes[k - 1] * (t[i + 1] - t[i])
                owners[0, m], owners[1, m], label = owner, lead, lead
                m += 1
    cursor[1], cursor[2], cursor[3] = m, label, owner
    return True


def plane_jobs(model: Model, probes: Iterable[Probe], max_faces: float) -> Iterator[Job[DecisionRegions]]:
    """A job for each patch or triangle, which tells which fraction of it is done."""

    def job(probe: Probe, tell: Tell) -> DecisionPlane:
        return exact_plane(model, probe, max_faces=max_faces, meter=lambda done, of: tell(done / of))

    from inscape.partition.linear.planes.subdivision import confirmed_on

    for probe in probes:
        confirmed_on(model, probe)  # here, so that no two jobs do it at once
        yield partial(job, probe)


def exact_plane(
    model: Model, probe: Probe, *, meter: Meter, memory: int = MEMORY, max_faces: float = math.inf
) -> DecisionPlane:
    """The decision regions of a piecewise-affine model on a patch or a triangle.

    On a face of the linear regions every score is affine, so that label changes are edges of the upper
    envelope of c planes. A one-output net has the label `score > 0`. Faces of one label that share an edge
    are one region. More than `max_faces` linear regions are given up with an error.
    """
    from inscape.partition.linear.planes.complex.dissolve import joined_faces
    from inscape.partition.linear.planes.subdivision import confirmed_on, subdivision_on

    graph = confirmed_on(model, probe)
    if len(shape := graph.shapes[graph.output]) > 1:
        raise PartitionError(
            f"{model.name} returns scores of shape (n, {', '.join(map(str, shape))}): expected (n, c)"
        )
    subdivision, domain = subdivision_on(
        graph, probe, memory=memory, max_faces=max_faces, with_labels=True, meter=meter
    )
    shares = np.random.default_rng(0).dirichlet(np.ones(len(domain.corners)), 512)
    check_head(model, graph, lambda: domain.plane.points(shares @ domain.corners))
    if not subdivision.is_complete:
        raise PartitionError(f"there are more than {max_faces:,.0f} linear regions, far more than foreseen")
    assert subdivision.labels is not None
    regions, labels = joined_faces(subdivision.planar, subdivision.labels)
    return DecisionPlane(
        probe=probe,
        labels=labels,
        method="exact",
        is_exact=True,
        status=TIES_ON_A_FACE if subdivision.has_tie else COMPLETE,
        n_evaluations=len(subdivision.planar.xy),
        resolution=None,
        connectivity=None,
        class_names=model.classes,
        provenance=Provenance.of(model, dtype="float64"),
        face_regions=regions,
        domain=domain,
        subdivision=subdivision,
    )
