"""The effective number of linear regions, and what Theorem 4.2 of Safran, Vardi, Lee 2022 says about it."""

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import UnivariateError
from inscape.univariate.net import ShallowNet
from inscape.univariate.sample import checked_sample


def effective_linear_regions(net: ShallowNet) -> int:
    """The number of linear regions on the largest plateau over both tolerances (`ShallowNet.region_table`).

    >>> hat = ShallowNet([1, 1, 1, 1], [1, 0, -1, -1e-12], [1, -2, 1, 1e-12])
    >>> effective_linear_regions(hat)
    4
    """
    return net.region_table().effective


def region_bound(n_changes: int) -> int:
    """32 r + 67: the most linear regions that remain in the limit of the flow if labels change r times.

    >>> region_bound(3)
    163
    """
    return 32 * whole_number(n_changes, "n_changes", 0, UnivariateError) + 67


def label_changes(x: npt.ArrayLike, y: npt.ArrayLike) -> int:
    """How often the labels change along ascending x.

    >>> label_changes([3, 1, 2], [1, 1, -1])
    2
    """
    places, labels = checked_sample(x, y, classes=True)
    return int((np.diff(labels[np.argsort(places, kind="stable")]) != 0).sum())
