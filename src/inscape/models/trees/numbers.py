"""Decision rules behind the numbers that trees predict.

The numbers of regression trees, forests and boosters, or the probabilities of a classifier, are functions of
what the leaves add up to, constant wherever no tree changes its leaf. If it is known which function, a rule
becomes a vote on these sums. If it is not, the model is evaluated on every piece, and its answer holds for
all of it.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from inscape.arrays import Array, Floats, Int32s, Shape
from inscape.models.base import Model
from inscape.models.decision_rules import (
    AffineRule,
    Argmax,
    Argmin,
    DecisionRule,
    Levels,
    NeverTaken,
    Signs,
    Threshold,
)
from inscape.models.trees.ensemble import NO_BALLOTS, SAFETY, Ballots, Rule, TreeEnsemble, Vote
from inscape.models.trees.readings import N_COMPARED, check_agreement, points_at_splits
from inscape.models.trees.views import EPS

SAME_NUMBER = 2.0**-20
"""Relative: what float32 may make of a sigmoid or an exponential."""
LARGEST_SUM = 40.0
"""Beyond it a sigmoid or a softmax may be rounded to 0 or 1."""
HEADS: dict[str | None, Callable[[Floats], Floats]] = {
    None: lambda s: s,
    "sigmoid": lambda s: 1 / (1 + np.exp(-s)),
    "exp": np.exp,
}
"""What libraries apply to each sum."""


def trees_by_rule(
    model: Model, summed: TreeEnsemble, rule_of: Callable[[Array, Shape], DecisionRule]
) -> TreeEnsemble:
    """The trees that decide as a model does which has a rule behind the numbers of its own.

    Args:
        model: what is compared with them at points next to their splits.
        summed: the trees of whose sums its outputs are functions.
        rule_of: from outputs (n, k) and the shape of a point to the rule.

    Raises:
        Unread: if they decide otherwise.
    """
    shape = model.known_shape() or (summed.n_features,)
    x = points_at_splits(summed, N_COMPARED)
    points = x.reshape(-1, *shape)
    with model.session():
        outputs = model.outputs(points)
        trees = decided_trees(summed, rule_of(outputs, shape), x, outputs.astype("float64"))
    check_agreement(trees, lambda points: model.labels(points.reshape(-1, *shape)))
    return trees


def own_rule(model: Model) -> Callable[[Array, Shape], DecisionRule]:
    """The rule of a model to which none was given, for outputs: the largest, or one above its threshold."""

    def rule(outputs: Array, input_shape: Shape) -> DecisionRule:
        if outputs.shape[1] > 1:
            return Argmax()
        return Threshold(model.natural_threshold(input_shape, outputs))

    return rule


class Numbers(NamedTuple):
    """Numbers (n, k) that are head(matrix @ sums), with sums (n, c)."""

    matrix: Floats
    """Of the sums, (k, c)."""
    head: str | None
    """What is applied to them behind it; None for nothing."""


def decided_trees(ensemble: TreeEnsemble, rule: DecisionRule, x: Floats, outputs: Floats) -> TreeEnsemble:
    """The ensemble whose labels are those that a rule makes of a model's numbers.

    Args:
        ensemble: the trees of the model; how they vote does not matter.
        rule: with its thresholds.
        x: points of the trees' input space, (n, d).
        outputs: the numbers that the model returns there, (n, k).

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from inscape.models.trees import read_trees
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = DecisionTreeRegressor().fit(x, [1.0, 4.0, 2.0, 8.0])
    >>> trees = read_trees(fitted, numbers=True)
    >>> decided_trees(trees, Levels((1.5, 3.0)), x, fitted.predict(x)[:, None]).labels(x).tolist()
    [0, 2, 1, 2]
    """
    numbers = recognised(ensemble, x, outputs)
    if numbers is None or not isinstance(rule, AffineRule):
        return always_asked(ensemble)
    try:
        before = rule if numbers.head is None else rule.before(numbers.head)
    except NeverTaken:
        before = None
    if before is None:
        return always_asked(ensemble)
    vote, matrix = _vote(before, numbers.matrix)
    doubt = _doubt(ensemble, rule, before, numbers)
    whole, value, child = _on_all_columns(ensemble)
    return replace(
        ensemble,
        value=np.ascontiguousarray(value @ matrix.T),
        child=child,
        column=np.zeros(ensemble.n_trees, np.int32),
        vote=vote._replace(
            start=whole @ matrix.T + ensemble.vote.divisor * vote.start,
            divisor=ensemble.vote.divisor,
            doubt=doubt,
        ),
    )


def always_asked(ensemble: TreeEnsemble) -> TreeEnsemble:
    """The ensemble on whose every piece the model is evaluated."""
    rule = Rule.POSITIVE if len(ensemble.vote.start) == 1 else Rule.ARGMAX
    return replace(
        ensemble, vote=ensemble.vote._replace(rule=rule, doubt=math.inf, classes=None, ballots=NO_BALLOTS)
    )


def recognised(ensemble: TreeEnsemble, x: Floats, outputs: Floats) -> Numbers | None:
    """Which function of the sums a model's numbers are; None if of no known one.

    Each number is one of the sums or its negative, behind one head; or all are the softmax of all sums.
    """
    sums, error = ensemble.scores(x), sum_error(ensemble)
    for head, function in HEADS.items():
        with np.errstate(over="ignore"):
            rows = [_row(function, sums, error, number) for number in outputs.T]
        if all(row is not None for row in rows):
            return Numbers(np.array(rows), head)
    if outputs.shape == sums.shape and sums.shape[1] > 1:
        shares = np.exp(sums - sums.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if np.allclose(shares, outputs, rtol=SAME_NUMBER + 2 * error, atol=1e-30):
            return Numbers(np.eye(sums.shape[1]), "softmax")
    return None


def _row(function: Callable[[Floats], Floats], sums: Floats, error: float, number: Floats) -> Floats | None:
    """The row of the matrix with which a number is a function of a sum, up to rounding."""
    rounding = SAME_NUMBER * np.abs(number)
    for j, factor in ((j, factor) for factor in (1.0, -1.0, 0.5, -0.5) for j in range(sums.shape[1])):
        s = factor * sums[:, j]
        low, high = function(s - error) - rounding, function(s + error) + rounding
        if ((low <= number) & (number <= high)).all():
            row = np.zeros(sums.shape[1])
            row[j] = factor
            return row
    return None


def sum_error(ensemble: TreeEnsemble) -> float:
    """By how much a model's own sums may differ from ours, which round otherwise."""
    return max(ensemble.vote.doubt, SAFETY * EPS * (ensemble.n_trees + 1) * largest_sum(ensemble))


def largest_sum(ensemble: TreeEnsemble) -> float:
    """A bound of all sums, divided."""
    start, value = np.abs(ensemble.vote.start).max(), np.abs(ensemble.value).max()
    return float((start + ensemble.n_trees * value) / ensemble.vote.divisor)


def _vote(rule: AffineRule, matrix: Floats) -> tuple[Vote, Floats]:
    """How scores `matrix @ sums + start` become the label of a rule; of members that vote, each has one."""
    if isinstance(rule, Argmax):
        return Vote(np.zeros(len(matrix)), 1.0, Rule.ARGMAX), (
            -matrix if isinstance(rule, Argmin) else matrix
        )
    if isinstance(rule, Threshold):
        assert rule.threshold is not None
        return Vote(np.array([-rule.threshold]), 1.0, Rule.POSITIVE), matrix
    if isinstance(rule, Signs):
        assert rule.threshold is not None
        start = -np.broadcast_to(np.array(rule.threshold), (len(matrix),))
        signs = rule.coefficients(len(matrix))[0]  # (2^k, k)
        gives = np.stack([signs.T == -1.0, signs.T == 1.0], axis=1)
    else:
        assert isinstance(rule, Levels)
        start, matrix = -np.array(rule.levels), np.repeat(matrix, len(rule.levels), axis=0)
        above = np.arange(len(start) + 1) > np.arange(len(start))[:, None]  # (m, m + 1)
        gives = np.stack([~above, above], axis=1)
    rules = np.full(len(start), int(Rule.POSITIVE), np.int64)
    ballots = Ballots(np.arange(len(start) + 1), rules, gives.astype(np.float64), -1.0)
    return Vote(np.array(start), 1.0, Rule.ARGMAX, ballots=ballots), matrix


def _doubt(ensemble: TreeEnsemble, rule: AffineRule, before: AffineRule, numbers: Numbers) -> float:
    """The lead of sums at which a model's own numbers may decide otherwise, by rounding."""
    own = sum_error(ensemble)
    if isinstance(rule, Argmax):
        if numbers.head is None:
            return 2 * own
        size = largest_sum(ensemble)
        return 2 * own + SAME_NUMBER * math.exp(size) if size < LARGEST_SUM else math.inf
    levels, inner = _thresholds(rule), _thresholds(before)
    own += SAFETY * EPS * float(np.abs(inner).max())
    if numbers.head is None:
        return own
    try:
        ends = [
            _thresholds(Levels((level * (1 + side * SAME_NUMBER),)).before(numbers.head))[0]  # type: ignore[arg-type]
            for level in levels
            for side in (-1, 1)
        ]
    except NeverTaken:
        return math.inf
    return own + float(np.abs(np.reshape(ends, (-1, 2)) - np.reshape(inner, (-1, 1))).max())


def _thresholds(rule: AffineRule) -> Floats:
    """What the numbers are compared with."""
    given = rule.levels if isinstance(rule, Levels) else rule.threshold  # type: ignore[attr-defined]
    return np.atleast_1d(np.array(given, dtype=np.float64))


def _on_all_columns(ensemble: TreeEnsemble) -> tuple[Floats, Floats, Int32s]:
    """The start, the leaf values with all score columns, and `child` with the rows of these at leaves."""
    n_columns, width = len(ensemble.vote.start), ensemble.value.shape[1]
    leaf = ensemble.feature < 0
    column = ensemble.column[-1 - ensemble.feature[leaf]].astype(np.int64)
    pairs, row = np.unique(column * len(ensemble.value) + ensemble.child[leaf], return_inverse=True)
    first, old = np.divmod(pairs, len(ensemble.value))
    value = np.zeros((len(pairs), n_columns + width))
    np.put_along_axis(value, first[:, None] + np.arange(width), ensemble.value[old], axis=1)
    child = ensemble.child.copy()
    child[leaf] = row
    return ensemble.vote.start, value[:, :n_columns], child
