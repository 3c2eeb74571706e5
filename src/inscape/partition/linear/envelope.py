"""The upper envelope of lines: which is the largest along the way, for scores and for max-pool windows."""

import numpy as np

from inscape.compiled import compiled


@compiled
def _first_of_steepest(first, last, line, s, noise):
    """Of the lines that meet `line` at s, up to noise, the steepest; of those along it, the first."""
    steepest = line
    height = first[line] + s * (last[line] - first[line])
    for j in range(len(first)):
        at = first[j] + s * (last[j] - first[j])
        if at >= height - noise and last[j] > last[steepest] + noise:
            steepest = j
    for j in range(steepest):
        if abs(first[j] - first[steepest]) <= noise and abs(last[j] - last[steepest]) <= noise:
            return j
    return steepest


@compiled
def envelope(first, last, noise):
    """The upper envelope of k lines on [0, 1], given their values at both ends, (k,) each.

    Walks from 0: the line that leads just after 0 is the largest, then the steepest, then the first; the next
    is the one that overtakes it soonest, the steepest of those. Two lines that differ by at most `noise` at
    both ends are one line, the first of them. If one line leads at both ends it leads between, since the
    envelope is convex.

    Returns:
        s (m,) of the changes, strictly inside, and the lines that lead, (m + 1,).
    """
    k = len(first)
    lead = 0
    for j in range(1, k):
        gap = first[j] - first[lead]
        if gap > noise or (abs(gap) <= noise and last[j] > last[lead] + noise):
            lead = j
    changes, leads = np.empty(k), np.empty(k, np.int64)
    leads[0] = lead
    m, s = 0, 0.0
    while m < k - 1:
        soonest, following = 1.0, -1
        rise = last[lead] - first[lead]
        for j in range(k):
            end = last[j] - last[lead]
            if j == lead or end <= noise:
                continue  # it does not overtake before the end
            behind = first[lead] - first[j]
            at = max(behind / (behind + end), s)
            tied = following >= 0 and at == soonest
            if at < soonest or (tied and last[j] - first[j] > last[following] - first[following]):
                soonest, following = at, j
        if following < 0 or last[following] - first[following] <= rise:
            break
        lead, s = _first_of_steepest(first, last, following, soonest, noise), soonest
        if s > 0.0:
            changes[m] = s
            m += 1
        leads[m] = lead
    return changes[:m], leads[: m + 1]
