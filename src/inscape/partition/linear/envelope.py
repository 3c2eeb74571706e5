"""The upper envelope of lines: which is the largest along the way, for scores and for max-pool windows."""

import numpy as np

from inscape.compiled import compiled


@compiled
def _first_of_steepest(first, last, line, s, bound):
    """Of the lines that meet `line` at s, up to the bound, the steepest; of those along it, the first."""
    steepest = line
    height = first[line] + s * (last[line] - first[line])
    for j in range(len(first)):
        at = first[j] + s * (last[j] - first[j])
        if at >= height - bound and last[j] > last[steepest] + bound:
            steepest = j
    for j in range(steepest):
        if abs(first[j] - first[steepest]) <= bound and abs(last[j] - last[steepest]) <= bound:
            return j
    return steepest


@compiled
def envelope(first, last, bound):
    """The upper envelope of k lines on [0, 1], given their values at both ends, (k,) each.

    `bound` is how far two values may differ by rounding. The walk starts at 0: the line that leads just after
    it is the largest, then the steepest, then the first; the next is the one that overtakes it soonest, the
    steepest of those. Two lines that differ by at most `bound` at both ends are one line, the first of them.
    If one line leads at both ends it leads between, since the envelope is convex.

    Returns:
        s (m,) of the changes, strictly inside, and the lines that lead, (m + 1,).
    """
    # 1. who leads just after 0
    k = len(first)
    lead = 0
    for j in range(1, k):
        gap = first[j] - first[lead]
        if gap > bound or (abs(gap) <= bound and last[j] > last[lead] + bound):
            lead = j
    changes, leads = np.empty(k), np.empty(k, np.int64)
    leads[0] = lead
    m, s = 0, 0.0
    while m < k - 1:
        # 2. who overtakes soonest, the steepest of those
        soonest, following = 1.0, -1
        rise = last[lead] - first[lead]
        for j in range(k):
            end = last[j] - last[lead]
            if j == lead or end <= bound:
                continue  # it does not overtake before the end
            behind = first[lead] - first[j]
            at = max(behind / (behind + end), s)
            tied = following >= 0 and at == soonest
            if at < soonest or (tied and last[j] - first[j] > last[following] - first[following]):
                soonest, following = at, j
        # 3. the new leader, unless nobody is steeper
        if following < 0 or last[following] - first[following] <= rise:
            break
        lead, s = _first_of_steepest(first, last, following, soonest, bound), soonest
        if s > 0.0:
            changes[m] = s
            m += 1
        leads[m] = lead
    return changes[:m], leads[: m + 1]
