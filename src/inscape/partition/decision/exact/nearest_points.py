"""The k nearest of many points along a line: compiled loops.

The squared distance of x(s) = m + s v to a point p is |v|^2 s^2 + s 2 v (m - p) + |m - p|^2. The first term
is common to all points, so that their order is that of *lines* in s, and two change places at most once.
"""

import numpy as np

from inscape.compiled import compiled
from inscape.partition.decision.exact.parabolas import UNITS
from inscape.partition.linear.envelope import grown

N_PARTS = 16
"""Parts of a line, for each of which the points that can be near are chosen anew."""


@compiled
def candidates(offset, slope, low, high, k, slack):
    """The lines that can be among the k lowest between s = low and high: (m,) of their numbers.

    A line is at most the larger of its values at both ends, so that the k-th smallest of these bounds the k
    lowest everywhere; what stays above it, by more than `slack`, is never among them.
    """
    first, last = offset + low * slope, offset + high * slope
    bound = np.partition(np.maximum(first, last), k - 1)[k - 1] + slack
    return np.flatnonzero(np.minimum(first, last) <= bound)


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
def lowest(offset, slope, low, k):
    """Which lines are the k lowest just after s = low, (m,) bool: by value, then by slope."""
    is_in = np.zeros(len(offset), np.bool_)
    order = np.argsort(offset + low * slope)
    at = offset[order[k - 1]] + low * slope[order[k - 1]]
    n = 0
    for i in order:  # all that are lower than the k-th
        if offset[i] + low * slope[i] < at:
            is_in[i] = True
            n += 1
    while n < k:  # of those as low as it, those that fall fastest
        best = -1
        for i in range(len(offset)):
            if not is_in[i] and offset[i] + low * slope[i] == at and (best < 0 or slope[i] < slope[best]):
                best = i
        is_in[best] = True
        n += 1
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
            if gap <= UNITS * np.finfo(np.float64).eps * size:
                return True
    return False


@compiled
def nearest_labels(points, labels, k, n_classes, middle, half, offset, slope, slack):
    """The label with most votes among the k nearest points on pieces of s in [-1, 1].

    Args:
        points: (n, d).
        labels: (n,).
        k: how many vote.
        n_classes: the number of labels.
        middle: m, (d,).
        half: v, (d,).
        offset: of the lines of all points, up to `slack`, (n,).
        slope: the same.
        slack: see `candidates`.

    Returns:
        s (m,) between pieces, and for each of the m + 1 pieces its label, the smallest with most votes, and
        whether it rests on a tie of distances.
    """
    room, m = 64, 0
    at, new, is_tied = np.empty(room), np.empty(room, np.int64), np.empty(room, np.bool_)
    for part in range(N_PARTS):
        # 1. the lines that matter on this part, and the lowest of them at its start
        now, end = -1.0 + 2.0 * part / N_PARTS, -1.0 + 2.0 * (part + 1) / N_PARTS
        chosen = candidates(offset, slope, now, end, k, slack)
        own = labels[chosen]
        height, rise = coefficients(points, chosen, middle, half)
        is_in = lowest(height, rise, now, k)
        votes = np.zeros(n_classes, np.int64)
        for i in range(len(chosen)):
            votes[own[i]] += is_in[i]
        while now < end:
            # 2. the piece up to the next swap
            s, leaving, coming = next_swap(height, rise, is_in, now)
            s = min(s, end)
            if s > now:
                if m == room:
                    room *= 2
                    at, new, is_tied = grown(at, room), grown(new, room), grown(is_tied, room)
                at[m], new[m] = now, np.argmax(votes)
                is_tied[m] = depends_on_a_tie(height, rise, is_in, own, 0.5 * (now + s))
                m += 1
            # 3. the swap itself; sums of slopes fall with each, so that this ends
            now = s
            if s < end:
                is_in[leaving], is_in[coming] = False, True
                votes[own[leaving]] -= 1
                votes[own[coming]] += 1
    return at[1:m], new[:m], is_tied[:m]
