"""Why width r is not enough: our construction for Theorem 3.2 of Safran, Vardi, Lee 2022.

The text leaves the construction to an appendix that we do not have. Ours: x is uniform on [0, 2] and the
teacher alternates on r + 1 intervals of equal length. A neuron with w < 0 and b < 0 (probability 1/4 under
Assumption 2.1) is zero for all x > 0, has zero gradient at every sample, and so never moves: it is dead for
ever. With A neurons alive f has at most A knots, so at most A + 1 changes of sign on [0, 2], while the labels
change r times: `least_error` says what that costs.
"""

import math

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import UnivariateError
from inscape.univariate.net import ShallowNet
from inscape.univariate.teacher import teacher_of

SUPPORT = (0.0, 2.0)


def alternating_teacher(n_changes: int) -> ShallowNet:
    """The teacher of width r that alternates on r + 1 equal intervals of [0, 2].

    >>> alternating_teacher(3).sign_changes().tolist()
    [0.5, 1.0, 1.5]
    """
    r = whole_number(n_changes, "n_changes", 1, UnivariateError)
    return teacher_of(np.linspace(*SUPPORT, r + 2)[1:-1])


def alive(net: ShallowNet) -> npt.NDArray[np.bool_]:
    """Which neurons can ever move on data in [0, 2]: those that are positive somewhere on x > 0, (k,)."""
    return np.asarray((net.w > 0) | (net.b > 0))


def least_error(n_changes: int, n_alive: int) -> float:
    """A lower bound of the error on [0, 2] of every net with `n_alive` neurons alive.

    f changes sign at most s = n_alive + 1 times. Suppose it is wrong on fewer than e = ceil((r - s) / 2)
    whole intervals of the teacher. Each other interval has a point where f has the teacher's sign; dropping e
    - 1 intervals from an alternating row takes away at most 2 (e - 1) changes, so f changes sign at least r -
    2 (e - 1) > s times: impossible. So e whole intervals are wrong, each of mass 1 / (r + 1).

    >>> least_error(20, 10)
    0.23809523809523808
    """
    return max(0, math.ceil((n_changes - n_alive - 1) / 2)) / (n_changes + 1)


def stated_loss(alpha: float) -> float:
    """(1 - 0.75 alpha) / 4, which Theorem 3.2 says the population loss reaches with probability >= 1/4."""
    return (1 - 0.75 * alpha) / 4
