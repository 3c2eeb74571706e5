"""Ensembles that vote together, as one ensemble."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inscape.arrays import Floats
from inscape.models.trees.ensemble import Ballots, Rule, TreeEnsemble, Vote
from inscape.models.trees.readings import SAFETY
from inscape.models.trees.views import EPS, AffineMap


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
