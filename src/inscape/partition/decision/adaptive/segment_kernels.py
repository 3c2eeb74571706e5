"""Compiled loops of adaptive counting on segments: which intervals to refine, and where.

Samples are numbered, in arrays that only grow. `before` and `after` link the samples of one probe in the
order of u, -1 at its ends, so that a new sample is put between two others without moving anything. An
interval is named by its left sample.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import math
from typing import Any

import numpy as np

from inscape.compiled import choosing, compiled

ROUNDING = 32.0
"""Second differences below this many units of rounding of the scores are taken for rounding."""
DISTANCE_FROM_ENDS = 0.05
"""A new sample keeps this fraction of its interval away from either end."""
SAMPLES_THAT_RESOLVE = 6
"""Without margins, a region is resolved when this many neighbouring samples lie in it."""
GRADE = 2.2
"""Without margins, an interval is at most this many times as wide as the next one."""
SWAP_BACK = 0.1
"""Between steps, the chance that one more jump next to a boundary makes a region there."""
INTERVALS_BESIDE = 8
"""Between steps, how many intervals on either side tell how dense and how large the jumps are."""
ENTRIES_PER_ROW = 8
"""Of arrays, for which Python takes as long as numpy does for a point."""


def write_point(weights: Any, generators: Any, point: Any, out: Any) -> None:
    """Write the point weights (k,) @ generators (k, size), which is summed up in `point`, into `out`."""
    point[:] = weights[0] * generators[0] + weights[1] * generators[1]
    for j in range(2, len(weights)):
        point += weights[j] * generators[j]
    out[:] = point


@choosing(write_point)
def _write_point(weights, generators, point, out):
    def write(weights, generators, point, out):
        for f in range(len(out)):
            point[f] = weights[0] * generators[0, f] + weights[1] * generators[1, f]
        for j in range(2, len(weights)):
            for f in range(len(out)):
                point[f] += weights[j] * generators[j, f]
        for f in range(len(out)):
            out[f] = point[f]

    return write


def _rows(weights, probe, generators, out):
    """The work of `combine`: numpy takes a row of any length at once."""
    return ENTRIES_PER_ROW * len(weights)


@compiled(work=_rows)
def combine(weights, probe, generators, out):
    """Write the points weights @ generators of the probes (m,), weights (m, k), into `out` (m, size)."""
    point = np.empty(out.shape[1])
    for r in range(len(weights)):
        write_point(weights[r], generators[probe[r]], point, out[r])


@compiled
def insert(left, start, before, after):
    """Link the samples start, start + 1, ... behind the samples `left`, of which each occurs once."""
    for k in range(len(left)):
        i, new = left[k], start + k
        j = after[i]
        before[new], after[new] = i, j
        after[i] = new
        if j >= 0:
            before[j] = new


@compiled
def changed(start, stop, reach, before, after, stamp, round_number):
    """The intervals within `reach` steps of the samples start..stop-1, each once; `stamp` marks them."""
    intervals = np.empty((stop - start) * 2 * reach, np.int64)
    n = 0
    for new in range(start, stop):
        i = new
        for _ in range(reach):
            if before[i] < 0:
                break
            i = before[i]
        for _ in range(2 * reach):
            if i < 0 or after[i] < 0:
                break
            if stamp[i] != round_number:
                stamp[i] = round_number
                intervals[n] = i
                n += 1
            i = after[i]
    return intervals[:n]


@compiled
def _curvature(i, j, u, scores, before, after, rounding, curvature):
    """Half h^2 times the second divided differences of each score, on the left and the right of interval i-j.

    A chord over the interval is off by at most this times v (1 - v) at the fraction v of it, if the second
    derivative is nowhere larger than next to it.

    Returns:
        What rounding can make of a score on either side, as a fraction of the score.
    """
    h = u[j] - u[i]
    bound = 0.0
    curvature[:] = 0.0
    for side in range(2):
        k = before[i] if side == 0 else after[j]
        if k < 0:
            continue
        g = u[i] - u[k] if side == 0 else u[k] - u[j]
        near, far = (i, j) if side == 0 else (j, i)
        scale = h / (h + g)
        for c in range(scores.shape[1]):
            curvature[side, c] = scale * (
                (scores[far, c] - scores[near, c]) - (scores[near, c] - scores[k, c]) * (h / g)
            )
        bound = max(bound, rounding * scale * (1.0 + h / g))
    return bound


@compiled
def _sag(a, k, curvature):
    """By how much the difference of scores a and k could leave its chord, see `_curvature`."""
    return max(abs(curvature[0, a] - curvature[0, k]), abs(curvature[1, a] - curvature[1, k]))


@compiled
def _least_need(p, q, low, high):
    """The least of (p (1 - v) + q v) / (v (1 - v)) on low <= v <= high, and where; p, q > 0 or low = high."""
    v = 0.5
    if p > 0.0 and q > 0.0:
        v = np.sqrt(p) / (np.sqrt(p) + np.sqrt(q))
    elif q > p:
        v = low
    elif p > q:
        v = high
    v = min(max(v, low), high)
    if v <= 0.0 or v >= 1.0:
        return np.inf, v
    return max(0.0, p * (1.0 - v) + q * v) / (v * (1.0 - v)), v


@compiled
def same_label(i, j, a, scores, curvature, bound):
    """The urgency of an interval between two samples of label a, and where to put a sample: see `scan`."""
    urgency, where = 0.0, 0.5
    for k in range(scores.shape[1]):
        if k == a:
            continue
        sag = _sag(a, k, curvature)
        if sag <= bound:
            continue
        need, v = _least_need(scores[i, a] - scores[i, k], scores[j, a] - scores[j, k], 0.0, 1.0)
        if sag > urgency * need:
            urgency, where = (sag / need if need > 0.0 else np.inf), v
    return urgency, where


@compiled
def third_label(i, j, a, b, scores, curvature, bound):
    """The urgency of an interval from label a to label b for a third one between, and where: see `scan`."""
    urgency, where = 0.0, 0.5
    lead, total = scores[i, a] - scores[i, b], _fall(i, j, a, b, scores)
    x = lead / total if total > 0.0 else 0.5
    for k in range(scores.shape[1]):
        if k in (a, b):
            continue
        sag = max(_sag(a, k, curvature), _sag(b, k, curvature))
        for top, low, high in ((a, 0.0, x), (b, x, 1.0)):
            need, v = _least_need(scores[i, top] - scores[i, k], scores[j, top] - scores[j, k], low, high)
            if need <= 0.0:
                return np.inf, v
            if sag > bound and sag > urgency * need:
                urgency, where = sag / need, v
    return urgency, where


@compiled
def _fall(i, j, a, b, scores):
    """By how much the lead of label a over label b falls along an interval."""
    return (scores[i, a] - scores[i, b]) + (scores[j, b] - scores[j, a])


@compiled
def _swap(i, j, a, b, scores, curvature, bound):
    """The urgency of an interval from label a to label b for the two to swap again, and where they cross."""
    total, sag = _fall(i, j, a, b, scores), _sag(a, b, curvature)
    if total <= 0.0 or sag <= bound:
        return 0.0, 0.5
    return sag / total, (scores[i, a] - scores[i, b]) / total


@compiled
def scan(intervals, u, scores, labels, before, after, rounding, finest, urgency, where):
    """How urgent it is to refine each interval, and the fraction of it where a sample goes.

    Between two samples a score difference is at least its chord minus c v (1 - v), if the sag c is the one
    seen next to the interval. The urgency is the sag over the least one that would let another class lead
    somewhere between, or the two end labels swap again.
    """
    n_classes = scores.shape[1]
    curvature = np.empty((2, n_classes))
    for m in range(len(intervals)):
        i = intervals[m]
        j = after[i]
        h = u[j] - u[i]
        a, b = labels[i], labels[j]
        bound = _curvature(i, j, u, scores, before, after, rounding, curvature)
        bound *= max(abs(scores[i, a]), abs(scores[j, b]))
        if a == b:
            urgency[m], v = same_label(i, j, a, scores, curvature, bound)
        else:
            urgency[m], v = third_label(i, j, a, b, scores, curvature, bound)
            swap, x = _swap(i, j, a, b, scores, curvature, bound)
            if swap > urgency[m]:
                urgency[m], v = swap, x
        edge = min(max(DISTANCE_FROM_ENDS, finest / h), 0.5)
        where[m] = min(max(v, edge), 1.0 - edge)


@compiled
def _run(i, labels, before, after):
    """How many samples in a row, up to SAMPLES_THAT_RESOLVE, have the label of sample i."""
    n, k = 1, before[i]
    while n < SAMPLES_THAT_RESOLVE and k >= 0 and labels[k] == labels[i]:
        n, k = n + 1, before[k]
    k = after[i]
    while n < SAMPLES_THAT_RESOLVE and k >= 0 and labels[k] == labels[i]:
        n, k = n + 1, after[k]
    return n


@compiled
def scan_labels(intervals, u, labels, before, after, finest, urgency, where):
    """Infinite urgency, and a place near the middle, where labels alone ask for refinement.

    That is where a region at either end of the interval is not resolved, and where the interval is more than
    GRADE times as wide as one next to it: what is fine here may be fine there. The place is not the middle
    itself, since even steps are blind to what repeats with them.
    """
    for m in range(len(intervals)):
        i = intervals[m]
        j = after[i]
        width, narrowest = u[j] - u[i], np.inf
        if before[i] >= 0:
            narrowest = u[i] - u[before[i]]
        if after[j] >= 0:
            narrowest = min(narrowest, u[after[j]] - u[j])
        short = (
            _run(i, labels, before, after) < SAMPLES_THAT_RESOLVE
            or _run(j, labels, before, after) < SAMPLES_THAT_RESOLVE
        )
        urgency[m] = np.inf if short or width > GRADE * narrowest else 0.0
        edge = min(max(0.35, finest / width), 0.5)
        where[m] = edge + (1.0 - 2.0 * edge) * ((9973.0 * (u[i] + u[j])) % 1.0)


@compiled
def _window(i, before, after):
    """The first sample of a window of INTERVALS_BESIDE intervals on either side of the i-th; its size."""
    first, n = i, 1
    for _ in range(INTERVALS_BESIDE):
        if before[first] < 0:
            break
        first, n = before[first], n + 1
    last = after[i]
    for _ in range(INTERVALS_BESIDE):
        if after[last] < 0:
            break
        last, n = after[last], n + 1
    return first, n


@compiled
def is_step(i, j, scores):
    """Whether any score changes between two samples."""
    n_changes = 0
    for c in range(scores.shape[1]):
        n_changes += scores[i, c] != scores[j, c]
    return n_changes > 0


@compiled
def _spread(first, n, top, scores, after, spread):
    """Write the squared changes of the lead of class `top` over each, summed over a window of n intervals.

    Returns:
        How many of the intervals change a score, and the last sample of the window.
    """
    n_steps, k = 0, first
    spread[:] = 0.0
    for _ in range(n):
        right = after[k]
        if is_step(k, right, scores):
            n_steps += 1
            for c in range(scores.shape[1]):
                change = (scores[right, top] - scores[k, top]) - (scores[right, c] - scores[k, c])
                spread[c] += change * change
        k = right
    return n_steps, k


@compiled
def overtaken(i, j, a, b, scores, variance):
    """The largest chance that a third class leads between samples i of label a and j of label b.

    A lead of p and q at the ends, of this variance in between, meets zero with the chance
    exp(-2 p q / variance) of a Brownian bridge.
    """
    chance = 0.0
    for k in range(scores.shape[1]):
        if k in (a, b) or variance[k] <= 0.0:
            continue
        p, q = max(0.0, scores[i, a] - scores[i, k]), max(0.0, scores[j, b] - scores[j, k])
        chance = max(chance, math.exp(-2.0 * p * q / variance[k]))
    return chance


@compiled
def scan_steps(intervals, u, scores, labels, before, after, chance):
    """The chance that each interval hides a region, where scores are constant between jumps.

    1. Around the interval, a share f of n intervals of mean width w changes a score: there are about
       -log(1 - f) / w jumps per unit of u. Squared changes show how large a jump of each lead is.
    2. A hidden region takes one jump more than the change that is seen, and two where none is seen.
    3. These have to bring a third class to the top, see `overtaken`, or the end labels to swap back. Labels
       alone, which are one column, jump whenever they change.

    The chance puts places in order. It is many times too high: `missed.StepDoubt` says how many.
    """
    n_columns = scores.shape[1]
    spread, other = np.empty(n_columns), np.empty(n_columns)
    for m in range(len(intervals)):
        i = intervals[m]
        j = after[i]
        a, b, width = labels[i], labels[j], u[j] - u[i]
        # (1) the density of jumps
        first, n = _window(i, before, after)
        n_steps, last = _spread(first, n, a if n_columns > 1 else 0, scores, after, spread)
        if a != b and n_columns > 1:
            _spread(first, n, b, scores, after, other)
            for k in range(n_columns):
                spread[k] = max(spread[k], other[k])
        length = u[last] - u[first]
        n_jumps = -math.log(1.0 - min((n_steps + 0.5) / (n + 1.0), 0.95)) * n
        expected = n_jumps / length * width
        # (2) one jump more, or two; and how many there are then
        more, n_more = 1.0 - math.exp(-expected), expected
        if not is_step(i, j, scores):
            more -= expected * math.exp(-expected)
            n_more -= expected * math.exp(-expected)
        # (3) what this many do, each as large as those around
        hidden = 1.0
        if n_columns > 1:
            hidden = overtaken(i, j, a, b, scores, spread * (n_more / max(more, 1e-12) / n_jumps))
        if a != b:
            hidden = SWAP_BACK if n_columns == 1 else max(hidden, SWAP_BACK)
        chance[m] = more * hidden
