"""Subsets by seed, with as many points of each class."""

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Array, Ints
from inscape.errors import DataError
from inscape.seeding import RandomState, as_generator


def balanced_rows(y: Array | None, n_points: int, n: int, random_state: RandomState) -> Ints:
    """The rows of n random points, in random order; of each class as many, up to one.

    Without classes every subset is as likely. With the same seed, a smaller subset is part of a larger one
    if both are multiples of the number of classes.

    >>> np.bincount(np.arange(30)[balanced_rows(np.arange(30) % 3, 30, 12, 0)] % 3)
    array([4, 4, 4])
    """
    n = whole_number(n, "n", 1, DataError)
    if n > n_points:
        raise DataError(f"n={n} points are too many: there are {n_points}")
    rng = as_generator(random_state)
    if y is None:
        return rng.permutation(n_points)[:n]
    names, members = np.unique(y, return_inverse=True)
    extra = set(rng.permutation(len(names))[: n % len(names)].tolist())
    chosen = []
    for k, name in enumerate(names):
        rows = rng.permutation(np.flatnonzero(members == k))
        share = n // len(names) + (k in extra)
        if share > len(rows):
            raise DataError(
                f"n={n} points of {len(names)} classes need {share} of class {name}, which has {len(rows)}: "
                f"take at most {len(names) * np.bincount(members).min()}"
            )
        chosen.append(rows[:share])
    return rng.permutation(np.concatenate(chosen))
