# mypy: disallow-untyped-decorators=False
"""Compiled loops along segments: walk down all trees along one line, then vote from piece to piece.

They allocate nothing: to count references to arrays that threads share would cost much of what these gain.
"""

from typing import Any

import numpy as np

from inscape.compiled import inlined, kernel

ARGMAX, POSITIVE, NON_NEGATIVE = 0, 1, 2  # the values of `inscape.models.trees.Rule`
EPS = np.finfo(np.float64).eps
ONE_CROSSING_WITHIN = 4 * EPS  # crossings this close, relative to t, are one
NONE, ONE = np.uint64(0), np.uint64(1)
FEWEST_STEPS = 1000.0
"""A feature that passes fewer numbers than this along a line is coarse: its steps are no rounding."""
LEAVES_LIMIT, IS_UNKNOWN, ENDS_ON_SPLIT = 1, 2, 4
"""What `decide_each` says of several lines: one leaves the range of the trees, a label is not known, an end
of a span lies on a split."""


@inlined
def lay(start: Any, end: Any, line: Any, low: Any, high: Any, limit: float) -> Any:
    """Write x(t) = start + t (end - start) into `line`; whether |low| and |high| stay within `limit`."""
    inside = True
    for f in range(len(start)):
        line[f, 0], line[f, 1] = start[f], end[f] - start[f]
    for f in range(len(low)):
        inside &= (abs(low[f]) <= limit) & (abs(high[f]) <= limit)
    return inside


@inlined
def crossing(gap: float, d: float) -> float:
    """The t at which a + t d reaches a + gap; a constant a crosses at infinity, on the side where it is."""
    if d != 0.0:
        return gap / d
    return np.inf if gap >= 0.0 else -np.inf


@inlined
def walk(line: Any, span: Any, trees: Any, front: Any, leaves: Any) -> Any:
    """The leaves that the line x(t) = line[:, 0] + t line[:, 1] meets, t in `span`.

    All trees are walked at once, level by level. The front holds (node, t0, t1): the interval from t0 to
    t1 on which the line is at that node. A node is crossed at t = (last_left - x_f) / d_f; if that lies
    inside (t0, t1) both children take their stretch, otherwise one child takes all.

    Whether a node is a leaf is the only branch that the processor may mispredict: a far child is always
    written, and counts only if it exists. So several nodes are in flight at once. Indices are unsigned: numba
    checks whether others are negative, which takes a quarter longer.

    Returns:
        n, n_nodes, touched: `leaves` holds n leaves, (where each starts, its tree, its row of values);
        n_nodes nodes were visited; touched says that an end of the span lies on a split.
    """
    # (1) every tree begins at its root with the whole span
    feature, child, last_left, n_trees = trees
    node, t0, t1 = front[0]
    next_node, next_t0, next_t1 = front[1]
    leaf_t, leaf_tree, leaf_row = leaves
    begin, end = span
    for k in range(n_trees):
        node[k], t0[k], t1[k] = k, begin, end
    n, n_nodes, m, touched = NONE, 0, n_trees, False
    while m > 0:
        n_nodes += m
        new = NONE
        for i in range(m):
            # (2) a leaf
            at, low, high = np.uint64(node[i]), t0[i], t1[i]
            f, c = feature[at], child[at]
            if f < 0:
                leaf_t[n], leaf_tree[n], leaf_row[n] = low, -1 - f, c
                n += ONE
                continue
            # (3) where the line crosses the split, and on which side it comes from
            x = line[np.uint64(f)]
            d = x[1]
            t = crossing(last_left[at] - x[0], d)
            right = int(d < 0.0)  # the child on the near side of the crossing
            crossed = (t > low) & (t < high)
            touched |= (t == begin) | (t == end)
            # (4) the near child, up to the crossing, and the far one behind it
            next_node[new] = c + (right ^ int(t <= low))
            next_t0[new], next_t1[new] = low, t if crossed else high
            far = new + ONE
            next_node[far], next_t0[far], next_t1[far] = c + 1 - right, t, high
            new += np.uint64(1 + crossed)
        node, t0, t1, next_node, next_t0, next_t1 = next_node, next_t0, next_t1, node, t0, t1
        m = int(new)
    return int(n), n_nodes, touched


@inlined
def sink(times: Any, order: Any, i: int, n: int) -> None:
    """Let the entry at i of a heap of n sink below those with a later time."""
    while 2 * i + 1 < n:
        below = 2 * i + 1
        if below + 1 < n and times[order[below + 1]] > times[order[below]]:
            below += 1
        if times[order[i]] >= times[order[below]]:
            return
        order[i], order[below] = order[below], order[i]
        i = below


@inlined
def sort_by_heap(times: Any, order: Any, n: int) -> None:
    """Sort the first n indices in `order` by their times, in n log n steps at most."""
    for i in range(n // 2 - 1, -1, -1):
        sink(times, order, i, n)
    for last in range(n - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        sink(times, order, 0, last)


@kernel
def put_in_order(times: Any, span: Any, order: Any, count: Any) -> None:
    """Put the indices of `times`, all within `span`, into `order` by increasing time.

    The times are spread over as many buckets as there are of them and then sorted by insertion, which
    finds little to do. Where they crowd, a heap takes over.
    """
    # (1) count the times of each bucket, and sum up to where each bucket starts
    n = len(times)
    scale = n / (span[1] - span[0])
    for i in range(n + 1):
        count[i] = 0
    for i in range(n):
        count[1 + min(int((times[i] - span[0]) * scale), n - 1)] += 1
    for i in range(n):
        count[i + 1] += count[i]
    # (2) put each time into its bucket
    for i in range(n):
        bucket = min(int((times[i] - span[0]) * scale), n - 1)
        order[count[bucket]] = i
        count[bucket] += 1
    # (3) sort what is still out of order by insertion, unless that takes too many moves
    moves = 0
    for i in range(1, n):
        e, j = order[i], i
        while j > 0 and times[order[j - 1]] > times[e]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = e
        moves += i - j
        if moves > 16 * n:
            sort_by_heap(times, order, n)
            return


@inlined
def blur_at(t: float, roots: Any, leaves: Any, line: Any, trees: Any, blur: Any, span: Any) -> float:
    """The greatest uncertainty of t as a crossing in the trees `roots` of some leaves.

    That is, over |d_f|, the spacing of the numbers that the trees tell apart at the split, or the rounding of
    x_f(t) = (1 - t) a_f + t b_f in float64 if that is more. Where the span has fewer than `FEWEST_STEPS` of
    these numbers, their steps are what the model computes, and no blur. The split of a crossing is found by
    walking down again at that t, which is rarely needed.
    """
    feature, child, last_left, _ = trees
    widest = 0.0
    for leaf in leaves:
        at = np.int64(roots[leaf])
        while feature[at] >= 0:
            f = feature[at]
            d = line[f, 1]
            s = crossing(last_left[at] - line[f, 0], d)
            if abs(s - t) <= ONE_CROSSING_WITHIN * abs(t):
                a, b = line[f, 0], line[f, 0] + d
                width = blur[at] / abs(d)
                width = width if width * FEWEST_STEPS <= span[1] - span[0] else 0.0
                widest = max(widest, width, 2 * EPS * (abs((1 - t) * a) + abs(t * b)) / abs(d))
                break
            at = child[at] + (int(d < 0.0) if t < s else int(d >= 0.0))
    return widest


@inlined
def add_in_order(row: Any, value: Any, column: Any, start: Any, sums: Any) -> None:
    """Put start + the present value rows of the trees into `sums`, in the order of the trees."""
    for j in range(len(start)):
        sums[j] = start[j]
    for k in range(len(row)):
        for j in range(value.shape[1]):
            sums[column[k] + j] += value[row[k], j]


@inlined
def winner(scores: Any, rule: int) -> Any:
    """The label of `scores`, and by how much it wins (0: a tie that the rule breaks)."""
    if rule != ARGMAX:
        return int(scores[0] > 0 or (rule == NON_NEGATIVE and scores[0] == 0)), abs(scores[0])
    best, first, second = 0, scores[0], -np.inf
    for j in range(1, len(scores)):
        score = scores[j]
        second = max(second, min(first, score))
        best = j if score > first else best
        first = max(first, score)
    return best, first - second


@inlined
def elected(scores: Any, rule: int, ballots: Any, totals: Any) -> Any:
    """The label of `scores`, and by how much it wins; where members vote, by how much the least sure of them.

    A vote of members that rounding may decide has the lead 0. `totals` holds what they give to classes.
    """
    # (1) one ensemble decides for itself
    first, rules, gives, close = ballots
    if len(rules) == 0:
        return winner(scores, rule)
    # (2) the label of each member, and what it gives to the classes
    least = np.inf
    for j in range(len(totals)):
        totals[j] = 0.0
    for g in range(len(rules)):
        label, lead = winner(scores[first[g] : first[g + 1]], rules[g])
        least = min(least, lead)
        for j in range(len(totals)):
            totals[j] += gives[g, label, j]
    # (3) the largest sum
    label, lead = winner(totals, ARGMAX)
    return label, least if lead > close else 0.0


@inlined
def shares(sums: Any, divisor: float, out: Any) -> Any:
    """The sums over a divisor, in `out`."""
    for j in range(len(sums)):
        out[j] = sums[j] / divisor
    return out


@inlined
def label_at(t: float, line: Any, trees: Any, votes: Any, tally: Any) -> Any:
    """The label of the very point at t, which is on the left of the splits that it lies on; -1 in doubt."""
    feature, child, last_left, n_trees = trees
    value, column, start, divisor, rule, _, doubt, ballots = votes
    row, sums, scores, totals = tally
    for k in range(n_trees):
        at = np.int64(k)
        while feature[at] >= 0:
            d = line[feature[at], 1]
            s = crossing(last_left[at] - line[feature[at], 0], d)
            at = child[at] + (t != s and (t < s) == (d < 0.0))
        row[k] = child[at]
    add_in_order(row, value, column, start, sums)
    label, margin = elected(shares(sums, divisor, scores), rule, ballots, totals)
    return label if margin > doubt else -1


@kernel
def labels_at(t: Any, ends: Any, line: Any, trees: Any, votes: Any, tally: Any, labels: Any) -> None:
    """Write the labels of the very points at each t of a line with ends (2, d)."""
    lay(ends[0], ends[1], line, ends[0], ends[1], np.inf)
    for i in range(len(t)):
        labels[i] = label_at(t[i], line, trees, votes, tally)


@inlined
def advance(i: int, n: int, order: Any, leaves: Any, row: Any, value: Any, column: Any, sums: Any) -> Any:
    """Pass all crossings at the time of the i-th of n in `order`: (the next i, whether a value changed)."""
    times, trees, rows = leaves
    t, changed = times[order[i]], False
    while i < n and times[order[i]] - t <= ONE_CROSSING_WITHIN * abs(t):
        k, new = trees[order[i]], rows[order[i]]
        old = row[k]
        if new != old:
            for j in range(value.shape[1]):
                sums[column[k] + j] += value[new, j] - value[old, j]
            row[k], changed = new, True
        i += 1
    return i, changed


@inlined
def decide(line: Any, span: Any, trees: Any, votes: Any, slack: float, scratch: Any, result: Any) -> Any:
    """Pieces of one line in `result` = (begin, labels, blurs), one for each change of the label; and counts.

    Between neighbouring crossings in any tree the scores are constant. From one to the next only the
    trees that change leaf are added and subtracted. Where the winner leads by no more than `slack` per
    term, rounding could matter: there the sum is taken again, in the order of the trees, and divided. A lead
    of no more than votes' `doubt` does not decide: each such piece is there by itself, with the label -1.

    Returns:
        n (pieces in `result`), n_pieces (between crossings), n_nodes, n_tied (of n_pieces), and whether an
        end of the span lies on a split.
    """
    # (1) the leaves that the line meets, in the order of t
    front, leaves, order, count, tally = scratch
    row, sums, scores, totals = tally
    value, column, start, divisor, rule, blur, doubt, ballots = votes
    begins, labels, blurs = result
    n, n_nodes, touched = walk(line, span, trees, front, leaves)
    times, tree, rows = leaves
    put_in_order(times[:n], span, order, count)
    # (2) the label on the first piece
    for k in order[: len(row)]:  # every tree's first leaf starts with the span
        row[tree[k]] = rows[k]
    add_in_order(row, value, column, start, sums)
    label, margin = elected(shares(sums, divisor, scores), rule, ballots, totals)
    begins[0], labels[0], blurs[0] = span[0], label if margin > doubt else -1, 0.0
    n_found, n_pieces, n_tied = 1, 1, int(margin == 0)
    # (3) from crossing to crossing: the trees that change leaf, and the vote where it may change
    i = len(row)
    while i < n:
        first, t = i, times[order[i]]
        i, changed = advance(i, n, order, leaves, row, value, column, sums)
        if not changed:
            continue
        label, margin = elected(sums, rule, ballots, totals)
        if slack > 0 and margin <= slack * n:
            add_in_order(row, value, column, start, sums)
            label, margin = elected(shares(sums, divisor, scores), rule, ballots, totals)
        else:
            margin /= divisor
        n_pieces += 1
        n_tied += margin == 0
        label = label if margin > doubt else -1
        # (4) another label, or one that is not known
        if label < 0 or label != labels[n_found - 1]:
            begins[n_found], labels[n_found] = t, label
            blurs[n_found] = blur_at(t, tree, order[first:i], line, trees, blur, span)
            n_found += 1
    return n_found, n_pieces, n_nodes, n_tied, touched


@inlined
def join(n: int, result: Any) -> int:
    """Join neighbours of equal label among the first n pieces of `result`; how many are left."""
    begins, labels, blurs = result
    m = 1
    for i in range(1, n):
        if labels[i] != labels[m - 1]:
            begins[m], labels[m], blurs[m] = begins[i], labels[i], blurs[i]
            m += 1
    return m


@inlined
def sift(n: int, end: float, leave_out: bool, result: Any) -> Any:
    """Count the pieces, of n up to `end`, that are no wider than their ends are uncertain; leave them out.

    The pieces on either side of some that are left out meet in the middle of these, and become one if they
    have the same label. If all are narrow the widest stays.

    Returns:
        how many pieces there are now, and how many are or were narrow.
    """
    # (1) which is the widest, and stays whatever it is
    begins, labels, blurs = result
    widest, width = 0, -1.0
    for i in range(n):
        after = begins[i + 1] if i + 1 < n else end
        if after - begins[i] > width:
            widest, width = i, after - begins[i]
    # (2) keep those that are wide
    m, n_narrow, stop, stop_blur = 0, 0, begins[0], 0.0
    for i in range(n):
        begin, after, blur = begins[i], begins[i + 1] if i + 1 < n else end, blurs[i]
        next_blur = blurs[i + 1] if i + 1 < n else 0.0
        if i != widest and after - begin <= blur + next_blur:
            n_narrow += 1
            if leave_out:
                continue
        if m == 0 or labels[i] != labels[m - 1]:
            begins[m] = (stop + begin) / 2 if m > 0 else stop
            blurs[m] = max(stop_blur, blur)
            labels[m] = labels[i]
            m += 1
        stop, stop_blur = after, next_blur
    return m, n_narrow


@kernel
def decide_each(
    ends: Any,
    seen: Any,
    limit: float,
    spans: Any,
    trees: Any,
    votes: Any,
    slack: float,
    scratch: Any,
    line: Any,
    result: Any,
    counts: Any,
    starts: Any,
) -> int:
    """The pieces of several lines, one line after the other in `result`: see `decide`.

    Args:
        ends: coordinates at t = 0 and t = 1, (n, 2, d).
        seen: all numbers that the trees see at both ends of the span, (n, 2, m).
        limit: the largest that they can take.
        spans: (n, 2).
        trees: the trees.
        votes: their values, and what is made of them.
        slack: see `decide`.
        scratch: for one line.
        line: for one line, (d, 2).
        result: memory for all pieces of each line.
        counts: what `decide` returns of each line, (n, 5); no pieces for one that leaves the limit.
        starts: where the pieces of each line begin, and where the last ones end, (n + 1,).

    Returns:
        `LEAVES_LIMIT`, `IS_UNKNOWN` and `ENDS_ON_SPLIT` of any line, or 0.
    """
    begins, labels, blurs = result
    first, notes = 0, 0
    starts[0] = 0
    for i in range(len(ends)):
        # (1) the line in the coordinates of the trees
        if not lay(ends[i, 0], ends[i, 1], line, seen[i, 0], seen[i, 1], limit):
            counts[i] = 0
            starts[i + 1] = first
            notes |= LEAVES_LIMIT
            continue
        # (2) its pieces, after those of the lines before
        pieces = begins[first:], labels[first:], blurs[first:]
        k, n_pieces, n_nodes, n_tied, touched = decide(
            line, (spans[i, 0], spans[i, 1]), trees, votes, slack, scratch, pieces
        )
        counts[i, 0], counts[i, 1], counts[i, 2], counts[i, 3], counts[i, 4] = (
            k,
            n_pieces,
            n_nodes,
            n_tied,
            touched,
        )
        # (3) what is to be looked at again
        for j in range(k):
            if pieces[1][j] < 0:
                notes |= IS_UNKNOWN
        if touched:
            notes |= ENDS_ON_SPLIT
        first += k
        starts[i + 1] = first
    return notes


@kernel
def sift_each(starts: Any, spans: Any, leave_out: bool, result: Any, kept: Any) -> int:
    """Join and sift the pieces of several lines; those that are left come first in `result`, line by line.

    The pieces of line i are those from starts[i] to starts[i + 1]. How many of them are left, and are or were
    narrow, is written to `kept` (n, 2).

    Returns:
        how many are left in all.
    """
    begins, labels, blurs = result
    total = 0
    for i in range(len(kept)):
        # (1) the pieces of one line
        first = starts[i]
        pieces = begins[first:], labels[first:], blurs[first:]
        k = join(starts[i + 1] - first, pieces)
        k, n_narrow = sift(k, spans[i, 1], leave_out, pieces)
        # (2) after those of the lines before
        for j in range(k):
            begins[total + j], labels[total + j] = begins[first + j], labels[first + j]
        kept[i, 0], kept[i, 1] = k, n_narrow
        total += k
    return total
