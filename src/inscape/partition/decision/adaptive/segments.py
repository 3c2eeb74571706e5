"""Adaptive samples on a block of segments: more of them where the scores say that a region could hide."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from inscape.arrays import Bools, Floats, Ints, Shape
from inscape.models import Model
from inscape.partition.decision.adaptive.answers import Answers, Trial, grown
from inscape.partition.decision.adaptive.missed import Doubt, StepDoubt, status_of
from inscape.partition.decision.regions import TopScores, top_two
from inscape.probes import Probe
from inscape.probes.segment import as_segment

CURVATURE_ALLOWED = 6.0
"""How many times the curvature seen next to an interval is allowed for inside it."""
N_START = 14
"""Even samples to begin with, both ends included."""
NEAR_ENDS = 0.02
"""One more sample this near to either end, as a fraction of the span: the scores often turn next to data."""
N_STEPS = 200
"""Even samples to begin with where the model has steps only: those of the default grid."""
N_UNEVEN = 16
"""Then this many more at uneven places, since even ones are blind to what repeats with them."""
LEAST_FRACTION = 0.46
"""Each leaves at least this fraction of the interval that it cuts, so that it is no cause for another."""
STEP_CHANCE = 0.015
"""Between steps, the least chance of a hidden region that asks for refinement; see `scan_steps`."""
SLIVER = 2.0**-20
"""Between steps, what is narrower than this fraction of the span is no region: see `Samples.slivers`."""
MOST_INTERVALS = 2**14
"""By default no two samples are nearer than the span over this."""
MOST_NUMBERS_IN_BLOCK = 2**22
MOST_SAMPLES_IN_BLOCK = 2**13


def start_positions(rule: str, finest: float) -> Floats:
    """The first samples, as fractions of the span; for steps those of the default grid and uneven ones."""
    if rule == "scores":
        return np.union1d(np.linspace(0, 1, N_START), [NEAR_ENDS, 1 - NEAR_ENDS])
    even = np.linspace(0, 1, N_STEPS)
    if finest > LEAST_FRACTION / (N_STEPS - 1):  # no sample may be nearer to another
        return even
    rng = np.random.default_rng(0)
    intervals = rng.choice(N_STEPS - 1, N_UNEVEN, replace=False)
    uneven = intervals + rng.uniform(LEAST_FRACTION, 1 - LEAST_FRACTION, N_UNEVEN)
    return np.union1d(even, uneven / (N_STEPS - 1))


class Samples:
    """Samples on a block of segments, linked in the order of u; see `segment_kernels`.

    Attributes:
        u: where each sample is, as a fraction of the span, (capacity,).
        probe: on which segment of the block, (capacity,).
        before: the sample to its left, -1 for none, (capacity,).
        after: the sample to its right, -1 for none, (capacity,).
        urgency: how urgent a sample between one and the next is, (capacity,); more than 1 asks for it.
        answers: what the model said.
        doubt: what is known of the regions still missed.
        step_doubt: the same where the model has steps only.
    """

    def __init__(
        self, model: Model, trial: Trial, generators: Floats, shape: Shape, finest: int, first: int
    ) -> None:
        self.answers, self.doubt, self.step_doubt = Answers(model, trial, shape), Doubt(), StepDoubt()
        self.u: Floats = np.empty(0)
        self.urgency: Floats = np.empty(0)
        self.probe: Ints = np.empty(0, np.int64)
        self.before: Ints = np.empty(0, np.int64)
        self.after: Ints = np.empty(0, np.int64)
        self._stamp: Ints = np.empty(0, np.int64)
        self._rule, self._rounding = trial.rule, trial.rounding
        self._finest, self._first = 1.0 / finest, first
        self._generators = generators
        self._start(start_positions(trial.rule, self._finest))

    def _start(self, u: Floats) -> None:
        b, p = len(self._generators), len(u)
        self._add(np.tile(u, b), np.repeat(np.arange(b), p))
        index = np.arange(b * p).reshape(b, p)
        none = np.full((b, 1), -1)
        self.before[: b * p] = np.concatenate([none, index[:, :-1]], axis=1).ravel()
        self.after[: b * p] = np.concatenate([index[:, 1:], none], axis=1).ravel()

    def refine(self) -> None:
        """Put samples, round by round, into intervals that ask for it; only what changed is scanned again."""
        from inscape.partition.decision.adaptive.segment_kernels import SAMPLES_THAT_RESOLVE, changed

        intervals = self.lefts()
        round_number = 0
        while len(intervals):
            urgency, where = self._scan(intervals)
            self.urgency[intervals] = urgency
            width = self.u[self.after[intervals]] - self.u[intervals]
            chosen = (urgency > 1) & (width >= 2 * self._finest)
            left, start = intervals[chosen], self.answers.n
            right = self.after[left]
            self._insert(left, self.u[left] + where[chosen] * width[chosen])
            new = self.answers.labels[start : self.answers.n]
            is_new = (new != self.answers.labels[left]) & (new != self.answers.labels[right])
            if self._rule == "scores":
                self.doubt.note(urgency[chosen], is_new)
            else:
                by_chance = np.isfinite(urgency[chosen])
                self.step_doubt.note(STEP_CHANCE * urgency[chosen][by_chance], is_new[by_chance])
            reach = 2 if self._rule == "scores" else SAMPLES_THAT_RESOLVE
            intervals = changed(
                start, self.answers.n, reach, self.before, self.after, self._stamp, round_number
            )
            round_number += 1

    def locate(self, tolerance: Floats) -> None:
        """Narrow every interval between two labels to twice its probe's tolerance, a fraction of the span.

        A bracket is cut next to where the chord of the two scores crosses zero, so that a straight one is
        done after two cuts, and every second time in the middle, so that no one takes more than
        2 log2(width / (2 tolerance)) + 2.
        """
        bisect = False
        while True:
            left = self.lefts()
            right = self.after[left]
            width, wanted = self.u[right] - self.u[left], tolerance[self.probe[left]]
            wide = (self.answers.labels[left] != self.answers.labels[right]) & (width > 2 * wanted)
            wide &= width > 4 * np.finfo(float).eps
            if not wide.any():
                return
            left, right, width, wanted = left[wide], right[wide], width[wide], wanted[wide]
            x = self.crossings(left)
            shift = np.where(x < 0.5, 0.9, -0.9) * wanted / width
            v = (
                np.full(len(x), 0.5)
                if bisect
                else np.clip(x + shift, 0.25 * wanted / width, 1 - 0.25 * wanted / width)
            )
            self._insert(left, self.u[left] + v * width)
            bisect = not bisect

    def slivers(self) -> Bools:
        """Which samples, (n,), are alone in an interval of `SLIVER`, which is no region.

        Many splits of a tree may lie at one place up to rounding, and data on a split: there a label holds
        between rounded numbers, or at a single point, and exact counts leave it out, too. Where a sample is
        alone with its label, the intervals beside it are bisected until another one joins it, or they are
        that narrow.
        """
        is_sliver = np.zeros(self.answers.n, np.bool_)
        alone = self._alone()
        while len(alone):
            # (1) the wider side of each that is not narrow yet, and is no end of the span
            sides = np.stack([self.before[alone], alone]), np.stack([alone, self.after[alone]])
            outside = (sides[0] < 0) | (sides[1] < 0)
            width = np.where(outside, 0.0, self.u[sides[1]] - self.u[sides[0]])
            is_narrow = width.max(axis=0) <= SLIVER / 2
            is_sliver[alone[is_narrow]] = True
            alone, side = alone[~is_narrow], width.argmax(axis=0)[~is_narrow]
            # (2) a sample in its middle
            left = np.where(side == 0, self.before[alone], alone)
            start = self.answers.n
            self._insert(left, (self.u[left] + self.u[self.after[left]]) / 2)
            new = np.arange(start, self.answers.n)
            is_sliver = np.concatenate([is_sliver, np.zeros(len(new), np.bool_)])
            # (3) who is still alone; a sample that met a third label is alone, too
            labels = self.answers.labels
            beside = np.where(side == 0, self.before[new], self.after[new])
            is_third = (labels[new] != labels[alone]) & (labels[new] != labels[beside])
            alone = np.concatenate([alone[labels[new] != labels[alone]], new[is_third]])
        return is_sliver

    def _alone(self) -> Ints:
        """The samples whose neighbours, both, have another label."""
        n, labels = self.answers.n, self.answers.labels
        own = labels[:n]
        return np.flatnonzero(
            np.logical_and.reduce(
                [(beside < 0) | (labels[beside] != own) for beside in (self.before[:n], self.after[:n])]
            )
        )

    def lefts(self) -> Ints:
        """The left samples of all intervals."""
        return np.flatnonzero(self.after[: self.answers.n] >= 0)

    def crossings(self, left: Ints) -> Floats:
        """Where the chords of the scores of the two end labels cross, as a fraction of each interval."""
        if self._rule != "scores":
            return np.full(len(left), 0.5)
        right = self.after[left]
        a, b = self.answers.labels[left], self.answers.labels[right]
        s = self.answers.margins
        lead, lag = s[left, a] - s[left, b], s[right, b] - s[right, a]
        total = lead + lag
        safe = (lead >= 0) & (lag >= 0) & (total > 0)
        return np.where(safe, lead / np.where(safe, total, 1.0), 0.5)

    def is_open(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which samples begin an interval that still asks for refinement but is as fine as allowed, (n,)."""
        return np.asarray(self.urgency[: self.answers.n] > 1)

    def chance_left(self) -> Floats:
        """Between steps, how many regions may hide behind each sample, by the stated chance, (n,)."""
        intervals, chances = self.lefts(), np.zeros(self.answers.n)
        right, labels = self.after[intervals], self.answers.labels
        chances[intervals] = np.where(labels[intervals] == labels[right], 2.0, 1.0) * self._chances(intervals)
        return chances

    def _chances(self, intervals: Ints) -> Floats:
        """The chance that each interval hides a region, where scores are steps or labels are all there is."""
        from inscape.partition.decision.adaptive.segment_kernels import scan_steps

        a, chance = self.answers, np.empty(len(intervals))
        scores = a.margins if a.has_scores else a.labels[:, None].astype(np.float64)
        scan_steps(intervals, self.u, scores, a.labels, self.before, self.after, chance)
        return chance

    def _scan(self, intervals: Ints) -> tuple[Floats, Floats]:
        from inscape.partition.decision.adaptive.segment_kernels import ROUNDING, scan, scan_labels

        a = self.answers
        urgency, where = np.empty(len(intervals)), np.empty(len(intervals))
        links = (a.labels, self.before, self.after)
        if self._rule == "scores":
            rounding = ROUNDING * self._rounding
            scan(intervals, self.u, a.margins, *links, rounding, self._finest, urgency, where)
            return CURVATURE_ALLOWED * urgency, where
        scan_labels(intervals, self.u, *links, self._finest, urgency, where)
        return np.maximum(urgency, self._chances(intervals) / STEP_CHANCE), where

    def _insert(self, left: Ints, u: Floats) -> None:
        """Put a sample at u into the interval that begins at each of the samples `left`."""
        from inscape.partition.decision.adaptive.segment_kernels import insert

        start = self.answers.n
        self._add(u, self.probe[left])
        insert(left, start, self.before, self.after)

    def _add(self, u: Floats, probe: Ints) -> None:
        from inscape.partition.decision.adaptive.segment_kernels import combine

        start, weights = self.answers.n, np.column_stack([1 - u, u])
        self.answers.ask(
            len(u),
            lambda batch, out: combine(weights[batch], probe[batch], self._generators, out),
            lambda i: f"probe {self._first + probe[i]}, {u[i]:.6g} of its span from its start",
        )
        n, capacity = self.answers.n, len(self.answers.labels)
        if n > len(self.u):
            self.u, self.urgency = grown(self.u, capacity), grown(self.urgency, capacity)
            self.probe, self._stamp = grown(self.probe, capacity), grown(self._stamp, capacity)
            self.before, self.after = grown(self.before, capacity), grown(self.after, capacity)
        self.u[start:n], self.probe[start:n] = u, probe
        self._stamp[start:n], self.urgency[start:n] = -1, 0.0


def block_length(probe: Probe, trial: Trial) -> int:
    """How many segments fit into one block: of their generators, and of the scores of their samples."""
    samples = (
        MOST_NUMBERS_IN_BLOCK // (64 * trial.n_classes)
        if trial.rule == "scores"
        else MOST_SAMPLES_IN_BLOCK // (N_STEPS + N_UNEVEN)
    )
    return max(1, min(MOST_NUMBERS_IN_BLOCK // probe.generators.size, samples))


def segment_block(
    model: Model,
    trial: Trial,
    probes: Sequence[Probe],
    resolution: int | None,
    tolerance: float | None,
    first: int,
) -> Iterator[dict[str, Any]]:
    """What a `DecisionSegment` holds beyond the common, for each segment of a block."""
    segments = [as_segment(p) for p in probes]
    spans = np.array([s.span for s in segments])
    if (spans == (0.0, 1.0)).all():
        ends = [point for s in segments for point in (s.start, s.end)]
    else:
        ends = [s.generators for s in segments]
    generators = np.concatenate(ends, axis=None).reshape(len(probes), 2, -1)
    samples = Samples(model, trial, generators, probes[0].input_shape, resolution or MOST_INTERVALS, first)
    slivers = None
    if trial.is_deterministic:
        samples.refine()
        if trial.rule != "scores" and resolution is None:  # a resolution is the finest step
            slivers = samples.slivers()
    if tolerance is not None and trial.is_deterministic:
        samples.locate(tolerance / (spans[:, 1] - spans[:, 0]))
    yield from _results(samples, trial, spans, slivers, tolerance)


def _results(
    samples: Samples, trial: Trial, spans: Floats, slivers: Bools | None, tolerance: float | None
) -> Iterator[dict[str, Any]]:
    a, b, has_steps = samples.answers, len(spans), trial.rule != "scores"
    kept = np.ones(a.n, np.bool_)
    if slivers is not None:
        kept[: len(slivers)] = ~slivers
    order = np.lexsort((samples.u[: a.n], samples.probe[: a.n]))
    n_evaluations = np.bincount(samples.probe[: a.n], minlength=b)
    n_slivers = np.bincount(samples.probe[: a.n], ~kept, b).astype(np.int64)
    near = np.bincount(samples.probe[: a.n], (samples.urgency[: a.n] > 0.5) & ~samples.is_open(), b)
    n_open = np.bincount(samples.probe[: a.n], samples.is_open(), b).astype(np.int64)
    left = np.bincount(samples.probe[: a.n], samples.chance_left(), b) if has_steps else near
    missed = left * (samples.step_doubt.worth if has_steps else samples.doubt.chance)
    order = order[kept[order]]
    probe, labels = samples.probe[order], a.labels[order]
    low = spans[probe, 0]
    t = low + samples.u[order] * (spans[probe, 1] - low)
    bounds = np.searchsorted(probe, np.arange(b + 1))
    change = np.flatnonzero((labels[1:] != labels[:-1]) & (probe[1:] == probe[:-1]))
    at = _boundaries(t, change, samples.crossings(order[change]), tolerance)
    first_change = np.searchsorted(change, bounds)  # a change never crosses from one probe to the next
    region_labels = labels[np.sort(np.concatenate([bounds[:-1], change + 1]))]
    rows = zip(
        *(pairwise(ends.tolist()) for ends in (bounds, first_change)),
        *(a.tolist() for a in (spans, n_evaluations, n_open, missed, left, n_slivers)),
        strict=True,
    )
    top = None if has_steps else top_two(a.margins[order])
    for i, ((begin, end), (first, last), span, n, n_open_here, missed_here, left_here, n_slim) in enumerate(
        rows
    ):
        own = slice(begin, end)
        yield {
            "labels": region_labels[first + i : last + i + 1],
            "boundaries": at[first:last],
            "span": tuple(span),
            "samples": t[own],
            "top": None if top is None else TopScores(t[own], top[0][own], top[1][own]),
            "n_evaluations": n,
            "status": status_of(trial, n_open_here, missed_here),
            "missed": missed_here,
            "missed_basis": samples.step_doubt.basis(left_here, n_slim)
            if has_steps
            else samples.doubt.basis(int(left_here)),
        }


def _boundaries(t: Floats, change: Ints, crossings: Floats, tolerance: float | None) -> Floats:
    """Where the chords cross; if a tolerance was asked for, never farther than it from either sample."""
    left, right = t[change], t[change + 1]
    at = left + crossings * (right - left)
    if tolerance is None:
        return np.asarray(at)
    middle = (left + right) / 2
    return np.asarray(
        np.clip(at, np.minimum(right - tolerance, middle), np.maximum(left + tolerance, middle))
    )
