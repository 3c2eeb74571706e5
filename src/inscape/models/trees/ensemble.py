"""A tree ensemble as flat arrays, all trees in one numbering of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.models.trees.cuts import Indices, blurs, cuts
from inscape.models.trees.scaling import Scaling

Nodes = npt.NDArray[np.int64]


class Rule(IntEnum):
    """How the scores of a point become its label."""

    ARGMAX = 0
    """The column of the greatest score, the first of them on a tie."""
    POSITIVE = 1
    """One score: label 1 if it is > 0 (histogram gradient boosting)."""
    NON_NEGATIVE = 2
    """One score: label 1 if it is >= 0 (gradient boosting)."""


class Tree(NamedTuple):
    """One tree of n nodes, the root first; `left` and `right` are -1 at a leaf."""

    feature: npt.NDArray[np.int64]
    threshold: Floats
    left: Nodes
    right: Nodes
    value: Floats
    """(n, w): what a leaf adds to the scores in columns `column` to `column + w - 1`."""
    column: int


class Vote(NamedTuple):
    """How trees become scores and a label: rule((start + sum of the leaves' values) / divisor)."""

    start: Floats
    divisor: float
    rule: Rule
    doubt: float = -1.0
    """A lead of no more than this, after the division, may be a matter of the order or precision of the
    model's own sums: then the model is asked. Negative where we add as it does."""


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """k trees with n nodes in all; nodes 0 to k - 1 are the roots, siblings are neighbours.

    An inner node sends a point x to `child` if x[feature] <= cut, else to `child + 1`. The scores of a
    point are (vote.start + the values of the k leaves that it reaches, added in the order of the
    trees) / vote.divisor, all in float64, as scikit-learn computes them.

    Attributes:
        feature: (n,) the input coordinate that a node looks at; -1 - j at a leaf of tree j.
        child: (n,) the left child of a node; the row of `value` at a leaf.
        cut: (n,) the last float64 number that `predict` sends to the left (see `cuts`).
        threshold: (n,) the stored threshold in the units of the input, for arithmetic without rounding.
        blur: (n,) the spacing of the numbers that `predict` can tell apart around the threshold.
        value: (m, w) the different leaf values.
        column: (k,) the first score column that a tree adds to.
        vote: how the values become a label.
        scaling: what happens to the input before the trees see it.
        single: whether the trees see float32.
        n_features: the number d of input coordinates.
    """

    feature: Indices
    child: Indices
    cut: Floats
    threshold: Floats
    blur: Floats
    value: Floats
    column: Indices
    vote: Vote
    scaling: Scaling
    single: bool
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
        """The precision of the numbers that the trees see, in words."""
        return "float32" if self.single else "float64"

    @property
    def limit(self) -> float:
        """The largest number that the trees can take."""
        return float(np.finfo(np.float32).max) if self.single else float(np.finfo(np.float64).max) / 4

    @cached_property
    def rounding(self) -> float:
        """A bound of the error of one addition of scores.

        It is 0 where all values are whole, as in forests of full-grown trees: such sums are exact.
        """
        if not (self.vote.start % 1).any() and not (self.value % 1).any():
            return 0.0
        bound = np.abs(self.vote.start).max() + self.n_trees * np.abs(self.value).max()
        return float(np.finfo(np.float64).eps * bound)


def assemble(
    trees: Sequence[Tree], vote: Vote, scaling: Scaling, *, single: bool, n_features: int
) -> TreeEnsemble:
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
    feature = np.where(leaf, -1 - tree, np.concatenate([t.feature for t in trees])[order]).astype(np.int32)
    threshold = np.where(leaf, np.inf, np.concatenate([t.threshold for t in trees])[order])
    return TreeEnsemble(
        feature=feature,
        child=child,
        cut=cuts(threshold, np.maximum(feature, 0), scaling, single=single),
        threshold=scaling.inverse(threshold, np.maximum(feature, 0)),
        blur=blurs(threshold, np.maximum(feature, 0), scaling, single=single),
        value=value,
        column=np.array([t.column for t in trees], dtype=np.int32),
        vote=vote,
        scaling=scaling,
        single=single,
        n_features=n_features,
    )


def _by_level(root: Nodes, left: Nodes, right: Nodes) -> Nodes:
    """All nodes in the order of their depth, siblings together, parents and pairs of children in one order.

    The nodes that most lines meet, near the roots, so become neighbours in memory.
    """
    levels = [root]
    while len(levels[-1]):
        inner = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.stack([left[inner], right[inner]], axis=1).ravel())
    return np.concatenate(levels)


def _different_rows(value: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The different rows of `value` (n, w), and for each of the n the number of its row.

    Rows are told apart by their bytes: leaves of full-grown trees have as many rows as there are classes.
    """
    value = np.ascontiguousarray(value)
    as_bytes = value.view(np.dtype((np.void, value.shape[1] * value.itemsize))).ravel()
    _, first, row = np.unique(as_bytes, return_index=True, return_inverse=True)
    return value[first], row
