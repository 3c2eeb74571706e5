"""Which of several parabolas along a line are largest or lowest: quadratic scores, and distances to points.

The squared distance of x(s) = m + s v to a point p is |v|^2 s^2 + s 2 v (m - p) + |m - p|^2. The first term
is common to all points, so that their order is that of *lines* in s, and two change places at most once.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled, grown

EQUAL_UP_TO_UNITS = 2.0**6
"""Values nearer than this many units of rounding are taken as equal."""


@compiled
def roots_between(a, b, c, roots, n):
    """Append the roots of a s^2 + b s + c strictly inside (-1, 1) to `roots`, of which n are filled."""
    if a == 0.0:
        if b != 0.0 and abs(c) < abs(b):
            roots[n] = -c / b
            n += 1
        return n
    discriminant = b * b - 4.0 * a * c
    if discriminant <= 0.0:
        return n  # a parabola that only touches another does not overtake it
    q = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))  # no cancellation
    for s in (q / a, c / q if q != 0.0 else np.inf):
        if abs(s) < 1.0:
            roots[n] = s
            n += 1
    return n


@compiled
def largest_parabola(a, b, c):
    """Which of the parabolas a_k s^2 + b_k s + c_k, (k,) each, is the largest on pieces of [-1, 1].

    Any two of them cross at most twice. Between neighbouring crossings of any two nothing changes, so that
    the middle of each piece tells which is the largest there, the first of equal ones.

    Returns:
        s (m,) between pieces, and for each of the m + 1 pieces the largest, and whether another one equals it
        up to rounding.
    """
    # (1) all crossings, in order
    k = len(a)
    roots, n = np.empty(k * (k - 1)), 0
    for i in range(k):
        for j in range(i):
            n = roots_between(a[i] - a[j], b[i] - b[j], c[i] - c[j], roots, n)
    s = np.sort(roots[:n])
    # (2) the largest in the middle of each piece
    best, is_tied = np.empty(n + 1, np.int64), np.zeros(n + 1, np.bool_)
    for m in range(n + 1):
        low, high = -1.0 if m == 0 else s[m - 1], 1.0 if m == n else s[m]
        at = 0.5 * (low + high)
        first, second, size, best[m] = -np.inf, -np.inf, 0.0, 0
        for i in range(k):
            value = (a[i] * at + b[i]) * at + c[i]
            if value > first:
                first, second, best[m] = value, first, i
                size = abs(a[i]) + abs(b[i]) + abs(c[i])
            elif value > second:
                second = value
        is_tied[m] = first - second <= EQUAL_UP_TO_UNITS * np.finfo(np.float64).eps * size
    return s, best, is_tied


N_STRETCHES = 16
"""Equal stretches of a line, for each of which the points that can be near are chosen."""


def candidates(offset: Floats, slope: Floats, k: int, slack: float) -> tuple[Ints, Ints]:
    """The points that can be among the k nearest, stretch by stretch, (m,), and where each stretch begins.

    A line is at most the larger of its values at both ends of a stretch, so that the k-th smallest of these
    bounds the k lowest everywhere; what stays above it, by more than `slack`, is never among them.
    """
    values = offset + np.linspace(-1.0, 1.0, N_STRETCHES + 1)[:, None] * slope
    highest, lowest = np.maximum(values[1:], values[:-1]), np.minimum(values[1:], values[:-1])
    bound = np.partition(highest, k - 1, axis=1)[:, k - 1] + slack
    stretch, chosen = np.nonzero(lowest <= bound[:, None])
    return chosen, np.searchsorted(stretch, np.arange(N_STRETCHES + 1))


@compiled
def coefficients(points, chosen, middle, half):
    """Offset and slope of the lines of the chosen points, (m,) each, from differences of coordinates."""
    offset, slope = np.zeros(len(chosen)), np.zeros(len(chosen))
    for i in range(len(chosen)):
        for f in range(len(middle)):
            gap = middle[f] - points[chosen[i], f]
            offset[i] += gap * gap
            slope[i] += 2.0 * half[f] * gap
    return offset, slope


@compiled
def lowest(offset, slope, at, k):
    """Which lines are the k lowest just after s = at, (m,) bool: by value, then by slope."""
    is_in = np.zeros(len(offset), np.bool_)
    for _ in range(k):
        best, value = -1, np.inf
        for i in range(len(offset)):
            height = offset[i] + at * slope[i]
            if not is_in[i] and (height < value or (height == value and slope[i] < slope[best])):
                best, value = i, height
        is_in[best] = True
    return is_in


@compiled
def next_swap(offset, slope, is_in, now):
    """The next s >= now where a line outside falls below one inside, and both; s = inf if none does."""
    soonest, leaving, coming = np.inf, -1, -1
    for i in range(len(offset)):
        if not is_in[i]:
            continue
        for j in range(len(offset)):
            if is_in[j] or slope[j] >= slope[i]:
                continue
            s = max((offset[j] - offset[i]) / (slope[i] - slope[j]), now)
            if s < soonest or (s == soonest and slope[i] - slope[j] > slope[leaving] - slope[coming]):
                soonest, leaving, coming = s, i, j
    return soonest, leaving, coming


@compiled
def depends_on_a_tie(offset, slope, is_in, label, s):
    """Whether at s a line inside and one outside, of different labels, are equal up to rounding."""
    for i in range(len(offset)):
        if not is_in[i]:
            continue
        for j in range(len(offset)):
            if is_in[j] or label[i] == label[j]:
                continue
            gap = (offset[j] - offset[i]) + s * (slope[j] - slope[i])
            size = offset[i] + abs(slope[i]) + offset[j] + abs(slope[j])
            if gap <= EQUAL_UP_TO_UNITS * np.finfo(np.float64).eps * size:
                return True
    return False


@compiled
def nearest_labels(points, labels, k, n_classes, middle, half, candidates, begins):
    """The label with most votes among the k nearest points on pieces of s in [-1, 1].

    Args:
        points: (n, d).
        labels: (n,).
        k: how many vote.
        n_classes: the number of labels.
        middle: m, (d,).
        half: v, (d,).
        candidates: the points that matter, stretch by stretch, (m,).
        begins: where each stretch begins among them, (N_STRETCHES + 1,).

    Returns:
        s (m,) between pieces, and for each of the m + 1 pieces its label, the smallest with most votes, and
        whether it rests on a tie of distances.
    """
    capacity, m = 64, 0
    at, new, is_tied = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.bool_)
    for stretch in range(N_STRETCHES):
        # (1) the lines that matter on this stretch, and the lowest of them at its start
        start, end = -1.0 + 2.0 * stretch / N_STRETCHES, -1.0 + 2.0 * (stretch + 1) / N_STRETCHES
        now = start
        chosen = candidates[begins[stretch] : begins[stretch + 1]]
        label = labels[chosen]
        height, rise = coefficients(points, chosen, middle, half)
        is_in = lowest(height, rise, now, k)
        votes = np.zeros(n_classes, np.int64)
        for i in range(len(chosen)):
            votes[label[i]] += is_in[i]
        while now < end:
            # (2) the piece up to the next swap
            s, leaving, coming = next_swap(height, rise, is_in, now)
            s = min(s, end)
            if s > now:
                if m == capacity:
                    capacity *= 2
                    at, new, is_tied = grown(at, capacity), grown(new, capacity), grown(is_tied, capacity)
                at[m], new[m] = now, np.argmax(votes)
                is_tied[m] = depends_on_a_tie(height, rise, is_in, label, 0.5 * (now + s))
                goes_on = m > 0 and now == start and new[m] == new[m - 1] and is_tied[m] == is_tied[m - 1]
                m += 0 if goes_on else 1
            # (3) the swap itself; sums of slopes fall with each, so that this ends
            now = s
            if s < end:
                is_in[leaving], is_in[coming] = False, True
                votes[label[leaving]] -= 1
                votes[label[coming]] += 1
    return at[1:m], new[:m], is_tied[:m]
