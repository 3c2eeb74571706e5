"""Exact decision regions, on segments, of estimators that are quadratic, nearest neighbours, or votes.

Each of these cuts a segment into pieces of constant label at points that are known in closed form: where two
parabolas cross, where two points change places in the order of distance, where a member changes its label.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from inscape.arrays import Bools, Floats, Ints
from inscape.budget import MEMORY
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.models.from_sklearn import Duels, Form, Neighbours, Quadratics, Votes
from inscape.models.graph import Graph
from inscape.models.sklearn_estimator import SklearnModel
from inscape.models.trees import TreeEnsemble
from inscape.partition.decision.exact.networks import graph_labels
from inscape.partition.decision.exact.parabolas import (
    EQUAL_UP_TO_UNITS,
    candidates,
    largest_parabola,
    nearest_labels,
)
from inscape.partition.decision.exact.trees import regions_along
from inscape.partition.decision.regions import DecisionSegment
from inscape.partition.linear.envelope import envelope
from inscape.partition.linear.regions import KNOT_TOLERANCE
from inscape.partition.linear.segments.breakpoints import Positions
from inscape.partition.linear.segments.walk import walk
from inscape.probes import Segment
from inscape.probes.segment import as_segment
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, Status

EPS = float(np.finfo(np.float64).eps)
CLEAR_FROM_LENGTH = 1e-6
"""A region shorter than this fraction of the span is not checked: there rounding may decide."""
EVALUATED_AT = 0.382
"""Where the model is evaluated inside a piece, as a fraction of it."""
MOST_DISTANCES = 2**22
"""Numbers in one table of lines and training points."""


class Pieces(NamedTuple):
    """A segment in pieces of constant label, in order; neighbours may have the same.

    Attributes:
        t: between pieces, (k - 1,).
        labels: (k,).
        in_doubt: whether rounding decides the label, since scores or distances are equal along it, (k,).
    """

    t: Floats
    labels: Ints
    in_doubt: Bools


def estimator_segments(
    model: Model,
    segments: Sequence[Segment],
    *,
    provenance: Provenance | None = None,
    progress: bool | Meter | None = None,
) -> list[DecisionSegment]:
    """The decision regions of a model of structure "quadratic", "neighbours" or "votes" on each segment.

    Changes are known up to the rounding of float64; pieces shorter than 1e-12 of the span are left out. On a
    piece along which two scores or two distances are equal, as those of a training point that was given
    twice, the model itself is evaluated inside it, and the status says so.

    Args:
        model: a wrapped scikit-learn estimator.
        segments: lines in its input space.
        provenance: of the results; None asks the model.
        progress: None for a bar after two seconds, False for none, or a function of (done, total).

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from inscape import wrap
    >>> nearest = wrap(KNeighborsClassifier(1).fit([[0.0], [1.0], [4.0]], ["a", "b", "a"]))
    >>> [r] = estimator_segments(nearest, [Segment([0.0], [4.0])])
    >>> r.boundaries.tolist(), r.labels.tolist(), r.status
    ([0.125, 0.625], [0, 1, 0], 'complete')
    """
    if not isinstance(model, SklearnModel):
        raise PartitionError(f"{model.name} is a {model.structure} model, not an estimator that was read")
    form = model.form(segments[0].input_shape)
    provenance = provenance or Provenance.of(model)
    results = []
    with meter(progress, "segments") as tick:
        for segment, pieces in zip(segments, pieces_along(form, segments), strict=True):
            results.append(_region(model, segment, pieces, provenance))
            tick(len(results), len(segments))
    model.confirm(form, lambda: _check(model, results))
    return results


def pieces_along(form: Form, segments: Sequence[Segment]) -> Iterator[Pieces]:
    """The pieces of constant label of each segment."""
    for kind, function in _ALONG.items():
        if isinstance(form, kind):
            return function(form, segments)
    raise TypeError(form)


def _region(model: Model, segment: Segment, pieces: Pieces, provenance: Provenance) -> DecisionSegment:
    """Pieces of equal label joined, those in doubt decided by the model."""
    low, high = segment.span
    edges = np.concatenate([[low], pieces.t, [high]])
    kept = np.flatnonzero(np.diff(edges) > KNOT_TOLERANCE * (high - low))
    start, labels = edges[kept], pieces.labels[kept].copy()
    in_doubt = pieces.in_doubt[kept]
    if in_doubt.any():
        labels[in_doubt] = model.labels(segment.points(_inside(edges, kept[in_doubt])))
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    return DecisionSegment(
        probe=segment,
        boundaries=start[changes],
        labels=labels[np.concatenate([[0], changes])],
        span=segment.span,
        method="exact",
        is_exact=True,
        status=_status(int(in_doubt.sum()), len(kept)),
        n_evaluations=len(kept),
        resolution=None,
        connectivity=None,
        class_names=model.classes,
        provenance=provenance,
        model=model,
        n_pieces=len(kept),
    )


def _status(n_tied: int, n_pieces: int) -> Status:
    if not n_tied:
        return COMPLETE
    return Status(
        "complete", f"the top classes tie on {n_tied} of {n_pieces} pieces, labelled there as predict does"
    )


def _inside(edges: Floats, pieces: Ints) -> Floats:
    """A point in each piece, not its middle, where symmetric data have ties of their own."""
    return (1 - EVALUATED_AT) * edges[pieces] + EVALUATED_AT * edges[pieces + 1]


def _check(model: Model, results: list[DecisionSegment]) -> None:
    """Compare with the model once, inside each region of a segment without ties."""
    for r in results:
        if r.status.detail:
            continue
        edges = np.concatenate([[r.span[0]], r.boundaries, [r.span[1]]])
        clear = np.flatnonzero(np.diff(edges) > CLEAR_FROM_LENGTH * (r.span[1] - r.span[0]))
        expected = model.labels(as_segment(r.probe).points(_inside(edges, clear)))
        if not np.array_equal(expected, r.labels[clear]):
            raise PartitionError(
                f"{model.name} is not what was read of it: on these probes it predicts other labels; use "
                "method='grid' or 'adaptive'"
            )


class Stretch(NamedTuple):
    """Where a graph is affine along a segment: its values at both ends, (d,) each."""

    segment: int
    """The number of the segment."""
    t: tuple[float, float]
    """Where the stretch begins and ends on it."""
    values: tuple[Floats, Floats]
    """The values there, (d,) each."""


def stretches(graph: Graph | None, segments: Sequence[Segment]) -> tuple[list[Stretch], float]:
    """The stretches of all segments in order, and how large a number on the way to the values can be.

    Without a graph the values are the points themselves.
    """
    affine: list[Stretch] = []
    largest = 0.0
    if graph is None:
        for i, segment in enumerate(segments):
            first, last = segment.generators.reshape(2, -1)
            affine.append(Stretch(i, segment.span, (first, last)))
        return affine, largest

    def take(positions: Positions, values: Tensor, scale: float) -> None:
        nonlocal largest
        z, largest = values.numpy(), max(largest, scale)
        for i in np.flatnonzero(positions.segment[1:] == positions.segment[:-1]):
            t = float(positions.t[i]), float(positions.t[i + 1])
            affine.append(Stretch(int(positions.segment[i]), t, (z[i].copy(), z[i + 1].copy())))

    walk(graph, segments, take, memory=MEMORY, tolerance=KNOT_TOLERANCE)
    return affine, largest


StretchLabels = tuple[Floats, Ints, Bools]
"""Places s in [-1, 1] between pieces of a stretch, their labels, and whether they are in doubt."""


def _joined(
    affine: list[Stretch],
    segments: Sequence[Segment],
    inside: Callable[[list[Stretch]], Iterator[StretchLabels]],
) -> Iterator[Pieces]:
    """The pieces of each segment, from those inside the stretches on which a graph is affine."""
    by_segment: list[list[tuple[Floats, Ints, Bools]]] = [[] for _ in segments]
    for stretch, (s, labels, in_doubt) in zip(affine, inside(affine), strict=True):
        low, high = stretch.t
        t = np.concatenate([[low], 0.5 * (low + high) + 0.5 * (high - low) * s])
        by_segment[stretch.segment].append((t, labels, in_doubt))
    for pieces in by_segment:
        t, labels, in_doubt = (np.concatenate([p[k] for p in pieces]) for k in range(3))
        yield Pieces(t[1:], labels, in_doubt)


def _quadratic(form: Quadratics, segments: Sequence[Segment]) -> Iterator[Pieces]:
    """Along x(s) = m + s v, the score of a class is constant - |F (m - centre) + s F v|^2."""

    def inside(affine: list[Stretch]) -> Iterator[StretchLabels]:
        for stretch in affine:
            middle, half = _middle_and_half(stretch)
            a, b, c = (np.empty(len(form.constants)) for _ in range(3))
            for k, factor in enumerate(form.factors):
                gap = middle - form.centres[k]
                u, w = (factor * gap, factor * half) if factor.ndim == 1 else (factor @ gap, factor @ half)
                a[k], b[k], c[k] = -(w @ w), -2 * (u @ w), form.constants[k] - u @ u
            s, best, is_tied = largest_parabola(a, b, c)
            yield s, form.labels[best], is_tied

    return _joined(stretches(form.front, segments)[0], segments, inside)


def _neighbours(form: Neighbours, segments: Sequence[Segment]) -> Iterator[Pieces]:
    centre = form.points.mean(axis=0)
    points = form.points - centre
    squares = (points**2).sum(axis=1)

    def inside(affine: list[Stretch]) -> Iterator[StretchLabels]:
        most = max(1, MOST_DISTANCES // len(points))
        for first in range(0, len(affine), most):
            block = [_middle_and_half(stretch) for stretch in affine[first : first + most]]
            middles, halves = (np.stack([b[k] for b in block]) for k in (0, 1))
            middles = middles - centre
            offsets = squares - 2 * middles @ points.T
            slopes = -2 * halves @ points.T
            size = squares.max() + (middles**2).sum(axis=1) + (halves**2).sum(axis=1)
            for i in range(len(block)):
                slack = len(centre) * EQUAL_UP_TO_UNITS * EPS * size[i]
                near = candidates(offsets[i], slopes[i], form.k, slack)
                yield nearest_labels(
                    points, form.labels, form.k, form.n_classes, middles[i], halves[i], *near
                )

    return _joined(stretches(form.front, segments)[0], segments, inside)


def _middle_and_half(stretch: Stretch) -> tuple[Floats, Floats]:
    first, last = stretch.values
    return 0.5 * (first + last), 0.5 * (last - first)


def _duels(form: Duels, segments: Sequence[Segment]) -> Iterator[Pieces]:
    """Votes are constant between the roots of the scores; ties may be decided by the sums of scores."""
    affine, scale = stretches(form.scores, segments)
    i, j = np.triu_indices(form.n_classes, 1)
    columns = np.eye(form.n_classes)
    bound = EQUAL_UP_TO_UNITS * EPS * scale

    def inside(affine: list[Stretch]) -> Iterator[StretchLabels]:
        for stretch in affine:
            first, last = stretch.values
            crossed = np.flatnonzero((first > 0) != (last > 0))
            s = np.sort(first[crossed] / (first[crossed] - last[crossed]))
            edges = np.concatenate([[0.0], s, [1.0]])
            scores = first + 0.5 * (edges[1:] + edges[:-1])[:, None] * (last - first)
            votes = (scores > 0) @ columns[j] + (scores <= 0) @ columns[i]
            labels = votes.argmax(axis=1)
            in_doubt = (np.abs(scores) <= bound).any(axis=1)
            if form.by_confidence:
                sums = [g @ (columns[j] - columns[i]) for g in (first, last)]
                s, labels, in_doubt = _by_confidence(edges, votes, sums, in_doubt, bound * form.n_classes)
            yield 2 * s - 1, labels, in_doubt

    return _joined(affine, segments, inside)


def _by_confidence(
    edges: Floats, votes: Floats, sums: list[Floats], in_doubt: Bools, bound: float
) -> StretchLabels:
    """Pieces between `edges` cut again where, of the classes with most votes, another has the largest sum."""
    s: list[float] = []
    labels: list[int] = []
    doubts: list[bool] = []
    for k in range(len(votes)):
        tied = np.flatnonzero(votes[k] == votes[k].max())
        low, high = (sums[0][tied] + e * (sums[1][tied] - sums[0][tied]) for e in (edges[k], edges[k + 1]))
        changes, leading = envelope(low, high, bound)
        s += [edges[k], *(edges[k] + c * (edges[k + 1] - edges[k]) for c in changes)]
        labels += [int(tied[n]) for n in leading]
        doubts += [bool(in_doubt[k])] * len(leading)
    return np.array(s[1:]), np.array(labels, np.int64), np.array(doubts)


def _votes(form: Votes, segments: Sequence[Segment]) -> Iterator[Pieces]:
    """The common refinement of the members' pieces, and the vote on each."""
    for segment, members in zip(
        segments, zip(*(pieces_along(m, segments) for m in form.members), strict=True), strict=True
    ):
        t = np.unique(np.concatenate([m.t for m in members]))
        edges = np.concatenate([[segment.span[0]], t, [segment.span[1]]])
        middle = 0.5 * (edges[1:] + edges[:-1])
        scores, in_doubt = np.zeros((len(middle), form.values[0].shape[1])), np.zeros(len(middle), bool)
        for member, values in zip(members, form.values, strict=True):
            piece = np.searchsorted(member.t, middle)
            scores += values[member.labels[piece]]
            in_doubt |= member.in_doubt[piece]
        yield Pieces(t, (scores / form.divisor).argmax(axis=1), in_doubt)


def _graph(form: Graph, segments: Sequence[Segment]) -> Iterator[Pieces]:
    for regions in graph_labels(form, segments).results():
        in_doubt = np.full(len(regions["labels"]), regions["status"] != COMPLETE)
        yield Pieces(regions["boundaries"], regions["labels"], in_doubt)


def _trees(form: TreeEnsemble, segments: Sequence[Segment]) -> Iterator[Pieces]:
    for regions in regions_along(form, list(segments), form.last_left):
        labels = regions["labels"]
        yield Pieces(regions["boundaries"], np.maximum(labels, 0), labels < 0)


_ALONG: dict[type, Callable[[Any, Sequence[Segment]], Iterator[Pieces]]] = {
    Quadratics: _quadratic,
    Neighbours: _neighbours,
    Duels: _duels,
    Votes: _votes,
    Graph: _graph,
    TreeEnsemble: _trees,
}
