# mypy: disallow-untyped-decorators=False
"""A polygon cut along the splits of restricted trees until the vote is certain on every cell.

A *cell* is a face that is not decided yet: a convex polygon with the node that each tree has come to there.
It is decided when the least that the leader can get, over all leaves below these nodes, is more than the most
that any other class can get. So most of the plane is decided after a few cuts, and only along decision
boundaries cells are cut until no tree is left to go down. The next cut is along the split that matters most
to the scores and leaves the wider of the narrower sides.

A *chord* is where a line cut a cell. A vertex lies on the chord that it was made on, at s from
0 at the chord's start to 1 at its end; a chord ends at two vertices. The cells on either side of a chord
are cut without regard to their neighbours, and `on_planes` brings their vertices together.

Where lines meet: a vertex is on a line if it could be, for all that is known of the line and of the two lines
that made the vertex (`displacement`). A line that has corners of a cell clearly on one side only does not cut
it, and one that passes by a corner goes through it. So nothing arises that is narrower than what the trees
can tell apart.
"""

from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Floats
from inscape.compiled import compiled, inlined, kernel
from inscape.errors import PartitionError
from inscape.models.trees import TreeEnsemble
from inscape.partition.decision.exact.trees.line_walk import ARGMAX, add_in_order, elected, winner
from inscape.partition.decision.exact.trees.restriction import RestrictedTrees

ASK = -2
"""The label of a face where the lead is too small: the model has to be evaluated."""
UNDECIDED = -1
VERTICES, CHORDS, FACES, CORNERS, CELLS, TIED, NARROW = range(7)
"""Indices into the array of counts: the last two of faces with a tie, and of splits that would have cut off
less than the trees can tell apart."""


class Vertices(NamedTuple):
    """Vertices; the first are the corners of the domain."""

    xy: Any
    """Coordinates, (v, 2)."""
    lines: Any
    """The two lines that meet there, (v, 2)."""
    error: Any
    """How far a vertex may be, in any direction, from where its lines were meant to meet, (v,)."""
    chord: Any
    """The chord that it was made on, -1 for a corner of the domain, (v,)."""
    s: Any
    """How far along that chord it lies, from 0 at its start to 1 at its end, (v,)."""


class Chords(NamedTuple):
    """Chords; the first are the sides of the domain."""

    line: Any
    """The number of the line that each lies on, (c,)."""
    ends: Any
    """The vertices at its start and its end, (c, 2)."""


class DecidedFaces(NamedTuple):
    """Decided cells."""

    label: Any
    """The label of each face, or `ASK`, (f,)."""
    start: Any
    """Where the corners of each face start."""
    vertex: Any
    """The vertices at the corners, anticlockwise around each face."""
    chord: Any
    """The chord that leaves each corner, anticlockwise."""


class WaitingCells(NamedTuple):
    """Cells that wait to be decided or cut, last in, first out."""

    first_corner: Any
    """Where the corners of each cell start, (cells,)."""
    n_corners: Any
    """How many corners it has, (cells,)."""
    vertex: Any
    """The vertices at the corners, anticlockwise."""
    chord: Any
    """The chord that leaves each corner."""
    first_node: Any
    """Where the open nodes of each cell start, (cells,)."""
    n_nodes: Any
    """How many there are, (cells,)."""
    node: Any
    """The nodes of the trees that are still open in a cell."""
    low: Any
    """What the score columns have at least, (cells, c)."""
    high: Any
    """What they have at most, (cells, c)."""


class LeafVotes(NamedTuple):
    """How leaf values become a label.

    A lead of no more than `slack` may be rounding; then the sum is taken again, in the order of the trees. If
    it leads by no more than `doubt`, that does not decide.
    """

    value: Any
    """What the leaves add, a vector for each of the different ones."""
    column: Any
    """The first score column that each tree adds to, (trees,)."""
    start: Any
    """What the columns have before any tree, (c,)."""
    divisor: float
    """What the sums are divided by."""
    rule: int
    """How the scores become a label, see `models.trees.Rule`."""
    slack: float
    """A lead of no more than this may be rounding."""
    doubt: float
    """A lead of no more than this, after the division, is a matter for the model itself."""
    ballots: Any
    """How several members vote: the fields of `models.trees.ensemble.Ballots`."""


class Partition(NamedTuple):
    """All that grows."""

    counts: Any
    """How many there are of each, see `VERTICES` and the constants beside it, (7,)."""
    vertices: Vertices
    """Where chords meet."""
    chords: Chords
    """Where cells were cut."""
    faces: DecidedFaces
    """What is decided."""
    cells: WaitingCells
    """What waits."""


def cut_into_faces(
    ensemble: TreeEnsemble, trees: RestrictedTrees, corners: Floats, most_faces: int
) -> Partition:
    """A convex polygon cut until each face has a label, or `ASK`.

    `trees.line` has the sides of the polygon behind the nodes' lines.

    Raises:
        PartitionError: if there are more faces than allowed.
    """
    vote = ensemble.vote
    slack = (
        4 * ensemble.rounding * ensemble.n_trees * (ensemble.depth + 1) + max(vote.doubt, 0.0) * vote.divisor
    )
    votes = LeafVotes(
        ensemble.value,
        ensemble.column,
        vote.start,
        vote.divisor,
        int(vote.rule),
        slack,
        vote.doubt,
        tuple(vote.ballots),
    )
    state = _one_cell(ensemble, trees, corners)
    while state.counts[CELLS]:
        decide_or_cut(trees, votes, state, most_faces)
        if state.counts[FACES] >= most_faces:
            raise PartitionError(
                f"the trees cut the plane into more than {most_faces:,} faces",
                remedy="use method='adaptive', or a smaller plane",
            )
        state = Partition(state.counts, *(_larger(array) for array in state[1:]))
    return _filled(state)


def _one_cell(ensemble: TreeEnsemble, trees: RestrictedTrees, corners: Floats) -> Partition:
    """The domain as the only cell, with all trees at their roots, in memory for a hundred of everything."""
    k, n_trees, size = len(corners), ensemble.n_trees, 100
    sides = len(trees.line) - k + np.arange(k)
    vertices = Vertices(
        xy=np.empty((size + k, 2)),
        lines=np.empty((size + k, 2), np.int32),
        error=np.zeros(size + k),
        chord=np.full(size + k, -1, np.int32),
        s=np.zeros(size + k),
    )
    vertices.xy[:k], vertices.lines[:k] = corners, np.stack([sides, np.roll(sides, 1)], axis=1)
    chords = Chords(np.empty(size + k, np.int32), np.empty((size + k, 2), np.int32))
    around = np.arange(k)
    chords.line[:k], chords.ends[:k] = sides, np.stack([around, np.roll(around, -1)], axis=1)
    n, c = 10 * (size + k), len(ensemble.vote.start)
    faces = DecidedFaces(
        np.empty(size, np.int32), np.zeros(size, np.int64), *(np.empty(n, np.int32) for _ in range(2))
    )
    cells = WaitingCells(
        first_corner=np.zeros(size, np.int64),
        n_corners=np.full(size, k),
        vertex=np.empty(n, np.int32),
        chord=np.empty(n, np.int32),
        first_node=np.zeros(size, np.int64),
        n_nodes=np.zeros(size, np.int64),
        node=np.empty(10 * n_trees, np.int32),
        low=np.empty((size, c)),
        high=np.empty((size, c)),
    )
    cells.vertex[:k], cells.chord[:k] = around, around
    roots = np.flatnonzero(trees.child[:n_trees] >= 0)
    cells.n_nodes[0], cells.node[: len(roots)] = len(roots), roots
    for bound, below in ((cells.low, trees.low), (cells.high, trees.high)):
        bound[0] = ensemble.vote.start
        for j in range(below.shape[1]):
            np.add.at(bound[0], ensemble.column + j, below[:n_trees, j])
    counts = np.zeros(7, np.int64)
    counts[[VERTICES, CHORDS, CELLS]] = k, k, 1
    return Partition(counts, vertices, chords, faces, cells)


def _larger(arrays: Any) -> Any:
    """The same arrays with twice the memory."""
    return type(arrays)(*(np.concatenate([a, np.zeros_like(a)]) for a in arrays))


def _filled(state: Partition) -> Partition:
    """What there is, without the memory behind it."""
    v, c, f, n = state.counts[:4]
    faces = state.faces
    return state._replace(
        vertices=Vertices(*(a[:v] for a in state.vertices)),
        chords=Chords(*(a[:c] for a in state.chords)),
        faces=DecidedFaces(faces.label[:f], faces.start[: f + 1], faces.vertex[:n], faces.chord[:n]),
    )


@inlined
def distance(line: Any, xy: Any, v: int) -> Any:
    """The signed distance of a vertex from a line, positive on its right."""
    return line[0] * xy[v, 0] + line[1] * xy[v, 1] - line[2]


@kernel
def displacement(v: int, x: float, y: float, vertices: Any, lines: Any) -> float:
    """How far a vertex may be, in the direction (x, y), from where its two lines were meant to meet.

    With unit normals n, n' and errors e, e' that is (e |m x n'| + e' |m x n|) / |n x n'| for the direction m.
    """
    first, second = lines[vertices.lines[v, 0]], lines[vertices.lines[v, 1]]
    sine = abs(first[0] * second[1] - first[1] * second[0])
    moved = first[3] * abs(x * second[1] - y * second[0]) + second[3] * abs(x * first[1] - y * first[0])
    return moved / sine if moved > 0.0 else 0.0


@kernel
def side_of(v: int, d: float, line: Any, vertices: Any, lines: Any) -> int:
    """1 or -1: a vertex at the distance d is on the right or left of a line; 0: it may be on it."""
    near = abs(d) <= line[3] + vertices.error[v]
    if near and abs(d) <= line[3] + displacement(v, line[0], line[1], vertices, lines):
        return 0
    return 1 if d > 0.0 else -1


@kernel
def crosses(corner: Any, line: Any, vertices: Any, lines: Any) -> Any:
    """Whether a line cuts a cell, and its least and greatest distance from the corners."""
    # (1) by the signs of the distances, if no corner is near
    lowest, highest, near = np.inf, -np.inf, False
    for i in range(len(corner)):
        d = distance(line, vertices.xy, corner[i])
        lowest, highest = min(lowest, d), max(highest, d)
        near |= abs(d) <= line[3] + vertices.error[corner[i]]
    if not near:
        return lowest < 0.0 < highest, lowest, highest
    # (2) else by how often the side changes around the cell, corners on the line left out
    before, first, changes = 0, 0, 0
    for i in range(len(corner)):
        side = side_of(corner[i], distance(line, vertices.xy, corner[i]), line, vertices, lines)
        if side != 0:
            changes += before * side < 0
            first = side if first == 0 else first
            before = side
    changes += before * first < 0
    return changes == 2, lowest, highest


@kernel
def certain(low: Any, high: Any, rule: int, slack: float) -> int:
    """The label that wins whatever the scores are between `low` and `high`, or `UNDECIDED`."""
    if rule != ARGMAX:
        return 1 if low[0] > slack else 0 if high[0] < -slack else UNDECIDED
    best = 0
    for j in range(1, len(low)):
        best = j if low[j] > low[best] else best
    for j in range(len(low)):
        if j != best and not high[j] < low[best] - slack:
            return UNDECIDED
    return best


@compiled
def settled(low: Any, high: Any, votes: Any) -> int:
    """The label that wins whatever the scores are between `low` and `high`, also where members vote."""
    # (1) one ensemble decides for itself
    first, rules, gives, close = votes.ballots
    if len(rules) == 0:
        return int(certain(low, high, votes.rule, votes.slack))
    # (2) what each class gets at least and at most: a member that is not sure may give what any label gives
    c, n_sure = gives.shape[2], 0
    least, most = np.zeros(c), np.zeros(c)
    for g in range(len(rules)):
        a, b = first[g], first[g + 1]
        label = certain(low[a:b], high[a:b], rules[g], votes.slack)
        n_sure += label != UNDECIDED
        for j in range(c):
            least[j] += gives[g, label, j] if label != UNDECIDED else gives[g, :, j].min()
            most[j] += gives[g, label, j] if label != UNDECIDED else gives[g, :, j].max()
    # (3) a tie of whole numbers is one, any other may be rounding
    if n_sure == len(rules) and close < 0.0:
        return int(winner(least, ARGMAX)[0])
    return int(certain(least, most, ARGMAX, max(close, 0.0)))


@inlined
def go_down(at: int, to: int, trees: Any, column: Any, low: Any, high: Any) -> None:
    """Let a tree go from a node to one below it: the bounds of the scores narrow."""
    first = column[trees.tree[at]]
    for j in range(trees.low.shape[1]):
        low[first + j] += trees.low[to, j] - trees.low[at, j]
        high[first + j] += trees.high[to, j] - trees.high[at, j]


@kernel
def go_on(corner: Any, nodes: Any, trees: Any, column: Any, vertices: Any, low: Any, high: Any) -> Any:
    """Let each open tree go down to the node whose line cuts the cell, or to a leaf.

    Returns:
        how many trees stay open, their nodes now the first of `nodes`; the number among them of the one to
        cut along; and how many splits would have cut off less than the trees can tell apart.
    """
    line, child = trees.line, trees.child
    m, pick, best, n_narrow = 0, -1, -1.0, 0
    for i in range(len(nodes)):
        at, lowest, highest = nodes[i], 0.0, 0.0
        while child[at] >= 0:
            is_cut, lowest, highest = crosses(corner, line[at], vertices, line)
            if is_cut:
                break
            n_narrow += min(highest, -lowest) > 4 * line[at, 4]
            to = child[at] + (highest + lowest > 0.0)
            go_down(at, to, trees, column, low, high)
            at = to
        if child[at] >= 0:
            nodes[m] = at
            score = trees.swing[at] * min(highest, -lowest)
            if score > best:
                best, pick = score, m
            m += 1
    return m, pick, n_narrow


@kernel
def new_vertex(p: int, q: int, chord: int, number: int, lines: Any, state: Any) -> Any:
    """The vertex where a line meets a chord between its vertices p and q.

    It is placed along the whole chord, so that cells on both sides find the same one for the same line.
    """
    # (1) where on the chord
    vertices, ends = state.vertices, state.chords.ends
    start, end = ends[chord, 0], ends[chord, 1]
    first = 0.0 if p == start else 1.0 if p == end else vertices.s[p]
    last = 0.0 if q == start else 1.0 if q == end else vertices.s[q]
    here, there = distance(lines[number], vertices.xy, start), distance(lines[number], vertices.xy, end)
    s = here / (here - there) if here != there else -1.0
    if not min(first, last) < s < max(first, last):
        s = (first + last) / 2
    # (2) what is known of it
    v, host = state.counts[VERTICES], state.chords.line[chord]
    state.counts[VERTICES] += 1
    for j in range(2):
        vertices.xy[v, j] = vertices.xy[start, j] + s * (vertices.xy[end, j] - vertices.xy[start, j])
    sine = abs(lines[host, 0] * lines[number, 1] - lines[host, 1] * lines[number, 0])
    vertices.error[v] = (lines[host, 3] + lines[number, 3]) / sine
    vertices.lines[v, 0], vertices.lines[v, 1] = host, number
    vertices.chord[v], vertices.s[v] = chord, s
    return v


@kernel
def nearest(first: int, last: int, corner: Any, line: Any, xy: Any) -> int:
    """The corner nearest to a line among those from `first` to before `last`, around the cell."""
    best, i = first, first
    while i != last:
        if abs(distance(line, xy, corner[i])) < abs(distance(line, xy, corner[best])):
            best = i
        i = (i + 1) % len(corner)
    return best


@compiled
def cut(corner: Any, along: Any, number: int, lines: Any, state: Any) -> None:
    """Cut a cell along a line that crosses it: its left side, then its right side, wait.

    Args:
        corner: the vertices of the cell, anticlockwise, (n,).
        along: the chord that leaves each, (n,).
        number: of the line.
        lines: all of them.
        state: the partition; the two sides go to where the cell was, and behind it.
    """
    # (1) on which side each corner is
    n, chord, vertices, line = len(corner), state.counts[CHORDS], state.vertices, lines[number]
    sides = np.empty(n, np.int64)
    for i in range(n):
        sides[i] = side_of(corner[i], distance(line, vertices.xy, corner[i]), line, vertices, lines)
    # (2) where the line leaves the right side, and where it comes back: at a corner on it, or inside an edge
    turn, via = np.empty(2, np.int64), np.empty(2, np.int64)
    before, after = np.empty(2, np.int64), np.empty(2, np.int64)
    for i in range(n):
        j = following = (i + 1) % n
        while sides[i] != 0 and sides[j] == 0:
            j = (j + 1) % n
        if sides[i] * sides[j] >= 0:
            continue
        k = int(sides[i] < 0)
        if j == following:
            turn[k] = new_vertex(corner[i], corner[j], along[i], number, lines, state)
            before[k], after[k], via[k] = i, j, along[i]
        else:
            z = nearest(following, j, corner, line, vertices.xy)
            turn[k], before[k], after[k], via[k] = corner[z], (z - 1) % n, (z + 1) % n, along[z]
    state.chords.line[chord] = number
    state.chords.ends[chord, 0], state.chords.ends[chord, 1] = turn[0], turn[1]
    state.counts[CHORDS] += 1
    # (3) each side runs from one turn to the other, and back along the chord
    cells, cell = state.cells, state.counts[CELLS]
    at = cells.first_corner[cell]
    for k in range(2):
        cells.first_corner[cell + k] = at
        cells.vertex[at], cells.chord[at] = turn[k], via[k]
        for step in range((before[1 - k] - after[k]) % n + 1):
            i = (after[k] + step) % n
            at += 1
            cells.vertex[at], cells.chord[at] = corner[i], along[i]
        cells.vertex[at + 1], cells.chord[at + 1] = turn[1 - k], chord
        at += 2
        cells.n_corners[cell + k] = at - cells.first_corner[cell + k]
    state.counts[CELLS] += 2


@kernel
def hand_on(cell: int, m: int, pick: int, trees: Any, column: Any, cells: Any) -> None:
    """Give both sides of a cell its m open nodes and its bounds; in each the tree that cuts it goes down."""
    first = cells.first_node[cell]
    at = cells.node[first + pick]
    cells.first_node[cell + 1] = first + m
    for i in range(m):
        cells.node[first + m + i] = cells.node[first + i]
    for j in range(cells.low.shape[1]):
        cells.low[cell + 1, j], cells.high[cell + 1, j] = cells.low[cell, j], cells.high[cell, j]
    for k in range(2):
        to, begin = trees.child[at] + k, first + k * m
        go_down(at, to, trees, column, cells.low[cell + k], cells.high[cell + k])
        is_open = trees.child[to] >= 0
        cells.node[begin + pick] = to if is_open else cells.node[begin + m - 1]
        cells.n_nodes[cell + k] = m if is_open else m - 1


@compiled
def vote(corner: Any, xy: Any, trees: Any, votes: Any) -> Any:
    """Label and lead in the middle of a cell, the values of the leaves added in the order of the trees."""
    n_trees = len(votes.column)
    x, y = 0.0, 0.0
    for v in corner:
        x, y = x + xy[v, 0] / len(corner), y + xy[v, 1] / len(corner)
    leaf = np.empty(n_trees, np.int32)
    for k in range(n_trees):
        at = np.int64(k)
        while trees.child[at] >= 0:
            at = trees.child[at] + (trees.line[at, 0] * x + trees.line[at, 1] * y > trees.line[at, 2])
        leaf[k] = trees.row[at]
    sums = np.empty(len(votes.start))
    add_in_order(leaf, votes.value, votes.column, votes.start, sums)
    totals = np.empty(votes.ballots[2].shape[2])
    return elected(sums / votes.divisor, votes.rule, votes.ballots, totals)


@kernel
def keep(corner: Any, along: Any, label: int, counts: Any, faces: Any) -> None:
    """Keep a decided cell as a face."""
    f, at = counts[FACES], counts[CORNERS]
    faces.label[f] = label
    for i in range(len(corner)):
        faces.vertex[at + i], faces.chord[at + i] = corner[i], along[i]
    counts[FACES], counts[CORNERS] = f + 1, at + len(corner)
    faces.start[f + 1] = counts[CORNERS]


@kernel
def has_memory(state: Any) -> Any:
    """Whether the last cell can become a face, or be cut, in the memory that there is."""
    counts, faces, cells = state.counts, state.faces, state.cells
    cell = counts[CELLS] - 1
    return (
        counts[VERTICES] + 2 <= len(state.vertices.s)
        and counts[CHORDS] + 1 <= len(state.chords.line)
        and counts[FACES] + 1 < len(faces.start)
        and counts[CORNERS] + cells.n_corners[cell] <= len(faces.vertex)
        and cell + 2 <= len(cells.n_nodes)
        and cells.first_corner[cell] + cells.n_corners[cell] + 4 <= len(cells.vertex)
        and cells.first_node[cell] + 2 * cells.n_nodes[cell] <= len(cells.node)
    )


@compiled
def decide_or_cut(trees: Any, votes: Any, state: Any, most_faces: int) -> None:
    """Decide or cut the cells that wait, until none is left, there are too many faces, or memory is short."""
    counts, vertices, cells = state.counts, state.vertices, state.cells
    while counts[CELLS] > 0 and counts[FACES] < most_faces and has_memory(state):
        # (1) take the last cell
        counts[CELLS] -= 1
        cell = counts[CELLS]
        first, n = cells.first_corner[cell], cells.n_corners[cell]
        corner, along = cells.vertex[first : first + n].copy(), cells.chord[first : first + n].copy()
        low, high, m = cells.low[cell], cells.high[cell], cells.n_nodes[cell]
        # (2) unless it is decided, let its trees go down as far as no line cuts it
        label, pick = settled(low, high, votes), -1
        if label == UNDECIDED:
            begin = cells.first_node[cell]
            nodes = cells.node[begin : begin + m]
            m, pick, n_narrow = go_on(corner, nodes, trees, votes.column, vertices, low, high)
            counts[NARROW] += n_narrow
            label = settled(low, high, votes)
        # (3) with no tree left to go down, ties and rounding decide as in `predict`
        if label == UNDECIDED and m == 0:
            label, lead = vote(corner, vertices.xy, trees, votes)
            counts[TIED] += lead == 0
            label = label if lead > votes.doubt else ASK
        # (4) keep it or cut it
        if label != UNDECIDED:
            keep(corner, along, label, counts, state.faces)
        else:
            number = cells.node[cells.first_node[cell] + pick]
            hand_on(cell, m, pick, trees, votes.column, cells)
            cut(corner, along, number, trees.line, state)
