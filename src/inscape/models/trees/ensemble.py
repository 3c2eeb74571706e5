"""A tree ensemble as flat arrays, all trees in one numbering of nodes; several that vote together, as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inscape.arrays import Bools, Floats, Int32s, Ints
from inscape.models.trees.views import EPS, AffineMap, Scaling, View, blurs, last_on_left

SAFETY = 4.0
"""How many times the bound of rounding a lead must be, for the order and precision of sums not to matter."""


class Rule(IntEnum):
    """How the scores of a point become its label."""

    ARGMAX = 0
    """The column of the greatest score, the first of them on a tie."""
    POSITIVE = 1
    """One score: label 1 if it is > 0 (histogram gradient boosting, and other libraries)."""
    NON_NEGATIVE = 2
    """One score: label 1 if it is >= 0 (gradient boosting)."""


class Tree(NamedTuple):
    """One tree of n nodes, the root first; `left` and `right` are -1 at a leaf."""

    feature: Ints
    """Which feature, as the trees see them, each node compares, (n,)."""
    threshold: Floats
    """What it is compared with, (n,)."""
    left: Ints
    """The node that a smaller or equal number goes to, (n,)."""
    right: Ints
    """The node that a larger one goes to, (n,)."""
    value: Floats
    """(n, w): what a leaf adds to the scores in columns `column` to `column + w - 1`."""
    column: int
    """The first score column that the leaves add to."""
    strict: Bools | bool = False
    """Whether a node sends a point to the left if it is less than the threshold, not equal, (n,)."""
    resolution: float = 0.0
    """Numbers around zero that are nearer to each other than this are one to the library."""


class Ballots(NamedTuple):
    """Members that vote by their labels: each has score columns of its own.

    Attributes:
        first: where the columns of each of g members begin, and where the last end, (g + 1,).
        rules: how the scores of each become its label, (g,).
        gives: what each label of a member gives to the c classes, (g, labels, c); the largest sum wins.
        close: sums that differ by no more than this may be equal up to rounding; negative if all are whole.
    """

    first: Ints
    rules: Ints
    gives: Floats
    close: float


NO_BALLOTS = Ballots(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((0, 0, 0)), -1.0)


class Vote(NamedTuple):
    """How trees become scores and a label: rule((start + sum of the leaves' values) / divisor)."""

    start: Floats
    """What the score columns have before any tree, (c,)."""
    divisor: float
    """What the sums are divided by."""
    rule: Rule
    """How the scores become a label."""
    doubt: float = -1.0
    """A lead of no more than this, after the division, may be a matter of the order or precision of the
    model's own sums: then the model is evaluated. Negative where we add as it does."""
    are_fractions: bool = False
    """Whether the scores are the model's probabilities, as in forests."""
    classes: Ints | None = None
    """The label of each column, (c,) or (2,), where it is not the number of the column itself."""

    ballots: Ballots = NO_BALLOTS
    """How the scores become a label where they are those of several members; there is no `rule` then."""

    def named(self, columns: Ints) -> Ints:
        """The labels of columns, (n,); what is negative stays."""
        if self.classes is None:
            return columns
        return np.where(columns < 0, columns, self.classes[np.maximum(columns, 0)])

    def elected(self, scores: Floats) -> tuple[Ints, Floats]:
        """Which column of scores (n, c) wins at each point, and by how much; see `line_walk.elected`."""
        first, rules, gives, close = self.ballots
        if not len(rules):
            return _winners(scores, self.rule)
        totals, least = np.zeros((len(scores), gives.shape[2])), np.full(len(scores), np.inf)
        for g, rule in enumerate(rules):
            labels, lead = _winners(scores[:, first[g] : first[g + 1]], Rule(rule))
            totals, least = totals + gives[g, labels], np.minimum(least, lead)
        labels, lead = _winners(totals, Rule.ARGMAX)
        return labels, np.where(lead > close, least, 0.0)


def _winners(scores: Floats, rule: Rule) -> tuple[Ints, Floats]:
    """The winning column of each row, and its lead."""
    if rule != Rule.ARGMAX:
        score = scores[:, 0]
        wins = (score > 0) | ((score == 0) & (rule == Rule.NON_NEGATIVE))
        return wins.astype(np.int64), np.abs(score)
    ordered = np.sort(scores, axis=1)
    lead = ordered[:, -1] - ordered[:, -2] if scores.shape[1] > 1 else np.full(len(scores), np.inf)
    return scores.argmax(axis=1), lead


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """k trees with n nodes in all; nodes 0 to k - 1 are the roots, siblings are neighbours.

    The coordinates u of a point x are x itself, or M x + b. An inner node sends it to `child` if
    u[feature] <= last_left, else to `child + 1`. The scores of a point are (vote.start + the values of the
    k leaves that it reaches, added in the order of the trees) / vote.divisor, all in float64.

    Attributes:
        feature: (n,) the coordinate that a node compares; -1 - j at a leaf of tree j.
        child: (n,) the left child of a node; the row of `value` at a leaf.
        last_left: (n,) the last float64 number that `predict` sends to the left (see `last_on_left`).
        threshold: (n,) the stored threshold in the units of u, for arithmetic without rounding.
        blur: (n,) the spacing of the numbers that `predict` can tell apart around the threshold.
        value: (m, w) the different leaf values.
        column: (k,) the first score column that a tree adds to.
        vote: how the values become a label.
        views: how the trees see a point; several where models with transformers of their own vote.
        oblique: M and b, if coordinates are directions of the input space.
        n_features: the number d of input coordinates.
    """

    feature: Int32s
    child: Int32s
    last_left: Floats
    threshold: Floats
    blur: Floats
    value: Floats
    column: Int32s
    vote: Vote
    views: tuple[View, ...]
    oblique: AffineMap | None
    n_features: int

    @property
    def n_trees(self) -> int:
        """The number k of trees."""
        return len(self.column)

    @cached_property
    def n_leaves(self) -> int:
        """The number of leaves, which bounds the pieces of any segment: it meets a leaf in one interval."""
        return int((self.feature < 0).sum())

    @cached_property
    def depth(self) -> int:
        """The most nodes from a root to a leaf, both counted."""
        nodes, depth = np.arange(self.n_trees), 0
        while len(nodes):
            inner = nodes[self.feature[nodes] >= 0]
            nodes, depth = np.concatenate([self.child[inner], self.child[inner] + 1]), depth + 1
        return depth

    @property
    def precision(self) -> str:
        """The coarsest precision of the numbers that the trees see, in words."""
        return min(view.precision for view in self.views)

    @property
    def limit(self) -> float:
        """The largest number that all trees can take."""
        return min(view.limit for view in self.views)

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates."""
        return self.n_features if self.oblique is None else len(self.oblique.offset)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the trees see coordinates of the input as they are, apart from a cast."""
        return all(view.is_plain for view in self.views)

    def coordinates(self, x: Floats) -> Floats:
        """The coordinates u of points (n, d)."""
        return x if self.oblique is None else self.oblique.points(x)

    def seen(self, x: Floats) -> Floats:
        """All numbers that trees compare with thresholds at points (n, d), infinite where they overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate([view.seen(x) for view in self.views], axis=1)

    def blur_between(self, corners: Callable[[], Floats]) -> Floats:
        """`blur` and, if coordinates are directions, their rounding anywhere between points (n, d)."""
        if self.oblique is None:
            return self.blur
        return np.asarray(self.blur + self.oblique.rounding(corners())[np.maximum(self.feature, 0)])

    def behind(self, factor: Floats, offset: Floats) -> "TreeEnsemble":
        """The ensemble of points x that are given to this one as factor x + offset, (d,) each."""
        scaling = Scaling((("*", factor), ("+", offset)))
        if self.oblique is None and scaling.is_increasing:
            feature = np.maximum(self.feature, 0)
            return replace(
                self,
                last_left=last_on_left(self.last_left, feature, scaling, single=False),
                threshold=scaling.inverse(self.threshold, feature),
                blur=self.blur / scaling.slope(feature),
                views=tuple(replace(view, before=scaling) for view in self.views),
            )
        matrix, own = self.oblique or AffineMap(np.eye(self.n_features), np.zeros(self.n_features))
        oblique = AffineMap(matrix * factor, matrix @ offset + own)
        views = (View(oblique=oblique, single=any(view.single for view in self.views)),)
        return replace(self, oblique=oblique, views=views)

    def scores(self, x: Floats) -> Floats:
        """What the leaves of each point (n, d) add up to, divided, (n, c)."""
        u, tree = self.coordinates(x), np.arange(self.n_trees)
        node = np.broadcast_to(tree, (len(x), self.n_trees))
        for _ in range(self.depth):
            f = self.feature[node]
            right = np.take_along_axis(u, np.maximum(f, 0), axis=1) > self.last_left[node]
            node = np.where(f >= 0, self.child[node] + right, node)
        sums = np.tile(self.vote.start, (len(x), 1))
        for k in tree:
            values = self.value[self.child[node[:, k]]]
            sums[:, self.column[k] : self.column[k] + values.shape[1]] += values
        return np.asarray(sums / self.vote.divisor)

    def labels(self, x: Floats) -> Ints:
        """The label of each point (n, d), or -1 where the lead is in doubt."""
        columns, lead = self.vote.elected(self.scores(x))
        return self.vote.named(np.where(lead > self.vote.doubt, columns, -1))

    @cached_property
    def rounding(self) -> float:
        """A bound of the error of one addition of scores.

        It is 0 where all values are whole, as in forests of full-grown trees: such sums are exact.
        """
        if not (self.vote.start % 1).any() and not (self.value % 1).any():
            return 0.0
        bound = np.abs(self.vote.start).max() + self.n_trees * np.abs(self.value).max()
        return float(np.finfo(np.float64).eps * bound)


def assemble(trees: Sequence[Tree], vote: Vote, view: View, *, n_features: int) -> TreeEnsemble:
    """The ensemble of `trees`, its nodes renumbered level by level."""
    sizes = np.array([len(t.feature) for t in trees])
    root = np.cumsum(sizes) - sizes
    left = np.concatenate([np.where(t.left < 0, -1, t.left + r) for t, r in zip(trees, root, strict=True)])
    right = np.concatenate([np.where(t.left < 0, -1, t.right + r) for t, r in zip(trees, root, strict=True)])
    order = _by_level(root, left, right)
    leaf = left[order] < 0
    tree = np.repeat(np.arange(len(trees)), sizes)[order]
    value, row = _different_rows(np.concatenate([t.value for t in trees])[order][leaf])
    child = np.empty(len(order), dtype=np.int32)
    child[leaf], child[~leaf] = row, len(trees) + 2 * np.arange((~leaf).sum())
    seen = np.where(leaf, 0, np.concatenate([t.feature for t in trees])[order]).astype(np.int32)
    strict = np.concatenate([np.broadcast_to(t.strict, len(t.feature)) for t in trees])[order] & ~leaf
    threshold = np.where(leaf, np.inf, np.concatenate([t.threshold for t in trees])[order])
    feature = seen if view.columns is None else view.columns[seen]
    least = max(t.resolution for t in trees) / view.scaling.slope(seen)
    return TreeEnsemble(
        feature=np.where(leaf, -1 - tree, feature).astype(np.int32),
        child=child,
        last_left=last_on_left(threshold, seen, view.scaling, single=view.single, strict=strict),
        threshold=view.scaling.inverse(threshold, seen),
        blur=np.maximum(blurs(threshold, seen, view.scaling, single=view.single), least),
        value=value,
        column=np.array([t.column for t in trees], dtype=np.int32),
        vote=vote,
        views=(view,),
        oblique=view.oblique,
        n_features=n_features,
    )


def _by_level(root: Ints, left: Ints, right: Ints) -> Ints:
    """All nodes in the order of their depth, siblings together, parents and pairs of children in one order.

    The nodes that most lines meet, near the roots, so become neighbours in memory.
    """
    levels = [root]
    while len(levels[-1]):
        inner = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.stack([left[inner], right[inner]], axis=1).ravel())
    return np.concatenate(levels)


def _different_rows(value: Floats) -> tuple[Floats, Ints]:
    """The different rows of `value` (n, w), and for each of the n the number of its row.

    Rows are told apart by their bytes: leaves of full-grown trees have as many rows as there are classes.
    """
    value = np.ascontiguousarray(value)
    as_bytes = value.view(np.dtype((np.void, value.shape[1] * value.itemsize))).ravel()
    _, first, row = np.unique(as_bytes, return_index=True, return_inverse=True)
    return value[first], row


def averaged(
    members: Sequence[TreeEnsemble], weights: Sequence[float], columns: Sequence[Floats], divisor: float
) -> TreeEnsemble:
    """Members whose probabilities, or other numbers, are added, weighted, and divided.

    Args:
        members: ensembles whose scores are these.
        weights: of each member.
        columns: for each member, (its classes, c): a one where its class is one of the c classes.
        divisor: what the sums are divided by.
    """
    weighted = list(zip(members, weights, columns, strict=True))
    values = [w / m.vote.divisor * m.value @ e for m, w, e in weighted]
    start = np.sum([w / m.vote.divisor * m.vote.start @ e for m, w, e in weighted], axis=0)
    joined = _joined(members, values, divisor, are_fractions=True)
    doubt = max(joined.vote.doubt, *(m.vote.doubt for m in members))
    return replace(joined, vote=joined.vote._replace(start=start, doubt=doubt))


def elected(members: Sequence[TreeEnsemble], values: Sequence[Floats], divisor: float) -> TreeEnsemble:
    """Members of any number of trees that vote by their labels.

    Args:
        members: of leaf values and rules of their own.
        values: what each label of a member gives to the c classes, (its classes, c).
        divisor: what the sums are divided by.
    """
    widths = [len(m.vote.start) for m in members]
    first = np.cumsum([0, *widths])
    width = max(m.value.shape[1] for m in members)
    leaves = [_padded(m.value / m.vote.divisor, width) for m in members]
    joined = _joined(members, leaves, 1.0, are_fractions=False)
    start = np.concatenate([m.vote.start / m.vote.divisor for m in members] + [np.zeros(width)])
    most = max(len(v) for v in values)
    gives = np.stack([np.concatenate([v, np.repeat(v[:1], most - len(v), axis=0)]) for v in values]) / divisor
    is_whole = not (gives % 1).any()
    close = -1.0 if is_whole else SAFETY * EPS * len(members) * float(np.abs(gives).max() * len(members))
    ballots = Ballots(
        first.astype(np.int64), np.array([m.vote.rule for m in members], dtype=np.int64), gives, close
    )
    column = np.concatenate([m.column + f for m, f in zip(members, first[:-1], strict=True)])
    sizes = [np.abs(m.vote.start).max() + m.n_trees * np.abs(m.value).max() for m in members]
    rounding = [m.n_trees * s / m.vote.divisor for m, s in zip(members, sizes, strict=True)]
    doubt = max(SAFETY * EPS * max(rounding), *(m.vote.doubt for m in members))
    vote = Vote(start, 1.0, Rule.ARGMAX, doubt, ballots=ballots)
    return replace(joined, vote=vote, column=column.astype(np.int32))


def _padded(value: Floats, width: int) -> Floats:
    """Leaf values (m, w) with columns of zeros behind them."""
    return np.concatenate([value, np.zeros((len(value), width - value.shape[1]))], axis=1)


def outvoted(members: Sequence[TreeEnsemble], values: Sequence[Floats], divisor: float) -> TreeEnsemble:
    """Single trees that vote for the class of their leaf: `values` is what each label of a member gives."""
    leaves = [v[m.value.argmax(axis=1)] for m, v in zip(members, values, strict=True)]
    return _joined(members, leaves, divisor, are_fractions=False)


def _joined(
    members: Sequence[TreeEnsemble], values: Sequence[Floats], divisor: float, *, are_fractions: bool
) -> TreeEnsemble:
    """All trees of the members in one numbering, with their roots first and leaf values (m, c) of each."""
    n_trees = np.array([m.n_trees for m in members])
    n_inner = np.array([len(m.feature) for m in members]) - n_trees
    first_root, first_node = _starts(n_trees), n_trees.sum() + _starts(n_inner)
    first_row = _starts(np.array([len(v) for v in values]))
    oblique, first_feature = _coordinates(members)
    feature, child = [], []
    for i, m in enumerate(members):
        leaf = m.feature < 0
        feature.append(np.where(leaf, m.feature - first_root[i], m.feature + first_feature[i]))
        child.append(m.child + np.where(leaf, first_row[i], first_node[i] - m.n_trees))
    value = np.concatenate(values)
    start = np.zeros(value.shape[1])
    size = sum(len(v) and n * np.abs(v).max() for n, v in zip(n_trees, values, strict=True)) / divisor
    doubt = SAFETY * EPS * (n_trees.sum() + 1) * size

    def roots_first(of_members: Sequence[Floats]) -> Floats:
        both = [array[:k] for array, k in zip(of_members, n_trees, strict=True)]
        return np.concatenate([*both, *(array[k:] for array, k in zip(of_members, n_trees, strict=True))])

    return TreeEnsemble(
        feature=roots_first(feature).astype(np.int32),
        child=roots_first(child).astype(np.int32),
        last_left=roots_first([m.last_left for m in members]),
        threshold=roots_first([m.threshold for m in members]),
        blur=roots_first([m.blur for m in members]),
        value=value,
        column=np.zeros(n_trees.sum(), dtype=np.int32),
        vote=Vote(start, divisor, Rule.ARGMAX, float(doubt), are_fractions),
        views=tuple(view for m in members for view in m.views),
        oblique=oblique,
        n_features=members[0].n_features,
    )


def _starts(sizes: Floats) -> Floats:
    """Where each of several blocks begins."""
    return np.cumsum(sizes) - sizes


def _coordinates(members: Sequence[TreeEnsemble]) -> tuple[AffineMap | None, list[int]]:
    """Coordinates that all members can be compared in, and where those of each begin."""
    maps = [m.oblique for m in members]
    if all(o is None for o in maps):
        return None, [0] * len(members)
    if all(o is maps[0] for o in maps):
        return maps[0], [0] * len(members)
    d = members[0].n_features
    whole = [AffineMap(np.eye(d), np.zeros(d)) if o is None else o for o in maps]
    starts = _starts(np.array([len(o.offset) for o in whole]))
    matrix, offset = (np.concatenate([o[k] for o in whole]) for k in (0, 1))
    return AffineMap(matrix, offset), starts.tolist()
