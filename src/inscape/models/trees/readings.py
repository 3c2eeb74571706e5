"""What is read of a model that is made of trees, and what stands in the way."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.errors import PartitionError
from inscape.models.trees.ensemble import SAFETY, Rule, Tree, TreeEnsemble, Vote

N_COMPARED = 256
"""Points at which trees that were read are compared with the model that they were read from."""
BESIDE_SPLIT = 1e-9
"""How far from the splits of oblique trees they are compared, relative to the size of the numbers."""


class Unread(Exception):
    """A fitted object cannot be read; the message says which, and why, as the end of "because ..."."""

    def refusal(self, name: str) -> PartitionError:
        """The error for an exact request on the model of that name."""
        return PartitionError(
            f"{name} cannot be counted exactly because {self}",
            remedy='use method="adaptive", or method="grid" to compare with grids',
        )


class Reading(NamedTuple):
    """Trees, how they vote, and whether they see float32."""

    trees: list[Tree]
    """The trees, in the order in which they are added."""
    vote: Vote
    """How they vote."""
    single: bool
    """Whether they see points in float32."""
    without_classes: str | None = None
    """Why the votes are no classes, as the end of "because ...": then the trees predict numbers."""


def vote_in(
    dtype: type[np.floating], trees: Sequence[Tree], start: Floats, rule: Rule, divisor: float = 1.0
) -> Vote:
    """The vote of a model that adds leaf values in a precision, then may take their softmax or sigmoid.

    Its sums are (k + 1) roundings, of numbers no larger than the sum of the largest values, from ours, and a
    softmax makes two scores equal that differ by a few units in the last place.

    >>> stump = Tree(np.zeros(1, int), np.zeros(1), -np.ones(1, int), -np.ones(1, int), np.ones((1, 1)), 0)
    >>> vote_in(np.float64, [stump], np.zeros(1), Rule.POSITIVE).doubt < 1e-14
    True
    """
    eps = float(np.finfo(dtype).eps)
    largest, count = np.abs(start).astype(np.float64), np.ones(len(start))
    for tree in trees:
        columns = slice(tree.column, tree.column + tree.value.shape[1])
        largest[columns] += np.abs(tree.value[tree.left < 0]).max(axis=0)
        count[columns] += 1
    doubt = SAFETY * eps * (1.0 + float((count * largest).max()) / divisor)
    return Vote(np.asarray(start, dtype=np.float64), divisor, rule, doubt)


def check_agreement(ensemble: TreeEnsemble, labels: Callable[[Floats], Ints]) -> None:
    """Compare trees with the model that they were read from, at points between and next to their splits.

    Raises:
        Unread: if it predicts otherwise, as another version of a library may.
    """
    points = points_at_splits(ensemble, N_COMPARED)
    expected, predicted = ensemble.labels(points), labels(points)
    known = expected >= 0
    if not np.array_equal(expected[known], predicted[known]):
        raise Unread("its trees, as they were read, do not predict what it does: its version is not known")


def points_at_splits(ensemble: TreeEnsemble, n: int) -> Floats:
    """Points each coordinate of which is near some split of that coordinate, on either side, (n, d)."""
    rng = np.random.default_rng(0)
    inner = np.flatnonzero((ensemble.feature >= 0) & np.isfinite(ensemble.last_left))
    u = rng.standard_normal((n, ensemble.n_coordinates))
    order = inner[np.argsort(ensemble.feature[inner], kind="stable")]
    for group in np.split(order, np.flatnonzero(np.diff(ensemble.feature[order])) + 1):
        if len(group):
            chosen = rng.choice(group, n)
            step = (4 * ensemble.blur[chosen] + np.ptp(ensemble.last_left[group]) / 8) * rng.standard_normal(
                n
            )
            is_near = rng.random(n) < 0.5
            near = np.where(rng.random(n) < 0.5, 0.0, 4 * ensemble.blur[chosen])
            if ensemble.oblique is not None:  # a point that is to lie on a split lies beside it, by rounding
                beside = 4 * ensemble.blur[chosen] + BESIDE_SPLIT * (1 + np.abs(ensemble.last_left[chosen]))
                near = np.where(near > 0, beside, -beside)
            u[:, ensemble.feature[group[0]]] = ensemble.last_left[chosen] + np.where(is_near, near, step)
    if ensemble.oblique is None:
        return u
    matrix, offset = ensemble.oblique
    return np.asarray(np.linalg.lstsq(matrix, (u - offset).T, rcond=None)[0].T)
