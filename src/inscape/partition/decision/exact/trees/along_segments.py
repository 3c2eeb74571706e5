"""Exact decision regions of tree ensembles on segments."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import PartitionError
from inscape.models import wrap
from inscape.models.base import Model
from inscape.models.trees import TreeEnsemble
from inscape.parallel import spread
from inscape.partition.decision.exact.trees.notes import status_on_segment
from inscape.partition.decision.regions import DecisionSegment, TreeCounts, maker
from inscape.probes.segment import Segment
from inscape.progress import Meter, meter
from inscape.provenance import Provenance

FEWEST_IN_JOB, LEAST_TREES_IN_JOB = 4, 800
"""Segments of a job at least, and segments times trees: a job by itself costs as much as a walk along a
hundred trees, and the last ones decide how long a thread waits for the others ..."""
LEFT_OVER_JOBS = 4
"""... or the segments that are left over this number ..."""
PIECES_IN_JOB = 2**22
"""... as long as their pieces, in the worst case, are no more than this."""
REPORT_EVERY_SEGMENTS = 32


def tree_segments(
    model: Any,
    segments: Sequence[Segment],
    *,
    cast: bool = True,
    narrow: bool = False,
    provenance: Provenance | None = None,
    reason: str = "",
    progress: bool | Meter | None = None,
) -> list[DecisionSegment]:
    """The decision regions of a tree ensemble on each segment, exactly.

    On x(t) = a + t d a split x_f <= c is crossed at t = (c - a_f) / d_f and nowhere else. So each tree
    cuts the span into one interval per leaf that the line meets, an ensemble into the common refinement
    of these, and on each piece the scores are constant. Neighbouring pieces of equal label are one region.
    Scores are added, divided and compared as scikit-learn does, ties included: labels agree bit for bit
    with those of `predict` (of a forest with n_jobs > 1, up to ties that its own order of sums decides).

    What exact means: scikit-learn casts points to float32 before its trees see them (histogram trees see
    float64). This rounding is monotone, so it is the same as moving each threshold by up to half a
    float32 spacing; with the thresholds so moved the regions are those of t -> predict(x(t)) for float64
    points. Where two splits are crossed at the same t up to rounding, of x or of a threshold, a sliver
    arises between them, no wider than the spacings at both. These are no regions, but `trees.n_narrow` says
    how many `predict` sees, and with `narrow=True` they count. A feature that passes fewer than 1,000 numbers
    of float32 on its way is coarse, and its steps are no rounding. With `cast=False` the thresholds are
    compared as they are stored, without rounding of x.

    What remains is float64: each crossing is known to 1.5 units in the last place of t, and crossings
    closer than 4 units are taken as one. Regions have positive length: a label that holds at a single
    point is not a region, be it where two splits are crossed at the very same t or at an end of the span
    that lies on a split (the latter is counted in `trees.n_lone`).

    Args:
        model: a wrapped model of structure "trees", or an estimator to wrap.
        segments: lines in its input space.
        cast: whether to compare as `predict` does, or with the thresholds as they are stored.
        narrow: whether slivers between splits that only rounding tells apart count as regions.
        provenance: of the results; None asks the model.
        reason: why this method was taken.
        progress: None for a bar after two seconds, False for none, or a function of (done, total).

    Returns:
        One result per segment; its `n_evaluations` says how often the votes of all trees were added up, once
        per piece. The cost of each is one visit per node that it reaches, and a sort of the leaves.

    Raises:
        PartitionError: if the model is not made of trees, or a segment does not fit it.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> stump = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> [r] = tree_segments(stump, [Segment([-1.0], [1.0])], cast=False)
    >>> r.boundaries.tolist(), r.labels.tolist(), r.status
    ([0.75], [0, 1], 'complete')
    """
    wrapped = wrap(model)
    ensemble = trees_of(wrapped)
    segments = list(segments)
    for i, segment in enumerate(segments):
        _check(segment, i, ensemble)
    made = maker(
        DecisionSegment,
        method="exact",
        is_exact=True,
        resolution=None,
        connectivity=None,
        class_names=wrapped.classes,
        provenance=provenance or Provenance.of(wrapped),
        reason=reason,
        model=wrapped,
    )
    with meter(progress, "segments") as tick:
        return regions_along(
            ensemble,
            segments,
            ensemble.last_left if cast else ensemble.threshold,
            narrow=narrow,
            ask=lambda segment, t: asked_alone(wrapped, segment.points(t)),
            made=made,
            tick=tick,
        )


def asked_alone(model: Model, points: Floats) -> Ints:
    """The labels that a model itself gives to points, evaluated by one thread at a time."""
    with _ASKING:
        return model.labels(points)


_ASKING = threading.Lock()


def trees_of(model: Model) -> TreeEnsemble:
    """The trees of a wrapped model; an error says why there are none."""
    if model.structure == "trees":
        return model.trees
    raise PartitionError(
        f"{model.name} has no exact regions of trees: its structure is {model.structure!r}",
        remedy="use method='grid' or 'adaptive' instead",
    )


def _check(segment: Segment, i: int, ensemble: TreeEnsemble) -> None:
    """Raise if the trees cannot take the points of `segment`."""
    if not isinstance(segment, Segment):
        raise PartitionError(
            f"probe {i} is a {type(segment).__name__}: exact regions of trees need a Segment"
        )
    if segment.start.size != ensemble.n_features:
        raise PartitionError(
            f"segment {i} has points of shape {segment.start.shape} = {segment.start.size} numbers, "
            f"but the trees take {ensemble.n_features} features"
        )


Ask = Callable[[Segment, Floats], Ints]
"""The labels that a model gives to the points of a segment at parameters t, (n,)."""
Made = Callable[[dict[str, Any]], Any]
"""What is made of the fields of a `DecisionSegment` that are its own."""


def regions_along(
    ensemble: TreeEnsemble,
    segments: list[Segment],
    last_left: Floats,
    *,
    narrow: bool = False,
    ask: Ask | None = None,
    made: Made = lambda fields: fields,
    tick: Meter = lambda done, total: None,
) -> list[Any]:
    """The fields of a `DecisionSegment` that are its own, for each segment.

    Args:
        ensemble: the trees.
        segments: of points that they take.
        last_left: where splits are, (n,).
        narrow: whether slivers between splits that only rounding tells apart count.
        ask: decides where a lead is too small for the trees' own sums; without it such a label is -1.
        made: makes something else of them.
        tick: is told how many segments are done, of how many.
    """
    n, deciding = len(segments), _Deciding(ensemble, segments, last_left, narrow=narrow, ask=ask, made=made)
    reports = deque([*range(REPORT_EVERY_SEGMENTS, n, REPORT_EVERY_SEGMENTS), n])

    def heard(n_done: int) -> None:
        while reports and reports[0] <= deciding.jobs[n_done - 1][1]:
            tick(reports.popleft(), n)

    jobs = (partial(deciding.decide, *job) for job in deciding.jobs)
    return list(chain.from_iterable(spread(jobs, heard, finish=deciding.results)))


def _jobs(n: int, n_trees: int, n_leaves: int) -> Iterator[tuple[int, int]]:
    """The segments of each job, of n in all, from one to another.

    >>> [stop - first for first, stop in _jobs(200, 100, 10_000)]
    [50, 37, 28, 21, 16, 12, 9, 8, 8, 8, 3]
    """
    fewest = max(FEWEST_IN_JOB, LEAST_TREES_IN_JOB // n_trees)
    first, most = 0, max(FEWEST_IN_JOB, PIECES_IN_JOB // n_leaves)
    while first < n:
        stop = min(n, first + min(most, max(fewest, (n - first) // LEFT_OVER_JOBS)))
        yield first, stop
        first = stop


class _Decided(NamedTuple):
    """What a job found on its segments."""

    first: int
    """The first of them."""
    stop: int
    """The one after the last."""
    begins: Floats
    """Where the regions begin that are left on them, one segment after the other, (k,)."""
    labels: Ints
    """Whose they are, (k,)."""
    kept: Ints
    """How many regions are left of each segment, and how many are or were narrow, (n, 2)."""
    counts: Ints
    """What `line_walk.decide` counted on each segment, (n, 5)."""
    n_lone: list[int]
    """How many ends of each have a label of their own."""
    n_asked: list[int]
    """For how many pieces of each the model was evaluated."""


class _Deciding:
    """Decides a few of the segments at a time, in any thread, where little is left to the interpreter.

    The arguments are those of `regions_along`.
    """

    def __init__(
        self,
        ensemble: TreeEnsemble,
        segments: list[Segment],
        last_left: Floats,
        *,
        narrow: bool,
        ask: Ask | None,
        made: Made,
    ) -> None:
        vote = ensemble.vote
        blur = ensemble.blur_between(lambda: np.concatenate([s.generators.reshape(2, -1) for s in segments]))
        decision = (vote.start, vote.divisor, int(vote.rule), blur, vote.doubt, tuple(vote.ballots))
        self.ensemble, self.segments, self.narrow, self.ask, self.made = ensemble, segments, narrow, ask, made
        self.limit, self.precision = ensemble.limit, ensemble.precision
        self.trees = (ensemble.feature, ensemble.child, last_left, ensemble.n_trees)
        self.votes = (ensemble.value, ensemble.column, *decision)
        # A crossing adds and subtracts; our sums and the model's both round.
        self.slack = 4 * ensemble.rounding
        self.spans = np.array([s.span for s in segments])
        self.jobs = list(_jobs(len(segments), ensemble.n_trees, ensemble.n_leaves))
        # Scratch, which threads take and give back.
        self.free: list[_JobScratch] = []

    def _ends(self, segments: list[Segment], spans: Floats, scratch: "_JobScratch") -> tuple[Floats, Floats]:
        """Coordinates at t = 0 and 1, (n, 2, d), and all numbers that trees see at both ends of the spans.

        The latter, (n, 2, m), are infinite where they overflow.
        """
        n, ensemble, ends = len(segments), self.ensemble, scratch.ends[: len(segments)]
        np.concatenate([x for s in segments for x in (s.start, s.end)], axis=None, out=ends.reshape(-1))
        if ensemble.is_plain and (spans == (0.0, 1.0)).all():
            return ends, ends
        if not ensemble.is_plain:
            ends = ensemble.coordinates(ends.reshape(2 * n, -1)).reshape(n, 2, -1)
        with np.errstate(over="ignore", invalid="ignore"):
            seen = ensemble.seen(np.concatenate([s.generators.reshape(2, -1) for s in segments]))
        # contiguous: for other layouts numba would compile the walk again
        return np.ascontiguousarray(ends), np.ascontiguousarray(seen.reshape(n, 2, -1))

    def decide(self, first: int, stop: int) -> _Decided:
        """The regions on the segments of a job."""
        from inscape.partition.decision.exact.trees.line_walk import (
            ENDS_ON_SPLIT,
            IS_UNKNOWN,
            LEAVES_LIMIT,
            decide_each,
            labels_at,
            sift_each,
        )

        # (1) pieces, their labels, and what was counted
        n, vote, segments, spans = (
            stop - first,
            self.ensemble.vote,
            self.segments[first:stop],
            self.spans[first:stop],
        )
        scratch = self.free.pop() if self.free else self._scratch()
        walking, line, _, pieces = scratch
        ends, seen = self._ends(segments, spans, scratch)
        counts, starts, kept = (
            np.empty((n, 5), np.int64),
            np.empty(n + 1, np.int64),
            np.empty((n, 2), np.int64),
        )
        trees, votes = self.trees, self.votes
        notes = decide_each(
            ends, seen, self.limit, spans, trees, votes, self.slack, walking, line, pieces, counts, starts
        )
        # (2) what compiled loops do not know
        n_lone = n_asked = [0] * n
        labels = pieces[1][: starts[n]]
        if notes & LEAVES_LIMIT:
            raise PartitionError(
                f"segment {first + int(np.argmin(counts[:, 0]))} leaves the range +-{self.limit:.3g} in "
                "which the trees compute: shorten its span"
            )
        if vote.classes is not None:
            labels[:] = vote.named(labels)
        if notes & IS_UNKNOWN:
            n_asked = _ask_for(starts, segments, pieces, self.ask)
        if notes & ENDS_ON_SPLIT:
            n_lone = [0] * n
            for i in np.flatnonzero(counts[:, 4]):
                at_ends = np.empty(2, np.int64)
                labels_at(spans[i], ends[i], line, trees, votes, walking[-1], at_ends)
                beside = labels[[starts[i], starts[i + 1] - 1]]
                n_lone[i] = _n_lone(vote.named(at_ends), beside, segments[i], self.ask)
        # (3) the pieces that are regions
        n_kept = sift_each(starts, spans, not self.narrow, pieces, kept)
        begins, labels = pieces[0][:n_kept].copy(), pieces[1][:n_kept].copy()
        self.free.append(scratch)
        return _Decided(first, stop, begins, labels, kept, counts, n_lone, n_asked)

    def results(self, decided: _Decided) -> list[Any]:
        """What is made of the segments of a job."""
        first, stop, begins, labels, kept, counts, n_lone, n_asked = decided
        if self.ensemble.vote.doubt == np.inf:  # the model is evaluated everywhere
            counts[:, 3] = 0
        results, made, a = [], self.made, 0
        counted = zip(self.segments[first:stop], kept.tolist(), counts.tolist(), n_lone, n_asked, strict=True)
        for segment, (k, n_narrow), (_, n_pieces, n_nodes, n_tied, _), lone, asked in counted:
            b = a + k
            fields = {
                "probe": segment,
                "span": segment.span,
                "boundaries": begins[a + 1 : b],
                "labels": labels[a:b],
                "n_pieces": n_pieces,
                "n_evaluations": n_pieces,
                "trees": TreeCounts(n_tied, n_narrow, lone, n_nodes, asked),
                "status": status_on_segment(
                    n_tied, n_tied and n_pieces, n_narrow, lone, self.precision, self.narrow
                ),
            }
            results.append(made(fields))
            a = b
        return results

    def _scratch(self) -> "_JobScratch":
        """For the largest job, in the worst case: lines that meet every leaf; what is unused is free."""
        ensemble, most = self.ensemble, max(stop - first for first, stop in self.jobs)
        n_leaves, n_columns = ensemble.n_leaves, len(ensemble.vote.start)
        size = n_leaves + 1
        front = tuple((np.empty(size, dtype=np.int32), np.empty(size), np.empty(size)) for _ in range(2))
        leaves = np.empty(size), np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        order, count = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        totals = np.empty(ensemble.vote.ballots.gives.shape[2])
        tally = np.empty(ensemble.n_trees, dtype=np.int32), np.empty(n_columns), np.empty(n_columns), totals
        n_pieces = most * n_leaves
        return _JobScratch(
            walk=(front, leaves, order, count, tally),
            line=np.empty((ensemble.n_coordinates, 2)),
            ends=np.empty((most, 2, ensemble.n_features)),
            pieces=(np.empty(n_pieces), np.empty(n_pieces, dtype=np.int64), np.empty(n_pieces)),
        )


class _JobScratch(NamedTuple):
    """Memory of a thread that decides a few segments at a time."""

    walk: tuple[Any, ...]
    """For walking along a line, and for voting: see `line_walk.decide`."""
    line: Floats
    """A line, (d, 2)."""
    ends: Floats
    """Points at t = 0 and 1 of each segment, (n, 2, d)."""
    pieces: tuple[Floats, Ints, Floats]
    """Of all segments: where each begins, its label, and how uncertain its beginning is."""


def _ask_for(starts: Ints, segments: list[Segment], result: tuple[Any, ...], ask: Ask | None) -> list[int]:
    """Ask the model in the middle of the pieces that have no label; how many these are on each segment."""
    begins, labels, _ = result
    n_asked = []
    for first, stop, segment in zip(starts[:-1], starts[1:], segments, strict=True):
        unknown = first + np.flatnonzero(labels[first:stop] < 0)
        if ask is not None and len(unknown):
            ends = np.append(begins[first + 1 : stop], segment.span[1])
            labels[unknown] = ask(segment, (begins[unknown] + ends[unknown - first]) / 2)
        n_asked.append(len(unknown))
    return n_asked


def _n_lone(at_ends: Ints, beside: Ints, segment: Segment, ask: Ask | None) -> int:
    """How many ends of the span have another label than the piece beside them; `ask` gives unknown ones."""
    if ask is None:
        return int(((at_ends != beside) & (at_ends >= 0)).sum())
    return int((np.where(at_ends < 0, ask(segment, np.array(segment.span)), at_ends) != beside).sum())
