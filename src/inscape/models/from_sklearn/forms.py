"""What a fitted estimator is along a straight line, beside a graph: trees behind transformers, and more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.models.from_sklearn.transformers import (
    Chain,
    Each,
    Join,
    Named,
    Take,
    affine_map,
    read_transformers,
)
from inscape.models.trees import Scaling, TreeEnsemble, View, averaged, elected, outvoted, read_trees

if TYPE_CHECKING:
    from inscape.models.graph import Graph

NEUTRAL = {"+": 0.0, "-": 0.0, "*": 1.0, "/": 1.0}
FeatureSteps = tuple[tuple[str, Floats], ...]


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Classes whose scores are f_k(z) = constants_k - |F_k (z - centres_k)|^2; the largest wins.

    Attributes:
        factors: F_k of each class, (r, d), or its diagonal (d,).
        centres: (c, d).
        constants: (c,), all finite.
        labels: which label each of the c classes is, (c,).
        front: from a point x of the input to z; None for the identity.
    """

    structure: ClassVar[str] = "quadratic"

    factors: tuple[Floats, ...]
    centres: Floats
    constants: Floats
    labels: Ints
    front: "Graph | None"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k training points nearest to z vote, the smallest label first among equals.

    Attributes:
        points: (n, d).
        labels: (n,).
        k: how many of them vote.
        n_classes: the number of labels.
        front: from a point x of the input to z; None for the identity.
    """

    structure: ClassVar[str] = "neighbours"

    points: Floats
    labels: Ints
    k: int
    n_classes: int
    front: "Graph | None"


@dataclass(frozen=True, eq=False)
class Duels:
    """Every two classes i < j duel: a positive score is a vote for j, else i gets it; most votes win.

    Attributes:
        scores: the graph of the c (c - 1) / 2 scores, in the order (0, 1), (0, 2), ..., (1, 2), ...
        n_classes: c.
        by_confidence: whether among the most votes the largest sum of a class's scores decides, else the
            smallest label.
    """

    structure: ClassVar[str] = "votes"

    scores: "Graph"
    n_classes: int
    by_confidence: bool


@dataclass(frozen=True, eq=False)
class Votes:
    """Members vote: label = argmax of (the sum over members of values[their label]) / divisor.

    Attributes:
        members: what each of them is along a line.
        values: for each member, what each of its labels gives to the c classes, (its classes, c); added in
            this order in float64, as scikit-learn does.
        divisor: what the sums are divided by.
    """

    structure: ClassVar[str] = "votes"

    members: "tuple[Form, ...]"
    values: tuple[Floats, ...]
    divisor: float


Form: TypeAlias = "Graph | TreeEnsemble | Quadratics | Neighbours | Duels | Votes"
"""Whatever is exact along a line."""


def trees_behind(
    steps: Sequence[Named], estimator: Any, n_features: int, *, numbers: bool = False
) -> TreeEnsemble:
    """The trees of a fitted estimator behind transformers of points of `n_features`.

    With `numbers`, what the leaves add up to is wanted, not a label.

    Raises:
        Unread: if a transformer is not affine, or the estimator holds what is not read.
    """
    chain = read_transformers(steps)
    if not chain:
        return read_trees(estimator, numbers=numbers)
    return read_trees(estimator, view_behind(chain, n_features), n_features, numbers=numbers)


def view_behind(chain: Chain, n_features: int) -> View:
    """What trees see behind a chain: single features if that is all that it takes, else directions.

    >>> halves = view_behind((Take(np.array([2])), Each("/", [2.0])), 3)
    >>> halves.seen(np.array([[5.0, 6.0, 7.0]])).tolist(), halves.oblique
    ([[3.5]], None)
    """
    single = _single_features(chain, np.arange(n_features))
    if single is None or not Scaling(single[1]).is_increasing:
        return View(oblique=affine_map(chain, n_features))
    columns, steps = single
    is_all = np.array_equal(columns, np.arange(n_features))
    return View(scaling=Scaling(steps), columns=None if is_all else columns)


def _single_features(
    chain: Chain, columns: Ints, steps: FeatureSteps = ()
) -> tuple[Ints, FeatureSteps] | None:
    """Which coordinate each feature is, and what happens to it; None if features are mixed, or clipped."""
    for step in chain:
        if isinstance(step, Each):
            steps = (*steps, (step.operation, np.array(np.broadcast_to(step.amount, len(columns)))))
        elif isinstance(step, Take):
            columns, steps = columns[step.columns], tuple((o, a[step.columns]) for o, a in steps)
        elif isinstance(step, Join):
            by_branch = [_single_features(branch, columns, steps) for branch in step.branches]
            branches = [branch for branch in by_branch if branch is not None]
            if len(branches) < len(by_branch):
                return None
            columns, steps = _side_by_side(branches)
        else:
            return None
    return columns, steps


def _side_by_side(branches: list[tuple[Ints, FeatureSteps]]) -> tuple[Ints, FeatureSteps]:
    """Features of several branches: the steps of each leave the features of the others as they are."""
    columns = np.concatenate([c for c, _ in branches])
    ends = np.cumsum([len(c) for c, _ in branches])
    steps = []
    for (own, branch_steps), end in zip(branches, ends, strict=True):
        for operation, amount in branch_steps:
            whole = np.full(len(columns), NEUTRAL[operation])
            whole[end - len(own) : end] = amount
            steps.append((operation, whole))
    return columns, tuple(steps)


def average_of(
    members: Sequence[Any], weights: Sequence[float], columns: Sequence[Floats], divisor: float
) -> TreeEnsemble | None:
    """Members that average their probabilities as one ensemble; None if these are not sums over leaves."""
    if not all(isinstance(m, TreeEnsemble) and m.vote.are_fractions for m in members):
        return None
    return averaged(members, weights, columns, divisor)


def sums_of(members: Sequence[TreeEnsemble | None], weights: Sequence[float]) -> TreeEnsemble | None:
    """Members whose numbers are averaged as one ensemble; None unless all are made of trees."""
    trees = [m for m in members if m is not None]
    if len(trees) < len(members) or any(len(m.vote.start) != m.value.shape[1] for m in trees):
        return None
    return averaged(trees, weights, [np.eye(len(m.vote.start)) for m in trees], 1.0)


def vote_of(members: Sequence[Any], values: Sequence[Floats], divisor: float) -> TreeEnsemble | None:
    """Members that vote by their labels as one ensemble; None unless all are made of trees.

    Args:
        members: what each is along a line.
        values: what each label of a member gives to the c classes, (its classes, c).
        divisor: what the sums are divided by.
    """
    if not all(isinstance(m, TreeEnsemble) and not len(m.vote.ballots.rules) for m in members):
        return None
    if all(m.n_trees == 1 and m.vote.are_fractions for m in members):
        return outvoted(members, values, divisor)
    return elected(members, values, divisor)
