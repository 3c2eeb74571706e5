"""Adaptive samples on a block of segments: looks at where the scores say that a region could hide."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints, Shape
from inscape.models import Model
from inscape.partition.decision.adaptive.answers import Answers, grown
from inscape.partition.decision.adaptive.first_look import Trial
from inscape.partition.decision.adaptive.missed import Doubt, StepDoubt, status_of, unmet_regions
from inscape.partition.decision.regions import TopScores, top_two
from inscape.probes import Probe
from inscape.probes.segment import as_segment

CAUTION = 6.0
"""How many times the bend seen next to an interval is allowed for inside it."""
N_START = 14
"""Even samples to begin with, both ends included."""
NEAR_ENDS = 0.02
"""One more sample this near to either end, as a fraction of the span: the scores often turn next to data."""
N_STEPS = 200
"""Even samples to begin with where the model has steps only: those of the default grid."""
N_UNEVEN = 16
"""Then this many more at uneven places, since even ones are blind to what repeats with them."""
LEAST_PART = 0.46
"""Each leaves at least so much of the interval that it divides, so that it asks for no look by itself."""
STEP_CHANCE = 0.03
"""Between steps, the least chance of a hidden region that asks for a look; see `scan_steps`."""
ROUNDING_WIDTH = 2.0**-30
"""How narrow a place is made when it is followed down to rounding, as a fraction of the span."""
JUMPS_FOLLOWED = 2
"""Places between equal labels that are followed on each segment, where boundaries are seen to hide."""
FINEST = 2**14
"""By default no two samples are nearer than the span over this."""
MOST_NUMBERS_IN_BLOCK = 2**22
MOST_SAMPLES_IN_BLOCK = 2**13


def start_positions(rule: str, finest: float) -> Floats:
    """The first samples, as fractions of the span; for steps those of the default grid and uneven ones."""
    if rule == "scores":
        return np.union1d(np.linspace(0, 1, N_START), [NEAR_ENDS, 1 - NEAR_ENDS])
    even = np.linspace(0, 1, N_STEPS)
    if finest > LEAST_PART / (N_STEPS - 1):  # no sample may be nearer to another
        return even
    rng = np.random.default_rng(0)
    intervals = rng.choice(N_STEPS - 1, N_UNEVEN, replace=False)
    uneven = intervals + rng.uniform(LEAST_PART, 1 - LEAST_PART, N_UNEVEN)
    return np.union1d(even, uneven / (N_STEPS - 1))


class Samples:
    """Samples on a block of segments, linked in the order of u; see `segment_kernels`.

    Attributes:
        u: where each sample is, as a fraction of the span, (room,).
        probe: on which segment of the block, (room,).
        before: the sample to its left, -1 for none, (room,).
        after: the sample to its right, -1 for none, (room,).
        urgency: how urgent it is to look between a sample and the next one, (room,); 1 asks for a look.
        answers: what the model said.
        n_first: how many samples each segment began with.
        doubt: what is known of the regions still missed.
    """

    def __init__(
        self, model: Model, trial: Trial, generators: Floats, shape: Shape, finest: int, first: int
    ) -> None:
        self.answers, self.doubt = Answers(model, trial, shape), Doubt()
        self.u: Floats = np.empty(0)
        self.urgency: Floats = np.empty(0)
        self.probe: Ints = np.empty(0, np.int64)
        self.before: Ints = np.empty(0, np.int64)
        self.after: Ints = np.empty(0, np.int64)
        self._stamp: Ints = np.empty(0, np.int64)
        self._rule, self._rounding = trial.rule, trial.rounding
        self._finest, self._first = 1.0 / finest, first
        self._generators = generators.reshape(len(generators), 2, -1)
        first_places = start_positions(trial.rule, self._finest)
        self.n_first = len(first_places)
        self._start(first_places)

    def _start(self, u: Floats) -> None:
        b, p = len(self._generators), len(u)
        self._add(np.tile(u, b), np.repeat(np.arange(b), p))
        index = np.arange(b * p).reshape(b, p)
        none = np.full((b, 1), -1)
        self.before[: b * p] = np.concatenate([none, index[:, :-1]], axis=1).ravel()
        self.after[: b * p] = np.concatenate([index[:, 1:], none], axis=1).ravel()

    def refine(self) -> None:
        """Look, round by round, into every interval that asks for it; only what changed is scanned again."""
        from inscape.partition.decision.adaptive.segment_kernels import RUN, changed

        intervals = self.lefts()
        round_number = 0
        while len(intervals):
            urgency, where = self._scan(intervals)
            self.urgency[intervals] = urgency
            width = self.u[self.after[intervals]] - self.u[intervals]
            chosen = (urgency > 1) & (width >= 2 * self._finest)
            left, start = intervals[chosen], self.answers.n
            right = self.after[left]
            self._look(left, self.u[left] + where[chosen] * width[chosen])
            new = self.answers.labels[start : self.answers.n]
            is_new = (new != self.answers.labels[left]) & (new != self.answers.labels[right])
            self.doubt.note(urgency[chosen], is_new)
            reach = 2 if self._rule == "scores" else RUN
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
        halve = False
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
                if halve
                else np.clip(x + shift, 0.25 * wanted / width, 1 - 0.25 * wanted / width)
            )
            self._look(left, self.u[left] + v * width)
            halve = not halve

    def follow(self) -> Ints:
        """Halve places where many steps may lie together down to rounding.

        Where many steps lie at one place, as those of trees on whole-numbered data do, regions hide there
        that no step between samples would show. First the boundary of the largest jump on each segment is
        followed. If one of them hides a region, the model is of that kind: then all other boundaries are
        followed too, and on each segment `JUMPS_FOLLOWED` places between equal labels, those whose scores
        jump by most, measured by the lead that the jump would have to turn.

        Returns:
            How many of the places that were followed hid a region, for each segment.
        """
        n_hiding = self._halved(self._largest_jumps())
        return n_hiding + self._halved(self._suspects()) if n_hiding.any() else n_hiding

    def _halved(self, left: Ints) -> Ints:
        """Halve the intervals that begin at `left`; for each segment how many held a label of neither end."""
        n_hiding = np.zeros(len(self._generators), np.int64)
        while len(left):
            u, right = self.u[left], self.after[left]
            middle = (u + self.u[right]) / 2
            wide = self.u[right] - u > ROUNDING_WIDTH
            left, right, start = left[wide], right[wide], self.answers.n
            self._look(left, middle[wide])
            labels, scores = self.answers.labels, self.answers.margins
            new = np.arange(start, self.answers.n)
            is_hidden = (labels[new] != labels[left]) & (labels[new] != labels[right])
            np.add.at(n_hiding, self.probe[new[is_hidden]], 1)
            is_left = np.where(
                labels[left] != labels[right],
                labels[new] == labels[left],
                (scores[new] == scores[left]).all(axis=1),
            )
            left = np.where(is_left, new, left)[~is_hidden]
        return n_hiding

    def _largest_jumps(self) -> Ints:
        """The left sample of the boundary with the largest jump of the scores, on each segment with one."""
        left, jump = self._jumps()
        is_boundary = self.answers.labels[left] != self.answers.labels[self.after[left]]
        left, jump = left[is_boundary], jump[is_boundary]
        left = left[np.lexsort((self.u[left], -jump, self.probe[left]))]
        return np.asarray(left[np.unique(self.probe[left], return_index=True)[1]])

    def _suspects(self) -> Ints:
        """The left samples of all boundaries, and of the likeliest places between equal labels, if wide."""
        left, jump = self._jumps()
        a, right = self.answers, self.after[left]
        is_boundary = a.labels[left] != a.labels[right]
        is_wide = self.u[right] - self.u[left] > ROUNDING_WIDTH
        if not a.has_scores:
            return np.asarray(left[is_boundary & is_wide])
        leads = np.sort(a.margins, axis=1)[:, -2:]
        lead = np.minimum(*(leads[end, 1] - leads[end, 0] for end in (left, right)))
        risk = np.where(is_boundary, 0.0, jump / np.maximum(lead, np.finfo(float).tiny))
        order = np.lexsort((-risk, self.probe[left]))
        probes = self.probe[left[order]]
        place = np.arange(len(order)) - np.searchsorted(probes, probes)
        is_likely = np.zeros(len(left), np.bool_)
        is_likely[order] = (place < JUMPS_FOLLOWED) & (risk[order] > 0)
        return np.asarray(left[(is_boundary | is_likely) & is_wide])

    def _jumps(self) -> tuple[Ints, Floats]:
        """The left samples of all intervals, and how far the scores jump in each."""
        left = self.lefts()
        scores = self.answers.margins
        return left, np.abs(scores[self.after[left]] - scores[left]).sum(axis=1)

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
        """Which samples begin an interval that still asks for a look but is as fine as allowed, (n,)."""
        return np.asarray(self.urgency[: self.answers.n] > 1)

    def chance_left(self) -> Floats:
        """Between steps, the chance of a hidden region in the open interval that a sample begins, (n,)."""
        urgency = self.urgency[: self.answers.n]
        by_chance = self.is_open() & np.isfinite(urgency)
        return np.where(by_chance, STEP_CHANCE * urgency, 0.0)

    def _scan(self, intervals: Ints) -> tuple[Floats, Floats]:
        from inscape.partition.decision.adaptive.segment_kernels import (
            ROUNDING,
            scan,
            scan_labels,
            scan_steps,
        )

        a = self.answers
        urgency, where = np.empty(len(intervals)), np.empty(len(intervals))
        links = (a.labels, self.before, self.after)
        if self._rule == "scores":
            rounding = ROUNDING * self._rounding
            scan(intervals, self.u, a.margins, *links, rounding, self._finest, urgency, where)
            return CAUTION * urgency, where
        scan_labels(intervals, self.u, *links, self._finest, urgency, where)
        if self._rule == "steps":
            chance = np.empty(len(intervals))
            scan_steps(intervals, self.u, a.margins, *links, chance)
            urgency = np.maximum(urgency, chance / STEP_CHANCE)
        return urgency, where

    def _look(self, left: Ints, u: Floats) -> None:
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
            lambda rows, out: combine(weights[rows], probe[rows], self._generators, out),
            lambda row: f"probe {self._first + probe[row]}, {u[row]:.6g} of its span from its start",
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
    generators = np.empty((len(probes), *probes[0].generators.shape))
    for i, probe in enumerate(probes):
        generators[i] = probe.generators
    samples = Samples(model, trial, generators, probes[0].input_shape, resolution or FINEST, first)
    spans = np.array([as_segment(p).span for p in probes])
    follows = trial.is_deterministic and resolution is None  # a resolution is the finest step
    if trial.is_deterministic:
        samples.refine()
    steps = None if trial.rule == "scores" else _step_doubt(samples, len(probes), follows)
    if tolerance is not None and trial.is_deterministic:
        samples.locate(tolerance / (spans[:, 1] - spans[:, 0]))
    yield from _results(samples, trial, spans, steps, tolerance)


def _step_doubt(samples: Samples, n_probes: int, follows: bool) -> StepDoubt:
    """What the regions that are narrower than the first step, and boundaries down to rounding, tell."""
    a, each, step = samples.answers, samples.n_first, 1 / (N_STEPS - 1)
    n_first = n_probes * each
    order = np.lexsort((samples.u[: a.n], samples.probe[: a.n]))
    probe, labels, u = samples.probe[order], a.labels[order], samples.u[order]
    begins = np.flatnonzero((labels[1:] != labels[:-1]) | (probe[1:] != probe[:-1])) + 1
    at = (u[begins] + u[begins - 1]) / 2
    is_met = np.logical_or.reduceat(order < n_first, np.concatenate([[0], begins]))[1:-1]
    inner = is_met & (
        probe[begins[:-1] - 1] == probe[begins[1:]]
    )  # neither the first nor the last of its own
    left, right = begins[:-1][inner], begins[1:][inner]
    width = (at[1:] - at[:-1])[inner]
    unmet = unmet_regions(width, 1 + (labels[left - 1] == labels[right]), step)
    first_changes = np.diff(a.labels[:n_first].reshape(n_probes, each), axis=1) != 0
    n_late = int(len(begins) - (n_probes - 1) - first_changes.sum())
    chance_left = np.bincount(probe, samples.chance_left()[order], n_probes).astype(np.float64)
    n_hiding = samples.follow() if follows else np.zeros(n_probes, np.int64)
    return StepDoubt(
        np.bincount(probe[left], unmet, n_probes).astype(np.float64),
        int((width < step).sum()),
        n_late,
        chance_left,
        n_hiding,
    )


def _results(
    samples: Samples, trial: Trial, spans: Floats, steps: StepDoubt | None, tolerance: float | None
) -> Iterator[dict[str, Any]]:
    a, b = samples.answers, len(spans)
    order = np.lexsort((samples.u[: a.n], samples.probe[: a.n]))
    probe, labels = samples.probe[order], a.labels[order]
    low = spans[probe, 0]
    t = low + samples.u[order] * (spans[probe, 1] - low)
    bounds = np.searchsorted(probe, np.arange(b + 1))
    change = np.flatnonzero((labels[1:] != labels[:-1]) & (probe[1:] == probe[:-1]))
    at = _boundaries(t, change, samples.crossings(order[change]), tolerance)
    first_change = np.searchsorted(change, bounds)  # a change never crosses from one probe to the next
    near = np.bincount(probe, (samples.urgency[order] > 0.5) & (samples.urgency[order] <= 1), b)
    n_open = np.bincount(probe, samples.is_open()[order], b).astype(np.int64)
    top = top_two(a.margins[order]) if steps is None else None
    missed = near * samples.doubt.chance if steps is None else steps.missed()
    for i in range(b):
        own, changes = slice(bounds[i], bounds[i + 1]), slice(first_change[i], first_change[i + 1])
        yield {
            "labels": labels[np.concatenate([bounds[i : i + 1], change[changes] + 1])],
            "boundaries": at[changes],
            "span": (float(spans[i, 0]), float(spans[i, 1])),
            "samples": t[own],
            "top": None if top is None else TopScores(t[own], top[0][own], top[1][own]),
            "n_evaluations": int(bounds[i + 1] - bounds[i]),
            "status": status_of(trial, int(n_open[i]), float(missed[i])),
            "missed": float(missed[i]),
            "missed_basis": samples.doubt.basis(int(near[i])) if steps is None else steps.basis(),
        }


def _boundaries(
    t: Floats, change: Ints, crossings: Floats, tolerance: float | None
) -> npt.NDArray[np.float64]:
    """Where the chords cross; if a tolerance was asked for, never farther than it from either sample."""
    left, right = t[change], t[change + 1]
    at = left + crossings * (right - left)
    if tolerance is None:
        return np.asarray(at)
    middle = (left + right) / 2
    return np.asarray(
        np.clip(at, np.minimum(right - tolerance, middle), np.maximum(left + tolerance, middle))
    )
