"""The label along a piecewise-linear score function: a compiled walk over its upper envelope."""

import numpy as np

from inscape.compiled import compiled
from inscape.partition.linear.envelope import envelope, grown

SHORT = 1e-9
"""A tie on a shorter fraction of the span is rounding at a crossing, not a tie on an interval."""


@compiled
def _margin(row):
    """The first largest entry and its lead over the rest."""
    best, second, where = -np.inf, -np.inf, 0
    for j in range(len(row)):
        if row[j] > best:
            best, second, where = row[j], best, j
        elif row[j] > second:
            second = row[j]
    return where, best - second


@compiled
def leads(scores):
    """The lead of the largest score over the next in each row of (n, c), (n,)."""
    found = np.empty(len(scores))
    for i in range(len(scores)):
        found[i] = _margin(scores[i])[1]
    return found


@compiled
def _fraction_in_doubt(first, last, lead, start, stop, error):
    """The length between `start` and `stop` on which another line comes within `error` of the leading one."""
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


@compiled
def label_changes(t, segment, scores, errors, floor, lengths, label, owner):
    """Where the label changes along a chunk of rows.

    Between neighbouring rows the scores are linear. One label that leads clearly at both ends leads between;
    otherwise the upper envelope of the lines is walked. Lines that coincide within their errors count as one,
    the first of them; on an interval shorter than `SHORT` the label in force stays if it is among them.

    Args:
        t: parameters of the rows, (n,).
        segment: (n,).
        scores: (n, c).
        errors: for rows where rounding may decide the label, how far a difference of leading scores may be
            from the truth, (n,); 0 for the others.
        floor: the least error, as a fraction of the leading scores: a score far below them, such as that of a
            class that is masked out, does not matter.
        lengths: the length of each segment's span.
        label: the label in force before the first row.
        owner: the segment that it belongs to, -1 for none.

    Returns:
        segment (m,), t (m,), label (m,) of every change, the start of a segment counting as one; the
        fraction of each segment's span on which two labels tie; the label in force at the end and its
        segment.
    """
    n, c = scores.shape
    room = 64 + n
    at, new, of = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
    tied = np.zeros(len(lengths))
    m = 0
    for i in range(n - 1):
        if segment[i] != segment[i + 1]:
            continue
        # 1. a new segment has no label in force
        if segment[i] != owner:
            owner, label = segment[i], -1
        # 2. nothing happens where the label in force leads clearly at both ends
        first, last = scores[i], scores[i + 1]
        a, lead_a = _margin(first)
        b, lead_b = _margin(last)
        error = max(floor * max(abs(first[a]), abs(last[b])), errors[i], errors[i + 1])
        if a == b and a == label and lead_a > error and lead_b > error:
            continue
        # 3. else the upper envelope tells who leads, and where others come within the error of it
        fraction = (t[i + 1] - t[i]) / lengths[owner]
        changes, leading = envelope(first, last, error)
        for k in range(len(leading)):
            start = 0.0 if k == 0 else changes[k - 1]
            stop = 1.0 if k == len(changes) else changes[k]
            tied[owner] += fraction * _fraction_in_doubt(first, last, leading[k], start, stop, error)
        if m + len(leading) > room:
            room = 2 * room + c
            at, new, of = grown(at, room), grown(new, room), grown(of, room)
        # 4. keep the changes; on a very short interval the label in force stays if it is as good
        for k in range(len(leading)):
            lead = leading[k]
            if fraction <= SHORT and label >= 0:
                close = abs(first[label] - first[lead]) <= error and abs(last[label] - last[lead]) <= error
                lead = label if close else lead
            if lead != label:
                at[m] = t[i] if k == 0 else t[i] + changes[k - 1] * (t[i + 1] - t[i])
                new[m], of[m], label = lead, owner, lead
                m += 1
    return of[:m], at[:m], new[:m], tied, label, owner
